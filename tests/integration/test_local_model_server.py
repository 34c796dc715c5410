"""A real boto3 client against the local model server: answers, rules, the list of calls, a clean end."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from local.model.script import ScriptError
from local.model.server import ModelServer
from tests.integration.local_aws import sent_and_answered
from tests.integration.local_toys import eventually

LITE = "us.amazon.nova-lite-v1:0"
SCHEMA = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "participants": {"type": "array", "items": {"type": "string"}},
        "action_items": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary", "participants", "action_items"],
}
CALL = """[00:01] ANNA: The invoice for March is wrong, and the customer is angry.
[00:05] BEN: Okay.
[00:09] ANNA: Please send a corrected invoice to the customer before Friday.
[00:15] BEN: I will do that today."""


class SteppedClock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 29, 15, 30, 44, 123456, tzinfo=UTC)
        self.looks = 0

    def now(self) -> datetime:
        self.looks += 1
        return self.time

    def until_waited_for(self) -> None:
        """Whoever waits looks again and again: with the second look from now on his wait has begun, and goes on."""
        seen = self.looks
        eventually(lambda: self.looks >= seen + 2)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def bedrock(server: ModelServer) -> Iterator[Any]:
    client = bedrock_client(server.url)
    yield client
    client.close()


def bedrock_client(url: str, **config: Any) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="AKIALOCALWORKER",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=50, **config),
    )


def ask(client: Any, text: str = "Hello there", **fields: Any) -> Any:
    messages = [{"role": "user", "content": [{"text": text}]}]
    return client.converse(**{"modelId": LITE, "messages": messages, **fields})


def said(answer: Any) -> str:
    return str(answer["output"]["message"]["content"][0]["text"])


def control(server: ModelServer, method: str, path: str, body: object = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def new_threads(before: set[threading.Thread]) -> set[threading.Thread]:
    return set(threading.enumerate()) - before


# --- default answers ---------------------------------------------------------------------------------


def test_without_a_script_the_answer_has_the_shape_of_the_schema_in_the_system_prompt(bedrock: Any) -> None:
    system = f"Summarize the call.\n<schema>\n{json.dumps(SCHEMA)}\n</schema>\nAnswer with JSON alone."
    answer = ask(bedrock, CALL, system=[{"text": system}], inferenceConfig={"maxTokens": 400})
    assert json.loads(said(answer)) == {
        "summary": (
            "The invoice for March is wrong, and the customer is angry. "
            "Please send a corrected invoice to the customer before Friday. I will do that today."
        ),
        "participants": ["ANNA", "BEN"],
        "action_items": ["ANNA: Please send a corrected invoice to the customer before Friday."],
    }
    assert answer["stopReason"] == "end_turn"
    counts = answer["usage"]
    assert counts["outputTokens"] == -(-len(said(answer)) // 4)
    assert counts["totalTokens"] == counts["inputTokens"] + counts["outputTokens"]
    assert answer["metrics"]["latencyMs"] >= 0
    assert answer["ResponseMetadata"]["RequestId"]


def test_an_answer_beyond_max_tokens_is_cut_and_says_so(bedrock: Any) -> None:
    answer = ask(bedrock, CALL, inferenceConfig={"maxTokens": 3})
    assert answer["stopReason"] == "max_tokens"
    assert len(said(answer)) == 12
    assert answer["usage"]["outputTokens"] == 3


def test_a_tool_that_the_user_names_is_called_with_input_for_its_schema(bedrock: Any) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 100}}, "required": ["amount"]}
    tools = {"tools": [{"toolSpec": {"name": "issue_refund", "inputSchema": {"json": schema}}}]}
    answer = ask(bedrock, "Use issue_refund for order 7.", toolConfig=tools)
    use = answer["output"]["message"]["content"][0]["toolUse"]
    assert (answer["stopReason"], use["name"], use["input"]) == ("tool_use", "issue_refund", {"amount": 100})
    result = {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"json": {"done": True}}]}}
    messages = [
        {"role": "user", "content": [{"text": "Use issue_refund for order 7."}]},
        answer["output"]["message"],
        {"role": "user", "content": [result]},
    ]
    final = bedrock.converse(modelId=LITE, messages=messages, toolConfig=tools)
    assert final["stopReason"] == "end_turn"


def test_a_streamed_answer_is_the_same_text_with_usage_in_the_last_event(bedrock: Any) -> None:
    messages = [{"role": "user", "content": [{"text": CALL}]}]
    whole = said(bedrock.converse(modelId=LITE, messages=messages))
    events = list(bedrock.converse_stream(modelId=LITE, messages=messages)["stream"])
    kinds = [next(iter(event)) for event in events]
    assert kinds[0] == "messageStart"
    assert kinds[-3:] == ["contentBlockStop", "messageStop", "metadata"]
    deltas = [event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event]
    assert len(deltas) > 1
    assert "".join(deltas) == whole
    assert events[-1]["metadata"]["usage"]["outputTokens"] > 1


def test_a_streamed_tool_call_without_arguments_has_no_delta(bedrock: Any) -> None:
    tools = {"tools": [{"toolSpec": {"name": "ping", "inputSchema": {"json": {"type": "object"}}}}]}
    messages = [{"role": "user", "content": [{"text": "ping it"}]}]
    stream = bedrock.converse_stream(modelId=LITE, messages=messages, toolConfig=tools)["stream"]
    kinds = [next(iter(event)) for event in stream]
    assert kinds == ["messageStart", "contentBlockStart", "contentBlockStop", "messageStop", "metadata"]


# --- rules -------------------------------------------------------------------------------------------


def test_the_first_matching_rule_that_is_not_used_up_answers(server: ModelServer, bedrock: Any) -> None:
    script = [
        {"match": "refund", "answer": "first", "times": 1},
        {"match": "refund", "answer": {"n": 2}},
        {"answer": "any"},
    ]
    assert control(server, "POST", "/_script", script) == (200, {"rules": 3})
    assert said(ask(bedrock, "a refund")) == "first"
    assert json.loads(said(ask(bedrock, "a refund"))) == {"n": 2}
    assert json.loads(said(ask(bedrock, "hi", system=[{"text": "about a refund"}]))) == {"n": 2}
    assert said(ask(bedrock, "something else")) == "any"
    assert [call["rule"] for call in server.calls.listed()] == [0, 1, 1, 2]


def test_posting_a_script_replaces_the_one_before(server: ModelServer, bedrock: Any) -> None:
    control(server, "POST", "/_script", [{"answer": "old", "times": 5}])
    assert said(ask(bedrock)) == "old"
    assert control(server, "POST", "/_script", []) == (200, {"rules": 0})
    assert said(ask(bedrock)) != "old"


def test_times_is_counted_once_for_each_of_many_simultaneous_calls(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "scripted", "times": 7}, {"answer": "rest"}])
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: said(ask(bedrock, f"call {number}")), range(40)))
    assert answers.count("scripted") == 7
    assert answers.count("rest") == 33
    assert sorted(call["n"] for call in server.calls.listed()) == list(range(1, 41))


def test_stop_reason_and_usage_of_a_rule_go_with_its_answer_or_the_default_one(
    server: ModelServer, bedrock: Any
) -> None:
    server.script.replace(
        [
            {"match": "one", "answer": "half a sent", "stop_reason": "max_tokens", "usage": {"outputTokens": 900}},
            {"match": "two", "stop_reason": "content_filtered"},
        ]
    )
    one, two = ask(bedrock, "one"), ask(bedrock, "two words")
    assert (said(one), one["stopReason"], one["usage"]["outputTokens"]) == ("half a sent", "max_tokens", 900)
    assert (said(two), two["stopReason"]) == ("two words.", "content_filtered")


def test_a_scripted_answer_is_not_cut_at_max_tokens(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "x" * 300_000}])
    answer = ask(bedrock, inferenceConfig={"maxTokens": 1})
    assert (len(said(answer)), answer["stopReason"]) == (300_000, "end_turn")


def test_stop_reason_null_and_usage_null_are_missing_from_the_answer(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "text", "stop_reason": None, "usage": None}])
    answer = ask(bedrock)
    assert said(answer) == "text"
    assert "stopReason" not in answer
    assert "usage" not in answer


def test_a_raw_body_that_is_no_json_is_an_answer_without_output_to_botocore(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"match": "bad", "raw": '{"output": {"message'}, {"raw": {"stopReason": "odd"}}])
    assert set(ask(bedrock, "bad")) == {"ResponseMetadata"}
    assert ask(bedrock, "good")["stopReason"] == "odd"


def test_a_raw_body_of_another_shape_breaks_the_parser_of_botocore(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"raw": {"output": "text"}}])
    with pytest.raises(AttributeError):  # no error class of botocore: callers must expect anything here
        ask(bedrock)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"answer": "x"}, "the script must be a JSON list of rules"),
        ([{"answer": "x"}, "text"], "rule 1: must be an object"),
        ([{"answr": "x"}], 'rule 0, field "answr": unknown'),
        ([{"answer": "x"}, {"error": "ThrottledException"}], 'rule 1, field "error": must be one of'),
        ([{"error": {"code": "X", "status": 200}}], 'rule 0, field "error"'),
        ([{"times": 0}], 'rule 0, field "times": must be a whole number, 1 or more'),
        ([{"delay_s": -1}], 'rule 0, field "delay_s"'),
        ([{"cut_after": 1.5}], 'rule 0, field "cut_after"'),
        ([{"match": ["x"]}], 'rule 0, field "match"'),
        ([{"answer": "x", "error": "ThrottlingException"}], 'rule 0, field "error": a rule has one of'),
        ([{"usage": {"tokens": 1}}], 'rule 0, field "usage"'),
        ([{"raw": [{"event": "messageStop", "payload": "x"}]}], 'rule 0, field "raw"'),
        (b"[{]", "the script is not JSON"),
    ],
)
def test_a_bad_script_is_refused_by_rule_and_field_and_the_old_one_stays(
    server: ModelServer, script: object, message: str
) -> None:
    server.script.replace([{"answer": "kept"}])
    status, body = control(server, "POST", "/_script", script)
    assert status == 400
    assert message in body["message"]
    taken = server.script.take("")
    assert taken is not None
    assert taken.answer == "kept"


def test_a_script_file_that_is_wrong_is_refused_with_its_name(server: ModelServer, tmp_path: Any) -> None:
    path = tmp_path / "script.json"
    path.write_text('[{"answer": "from a file"}]', encoding="utf-8")
    assert server.load_script(path) == 1
    path.write_text("[", encoding="utf-8")
    with pytest.raises(ScriptError, match=r"script\.json"):
        server.load_script(path)


# --- time --------------------------------------------------------------------------------------------


def test_a_delay_is_counted_by_the_given_clock(tmp_path: Any) -> None:
    clock = SteppedClock()
    with ModelServer(clock=clock) as server, ThreadPoolExecutor(1) as pool:
        client = bedrock_client(server.url)
        server.script.replace([{"answer": "at last", "delay_s": 3600}])
        answer = pool.submit(ask, client)
        (call,) = eventually(lambda: [one for one in server.calls.listed() if one["rule"] is not None])
        assert (call["status"], call["at"], call["rule"]) == (None, "2026-11-29T15:30:44.123Z", 0)
        clock.until_waited_for()
        clock.time += timedelta(seconds=3599)
        clock.until_waited_for()
        assert not answer.done()
        clock.time += timedelta(seconds=1)
        assert said(answer.result(60)) == "at last"
        assert server.calls.listed()[0]["status"] == 200
        client.close()


def test_a_delay_without_a_clock_is_real(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"delay_s": 0.3}])
    began = time.monotonic()
    assert ask(bedrock)["metrics"]["latencyMs"] >= 290
    assert time.monotonic() - began >= 0.3


def test_stopping_the_server_ends_delayed_calls_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    server = ModelServer()
    server.start()
    server.script.replace([{"delay_s": 3600}])
    client = bedrock_client(server.url)
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(ask, client) for _ in range(3)]
        eventually(lambda: len(server.calls.listed()) == 3)
        server.stop()
        assert not [thread for thread in new_threads(before) if "process_request" in thread.name]
        for answer in answers:
            assert isinstance(answer.exception(60), ConnectionClosedError)  # and not that it read nothing in time
    client.close()
    assert not new_threads(before)


def test_a_client_that_hangs_up_during_a_delay_frees_its_thread(server: ModelServer) -> None:
    before = set(threading.enumerate())
    server.script.replace([{"delay_s": 3600}])
    client = bedrock_client(server.url, read_timeout=0.2)
    with pytest.raises(BotoCoreError):
        ask(client)
    client.close()
    (call,) = eventually(server.calls.listed)
    eventually(lambda: not new_threads(before))
    assert call["status"] is None


def test_half_a_question_is_not_asked(server: ModelServer) -> None:
    port = int(server.url.rpartition(":")[2])
    body = json.dumps({"messages": [{"role": "user", "content": [{"text": CALL}]}]}).encode()
    head = f"POST /model/{LITE}/converse HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for sent in (0, 3, len(head) - 3, len(head), len(head) + 1, len(head + body) - 1):
        assert sent_and_answered(port, (head + body)[:sent]) == b""
    assert server.calls.listed() == []
    assert sent_and_answered(port, head + body).startswith(b"HTTP/1.1 200")


def test_a_stop_while_a_client_is_connected_but_silent_does_not_hang() -> None:
    import socket

    server = ModelServer()
    server.start()
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))):
        stopping = threading.Thread(target=server.stop, daemon=True)
        stopping.start()
        stopping.join(60)
        assert not stopping.is_alive()


def test_a_taken_port_is_an_error_and_not_the_end_of_the_process(server: ModelServer) -> None:
    with pytest.raises(OSError, match="in use"):
        ModelServer(port=int(server.url.rpartition(":")[2]))


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    ModelServer().stop()


# --- calls -------------------------------------------------------------------------------------------


def test_calls_are_listed_with_what_was_asked_and_answered(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"match": "no", "error": "ThrottlingException"}])
    ask(bedrock, "y" * 300, inferenceConfig={"maxTokens": 150}, system=[{"text": "system text"}])
    with pytest.raises(ClientError):
        ask(bedrock, "no")
    status, (first, second) = control(server, "GET", "/_calls")
    assert status == 200
    assert first["prompt"] == "y" * 200
    assert (first["n"], first["model"], first["operation"]) == (1, LITE, "Converse")
    assert (first["max_tokens"], first["rule"], first["status"]) == (150, None, 200)
    assert (first["stop_reason"], first["caller"]) == ("end_turn", "AKIALOCALWORKER")
    assert first["usage"]["inputTokens"] == -(-(300 + 1 + len("system text")) // 4)
    assert (second["n"], second["rule"], second["status"], second["usage"]) == (2, 0, 429, None)


def test_equal_requests_have_equal_hashes_and_others_not(server: ModelServer, bedrock: Any) -> None:
    ask(bedrock, "same")
    ask(bedrock, "same")
    ask(bedrock, "same", inferenceConfig={"temperature": 0.5})
    one, two, three = (call["sha256"] for call in server.calls.listed())
    assert one == two != three


def test_deleting_the_calls_starts_the_count_again(server: ModelServer, bedrock: Any) -> None:
    ask(bedrock)
    assert control(server, "DELETE", "/_calls") == (200, {"deleted": 1})
    assert control(server, "GET", "/_calls") == (200, [])
    ask(bedrock)
    assert [call["n"] for call in server.calls.listed()] == [1]


def test_what_is_no_operation_is_404_in_the_form_of_aws(server: ModelServer, bedrock: Any) -> None:
    with pytest.raises(ClientError) as caught:
        bedrock.invoke_model(modelId=LITE, body=b"{}")
    assert caught.value.response["Error"]["Code"] == "UnknownOperationException"
    assert control(server, "PUT", "/_calls", [])[0] == 405
    assert control(server, "POST", f"/model/{LITE}/converse", b"not json")[0] == 400
    assert server.calls.listed() == []


def test_an_unauthorized_caller_is_refused_before_any_rule_is_used() -> None:
    def authorize(caller: str | None, model: str, operation: str) -> str | None:
        return f"{caller} may not {operation} {model}"

    with ModelServer(authorize=authorize) as server:
        client = bedrock_client(server.url)
        server.script.replace([{"answer": "x", "times": 1}])
        with pytest.raises(client.exceptions.AccessDeniedException, match=f"AKIALOCALWORKER may not Converse {LITE}"):
            ask(client)
        client.close()
        assert server.script.take("") is not None
