"""Who watches, in tests: the ports of watching in memory, and a client that follows docs/streaming.md to the letter."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lambdas.core.canonical import sha256
from lambdas.core.ports import Unavailable
from lambdas.core.watching.ports import Connection, Gone, Grant, Posted, Sent, Watch
from tests.fakes import Troubles

Before = Callable[[str], None]


def _nothing(_name: str) -> None:
    return None


class FakeTickets:
    """The Tickets port in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, tuple[Grant, int]] = {}
        self.troubles = Troubles()

    def put(self, digest: str, grant: Grant, expires_at: int) -> None:
        _raise(self.troubles, "put")
        self.stored[digest] = grant, expires_at

    def take(self, digest: str, now: int) -> Grant | None:
        _raise(self.troubles, "take")
        if digest not in self.stored or self.stored[digest][1] <= now:
            return None
        return self.stored.pop(digest)[0]

    def has(self, ticket: str) -> bool:
        return sha256(ticket) in self.stored


class FakeConnections:
    """The Connections port in memory. `before`: called with the name of each call; what it raises, the caller feels."""

    def __init__(self, before: Before = _nothing) -> None:
        self.connections: dict[str, Connection] = {}
        self.watches: dict[tuple[str, str], Watch] = {}  # (job, connection)
        self.expiries: dict[tuple[str, str], int] = {}
        self.troubles = Troubles()
        self.before = before

    def _called(self, name: str) -> None:
        self.before(name)
        _raise(self.troubles, name)

    def open(self, connection: Connection) -> None:
        self._called("open")
        self.connections[connection.id] = connection

    def find(self, connection_id: str) -> Connection | None:
        self._called("find")
        return self.connections.get(connection_id)

    def close(self, connection_id: str) -> None:
        self._called("close")
        self.connections.pop(connection_id, None)
        for key in [key for key in list(self.watches) if key[1] == connection_id]:
            del self.watches[key]

    def watch(self, watch: Watch, expires_at: int) -> None:
        self._called("watch")
        key = watch.job_id, watch.connection_id
        self.watches[key], self.expiries[key] = watch, expires_at

    def unwatch(self, watch: Watch) -> None:
        self._called("unwatch")
        if self._stands(watch):
            del self.watches[watch.job_id, watch.connection_id]

    def advance(self, watch: Watch, attempt: int, next_chunk: int) -> bool:
        self._called("advance")
        if not self._stands(watch):
            return False
        key = watch.job_id, watch.connection_id
        found = self.watches[key]
        if (found.attempt, found.next) < (attempt, next_chunk):
            self.watches[key] = replace(found, attempt=attempt, next=next_chunk)
        return True

    def tell(self, watch: Watch, told: str) -> None:
        self._called("tell")
        key = watch.job_id, watch.connection_id
        if self._stands(watch) and self.watches[key].told < told:
            self.watches[key] = replace(self.watches[key], told=told)

    def watch_of(self, connection_id: str, job_id: str) -> Watch | None:
        self._called("watch_of")
        return self.watches.get((job_id, connection_id))

    def jobs_of(self, connection_id: str) -> list[str]:
        self._called("jobs_of")
        return sorted(job for job, connection in list(self.watches) if connection == connection_id)

    def watchers_of(self, job_id: str) -> list[Watch]:
        self._called("watchers_of")
        return [self.watches[key] for key in sorted(self.watches) if key[0] == job_id]

    def _stands(self, watch: Watch) -> bool:
        found = self.watches.get((watch.job_id, watch.connection_id))
        return found is not None and found.mark == watch.mark


class FakePostman:
    """The Postman port: what each connection got, in order. `outcomes`: of its next posts; who is in `gone` is gone."""

    def __init__(self, before: Before = _nothing) -> None:
        self.sent: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.frames: list[bytes] = []
        self.outcomes: dict[str, deque[Posted]] = defaultdict(deque)
        self.gone: set[str] = set()
        self.posts: list[str] = []
        self.before = before

    def post(self, connection_id: str, frame: bytes) -> Posted:
        self.before("post")
        self.posts.append(connection_id)
        if connection_id in self.gone:
            return Gone()
        outcome = self.outcomes[connection_id].popleft() if self.outcomes[connection_id] else Sent()
        if isinstance(outcome, Sent):
            self.frames.append(frame)
            self.sent[connection_id].append(json.loads(frame))
        return outcome

    def types(self, connection_id: str) -> list[str]:
        return [frame["type"] for frame in self.sent[connection_id]]


class GapError(AssertionError):
    """A chunk came whose predecessor had not."""


class Listener:
    """A client of one job, by the rules of docs/streaming.md. What is ahead of it does not count: it comes again in its
    time. A `strict` one knows that there can be nothing ahead of it."""

    def __init__(self, *, strict: bool = True) -> None:
        self.strict = strict
        self.attempt = 0
        self.texts: list[str] = []
        self.parts: list[str] = []
        self.settled: set[str] = set()  # branches that are over
        self.stages: list[tuple[int, int]] = []  # (attempt, how many), as they were told
        self.final: dict[str, Any] | None = None
        self.repeats = 0

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def hear(self, frame: Mapping[str, Any]) -> None:
        if self.final or frame["type"] in ("watching", "pong", "unwatched", "error"):
            return
        if frame["attempt"] < self.attempt:
            return
        if frame["attempt"] > self.attempt:
            self.attempt, self.texts, self.parts, self.settled = frame["attempt"], [], [], set()
        if frame["type"] == "progress" and len(frame["done"]) + len(frame["failed"]) >= len(self.settled):
            self.settled = {*frame["done"], *frame["failed"]}
            self.stages.append((frame["attempt"], len(self.settled)))
        if frame["type"] == "chunks":
            for number, text in enumerate(frame["texts"], frame["from"]):
                self._chunk(number, text)
        if frame["type"] == "result" and frame["part"] == len(self.parts):
            self.parts.append(frame["text"])
        if frame["type"] == "final":
            self._end(frame)

    def _end(self, frame: Mapping[str, Any]) -> None:
        if frame["chunks"] <= len(self.texts):
            self.final = dict(frame)
        elif self.strict:
            raise GapError(f"the end after {len(self.texts)} of {frame['chunks']} chunks")

    def _chunk(self, number: int, text: str) -> None:
        if number == len(self.texts):
            self.texts.append(text)
        elif number < len(self.texts):
            assert self.texts[number] == text, "one number, two texts"
            self.repeats += 1
        elif self.strict:
            raise GapError(f"chunk {number} after {len(self.texts)}")


def _raise(troubles: Troubles, name: str) -> None:
    trouble = troubles.take(name)
    if trouble:
        raise Unavailable(f"{name}: {trouble.value}")
