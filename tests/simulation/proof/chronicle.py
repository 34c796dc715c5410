"""Writes down what a stack does, in one order: invocations, calls, what the model is asked, what becomes of a job."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lambdas.adapters.attributes import from_item
from lambdas.contracts.names import DELIVERY_SK, JOB_SK
from local.aws.calls import Call, Response
from local.aws.consumption import WRITES, targets
from local.aws.tables import stored_item
from local.compute.boundaries import Boundaries, Boundary, Sandbox
from local.compute.environment import Environment
from local.model.requests import ModelRequest
from local.model.web import Client
from local.model.web import Response as Said
from local.runtime import Runtime
from tests.receivers import Came as Delivered


@dataclass(frozen=True)
class Began:
    """An invocation, with its event as text."""

    number: int
    function: str
    request_id: str
    event: str


@dataclass(frozen=True)
class Called:
    """A call that a function made and that was carried out."""

    number: int
    function: str
    request_id: str
    service: str
    operation: str
    request: bytes
    response: bytes
    status: int


@dataclass(frozen=True)
class Asked:
    """A call that the model got. `line` goes on to say what became of it."""

    number: int
    request_id: str
    request: ModelRequest
    line: dict[str, Any]


@dataclass(frozen=True)
class Became:
    """A job's record, or one of its deliveries, after a write; `request_id` is empty when it was no function's call
    (a ghost)."""

    number: int
    request_id: str
    job_id: str
    record: dict[str, Any]


@dataclass(frozen=True)
class Came:
    """A call that a receiver of deliveries got, and whose invocation made it ("" if it is not known)."""

    number: int
    request_id: str
    place: str
    delivered: Delivered


OnAsk = Callable[[Asked], None]
OnPart = Callable[[Asked, int], None]


@dataclass
class Chronicle:
    """A gate of the AWS server, inside all others; stands before the runtime's boundaries and the model's list."""

    exclusive = True

    runtime: Runtime
    on_ask: OnAsk = lambda asked: None
    on_part: OnPart = lambda asked, part: None
    began: list[Began] = field(default_factory=list)
    called: list[Called] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    became: list[Became] = field(default_factory=list)
    deliveries: list[Became] = field(default_factory=list)
    came: list[Came] = field(default_factory=list)
    _number: int = 0
    _latest: tuple[Any, str] = (None, "null")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self) -> Chronicle:
        """Begin to write."""
        runtime = self.runtime
        runtime._aws.gates.append(self)
        runtime.functions.boundaries = _Watched(self, runtime.functions.boundaries)
        calls = runtime.model_server.calls
        add = calls.add

        def watched(request: ModelRequest, at: datetime) -> dict[str, Any]:
            line = add(request, at)
            caller = runtime._aws.callers.find(request.caller or "")
            answering.asked = asked = Asked(self._next(), caller.request_id if caller else "", request, line)
            self.asked.append(asked)
            self.on_ask(asked)
            return line

        calls.add = watched  # type: ignore[method-assign]
        answering = threading.local()
        conversations = runtime.model_server._conversations
        answer = conversations.answer

        def watched_answer(request: ModelRequest, client: Client) -> Said:
            said = answer(request, client)
            return replace(said, chunks=self._parts(answering.asked, said.chunks)) if request.streams else said

        conversations.answer = watched_answer  # type: ignore[method-assign]
        return self

    def _parts(self, asked: Asked, parts: Iterable[bytes]) -> Iterator[bytes]:
        for number, part in enumerate(parts):
            self.on_part(asked, number)
            yield part

    @property
    def last(self) -> int:
        """The number of the latest entry."""
        return self._number

    def clear(self) -> None:
        """A new page."""
        for entries in (self.began, self.called, self.asked, self.became, self.deliveries, self.came):
            entries.clear()

    def written(self, event: Any) -> str:
        """An event as text; the latest is asked for many times."""
        latest = self._latest
        if latest[0] is not event:
            latest = self._latest = (event, json.dumps(event, ensure_ascii=False))
        return latest[1]

    # --- what it hears ---------------------------------------------------------------------------------

    def comes(self, request_id: str, place: str, delivered: Delivered) -> Came:
        """A receiver got something."""
        came = Came(self._next(), request_id, place, delivered)
        self.came.append(came)
        return came

    def begins(self, function: str, request_id: str, event: Any) -> None:
        self.began.append(Began(self._next(), function, request_id, self.written(event)))

    def before(self, call: Call) -> None:
        """Refuses nothing."""

    def after(self, call: Call, response: Response) -> Response:
        if not response.carried_out:
            return response
        if call.caller is not None:
            self.called.append(_called(self._next(), call, response))
        if call.service == "dynamodb" and call.operation in WRITES and response.status == 200:
            self._look_at_jobs(call)
        return response

    def _look_at_jobs(self, call: Call) -> None:
        for target in targets(call):
            item = stored_item(target.table, target.key)
            kind = item.get("sk", {}).get("S", "") if item is not None else ""
            into = self.became if kind == JOB_SK else self.deliveries if kind.startswith(DELIVERY_SK) else None
            if item is not None and into is not None:
                record = dict(from_item(item))
                request_id = call.caller.request_id if call.caller else ""
                into.append(Became(self._next(), request_id, record["pk"], record))

    def _next(self) -> int:
        with self._lock:
            self._number += 1
            return self._number


def _called(number: int, call: Call, response: Response) -> Called:
    assert call.caller is not None
    request = call.path.encode() + b" " + call.query.encode() + b" " + call.body
    caller = call.caller
    return Called(
        number, caller.function, caller.request_id, call.service, call.operation, request, response.body,
        response.status,
    )  # fmt: skip


@dataclass(frozen=True)
class _Watched:
    """The runtime's boundaries, watched."""

    chronicle: Chronicle
    inner: Boundaries

    def at(self, role: str, event: Any, trace_id: str) -> Boundary:
        return _Ends(self.chronicle, self.inner.at(role, event, trace_id), role, event)

    def kept(self, role: str, records: list[Any]) -> list[Any]:
        return self.inner.kept(role, records)


class _Ends:
    """One invocation's boundary, watched."""

    def __init__(self, chronicle: Chronicle, inner: Boundary, role: str, event: Any) -> None:
        self._chronicle, self._inner, self._role, self._event = chronicle, inner, role, event
        self.refused = inner.refused

    def opens(self, sandbox: Sandbox) -> bool:
        assert isinstance(sandbox, Environment)
        assert sandbox.running is not None
        self._chronicle.begins(self._role, sandbox.running.request_id, self._event)
        return self._inner.opens(sandbox)

    def closes(self, sandbox: Sandbox, hear: Callable[[], None]) -> None:
        self._inner.closes(sandbox, hear)

    def over(self) -> None:
        self._inner.over()
