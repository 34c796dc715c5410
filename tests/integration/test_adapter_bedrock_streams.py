"""The StreamingModel port on ConverseStream: what is heard is the reply, and no half stream is taken for one."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lambdas.adapters import single_call
from lambdas.adapters.bedrock import KINDS, BedrockModel
from lambdas.adapters.clients import model_client
from lambdas.core.outcomes import ModelError
from lambdas.core.ports import Reply
from local.model import frames
from local.model.server import ModelServer
from tests.integration.test_adapter_bedrock import BILLED, PATIENT_S, _account, calls, request, sent_to

__all__ = ["_account"]  # a fixture for every test here, too

SAID = ["He", "llo", " there", "."]


@pytest.fixture
def bedrock(model: ModelServer) -> Iterator[BedrockModel]:
    client = model_client(PATIENT_S)
    yield BedrockModel(client)
    client.close()


def streamed(bedrock: BedrockModel, heard: list[str] | None = None) -> Reply:
    """The reply to one question; what was heard must be its text."""
    heard = [] if heard is None else heard
    reply = bedrock.converse_stream(request(), heard.append)
    assert reply.text == "".join(heard)
    return reply


def failure(bedrock: BedrockModel, heard: list[str] | None = None) -> ModelError:
    with pytest.raises(ModelError) as error:
        bedrock.converse_stream(request(), ([] if heard is None else heard).append)
    return error.value


def script(model: ModelServer, **rule: Any) -> None:
    model.script.replace([rule])


def delta(**what: Any) -> dict[str, Any]:
    return {"event": "contentBlockDelta", "payload": {"contentBlockIndex": 0, "delta": what}}


START: dict[str, Any] = {"event": "messageStart", "payload": {"role": "assistant"}}
STOP: dict[str, Any] = {"event": "messageStop", "payload": {"stopReason": "end_turn"}}
USED: dict[str, Any] = {
    "event": "metadata",
    "payload": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}},
}


# --- whole streams ---------------------------------------------------------------------------------
def test_a_stream_is_heard_piece_by_piece_and_is_the_reply(model: ModelServer, bedrock: BedrockModel):
    script(model, deltas=SAID, usage={"inputTokens": 7, "outputTokens": 3, "totalTokens": 10})
    heard: list[str] = []
    assert streamed(bedrock, heard) == Reply("Hello there.", "end_turn", 7, 3)
    assert heard == SAID
    assert calls(model) == 1


def test_two_hundred_deltas_are_two_hundred_pieces(model: ModelServer, bedrock: BedrockModel):
    script(model, deltas=[f"{n} " for n in range(200)])
    heard: list[str] = []
    streamed(bedrock, heard)
    assert heard == [f"{n} " for n in range(200)]


def test_pieces_are_heard_when_they_come_and_not_at_the_end(model: ModelServer, bedrock: BedrockModel):
    """The server says no more until the client has heard what came before."""
    going_on = threading.Semaphore(1)
    heard: list[str] = []

    def parts(self: Any, *_: Any) -> Iterator[bytes]:
        for delta in SAID:
            assert going_on.acquire(timeout=60)
            yield frames.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": delta}})
        yield frames.event("messageStop", {"stopReason": "end_turn"})
        yield frames.event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}})

    def hear(piece: str) -> None:
        heard.append(piece)
        going_on.release()

    script(model, answer="replaced", frame_s=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.model.converse.Conversations._in_time", parts)
        assert bedrock.converse_stream(request(), hear).text == "Hello there."
    assert heard == SAID


def test_a_stream_and_an_answer_are_asked_for_in_the_same_words():
    seen: list[dict[str, Any]] = []

    class Client:
        def converse_stream(self, **arguments: Any) -> Any:
            seen.append(arguments)
            raise ValueError

    asked = request("How?", system="Be brief.", temperature=0.0)
    with pytest.raises(ModelError):
        BedrockModel(Client()).converse_stream(asked, lambda piece: None)
    assert seen == [sent_to(asked)]


@pytest.mark.parametrize("stop_reason", ["max_tokens", "content_filtered", "guardrail_intervened", "tool_use"])
def test_why_a_stream_stopped_is_told_as_it_was_said(model: ModelServer, bedrock: BedrockModel, stop_reason: str):
    script(model, deltas=SAID, stop_reason=stop_reason)
    assert streamed(bedrock).stop_reason == stop_reason


@pytest.mark.parametrize("stop", [{"stopReason": None}, {}, {"stopReason": ""}])
def test_a_stream_that_does_not_say_why_it_stopped_is_not_taken_for_a_finished_one(
    model: ModelServer, bedrock: BedrockModel, stop: dict[str, Any]
):
    script(model, raw=[START, delta(text="Yes"), {"event": "messageStop", "payload": stop}, USED])
    assert streamed(bedrock).stop_reason == ""


def test_an_empty_answer_is_whole(model: ModelServer, bedrock: BedrockModel):
    script(model, answer="")
    assert streamed(bedrock).text == ""


def test_what_is_no_text_and_what_is_no_event_that_we_know_is_left_out(model: ModelServer, bedrock: BedrockModel):
    thought = delta(reasoningContent={"text": "hm"})
    tool = delta(toolUse={"input": '{"amount": 1'})
    new = {"event": "somethingNew", "payload": {"text": "?"}}
    script(model, raw=[START, thought, delta(text="One. "), new, tool, delta(text="Two."), STOP, USED])
    assert streamed(bedrock).text == "One. Two."


def test_env_04_a_pair_of_surrogates_that_two_deltas_share_is_its_character(model: ModelServer, bedrock: BedrockModel):
    pieces = ["a \ud83d", "\ude00", "b\ud800", "c", "\ud83d"]
    script(model, raw=[START, *(delta(text=piece) for piece in pieces), STOP, USED])
    text = streamed(bedrock).text
    assert text == "a \U0001f600b\ufffdc\ufffd"
    text.encode()


# --- errors ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", ["throttlingException", "modelStreamErrorException", "internalServerException",
    "serviceUnavailableException", "validationException"])  # fmt: skip
def test_bed_08_an_error_in_mid_stream_is_told_by_its_code_in_its_other_spelling(
    model: ModelServer, bedrock: BedrockModel, code: str
):
    script(model, raw=[START, delta(text="Hel"), {"exception": code, "message": "Too many tokens"}])
    heard: list[str] = []
    error = failure(bedrock, heard)
    proper = code[0].upper() + code[1:]
    assert (error.kind, error.code, error.maybe_billed, heard) == (KINDS[proper], proper, True, ["Hel"])
    assert calls(model) == 1


@pytest.mark.parametrize("after", [[START], [START, delta(text="Hel")], [START, delta(text="Hel"), STOP]])
def test_bed_08_an_error_at_any_place_of_a_stream_ends_it(
    model: ModelServer, bedrock: BedrockModel, after: list[dict[str, Any]]
):
    script(model, raw=[*after, {"exception": "serviceUnavailableException", "message": "no"}])
    assert (failure(bedrock).kind, failure(bedrock).maybe_billed) == ("transient", True)


def test_a_throttle_before_the_model_has_begun_is_not_billed(model: ModelServer, bedrock: BedrockModel):
    script(model, raw=[{"exception": "throttlingException", "message": "slow down"}])
    error = failure(bedrock)
    assert (error.kind, error.code, error.maybe_billed) == ("throttled", "ThrottlingException", False)


@pytest.mark.parametrize("code", sorted(KINDS))
def test_bed_03_a_refused_stream_is_told_like_a_refused_answer_and_sent_once(
    model: ModelServer, bedrock: BedrockModel, code: str
):
    script(model, error={"code": code, "status": 400, "message": "no"})
    error = failure(bedrock)
    assert (error.kind, error.code, error.maybe_billed) == (KINDS[code], code, code in BILLED)
    assert calls(model) == 1


def test_an_error_that_nobody_knows_is_transient_once_the_model_has_begun(model: ModelServer, bedrock: BedrockModel):
    script(model, raw=[START, {"exception": "brandNewException", "message": "?"}])
    error = failure(bedrock)
    assert (error.kind, error.maybe_billed, bool(error.code)) == ("transient", True, True)


def test_an_error_that_is_not_modelled_is_told_by_its_code(model: ModelServer, bedrock: BedrockModel):
    headers = {":message-type": "error", ":error-code": "InternalServerException", ":error-message": "broken"}
    unmodelled = {"base64": base64.b64encode(frames.encode(headers, b"")).decode()}
    script(model, raw=[START, unmodelled])
    error = failure(bedrock)
    assert (error.kind, error.code, error.maybe_billed) == ("transient", "InternalServerException", True)


# --- streams that are none ---------------------------------------------------------------------------
def unreadable(event: str, payload: bytes) -> dict[str, Any]:
    """A frame in order whose payload is none."""
    headers = {":event-type": event, ":message-type": "event", ":content-type": "application/json"}
    return {"base64": base64.b64encode(frames.encode(headers, payload)).decode()}


INCOMPLETE: dict[str, list[dict[str, Any]]] = {
    "nothing at all": [],
    "no more than its beginning": [START],
    "no messageStop": [START, delta(text="Hello."), USED],
    "no metadata": [START, delta(text="Hello."), STOP],
    "metadata without usage": [START, delta(text="Hello."), STOP, {"event": "metadata", "payload": {}}],
    "usage without its counts": [START, STOP, {"event": "metadata", "payload": {"usage": {"inputTokens": 1}}}],
    "a delta of another kind": [START, {"event": "contentBlockDelta", "payload": {"delta": "Hel"}}, STOP, USED],
    "a text that is none": [START, delta(text=5), STOP, USED],
    "a delta that is no JSON": [START, unreadable("contentBlockDelta", b'{"delta": {"te'), STOP, USED],
    "a delta that is no text": [START, unreadable("contentBlockDelta", b'{"\xff":1}'), STOP, USED],
    "a delta of nothing": [START, unreadable("contentBlockDelta", b""), STOP, USED],
    "usage that is no JSON": [START, STOP, unreadable("metadata", b"{no")],
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_bed_09_a_stream_that_is_not_whole_is_transient_and_maybe_billed(
    model: ModelServer, bedrock: BedrockModel, name: str
):
    script(model, raw=INCOMPLETE[name])
    error = failure(bedrock)
    assert (error.kind, error.maybe_billed, calls(model)) == ("transient", True, 1)


@pytest.mark.parametrize("number", range(8))
def test_bed_10_a_frame_with_a_wrong_checksum_is_transient(model: ModelServer, bedrock: BedrockModel, number: int):
    script(model, deltas=SAID, corrupt=number)
    error = failure(bedrock)
    assert (error.kind, error.code, error.maybe_billed) == ("transient", "ChecksumMismatch", True)


def whole_stream() -> bytes:
    events = [START, *(delta(text=piece) for piece in SAID), STOP, USED]
    return b"".join(frames.event(one["event"], one["payload"]) for one in events)


CUTS = sorted({*range(0, len(whole_stream()), 61), *range(len(whole_stream()) - 20, len(whole_stream()))})


@pytest.mark.parametrize("ends", ["in order", "broken off"])
def test_bed_10_a_stream_that_is_cut_at_any_byte_is_never_a_reply(model: ModelServer, bedrock: BedrockModel, ends: str):
    """ "In order": the body says that it ends here, and botocore believes it."""
    for cut in CUTS:
        frame = {"base64": base64.b64encode(whole_stream()[:cut]).decode()}
        script(
            model,
            raw=[frame] if ends == "in order" else [frame, START],
            **({} if ends == "in order" else {"cut_after": 1}),
        )
        error = failure(bedrock)
        assert (error.kind, error.maybe_billed) == ("transient", True), cut
    assert calls(model) == len(CUTS)


@pytest.mark.parametrize("cut_after", range(8))
def test_a_stream_whose_connection_breaks_after_any_frame_is_transient(
    model: ModelServer, bedrock: BedrockModel, cut_after: int
):
    script(model, deltas=SAID, cut_after=cut_after)
    error = failure(bedrock)
    assert (error.kind, error.maybe_billed, calls(model)) == ("transient", True, 1)


# --- one deadline ------------------------------------------------------------------------------------
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n"
)


def chunked(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


FIRST = frames.event("messageStart", {"role": "assistant"})
DRIPS: dict[str, tuple[bytes, bytes]] = {
    "headers": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "a frame": (HEAD + chunked(FIRST), chunked(b"\0")),
    "the length of a chunk": (HEAD, b"0"),
    "whole frames": (HEAD + chunked(FIRST), chunked(frames.event("contentBlockStop", {"contentBlockIndex": 0}))),
    "nothing more": (HEAD + chunked(FIRST), b""),
}


@contextlib.contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[str]:
    """A server that answers one request with `first`, and then drips for longer than anybody may wait."""
    stop = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(first)
            for _ in range(40):  # four times the deadline: without one, the test must end, too
                if stop.wait(0.1):
                    return
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


@pytest.mark.parametrize("name", DRIPS)
def test_bed_01_a_stream_that_drips_ends_at_the_deadline_of_the_whole_call(monkeypatch: pytest.MonkeyPatch, name: str):
    """Each drop comes within a socket's own timeout: only a deadline for all of them ends this."""
    with dripping(*DRIPS[name]) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)
        error = failure(BedrockModel(model_client(1)))
    assert (error.kind, error.code, error.maybe_billed) == ("transient", "ReadTimeoutError", True)


# --- its connection ------------------------------------------------------------------------------------
@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """The sockets of the model's connections."""
    opened: list[socket.socket] = []
    connected: Callable[..., http.client.HTTPConnection] = single_call._connected

    def noted(*where: Any) -> http.client.HTTPConnection:
        connection = connected(*where)
        opened.append(connection.sock)
        return connection

    monkeypatch.setattr(single_call, "_connected", noted)
    return opened


class Stopped(BaseException):
    """What ends a thread in the middle."""


def stopping(piece: str) -> None:
    raise Stopped


PATHS: dict[str, dict[str, Any]] = {
    "whole": {"deltas": SAID},
    "no metadata": {"deltas": SAID, "usage": None},
    "cut": {"deltas": SAID, "cut_after": 3},
    "corrupt": {"deltas": SAID, "corrupt": 2},
    "an error in mid-stream": {"deltas": SAID, "error": "ThrottlingException", "cut_after": 2},
    "a refusal": {"error": "ValidationException"},
    "no answer": {"cut_after": 0},
    "more than is read": {"raw": [START, STOP, USED, {"base64": base64.b64encode(b"\0" * 4_000).decode()}]},
}


@pytest.mark.parametrize("name", PATHS)
def test_a_connection_is_closed_at_the_end_of_every_path(
    model: ModelServer, bedrock: BedrockModel, sockets: list[socket.socket], name: str
):
    script(model, **PATHS[name])
    with contextlib.suppress(ModelError):
        bedrock.converse_stream(request(), lambda piece: None)
    assert [sock.fileno() for sock in sockets] == [-1]


def test_a_connection_is_closed_when_whoever_listens_is_stopped(
    model: ModelServer, bedrock: BedrockModel, sockets: list[socket.socket]
):
    script(model, deltas=SAID, frame_s=0.01)
    with pytest.raises(Stopped):
        bedrock.converse_stream(request(), stopping)
    assert [sock.fileno() for sock in sockets] == [-1]


def test_an_answer_that_is_no_stream_leaves_no_connection_either(
    model: ModelServer, bedrock: BedrockModel, sockets: list[socket.socket]
):
    script(model, answer="Yes.")
    bedrock.converse(request())
    assert [sock.fileno() for sock in sockets] == [-1]
