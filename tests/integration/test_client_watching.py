"""The client and the rules of watching, face to face: a finished job's 200 chunks, cut at each of them in turn."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import WebSocketException

from lambdas.core import ids
from lambdas.core.streaming.ports import Chunk
from lambdas.core.watching.conversation import Switchboard, closed, heard, opened
from lambdas.core.watching.ports import Gone, Grant, Posted, Sent
from lambdas.core.watching.serving import Relay
from neverdrop_client import Client, Event, Final, Restarted, Text
from tests.audience import FakeConnections
from tests.builders import JOB_ID, NOW, TENANT, final_record, held_record
from tests.fakes import FakeChunks, FakeJobStore, FakeObjects
from tests.integration.client_time import patient_sockets
from tests.integration.scripted_api import Reply, ScriptedApi
from tests.integration.scripted_sockets import Line, ScriptedSockets

TEXTS = [f"w{n}ü " for n in range(200)]
WHOLE = "".join(TEXTS)


class Lines:
    """The Postman port over sockets. Each chunk goes in a frame of its own, and where `cuts` says so the wire breaks
    behind it, once."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.cuts: set[int] = set()
        self.meanwhile: Callable[[], None] = lambda: None
        self.numbers = itertools.count()

    def post(self, connection_id: str, frame: bytes) -> Posted:
        line = self.lines[connection_id]
        try:
            for piece in pieces(json.loads(frame)):
                line.say(piece)
                if piece["type"] == "chunks" and piece["from"] in self.cuts:
                    self.cuts.remove(piece["from"])
                    self.meanwhile()
                    line.close()
                    return Gone()
        except (OSError, WebSocketException):
            return Gone()
        return Sent()


def pieces(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if frame["type"] != "chunks":
        yield frame
        return
    for n, text in enumerate(frame["texts"], frame["from"]):
        yield {**frame, "from": n, "texts": [text]}


class Studio:
    """A finished job, those who watch it, and the port that they come to."""

    def __init__(self) -> None:
        self.chunks, results = FakeChunks(), FakeObjects()
        for n, text in enumerate(TEXTS):
            self.chunks.append(JOB_ID, Chunk(1, n, text), 0)
        results.objects[ids.result_key(TENANT, JOB_ID, 1)] = result = json.dumps({"text": WHOLE}).encode()
        self.store = FakeJobStore(final_record("COMPLETED", stream=True, result_bytes=len(result)))
        self.wires = Lines()
        relay = Relay(self.store, self.chunks, results, FakeConnections(), self.wires, lambda _step, **_fields: None)
        marks = itertools.count()
        self.board = Switchboard(relay, lambda: NOW, lambda: f"mark-{next(marks)}")
        self.sockets = ScriptedSockets(self._talk)

    def _talk(self, line: Line) -> None:
        connection_id = f"c{next(self.wires.numbers)}"
        self.wires.lines[connection_id] = line
        opened(connection_id, Grant(TENANT, (JOB_ID,)), self.board)
        try:
            while True:
                heard(connection_id, json.dumps(line.heard()).encode(), self.board)
        finally:
            closed(connection_id, self.board)


@pytest.fixture
def studio(api: ScriptedApi) -> Iterator[Studio]:
    made = Studio()
    api.on("POST /tickets", Reply(201, {"url": f"{made.sockets.url}?ticket=t"}))
    yield made
    made.sockets.end()


@pytest.fixture
def watched(api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    patient_sockets(monkeypatch)
    with Client(api.url) as client:
        yield lambda: list(client.stream(JOB_ID))


def check(events: list[Event]) -> None:
    *texts, end = events
    assert [(one.attempt, one.n, one.text) for one in texts if isinstance(one, Text)] == [
        (1, n, text) for n, text in enumerate(TEXTS)
    ]
    assert isinstance(end, Final)
    assert (end.chunks, end.result) == (len(TEXTS), {"text": WHOLE})


def test_a_cut_at_each_chunk_in_turn_loses_nothing_and_repeats_nothing(
    studio: Studio, watched: Callable[[], list[Event]]
) -> None:
    for n in range(len(TEXTS)):
        studio.wires.cuts = {n}
        check(watched())
        assert studio.wires.cuts == set()
    assert len(studio.sockets.paths) == 2 * len(TEXTS)


def test_a_cut_after_every_single_chunk_loses_nothing_either(
    studio: Studio, watched: Callable[[], list[Event]]
) -> None:
    studio.wires.cuts = set(range(len(TEXTS)))
    check(watched())
    assert len(studio.sockets.paths) == 1 + len(TEXTS)


def test_a_cut_in_which_the_job_is_tried_again_voids_what_came(
    studio: Studio, watched: Callable[[], list[Event]]
) -> None:
    def tried_again() -> None:
        studio.store.records[JOB_ID] = final_record("FAILED", stream=True, attempt=2)
        studio.chunks.append(JOB_ID, Chunk(2, 0, "new"), 0)

    studio.wires.meanwhile = tried_again
    for cut in (0, 57, 199):
        studio.store.records[JOB_ID] = held_record(stream=True)
        studio.wires.cuts = {cut}
        *events, end = watched()
        void = [Text(1, n, text) for n, text in enumerate(TEXTS[: cut + 1])]
        assert events == [*void, Restarted(2), Text(2, 0, "new")]
        assert isinstance(end, Final)
        assert (end.attempt, end.job["status"]) == (2, "FAILED")
