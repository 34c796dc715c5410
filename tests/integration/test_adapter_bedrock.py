"""The Model port on Bedrock: one HTTP request a call, errors told by their code, no half answer taken for a whole."""

from __future__ import annotations

import contextlib
import copy
import http.client
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lambdas.adapters.bedrock import KINDS, BedrockModel
from lambdas.adapters.clients import model_client
from lambdas.core.outcomes import ModelError
from lambdas.core.ports import ModelRequest
from local.model.server import ModelServer

LITE = "us.amazon.nova-lite-v1:0"
PATIENT_S = 120  # for calls that are answered: nobody waits for it


def request(prompt: str = "Is it so?", **over: Any) -> ModelRequest:
    return ModelRequest(**{"model": LITE, "system": "", "prompt": prompt, "max_tokens": 50, **over})


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "worker",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bedrock(model: ModelServer) -> Iterator[BedrockModel]:
    client = model_client(PATIENT_S)
    yield BedrockModel(client)
    client.close()


def calls(model: ModelServer) -> int:
    return len(model.calls.listed())


def failure(bedrock: BedrockModel, asked: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as error:
        bedrock.converse(asked or request())
    return error.value


def test_an_answer_has_its_text_its_stop_reason_and_its_tokens(model: ModelServer, bedrock: BedrockModel):
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
    model.script.replace([{"answer": "Yes.", "usage": usage}])
    reply = bedrock.converse(request())
    assert (reply.text, reply.stop_reason, reply.input_tokens, reply.output_tokens) == ("Yes.", "end_turn", 7, 3)


@pytest.mark.parametrize("stop_reason", ["max_tokens", "content_filtered", "guardrail_intervened", "stop_sequence"])
def test_why_a_model_stopped_is_told_as_it_said_it(model: ModelServer, bedrock: BedrockModel, stop_reason: str):
    model.script.replace([{"answer": "Half", "stop_reason": stop_reason}])
    assert bedrock.converse(request()).stop_reason == stop_reason


def sent_to(asked: ModelRequest) -> dict[str, Any]:
    """The arguments with which boto3 is called."""
    seen: list[dict[str, Any]] = []

    class Client:
        def converse(self, **arguments: Any) -> dict[str, Any]:
            seen.append(arguments)
            usage = {"inputTokens": 1, "outputTokens": 1}
            return {"output": {"message": {"content": [{"text": "ok"}]}}, "usage": usage, "stopReason": "end_turn"}

    BedrockModel(Client()).converse(asked)
    return seen[0]


def test_a_request_without_a_system_text_sends_none():
    """Converse refuses an empty one."""
    assert "system" not in sent_to(request(system=""))
    assert sent_to(request(system="Be brief."))["system"] == [{"text": "Be brief."}]


def test_bed_18_temperature_is_sent_alone_and_only_when_it_was_asked_for():
    assert sent_to(request())["inferenceConfig"] == {"maxTokens": 50}
    asked = request(temperature=0.0)
    assert sent_to(asked)["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.0}


def test_the_prompt_is_one_user_message():
    sent = sent_to(request("How?", model="eu.amazon.nova-lite-v1:0"))
    assert sent["messages"] == [{"role": "user", "content": [{"text": "How?"}]}]
    assert sent["modelId"] == "eu.amazon.nova-lite-v1:0"


# --- errors --------------------------------------------------------------------------------------
BILLED = {"ModelTimeoutException", "ModelErrorException", "ModelStreamErrorException"}
STATUS = {"transient": 500, "throttled": 429, "permanent": 400}


@pytest.mark.parametrize("code", sorted(KINDS))
def test_bed_03_an_error_is_told_by_its_code_and_sent_once(model: ModelServer, bedrock: BedrockModel, code: str):
    model.script.replace([{"error": {"code": code, "status": 400, "message": "no"}}])
    error = failure(bedrock)
    assert (error.kind, error.code, error.maybe_billed) == (KINDS[code], code, code in BILLED)
    assert calls(model) == 1


EXPECTED = {
    "ThrottlingException": "throttled",
    "ModelNotReadyException": "throttled",
    "ServiceUnavailableException": "transient",
    "InternalServerException": "transient",
    "ModelTimeoutException": "transient",
    "ModelErrorException": "transient",
    "ValidationException": "permanent",
    "AccessDeniedException": "permanent",
    "ResourceNotFoundException": "permanent",
    "ServiceQuotaExceededException": "permanent",
}


def test_bed_03_the_table_says_what_bedrocks_errors_mean():
    assert {code: KINDS[code] for code in EXPECTED} == EXPECTED


WORDS = [
    "Too many tokens, please wait before trying again.",
    "Input is too long for requested model.",
    "ThrottlingException: slow down",
    "Access denied",
    "internal server error",
    "",
]


@pytest.mark.parametrize(
    ("code", "words"),
    list(itertools.product(["ThrottlingException", "ValidationException", "InternalServerException"], WORDS)),
)
def test_bed_04_words_never_decide(model: ModelServer, bedrock: BedrockModel, code: str, words: str):
    model.script.replace([{"error": {"code": code, "message": words}}])
    assert failure(bedrock).kind == KINDS[code]


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "transient"), (503, "transient"), (400, "permanent"), (403, "permanent")]
)
def test_an_unknown_code_is_transient_only_as_a_server_error(
    model: ModelServer, bedrock: BedrockModel, status: int, kind: str
):
    model.script.replace([{"error": {"code": "BrandNewException", "status": status, "message": "?"}}])
    assert failure(bedrock).kind == kind


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_bed_06_a_refused_model_is_told_with_a_hint(model: ModelServer, bedrock: BedrockModel, code: str):
    model.script.replace([{"error": {"code": code, "message": "no."}}])
    assert len(str(failure(bedrock))) > len(f"{code}: no.") + 20


def test_bed_01_a_read_timeout_sends_the_prompt_exactly_once(model: ModelServer, monkeypatch: pytest.MonkeyPatch):
    model.script.replace([{"answer": "late", "delay_s": 300}])
    # of the deadline each wait has all of it: however slow this thread is, the prompt is sent before it is over
    monkeypatch.setattr("lambdas.adapters.single_call.time", SimpleNamespace(monotonic=lambda: 0.0))
    client = model_client(1)
    error = failure(BedrockModel(client))
    assert (error.kind, error.maybe_billed) == ("transient", True)
    ends = time.monotonic() + 60
    while not calls(model) and time.monotonic() < ends:
        time.sleep(0.01)
    time.sleep(0.7)  # a second attempt would be seen by now
    assert calls(model) == 1
    client.close()


def dripping(server: socket.socket, stop: threading.Event) -> None:
    """Answers one request with a byte every now and then, and has never done."""
    connection, _ = server.accept()
    with connection, contextlib.suppress(OSError):
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
        while not stop.wait(0.1):
            connection.sendall(b" ")


def test_bed_01_an_answer_that_drips_ends_at_the_deadline_of_the_whole_call(monkeypatch: pytest.MonkeyPatch):
    """A read timeout starts anew with each byte: without a deadline this would take a hundred seconds."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread = threading.Thread(target=dripping, args=(server, stop))
        thread.start()
        try:
            error = failure(BedrockModel(model_client(1)))
        finally:
            stop.set()
            thread.join()
    assert (error.kind, error.code, error.maybe_billed) == ("transient", "ReadTimeoutError", True)


def test_each_call_has_a_connection_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """One that was kept through a freeze may be dead without a sign."""
    connected: list[str] = []
    connect = http.client.HTTPConnection.connect

    def counted(self: http.client.HTTPConnection) -> None:
        connected.append(self.host)
        connect(self)

    monkeypatch.setattr(http.client.HTTPConnection, "connect", counted)
    with ModelServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        bedrock = BedrockModel(model_client(PATIENT_S))
        for _ in range(2):
            bedrock.converse(request())
    assert len(connected) == 2


@pytest.mark.parametrize("cut_after", [0, 5])
def test_a_cut_connection_is_transient_maybe_billed_and_sent_once(
    model: ModelServer, bedrock: BedrockModel, cut_after: int
):
    model.script.replace([{"answer": "a long answer", "cut_after": cut_after}])
    error = failure(bedrock)
    assert (error.kind, error.maybe_billed, calls(model)) == ("transient", True, 1)


def test_what_was_never_sent_is_not_billed(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", f"http://127.0.0.1:{taken.getsockname()[1]}")
        client = model_client(PATIENT_S)
        error = failure(BedrockModel(client))
        client.close()
    assert (error.kind, error.maybe_billed) == ("transient", False)


def test_a_request_that_botocore_itself_refuses_is_permanent_and_not_billed(model: ModelServer, bedrock: BedrockModel):
    """It would be refused the same way each time, and nothing has left this process."""
    error = failure(bedrock, request(max_tokens=0))
    assert calls(model) == 0
    assert (error.kind, error.maybe_billed) == ("permanent", False)


# --- answers that are none -----------------------------------------------------------------------
WHOLE: dict[str, Any] = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    "metrics": {"latencyMs": 1},
}


def without(*path: str) -> dict[str, Any]:
    whole = copy.deepcopy(WHOLE)
    part = whole
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    return whole


MALFORMED = {
    "no JSON": "<html>gateway</html>",
    "cut JSON": '{"output": {"mess',
    "empty": "",
    "null": "null",
    "a list": "[]",
    "no output": without("output"),
    "no message": without("output", "message"),
    "no content": without("output", "message", "content"),
    "no usage": without("usage"),
    "no input tokens": without("usage", "inputTokens"),
    "no output tokens": without("usage", "outputTokens"),
    "output is a list": {**WHOLE, "output": []},
    "content is a text": {**WHOLE, "output": {"message": {"content": "Yes."}}},
    "usage is a text": {**WHOLE, "usage": "much"},
    "tokens are a text": {**WHOLE, "usage": {"inputTokens": "many", "outputTokens": "few", "totalTokens": "x"}},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_an_answer_that_is_not_whole_is_transient_and_maybe_billed(
    model: ModelServer, bedrock: BedrockModel, name: str
):
    model.script.replace([{"raw": MALFORMED[name]}])
    error = failure(bedrock)
    assert (error.kind, error.maybe_billed, calls(model)) == ("transient", True, 1)


def test_an_answer_without_a_stop_reason_is_not_taken_for_a_finished_one(model: ModelServer, bedrock: BedrockModel):
    model.script.replace([{"answer": "Yes", "stop_reason": None}])
    assert bedrock.converse(request()).stop_reason == ""


def test_blocks_that_are_no_text_are_left_out(model: ModelServer, bedrock: BedrockModel):
    content = [
        {"text": "One. "},
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"text": "Two."},
    ]
    model.script.replace([{"raw": {**WHOLE, "output": {"message": {"role": "assistant", "content": content}}}}])
    assert bedrock.converse(request()).text == "One. Two."


def test_env_04_half_a_surrogate_in_an_answer_becomes_a_replacement_character(
    model: ModelServer, bedrock: BedrockModel
):
    raw = '{"output":{"message":{"role":"assistant","content":[{"text":"a\\ud800b \\ud83d\\ude00"}]}},'
    raw += '"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}'
    model.script.replace([{"raw": raw}])
    text = bedrock.converse(request()).text
    assert text == "a\ufffdb \U0001f600"
    text.encode()
