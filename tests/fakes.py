"""Stand-ins for every port of `lambdas.core.ports`, with the troubles that the real ones have.

Store and answers judge by the protocol's own table; what they promise is held against moto by the contract tests."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.ports import (
    AnswerNotStored,
    AnswerPending,
    Applied,
    EffectNotRecorded,
    Kept,
    Message,
    Missing,
    ModelRequest,
    Refused,
    Reply,
    Unavailable,
)
from lambdas.core.protocol import Change
from tests.builders import NOW

Record = Mapping[str, Any]


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self, start: datetime = NOW) -> None:
        self.at = start

    def __call__(self) -> datetime:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Trouble(Enum):
    """What can go wrong with one call to a store."""

    LOST_REPLY = "it lands, its reply is lost, the SDK's own repeat is what the caller sees"
    REFUSED = "it certainly did not happen"
    UNHEARD = "it landed, and nobody said so"
    UNSENT = "it did not land, and nobody knows"


class Troubles:
    """The troubles of the next calls, by the name of the call (or of the rule that it applies)."""

    def __init__(self) -> None:
        self._next: dict[str, deque[Trouble]] = defaultdict(deque)

    def add(self, name: str, *troubles: Trouble) -> None:
        self._next[name].extend(troubles)

    def take(self, *names: str) -> Trouble | None:
        for name in names:
            if self._next[name]:
                return self._next[name].popleft()
        return None


def _raised(trouble: Trouble, what: str) -> Unavailable:
    return Unavailable(f"{what}: {trouble.value}", unknown=trouble is not Trouble.REFUSED)


class FakeJobStore:
    """The JobStore port in memory. `images`: the stream, (old, new) of every write that changed something.
    `before`: called with the name of each call; what it raises, the caller feels, and nothing is done."""

    def __init__(self, *records: Record, before: Callable[[str], None] = lambda name: None) -> None:
        self.records: dict[str, dict[str, Any]] = {record["pk"]: dict(record) for record in records}
        self.images: list[tuple[Record | None, Record]] = []
        self.calls: list[str] = []
        self.troubles = Troubles()
        self.broken: set[str] = set()  # jobs that no call can read or write
        self.before = before

    def _called(self, name: str) -> None:
        self.calls.append(name)
        self.before(name)

    def create(self, record: Record) -> Record | None:
        self._called("create")
        trouble = self.troubles.take("create")
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, "create")
        standing = self.records.get(record["pk"])
        if standing is None:
            self._put(record["pk"], record)
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "create")
        if trouble is Trouble.LOST_REPLY:
            return copy.deepcopy(self.records[record["pk"]])
        return copy.deepcopy(standing)

    def apply(self, job_id: str, change: Change) -> Applied | Refused:
        self._called(change.rule.name)
        trouble = self.troubles.take(change.rule.name, "apply")
        if job_id in self.broken:
            trouble = Trouble.REFUSED
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, change.rule.name)
        if trouble in (Trouble.LOST_REPLY, Trouble.UNHEARD):
            self._apply(job_id, change)
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, change.rule.name)
        return self._apply(job_id, change)

    def _apply(self, job_id: str, change: Change) -> Applied | Refused:
        _must_be_storable(change.params)
        found = self.records.get(job_id)
        if found is not None and change.may(found):
            self._put(job_id, change.applied_to(found))
            return Applied(copy.deepcopy(self.records[job_id]))
        if change.is_own_effect(found):
            assert found is not None
            return Applied(copy.deepcopy(found))
        return Refused(copy.deepcopy(found))

    def _put(self, job_id: str, record: Record) -> None:
        _must_be_storable(record)
        old, new = self.records.get(job_id), copy.deepcopy(dict(record))
        self.records[job_id] = new
        if old != new:
            self.images.append((copy.deepcopy(old), copy.deepcopy(new)))

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        troubles: dict[str, str] = {}
        for job_id, change in changes:
            try:
                self.apply(job_id, change)
            except (Unavailable, UnreadableRecord) as trouble:
                troubles[job_id] = str(trouble)
        return troubles

    def read(self, job_id: str) -> Record | None:
        self._called("read")
        trouble = self.troubles.take("read")
        if trouble or job_id in self.broken:
            raise _raised(trouble or Trouble.REFUSED, "read")
        return copy.deepcopy(self.records.get(job_id))

    def read_many(self, job_ids: Sequence[str]) -> list[Record]:
        self._called("read_many")
        return [copy.deepcopy(self.records[job_id]) for job_id in job_ids if job_id in self.records]

    def due(self, shard: str, before: datetime, limit: int) -> list[str]:
        self._called("due")
        trouble = self.troubles.take(f"due {shard}", "due")
        if trouble:
            raise _raised(trouble, f"due {shard}")
        at = times.text(before)
        rows = [record for record in self.records.values() if record.get("due_shard") == shard]
        rows = [record for record in rows if record.get("due_at", "~") < at]
        return [record["pk"] for record in sorted(rows, key=lambda record: record["due_at"])][:limit]

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        self._called("of_tenant")
        found = self.records.values()
        rows = [(row["created_at"], row["pk"]) for row in found if row.get("tenant_shard") == shard]
        return [row for row in sorted(rows, reverse=True) if before is None or row < before][:limit]


def _must_be_storable(value: Any) -> None:
    """As the real table: text, whole numbers, booleans, lists and maps; a float above all is a mistake."""
    match value:
        case Mapping():
            for part in value.values():
                _must_be_storable(part)
        case list() | tuple():
            for part in value:
                _must_be_storable(part)
        case str() | int():
            return
        case _:
            raise TypeError(f"{type(value).__name__} does not belong in a record")


class FakeObjects:
    """The Inputs and Results ports in memory. `order`: shared with other fakes, what was called in which order."""

    def __init__(self, objects: Mapping[str, bytes] | None = None, order: list[str] | None = None) -> None:
        self.objects = dict(objects or {})
        self.order = order if order is not None else []
        self.troubles = Troubles()

    def put(self, key: str, body: bytes) -> None:
        self.order.append("put")
        trouble = self.troubles.take("put")
        if trouble:
            raise _raised(trouble, f"put {key}")
        self.objects[key] = body

    def get(self, key: str) -> bytes:
        self.order.append("get")
        trouble = self.troubles.take("get")
        if trouble:
            raise _raised(trouble, f"get {key}")
        if key not in self.objects:
            raise Missing(key)
        return self.objects[key]

    def link(self, key: str, expires_s: int) -> str:
        return f"https://results.test/{key}?expires={expires_s}"

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


def any_reply(text: str = "All three are safe.", stop_reason: str = "end_turn", **over: int) -> Reply:
    return Reply(text, stop_reason, over.get("input_tokens", 1_000), over.get("output_tokens", 500))


class FakeModel:
    """The Model port: says what the script says, one line a call, and then the same thing for ever."""

    def __init__(self, *script: Reply | BaseException | Callable[[ModelRequest], Reply]) -> None:
        self.script = deque(script)
        self.requests: list[ModelRequest] = []
        self._lock = threading.Lock()

    def converse(self, request: ModelRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            said = self.script.popleft() if self.script else any_reply()
        if isinstance(said, BaseException):
            raise said
        return said(request) if callable(said) else said


class FakeAnswers:
    """The Answers port in memory: one caller of a key at a time, stored before it is given back, and nothing stored
    when the call raised. A caller of another's key waits for it, or gets AnswerPending when it is held for ever."""

    def __init__(self, order: list[str] | None = None) -> None:
        self.stored: dict[str, tuple[Mapping[str, Any], str]] = {}
        self.held_until: dict[str, datetime] = {}  # by somebody who is not in this process
        self.asked: list[dict[str, Any]] = []
        self.forgotten: list[str] = []
        self.order = order if order is not None else []
        self.troubles = Troubles()
        self._busy: set[str] = set()
        self._changed = threading.Condition()
        self._saves = 0

    def once(
        self, key: str, tenant: str, call: Callable[[], Mapping[str, Any]], *, patience_s: float, look: bool
    ) -> Kept:
        self.asked.append({"key": key, "tenant": tenant, "patience_s": patience_s, "look": look})
        trouble = self.troubles.take("once")
        if trouble:
            raise _raised(trouble, "once")
        if key in self.held_until:
            raise AnswerPending(self.held_until[key])
        with self._changed:
            free = self._changed.wait_for(lambda: key not in self._busy, timeout=max(0.0, min(patience_s, 5.0)))
            if not free:
                raise AnswerPending(NOW)
            if key in self.stored:
                value, by = self.stored[key]
                return Kept(copy.deepcopy(value), by, reused=True)
            self._busy.add(key)
        try:
            return self._saved(key, call())
        finally:
            with self._changed:
                self._busy.discard(key)
                self._changed.notify_all()

    def _saved(self, key: str, value: Mapping[str, Any]) -> Kept:
        if self.troubles.take("save"):
            raise AnswerNotStored("the row could not be written")
        with self._changed:
            self._saves += 1
            self.stored[key] = (copy.deepcopy(value), f"save-{self._saves}")
        return Kept(value, f"save-{self._saves}", reused=False)

    def forget(self, key: str, tenant: str, by: str) -> None:
        self.order.append("forget")
        trouble = self.troubles.take("forget")
        if trouble:
            raise _raised(trouble, "forget")
        if key in self.stored and self.stored[key][1] == by:
            del self.stored[key]
            self.forgotten.append(key)


class FakeEffects:
    """The Effects port in memory. A start without an end is kept, as a crash between the two would leave it."""

    def __init__(self) -> None:
        self.intents: dict[str, str] = {}
        self.ended: dict[str, dict[str, Any]] = {}
        self.started: set[str] = set()
        self.troubles = Troubles()

    def intend(self, name: str, payload: str) -> str:
        trouble = self.troubles.take("intend")
        if trouble:
            raise _raised(trouble, "intend")
        return self.intents.setdefault(name, payload)

    def repeatable(self, key: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.ended:
            result = act()
            if self.troubles.take("end"):
                raise EffectNotRecorded("the row could not be written")
            self.ended[key] = result
        return copy.deepcopy(self.ended[key])

    def once(self, key: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key in self.ended:
            return copy.deepcopy(self.ended[key])
        if key in self.started:
            raise Permanent("it was started and its end is not recorded", "OUTCOME_UNKNOWN")
        self.started.add(key)
        try:
            result = act()
        except (NotDone, Permanent):
            self.started.discard(key)
            raise
        except Exception as error:
            raise Permanent(f"it raised {type(error).__name__}", "OUTCOME_UNKNOWN") from error
        if not self.troubles.take("end"):
            self.ended[key] = result
        return result


class FakeMailer:
    """The Mailer port: keeps what it was asked to send, and raises what the script says, one line a mail."""

    def __init__(self, *script: Exception | None) -> None:
        self.script = deque(script)
        self.sent: list[dict[str, str]] = []

    def send(self, *, to: str, subject: str, text: str, key: str) -> str:
        trouble = self.script.popleft() if self.script else None
        if trouble:
            raise trouble
        self.sent.append({"to": to, "subject": subject, "text": text, "key": key})
        return f"mail-{len(self.sent)}"


class FakeOutbox:
    """The Outbox port: keeps what it was given. `refuse(kind, message)` says what is not accepted."""

    def __init__(self, refuse: Callable[[str, Message], bool] = lambda kind, message: False) -> None:
        self.work: list[Message] = []
        self.letters: list[Message] = []
        self.events: list[Message] = []
        self.order: list[str] = []
        self.refuse = refuse

    def _take(self, kind: str, into: list[Message], messages: Sequence[Message]) -> set[int]:
        refused: set[int] = set()
        for position, message in enumerate(messages):
            self.order.append(kind)
            if self.refuse(kind, message):
                refused.add(position)
            else:
                into.append(message)
        return refused

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return self._take("work", self.work, messages)

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        return self._take("letter", self.letters, messages)

    def publish(self, messages: Sequence[Message]) -> set[int]:
        return self._take("event", self.events, messages)


class FakeQueue:
    """The WorkQueue port, and what the worker's handler needs of a queue."""

    def __init__(self, depth: int = 0) -> None:
        self.found = depth
        self.hidden: list[tuple[str, int]] = []
        self.troubles = Troubles()

    def depth(self) -> int:
        trouble = self.troubles.take("depth")
        if trouble:
            raise _raised(trouble, "depth")
        return self.found

    def hide(self, receipt_handle: str, seconds: int) -> None:
        self.hidden.append((receipt_handle, seconds))


class FakeLetters:
    """The Letters port of a worker."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.sent: list[Message] = []
        self.accepts = accepts

    def send(self, messages: Sequence[Message]) -> set[int]:
        if not self.accepts:
            return set(range(len(messages)))
        self.sent += messages
        return set()


class Notices:
    """The Notice port: the steps that were told, with their fields."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, step: str, **fields: Any) -> None:
        self.told.append((step, fields))

    @property
    def steps(self) -> list[str]:
        return [step for step, _ in self.told]

    def of(self, step: str) -> dict[str, Any]:
        """The fields of the one time that this step was told."""
        (fields,) = [fields for told, fields in self.told if told == step]
        return fields


def drawing(values: Iterable[float] = (0.5,)) -> Callable[[], float]:
    """Draws these numbers in turn, the last one for ever."""
    left = deque(values)
    return lambda: left.popleft() if len(left) > 1 else left[0]
