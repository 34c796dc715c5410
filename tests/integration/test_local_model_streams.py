"""What a script can make of a stream: its very pieces, their pace, where it breaks, and what it lacks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import EventStreamError
from urllib3.exceptions import ProtocolError

from local.model.server import ModelServer
from tests.integration.local_toys import eventually
from tests.integration.test_local_model_server import CALL, LITE, SteppedClock, bedrock_client, control, new_threads

DELTAS = ["Hel", "lo \U0001f600", " ", "there"]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as started:
        yield started


@pytest.fixture
def bedrock(server: ModelServer) -> Iterator[Any]:
    client = bedrock_client(server.url)
    yield client
    client.close()


def events(client: Any) -> Iterator[tuple[str, Any]]:
    messages = [{"role": "user", "content": [{"text": CALL}]}]
    with closing(client.converse_stream(modelId=LITE, messages=messages)["stream"]) as stream:  # also where it is cut
        for event in stream:
            yield next(iter(event.items()))


def deltas(client: Any) -> list[str]:
    return [what["delta"]["text"] for kind, what in events(client) if kind == "contentBlockDelta"]


def test_a_script_can_say_the_very_deltas(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"deltas": [str(n) for n in range(200)]}])
    assert deltas(bedrock) == [str(n) for n in range(200)]


def test_deltas_are_the_answer_of_a_call_that_does_not_stream(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"deltas": DELTAS}])
    answer = bedrock.converse(modelId=LITE, messages=[{"role": "user", "content": [{"text": CALL}]}])
    assert answer["output"]["message"]["content"] == [{"text": "".join(DELTAS)}]


@pytest.mark.parametrize("rule", [{"answer": "abcdefgh"}, {}])
def test_an_answer_of_any_kind_can_be_cut_into_deltas_of_one_size(
    server: ModelServer, bedrock: Any, rule: dict[str, Any]
) -> None:
    server.script.replace([rule])
    whole = "".join(deltas(bedrock))
    server.script.replace([{**rule, "delta_chars": 3}])
    pieces = deltas(bedrock)
    assert "".join(pieces) == whole
    assert {len(piece) for piece in pieces[:-1]} == {3}


def test_an_error_in_mid_stream_comes_after_the_very_deltas(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"deltas": DELTAS, "error": "ThrottlingException", "cut_after": 3}])
    seen: list[str] = []
    with pytest.raises(EventStreamError) as error:
        seen.extend(kind for kind, _ in events(bedrock))
    assert seen == ["messageStart", "contentBlockDelta", "contentBlockDelta"]
    assert error.value.response["Error"]["Code"] == "throttlingException"


@pytest.mark.parametrize("number", [0, 2, 7])
def test_one_frame_can_have_a_wrong_checksum(server: ModelServer, bedrock: Any, number: int) -> None:
    server.script.replace([{"deltas": DELTAS, "corrupt": number}])
    seen: list[str] = []
    with pytest.raises(ChecksumMismatch):
        seen.extend(kind for kind, _ in events(bedrock))
    assert len(seen) == number


def test_a_frame_of_a_raw_stream_can_have_one_too(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"raw": [{"event": "messageStart", "payload": {"role": "assistant"}}], "corrupt": 0}])
    with pytest.raises(ChecksumMismatch):
        list(events(bedrock))


def test_a_stream_can_lack_its_end(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"deltas": DELTAS, "stop_reason": None, "usage": None}])
    assert [kind for kind, _ in events(bedrock)][-2:] == ["contentBlockDelta", "contentBlockStop"]


def test_frames_come_at_their_pace_by_the_given_clock() -> None:
    clock = SteppedClock()
    with ModelServer(clock=clock) as server, ThreadPoolExecutor(1) as pool:
        client = bedrock_client(server.url)
        server.script.replace([{"deltas": DELTAS, "frame_s": 60}])
        seen: list[str] = []
        reading = pool.submit(lambda: seen.extend(kind for kind, _ in events(client)))
        for number in range(1, 8):
            eventually(partial(lambda wanted: len(seen) == wanted, number))
            clock.until_waited_for()
            clock.time += timedelta(seconds=59)
            clock.until_waited_for()
            assert len(seen) == number
            clock.time += timedelta(seconds=1)
        reading.result(60)
        assert len(seen) == 8
        client.close()


def test_the_first_frame_does_not_wait(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"deltas": DELTAS, "frame_s": 3_600}])
    stream = events(bedrock)
    assert next(stream)[0] == "messageStart"
    server.stop()  # and the rest is dropped with it
    with pytest.raises(ProtocolError):
        next(stream)


def test_a_client_that_hangs_up_in_mid_stream_frees_its_thread(server: ModelServer) -> None:
    before = set(threading.enumerate())
    client = bedrock_client(server.url)
    server.script.replace([{"deltas": DELTAS, "frame_s": 3_600}])
    stream = client.converse_stream(modelId=LITE, messages=[{"role": "user", "content": [{"text": CALL}]}])["stream"]
    next(iter(stream))
    stream.close()
    client.close()
    eventually(lambda: not new_threads(before))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"deltas": []}, 'rule 0, field "deltas": must be a list of strings'),
        ({"deltas": ["a", 1]}, 'rule 0, field "deltas"'),
        ({"deltas": ["a"], "answer": "a"}, 'rule 0, field "deltas": they are the answer'),
        ({"deltas": ["a"], "raw": "a"}, 'rule 0, field "deltas": they are the answer'),
        ({"delta_chars": 0}, 'rule 0, field "delta_chars"'),
        ({"frame_s": -1}, 'rule 0, field "frame_s"'),
        ({"corrupt": "1"}, 'rule 0, field "corrupt"'),
    ],
)
def test_a_bad_rule_is_refused_by_its_field(server: ModelServer, rule: dict[str, Any], message: str) -> None:
    status, body = control(server, "POST", "/_script", [rule])
    assert (status, message in body["message"]) == (400, True)
