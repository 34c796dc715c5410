"""A job whose text comes, and those who watch it: what live watching is tested in."""

from __future__ import annotations

import itertools
import json
from typing import Any

from lambdas.contracts.names import COMPLETED
from lambdas.core import ids
from lambdas.core.streaming.ports import Chunk
from lambdas.core.watching.conversation import Switchboard, heard, opened
from lambdas.core.watching.ports import Grant
from lambdas.core.watching.serving import Relay, serve
from tests.audience import FakeConnections, FakePostman, Listener
from tests.builders import JOB_ID, NOW, TENANT, final_record, held_record
from tests.fakes import FakeChunks, FakeJobStore, FakeObjects

ANNA, BEN = "anna=", "ben="
OTHER_JOB = "fedcba9876543210fedcba9876543210"
KEY = ids.result_key(TENANT, JOB_ID, 1)


class Studio:
    """A job whose text comes, and those who watch it."""

    def __init__(self, **record: Any) -> None:
        self.store = FakeJobStore(held_record(stream=True, **record))
        self.chunks, self.results = FakeChunks(), FakeObjects()
        self.connections, self.postman = FakeConnections(), FakePostman()
        self.notices: list[tuple[str, dict[str, Any]]] = []
        self.relay = Relay(
            self.store, self.chunks, self.results, self.connections, self.postman,
            lambda step, **fields: self.notices.append((step, fields)),
        )  # fmt: skip
        marks = itertools.count()
        self.board = Switchboard(self.relay, lambda: NOW, lambda: f"mark-{next(marks)}")

    def connect(self, *connections: str, job_ids: tuple[str, ...] = (JOB_ID,), tenant: str = TENANT) -> None:
        for connection in connections:
            opened(connection, Grant(tenant, job_ids), self.board)

    def say(self, connection: str, **message: Any) -> list[dict[str, Any]]:
        """What came back."""
        before = len(self.postman.sent[connection])
        heard(connection, json.dumps(message).encode(), self.board)
        return self.postman.sent[connection][before:]

    def watch(self, connection: str, job_id: str = JOB_ID, start: Any = 0, **more: Any) -> list[dict[str, Any]]:
        return self.say(connection, action="watch", job_id=job_id, **{"from": start, **more})

    def stored(self, *texts: str, attempt: int = 1, job_id: str = JOB_ID) -> None:
        first = sum(key[:2] == (job_id, attempt) for key in self.chunks.items)
        for n, text in enumerate(texts, first):
            self.chunks.append(job_id, Chunk(attempt, n, text), 0)

    def becomes(self, record: dict[str, Any]) -> None:
        self.store.records[record["pk"]] = record

    def ends(self, status: str = COMPLETED, result: str = '{"summary": "ok"}', **over: Any) -> None:
        self.results.objects[KEY] = result.encode()
        size = {"result_bytes": len(result.encode())} if status == COMPLETED else {}
        self.becomes(final_record(status, **{"stream": True, **size, **over}))

    def push(self, job_id: str = JOB_ID) -> None:
        serve(self.connections.watchers_of(job_id), self.relay)

    def heard_by(self, connection: str) -> Listener:
        listener = Listener()
        for frame in self.postman.sent[connection]:
            listener.hear(frame)
        return listener

    def cursor(self, connection: str, job_id: str = JOB_ID) -> tuple[int, int] | None:
        found = self.connections.watches.get((job_id, connection))
        return (found.attempt, found.next) if found else None
