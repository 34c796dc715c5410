"""The client against the stack: a streamed text through cuts, restarts and without WebSockets is the stored result."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from neverdrop_client import Client, Event, Final, JobFailed, NotFound, Restarted, Text
from tests.e2e.target import Target, eventually
from tests.e2e.test_paid_once import finish_with_time
from tests.e2e.wire import Wire

CHUNKS = 200
CUT_EVERY = int(os.environ.get("NEVERDROP_CUT_EVERY", "5"))
DELAY_S = 50  # until the model begins to speak, unless time is helped on
DELTAS = [f"w{n}ü, " for n in range(CHUNKS)]

Wires = Callable[[set[int]], tuple[Client, Wire]]


@pytest.fixture
def client(target: Target) -> Iterator[Client]:
    with target.neverdrop() as made:
        yield made


@pytest.fixture
def wires(target: Target) -> Iterator[Wires]:
    """A client behind a wire that breaks at these chunks."""
    made: list[Client] = []

    def wired(cuts: set[int]) -> tuple[Client, Wire]:
        wire = Wire(cuts)
        made.append(target.neverdrop(transport=wire))
        return made[-1], wire

    yield wired
    for one in made:
        one.close()


def submitted(client: Client, nonce: str) -> str:
    return client.submit("reply", {"text": f"ANN: {nonce}. BOB: I will call back."}, stream=True)["job_id"]


def say(target: Target, nonce: str, *rules: Mapping[str, Any]) -> None:
    """What the model says to this test."""
    target.script(*({"match": nonce, **rule} for rule in rules))


def check(events: list[Event], client: Client, job_id: str) -> list[Text]:
    """The texts since the last restart: numbered without a gap or a repeat, and together the stored result."""
    *said, end = events
    assert isinstance(end, Final)
    assert end.result == client.result(job_id)
    starts = [number for number, event in enumerate(said) if isinstance(event, Restarted)]
    texts = [event for event in said[starts[-1] if starts else 0 :] if isinstance(event, Text)]
    assert [(text.attempt, text.n) for text in texts] == [(end.attempt, n) for n in range(end.chunks)]
    assert "".join(text.text for text in texts) == end.result["text"]
    return texts


def test_a_text_is_streamed_while_it_is_said_and_read_again_later(client: Client, nonce: str) -> None:
    job_id = submitted(client, nonce)
    texts = check(list(client.stream(job_id)), client, job_id)
    again = list(client.stream(job_id, after=texts[0]))
    assert again[:-1] == texts[1:]
    assert client.stream(job_id).text() == client.result(job_id)["text"]


def test_where_no_websocket_can_be_had_the_text_is_the_same(target: Target, nonce: str) -> None:
    class Blocked(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/tickets"):
                return httpx.Response(404, json={"message": "Not Found"})
            return super().handle_request(request)

    with target.neverdrop(transport=Blocked()) as client:
        job_id = submitted(client, nonce)
        check(list(client.stream(job_id)), client, job_id)


def test_a_job_without_a_stream_has_an_end_to_watch(client: Client, nonce: str) -> None:
    job_id = client.submit("reply", {"text": f"ANN: {nonce}"})["job_id"]
    (end,) = client.stream(job_id)
    assert isinstance(end, Final)
    assert (end.chunks, end.result) == (0, client.result(job_id))
    with pytest.raises(NotFound):
        next(client.stream(nonce))


# --- what only the stack on this machine can be made to do ---------------------------------------------------------


@pytest.mark.local_only
def test_a_live_stream_that_is_cut_again_and_again_is_the_stored_result(
    target: Target, client: Client, wires: Wires, nonce: str
) -> None:
    """Of every five chunks behind one; at each in turn: tests/integration/test_client_watching.py, in seconds, and
    this with NEVERDROP_CUT_EVERY=1, in half a minute."""
    cuts = set(range(random.randrange(CUT_EVERY), CHUNKS, CUT_EVERY))
    say(target, nonce, {"deltas": DELTAS, "frame_s": 0.02, "delay_s": DELAY_S})
    wired, wire = wires(cuts)
    job_id = submitted(client, nonce)
    eventually(lambda: target.model_calls(nonce), bool)
    with ThreadPoolExecutor(1) as threads:
        watched = threads.submit(lambda: list(wired.stream(job_id)))
        eventually(lambda: wire.status, lambda status: status == "PROCESSING")
        target.answer_after(DELAY_S, "worker")
        texts = check(watched.result(300), client, job_id)
    assert "".join(text.text for text in texts) == "".join(DELTAS)
    assert len(texts) > CUT_EVERY
    beyond = {cut for cut in cuts if cut >= len(texts)}  # where chunks are stored slowly, they are fewer
    assert wire.cuts == beyond
    assert wire.connections > len(cuts - beyond)
    assert wire.live_cuts > 0
    wired, wire = wires({0, 1, len(texts) - 1})
    check(list(wired.stream(job_id)), client, job_id)
    assert (wire.cuts, wire.live_cuts) == (set(), 0)
    assert wire.connections > 3


@pytest.mark.local_only
@pytest.mark.parametrize("kilobytes", [40, 200], ids=["in parts", "as a link"])
def test_a_result_that_no_frame_takes_comes_all_the_same(
    target: Target, client: Client, nonce: str, kilobytes: int
) -> None:
    say(target, nonce, {"deltas": ["ü" * 500] * kilobytes})
    job_id = submitted(client, nonce)
    texts = check(list(client.stream(job_id)), client, job_id)
    assert sum(len(text.text.encode()) for text in texts) == kilobytes * 1_000


@pytest.mark.local_only
def test_of_two_watchers_one_is_gone_and_the_other_is_unharmed(
    target: Target, client: Client, nonce: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is gone without a word to anybody notices it by the silence, and comes back."""
    monkeypatch.setattr("neverdrop_client.sockets.IDLE_S", 0.5)
    monkeypatch.setattr("neverdrop_client.sockets.ANSWER_S", 60)  # it has one connection until one is lost
    say(target, nonce, {"deltas": DELTAS[:60], "frame_s": 0.03})
    job_id = submitted(client, nonce)
    before = connected(target)
    with client.stream(job_id) as gone, ThreadPoolExecutor(1) as threads:
        first = next(gone)
        (lost,) = connected(target) - before
        monkeypatch.setattr("neverdrop_client.sockets.ANSWER_S", 1.5)
        stays = threads.submit(lambda: list(client.stream(job_id)))
        target.control("POST", "connections/lose", {"connection_id": lost})
        for events in (stays.result(180), [first, *gone]):
            assert "".join(text.text for text in check(events, client, job_id)) == "".join(DELTAS[:60])


def connected(target: Target) -> set[str]:
    return {one["connection_id"] for one in target.control("GET", "connections")["connections"]}


@pytest.mark.local_only
@pytest.mark.parametrize("cut", ["the model's stream", "the worker"])
def test_a_second_attempt_voids_what_the_first_had_said(target: Target, client: Client, nonce: str, cut: str) -> None:
    half = {"deltas": DELTAS[:20], "frame_s": 0.1, "times": 1}  # time enough to be watched
    say(target, nonce, {**half, "cut_after": 15} if cut == "the model's stream" else half, {"deltas": ["the ", "text"]})
    if cut == "the worker":
        fault = {"function": "worker", "kind": "crash", "service": "dynamodb", "operation": "PutItem", "nth": 10}
        target.control("POST", "faults", fault)
    target.control("POST", "pause", {"function": "worker"})
    job_id = submitted(client, nonce)
    if cut == "the model's stream":  # its second attempt begins when somebody has heard the first
        fault = {"function": "worker", "kind": "throttle", "service": "handler", "job_id": job_id}
        target.control("POST", "faults", {**fault, "nth": 2, "times": 1_000})
    target.control("POST", "resume", {"function": "worker"})
    with ThreadPoolExecutor(1) as threads:
        stream = client.stream(job_id)
        first = next(stream)
        if cut == "the model's stream":
            target.control("DELETE", "faults")
        watched = threads.submit(lambda: [first, *stream])
        finish_with_time(target, [job_id], step_s=400)
        events = watched.result(180)
    assert any(isinstance(event, Restarted) for event in events)
    assert isinstance(first, Text)
    assert [text.text for text in check(events, client, job_id)] == ["the ", "text"]


@pytest.mark.local_only
def test_what_a_cancelled_job_has_said_stays(target: Target, client: Client, nonce: str) -> None:
    say(target, nonce, {"deltas": DELTAS[:50], "frame_s": 1.0})
    job_id = submitted(client, nonce)
    with client.stream(job_id) as events:
        first = [next(events) for _ in range(3)]
        client.cancel(job_id)
        target.control("POST", "kill", {"function": "worker"})  # it would go on to the end, and others wait for it
        with pytest.raises(JobFailed) as caught:
            events.text()
    assert caught.value.status == "CANCELLED"
    assert [event.text for event in first if isinstance(event, Text)] == DELTAS[:3]
    assert "".join(DELTAS).startswith(caught.value.text)  # all of it, also what was read before
    assert caught.value.text.startswith("".join(DELTAS[:3]))
    with pytest.raises(JobFailed) as again:
        client.stream(job_id).text()
    assert again.value.text.startswith("".join(DELTAS[:3]))
