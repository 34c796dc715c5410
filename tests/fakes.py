"""Stand-ins for every port of `lambdas.core.ports`, with the troubles that the real ones have.

Store and answers judge by the protocol's own table; what they promise is held against moto by the contract tests."""

from __future__ import annotations

import copy
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from lambdas.contracts.names import COMPLETED
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.ports import (
    Answer,
    AnswerNotStored,
    AnswerPending,
    Applied,
    Completed,
    EffectNotRecorded,
    Found,
    Item,
    Kept,
    Message,
    Missing,
    ModelRequest,
    ObjectVersion,
    Refused,
    Reply,
    Stored,
    TooLarge,
    Unavailable,
    UploadRow,
    VersionPage,
)
from lambdas.core.protocol import Change
from lambdas.core.streaming.ports import Chunk, Heard
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
    """The troubles of the next calls, by the name of the call (or of the rule that it applies). None: this one has
    none."""

    def __init__(self) -> None:
        self._next: dict[str, deque[Trouble | None]] = defaultdict(deque)

    def add(self, name: str, *troubles: Trouble | None) -> None:
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
        self.spoilt: set[str] = set()  # jobs whose record holds what no writer of ours puts there
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
        if job_id in self.spoilt:
            raise UnreadableRecord(f"{job_id}: a record holds no attribute of kind NULL")
        return copy.deepcopy(self.records.get(job_id))

    def read_many(self, job_ids: Sequence[str]) -> list[Record]:
        self._called("read_many")
        found = [job_id for job_id in job_ids if job_id in self.records and job_id not in self.spoilt]
        return [copy.deepcopy(self.records[job_id]) for job_id in found]

    def due(self, shard: str, before: datetime, after: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        self._called("due")
        trouble = self.troubles.take(f"due {shard}", "due")
        if trouble:
            raise _raised(trouble, f"due {shard}")
        at = times.text(before)
        rows = [
            (record["due_at"], record["pk"]) for record in self.records.values() if record.get("due_shard") == shard
        ]
        return [row for row in sorted(rows) if row[0] < at and (after is None or row > after)][:limit]

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        self._called("of_tenant")
        found = self.records.values()
        rows = [(row["created_at"], row["pk"]) for row in found if row.get("tenant_shard") == shard]
        return [row for row in sorted(rows, reverse=True) if before is None or row < before][:limit]


class FakeInventory:
    """The Inventory port on a fake store's records; `behind`: jobs that the index does not have yet."""

    def __init__(self, store: FakeJobStore) -> None:
        self.store = store
        self.behind: set[str] = set()
        self.troubles = Troubles()

    def uploads(self, shard: str, after: str, limit: int) -> list[UploadRow]:
        trouble = self.troubles.take("uploads")
        if trouble:
            raise _raised(trouble, "uploads")
        records = [one for one in self.store.records.values() if one.get("upload_shard") == shard]
        found = [one for one in records if one["upload_key"] > after and one["pk"] not in self.behind]
        rows = sorted((one["upload_key"], one["pk"], one["status"]) for one in found)[:limit]
        split = ((*key.rpartition("\0")[::2], job_id, status) for key, job_id, status in rows)
        return [UploadRow(key, version, job_id, status) for key, version, job_id, status in split]

    def completed(self, after: str, limit: int) -> tuple[list[Completed], str]:
        trouble = self.troubles.take("completed")
        if trouble:
            raise _raised(trouble, "completed")
        page = [pk for pk in sorted(self.store.records) if pk > after][:limit]
        records = [self.store.records[pk] for pk in page if self.store.records[pk]["status"] == COMPLETED]
        found = [Completed(one["pk"], one["result_key"], one["finished_at"]) for one in records]
        return found, page[-1] if len(page) == limit else ""


class FakeListing:
    """The Listing port over versions in any order, with the pages that S3 would make of them."""

    def __init__(self, *versions: ObjectVersion) -> None:
        self.found = list(versions)
        self.pages: list[tuple[str, str] | None] = []
        self.troubles = Troubles()

    def versions(self, prefix: str, after: tuple[str, str] | None, limit: int) -> VersionPage:
        self.pages.append(after)
        trouble = self.troubles.take("versions")
        if trouble:
            raise _raised(trouble, "versions")
        newest_first = sorted(self.found, key=lambda one: one.modified, reverse=True)
        ordered = [one for one in sorted(newest_first, key=lambda one: one.key) if one.key.startswith(prefix)]
        start = 0
        if after:
            of_key = [at for at, one in enumerate(ordered) if (one.key, one.version or "null") == after]
            start = of_key[0] + 1 if of_key else sum(one.key <= after[0] for one in ordered)
        page = ordered[start : start + limit]
        more = start + limit < len(ordered)
        return VersionPage(page, (page[-1].key, page[-1].version or "null") if more else None)


class FakeWorkers:
    """The Workers port, one thing after the other."""

    def each(
        self, items: Iterable[Item], act: Callable[[Item], Answer], *, needs: Callable[[Item], bool] = lambda item: True
    ) -> Iterator[tuple[Item, Answer | Unavailable | None]]:
        for item in items:
            answer: Answer | Unavailable | None = None
            try:
                answer = act(item) if needs(item) else None
            except Unavailable as trouble:
                answer = trouble
            yield item, answer

    def call(self, act: Callable[[], Answer]) -> Answer:
        return act()


class FakeTurn:
    """A part's share of an invocation: time as the test says; `saves` counts the points at which it could be saved."""

    def __init__(self, in_time: Callable[[], bool] = lambda: True) -> None:
        self.in_time = in_time
        self.saves = 0

    def save(self) -> None:
        self.saves += 1


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
    """The Inputs, Results and Folders ports in memory. `order`: shared with other fakes, what was called when."""

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

    def delete_many(self, keys: Sequence[str]) -> None:
        self.order.append("delete_many")
        assert 0 < len(keys) <= 1_000, "S3 takes so many"
        trouble = self.troubles.take("delete_many")
        if trouble:
            raise _raised(trouble, "delete_many")
        for key in keys:
            self.objects.pop(key, None)

    def delete_folder(self, prefix: str) -> None:
        self.order.append("delete_folder")
        assert prefix.endswith("/"), "else it is more than a folder"
        trouble = self.troubles.take("delete_folder")
        if trouble:
            raise _raised(trouble, "delete_folder")
        self.objects = {key: body for key, body in self.objects.items() if not key.startswith(prefix)}


class FakeUploads:
    """The Uploads port in memory: versions of objects, as (key, version)."""

    def __init__(self, *versions: tuple[str, str]) -> None:
        self.versions = list(versions)
        self.troubles = Troubles()

    def delete(self, key: str, version: str) -> None:
        trouble = self.troubles.take("delete")
        if trouble:
            raise _raised(trouble, f"delete {key}")
        self.versions = [one for one in self.versions if one[0] != key or version not in ("", one[1])]


class FakeUploaded:
    """The UploadedObjects and UploadForms ports in memory: per key its versions, the oldest first, with their content
    types and bytes. `put` and `lose` are the world's doing."""

    def __init__(self) -> None:
        self.versions: dict[str, list[tuple[Stored, str, bytes]]] = defaultdict(list)
        self.forms: list[dict[str, Any]] = []
        self.troubles = Troubles()

    def put(self, key: str, body: bytes = b"{}", content_type: str = "application/json") -> Stored:
        number = sum(map(len, self.versions.values())) + 1
        stored = Stored(key, f"version-{number}", f"etag-{number}", len(body))
        self.versions[key].append((stored, content_type, body))
        return stored

    def lose(self, stored: Stored) -> None:
        self.versions[stored.key] = [one for one in self.versions[stored.key] if one[0] != stored]

    def read(self, key: str, version: str, etag: str, limit: int) -> tuple[str, bytes]:
        trouble = self.troubles.take("read")
        if trouble:
            raise _raised(trouble, f"read {key}")
        found = [one for one in self.versions[key] if one[0].version == version]
        if not found:
            raise Missing(key)
        _, content_type, body = found[0]
        if len(body) > limit:
            raise TooLarge(key)
        return content_type, body

    def first(self, key: str) -> Stored | None:
        trouble = self.troubles.take("first")
        if trouble:
            raise _raised(trouble, f"first {key}")
        return self.versions[key][0][0] if self.versions[key] else None

    def form(self, key: str, content_type: str, most: int, expires_s: int) -> tuple[str, dict[str, str]]:
        self.forms.append({"key": key, "content_type": content_type, "most": most, "expires_s": expires_s})
        return "https://uploads.test/", {"key": key, "Content-Type": content_type, "policy": "signed"}


class FakeSecrets:
    """The Secrets port: what is kept is as old as the clock says, and is read again when that is too old."""

    def __init__(self, now: Callable[[], datetime] = lambda: NOW, **current: tuple[str, ...]) -> None:
        self.current = current
        self.now = now
        self.reads: list[str] = []
        self.troubles = Troubles()
        self._kept: dict[str, tuple[datetime, tuple[str, ...]]] = {}

    def read(self, name: str, age_s: float) -> tuple[str, ...]:
        kept = self._kept.get(name)
        if kept is None or (self.now() - kept[0]).total_seconds() > age_s:
            trouble = self.troubles.take("read")
            if trouble:
                raise _raised(trouble, f"read {name}")
            self.reads.append(name)
            kept = self._kept[name] = (self.now(), self.current[name])
        return kept[1]


def any_reply(text: str = "All three are safe.", stop_reason: str = "end_turn", **over: int) -> Reply:
    return Reply(text, stop_reason, over.get("input_tokens", 1_000), over.get("output_tokens", 500))


def in_threes(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


@dataclass(frozen=True)
class Cut:
    """A stream that says these pieces and then breaks."""

    error: BaseException
    pieces: tuple[str, ...] = ()


class FakeModel:
    """The Model and StreamingModel ports: says what the script says, one line a call, and then the same thing for
    ever. `pieces`: in which pieces a stream says a text."""

    def __init__(
        self,
        *script: Reply | BaseException | Cut | Callable[[ModelRequest], Reply],
        pieces: Callable[[str], Iterable[str]] = in_threes,
    ) -> None:
        self.script = deque(script)
        self.pieces = pieces
        self.requests: list[ModelRequest] = []
        self.streamed = 0
        self._lock = threading.Lock()

    def converse(self, request: ModelRequest) -> Reply:
        return self._said(request, lambda piece: None)

    def converse_stream(self, request: ModelRequest, heard: Heard) -> Reply:
        self.streamed += 1
        reply = self._said(request, heard)
        for piece in self.pieces(reply.text):
            heard(piece)
        return reply

    def _said(self, request: ModelRequest, heard: Heard) -> Reply:
        with self._lock:
            self.requests.append(request)
            said = self.script.popleft() if self.script else any_reply()
        if isinstance(said, Cut):
            for piece in said.pieces:
                heard(piece)
            raise said.error
        if isinstance(said, BaseException):
            raise said
        return said(request) if callable(said) else said


class FakeChunks:
    """The Chunks port in memory. `before`: called with the name of each call; what it raises, the caller feels.
    `taken`: in which order chunks were stored, repeats included."""

    def __init__(self, before: Callable[[str], None] = lambda name: None) -> None:
        self.items: dict[tuple[str, int, int], tuple[str, int]] = {}  # (job id, attempt, n): text, expires_at
        self.taken: list[Chunk] = []
        self.at: Callable[[], datetime] = lambda: NOW  # when a chunk is stored
        self.times: dict[tuple[str, int, int], datetime] = {}
        self.troubles = Troubles()
        self.before = before

    def append(self, job_id: str, chunk: Chunk, expires_at: int) -> None:
        self.before("append")
        trouble = self.troubles.take("append")
        if trouble not in (Trouble.REFUSED, Trouble.UNSENT):
            self.items[job_id, chunk.attempt, chunk.n] = chunk.text, expires_at
            self.times[job_id, chunk.attempt, chunk.n] = self.at()
            self.taken.append(chunk)
        if trouble and trouble is not Trouble.LOST_REPLY:
            raise _raised(trouble, "append")

    def read(
        self, job_id: str, attempt: int, first: int, most_bytes: int, since: datetime | None = None
    ) -> list[Chunk]:
        self.before("read chunks")
        trouble = self.troubles.take("read")
        if trouble:
            raise _raised(trouble, "read chunks")
        found: list[Chunk] = []
        for owner, of, n in sorted(self.items):
            is_old = since is not None and self.times.get((owner, of, n), since) < since
            if (owner, of) == (job_id, attempt) and n >= first and not is_old:
                chunk = Chunk(of, n, self.items[owner, of, n][0])
                if found and sum(len(one.text.encode()) for one in (*found, chunk)) > most_bytes:
                    break
                found.append(chunk)
        return found

    def delete_all(self, job_id: str) -> None:
        self.before("delete chunks")
        trouble = self.troubles.take("delete_all")
        if trouble:
            raise _raised(trouble, "delete_all")
        self.items = {key: kept for key, kept in self.items.items() if key[0] != job_id}

    def text_of(self, job_id: str, attempt: int) -> str:
        """What a reader of this attempt puts together; there must be no gap in it."""
        numbers = sorted(n for owner, of, n in self.items if (owner, of) == (job_id, attempt))
        assert numbers == list(range(len(numbers))), f"a gap: {numbers}"
        return "".join(self.items[job_id, attempt, n][0] for n in numbers)


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
            real_s = 60.0 if patience_s > 0 else 0.0  # patience is the test's time, threads need some of their own
            free = self._changed.wait_for(lambda: key not in self._busy, timeout=real_s)
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


class FakeSender:
    """The Sender port: a queue that keeps what it was sent. `refuses`: positions are judged by their message."""

    def __init__(self, refuses: Callable[[Message], bool] = lambda message: False) -> None:
        self.sent: list[Message] = []
        self.refuses = refuses

    def send(self, messages: Sequence[Message]) -> set[int]:
        refused = {position for position, message in enumerate(messages) if self.refuses(message)}
        self.sent += [message for position, message in enumerate(messages) if position not in refused]
        return refused


class FakeDeadLetters:
    """The DeadLetters port: what is received is hidden until it is shown again, removed, or its time is over."""

    def __init__(self, *found: Found, now: Callable[[], datetime] = lambda: NOW) -> None:
        self.lying = {one.message_id: one for one in found}
        self.hidden_until: dict[str, datetime] = {}
        self.calls: list[str] = []
        self.stuck: set[str] = set()  # messages that cannot be removed
        self.troubles = Troubles()
        self.now = now

    def add(self, *found: Found) -> None:
        self.lying |= {one.message_id: one for one in found}

    @property
    def visible(self) -> list[Found]:
        return [one for one in self.lying.values() if self.hidden_until.get(one.message_id, self.now()) <= self.now()]

    def receive(self, *, hide_s: int, wait_s: int = 0) -> list[Found]:
        self.calls.append("receive")
        trouble = self.troubles.take("receive")
        if trouble:
            raise _raised(trouble, "receive")
        page = self.visible[:10]
        self.hidden_until |= {one.message_id: self.now() + timedelta(seconds=hide_s) for one in page}
        return page

    def show(self, receipts: Sequence[str]) -> None:
        self.calls.append("show")
        for message in self._of(receipts):
            self.hidden_until.pop(message, None)

    def remove(self, receipts: Sequence[str]) -> set[int]:
        self.calls.append("remove")
        left = {position for position, message in enumerate(self._of(receipts)) if message in self.stuck}
        for message in self._of(receipts):
            if message not in self.stuck:
                self.lying.pop(message, None)
        return left

    def total(self) -> int:
        return len(self.lying)

    def _of(self, receipts: Sequence[str]) -> list[str]:
        return [receipt.removeprefix("receipt of ") for receipt in receipts]


class FakeLedger:
    """The Ledger port in memory. `before`: called with the name of each write; what it raises, the caller feels."""

    def __init__(self, before: Callable[[str], None] = lambda name: None) -> None:
        self.items: dict[tuple[str, str], dict[str, Any]] = {}
        self.troubles = Troubles()
        self.before = before

    def _called(self, name: str) -> None:
        self.before(name)
        trouble = self.troubles.take(name)
        if trouble:
            raise _raised(trouble, name)

    def take(self, name: str, holder: str, now: datetime, until: datetime) -> Record | None:
        self._called("take")
        lease = self.items.setdefault((f"lease#{name}", "lease"), {"state": {}})
        if lease.get("lease_until", "") >= times.text(now) and lease["holder"] != holder:
            return None
        lease |= {"holder": holder, "lease_until": times.text(until)}
        return copy.deepcopy(lease["state"])  # type: ignore[no-any-return]

    def keep(self, name: str, holder: str, until: datetime, state: Record) -> bool:
        return self._held(name, holder, {"lease_until": times.text(until), "state": copy.deepcopy(dict(state))})

    def give_back(self, name: str, holder: str, state: Record) -> bool:
        given = self._held(name, holder, {"state": copy.deepcopy(dict(state))})
        if given:
            self.items[f"lease#{name}", "lease"].pop("lease_until", None)
        return given

    def _held(self, name: str, holder: str, changes: dict[str, Any]) -> bool:
        self._called("keep")
        lease = self.items.get((f"lease#{name}", "lease"), {})
        if lease.get("holder") != holder:
            return False
        _must_be_storable(changes)
        lease |= changes
        return True

    def create(self, pk: str, sk: str, fields: Record) -> bool:
        self._called("create")
        _must_be_storable(fields)
        if (pk, sk) in self.items:
            return self._has(pk, sk, fields)
        self.items[pk, sk] = {**copy.deepcopy(dict(fields)), "pk": pk, "sk": sk}
        return True

    def save(self, pk: str, sk: str, fields: Record, when: Record | None = None) -> bool:
        self._called("save")
        _must_be_storable(fields)
        item = self.items.get((pk, sk))
        if item is None or any(item.get(name) != value for name, value in (when or {}).items()):
            return self._has(pk, sk, fields)
        item |= copy.deepcopy(dict(fields))
        return True

    def _has(self, pk: str, sk: str, fields: Record) -> bool:
        item = self.items.get((pk, sk))
        return item is not None and all(item.get(name) == value for name, value in fields.items())

    def read(self, pk: str, sk: str) -> Record | None:
        self._called("read")
        return copy.deepcopy(self.items.get((pk, sk)))

    def page(self, pk: str, after: str, limit: int) -> list[Record]:
        self._called("page")
        found: list[Record] = [item for (owner, sk), item in sorted(self.items.items()) if owner == pk and sk > after]
        return copy.deepcopy(found[:limit])


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


class FakeEndpoints:
    """The EndpointStore port in memory. `rows`: circuits by tenant and endpoint id. `before`: as of FakeJobStore."""

    def __init__(self, *records: Record, before: Callable[[str], None] = lambda name: None) -> None:
        self.records: dict[tuple[str, str], dict[str, Any]] = {
            (record["tenant"], record["id"]): dict(record) for record in records
        }
        self.rows: dict[tuple[str, str], Record] = {}
        self.calls: list[str] = []
        self.troubles = Troubles()
        self.before = before

    def _called(self, name: str) -> Trouble | None:
        self.calls.append(name)
        self.before(name)
        trouble = self.troubles.take(name)
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, name)
        return trouble

    def of_tenant(self, tenant: str) -> list[Record]:
        self._called("of_tenant")
        return [copy.deepcopy(self.records[key]) for key in sorted(self.records) if key[0] == tenant]

    def circuit(self, tenant: str, endpoint_id: str) -> Record:
        self._called("circuit")
        return self.rows.get((tenant, endpoint_id), {})

    def read(self, tenant: str, endpoint_id: str) -> Record | None:
        self._called("read")
        return copy.deepcopy(self.records.get((tenant, endpoint_id)))

    def create(self, record: Record) -> bool:
        trouble = self._called("create")
        _must_be_storable(record)
        standing = self.records.setdefault((record["tenant"], record["id"]), copy.deepcopy(dict(record)))
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "create")
        return standing == record

    def save(self, tenant: str, endpoint_id: str, fields: Record, when: Record) -> bool:
        trouble = self._called("save")
        _must_be_storable(fields)
        found = self.records.get((tenant, endpoint_id))
        may = found is not None and all(found.get(name) == value for name, value in when.items())
        if found is not None and may:
            found.update(copy.deepcopy(dict(fields)))
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "save")
        return found is not None and all(found.get(name) == value for name, value in fields.items())

    def remove(self, tenant: str, endpoint_id: str) -> None:
        self._called("remove")
        self.rows.pop((tenant, endpoint_id), None)
        self.records.pop((tenant, endpoint_id), None)
