"""Looks through queues of dead letters: all of them in groups, or for one letter. What was only seen is shown again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from lambdas.core import times
from lambdas.core.letters import letter as letters
from lambdas.core.letters.letter import Letter
from lambdas.core.ports import DeadLetters, JobStore
from lambdas.core.times import Instant

HIDE_S = 30
PATIENCE_S = 1  # SQS asks all of its servers only when it is let wait; else an empty answer may not be the end
LETTERS_MAX = 1_000
IDS_SHOWN = 5
VALUE_CHARS = 200_000  # a Lambda answers 6 MB at most, and a character may take twelve

InTime = Callable[[], bool]
Boxes = Mapping[str, DeadLetters]


class Looking:
    """One look through a queue, page by page. Whatever is not kept is visible again when it ends, however it ends."""

    def __init__(self, queue: str, box: DeadLetters, in_time: InTime, *, hide_s: int = HIDE_S, most: int = LETTERS_MAX):
        self.queue, self.box = queue, box
        self.scanned = 0
        self.reached_end = False
        self.complete = False
        self._in_time, self._hide_s, self._most = in_time, hide_s, most
        self._hidden: dict[str, str] = {}  # message id -> receipt
        self._kept: set[str] = set()

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.box.show([receipt for message, receipt in self._hidden.items() if message not in self._kept])

    def pages(self) -> Iterator[list[Letter]]:
        """Every letter once. Ends at the end of what is visible (`reached_end`; `complete` if nobody else hides one, as
        far as SQS knows), of the time, or at the bound. Raises Unavailable."""
        while self.scanned < self._most and self._in_time():
            found = self.box.receive(hide_s=self._hide_s)
            if not found and (self.scanned or self.box.total()):
                found = self.box.receive(hide_s=self._hide_s, wait_s=PATIENCE_S)
            new = [one for one in found if one.message_id not in self._hidden]
            self._hidden |= {one.message_id: one.receipt for one in found}
            self.scanned += len(new)
            if not new:  # nothing, or only what is back already: the look took longer than it may hide
                self.reached_end = not found
                self.complete = self.reached_end and self.box.total() <= self.scanned
                return
            yield [letters.read(self.queue, one) for one in new]

    def keep(self, letter: Letter) -> None:
        """It stays hidden when this ends: whoever keeps it removes it, or shows it."""
        self._kept.add(letter.found.message_id)


@dataclass(frozen=True)
class _Seen:
    at: Instant
    cost: int
    zero: bool
    stale: bool


@dataclass
class _Group:
    """Letters of one cause. Copies of a letter are one; the newest counts."""

    example: Letter
    seen: dict[str, _Seen] = field(default_factory=dict)

    def add(self, letter: Letter, one: _Seen) -> None:
        before = self.seen.get(letter.id)
        if before is None or before.at <= one.at:
            self.seen[letter.id] = one

    def shown(self) -> dict[str, Any]:
        by_age = sorted(self.seen, key=lambda letter_id: (self.seen[letter_id].at, letter_id))
        all_ = self.seen.values()
        return {
            "group": self.example.group,
            "queue": self.example.queue,
            "reason": self.example.reason,
            "error": self.example.error,
            "task": self.example.task,
            "schema": self.example.schema,
            "count": len(self.seen),
            "first_seen": times.text(min(one.at for one in all_)),
            "last_seen": times.text(max(one.at for one in all_)),
            "cost_micros": sum(one.cost for one in all_),
            "zero_attempts": all(one.zero for one in all_),
            "stale": sum(one.stale for one in all_),
            "ids": by_age[:IDS_SHOWN],
        }


def listing(boxes: Boxes, store: JobStore, in_time: InTime) -> dict[str, Any]:
    """What is dead, by cause, the most frequent first. `complete`: false when there may be more. Raises Unavailable."""
    groups: dict[str, _Group] = {}
    scanned = total = 0
    complete = True
    for queue, box in boxes.items():
        total += box.total()
        with Looking(queue, box, in_time) as looking:
            for page in looking.pages():
                for letter, record in with_records(page, store):
                    groups.setdefault(letter.group, _Group(letter)).add(letter, _seen(letter, record))
        scanned += looking.scanned
        complete = complete and looking.complete
    shown = [group.shown() for group in groups.values()]
    shown.sort(key=lambda group: (-group["count"], group["first_seen"], group["group"]))
    return {"groups": shown, "scanned": scanned, "total": max(total, scanned), "complete": complete}


def with_records(page: Sequence[Letter], store: JobStore) -> list[tuple[Letter, Mapping[str, Any] | None]]:
    """Each with its job's record, perhaps a moment old: good enough to show, not to throw a letter away."""
    wanted = sorted({one.job_id for one in page if one.job_id and one.kind in ("job", "hint")})
    records = {record["pk"]: record for record in store.read_many(wanted)} if wanted else {}
    return [(one, records.get(one.job_id or "")) for one in page]


def _seen(letter: Letter, record: Mapping[str, Any] | None) -> _Seen:
    job = letters.job_of(record)
    cost = job.total_cost if letter.kind == "hint" and job else letter.cost
    stale = letters.standing(letter, record) == "stale"
    return _Seen(letter.at, cost, letters.had_no_attempt(letter, job), stale)


@dataclass(frozen=True)
class Held:
    """All copies of one letter, the newest first; hidden from others until they are removed or shown."""

    copies: Sequence[Letter]
    box: DeadLetters

    @property
    def letter(self) -> Letter:
        return self.copies[0]

    def show(self) -> None:
        self.box.show([copy.found.receipt for copy in self.copies])

    def remove(self) -> bool:
        """Whether all of them are gone."""
        return not self.box.remove([copy.found.receipt for copy in self.copies])


@dataclass(frozen=True)
class NotFound:
    """`complete`: it is not there. Else it may be among those that were not looked at."""

    scanned: int
    complete: bool


def take(letter_id: str, boxes: Boxes, in_time: InTime) -> Held | NotFound:
    """The letter of this id, with its copies, held for half a minute. Raises Unavailable."""
    scanned, complete = 0, True
    for queue, box in boxes.items():
        copies: list[Letter] = []
        with Looking(queue, box, in_time) as looking:
            for page in looking.pages():
                same = [one for one in page if one.id == letter_id]
                copies += same
                for one in same:
                    looking.keep(one)
        if copies:
            return Held(sorted(copies, key=lambda one: one.at, reverse=True), box)
        scanned, complete = scanned + looking.scanned, complete and looking.complete
    return NotFound(scanned, complete)


def whole(held: Held, store: JobStore) -> dict[str, Any]:
    """One letter, with all that it holds. `body` is the message that it is about, as text; `value` the same as JSON,
    where it is JSON. Raises Unavailable."""
    letter = held.letter
    record = letters.record_of(letter.job_id, store)
    told: dict[str, Any] = {
        "letter_id": letter.id,
        "group": letter.group,
        "queue": letter.queue,
        "kind": letter.kind,
        "reason": letter.reason,
        "detail": letter.detail,
        "task": letter.task,
        "schema": letter.schema,
        "at": times.text(letter.at),
        "sent_at": times.text(letter.found.sent_at),
        "moved_by_sqs": letter.found.moved,
        "copies": len(held.copies),
        "standing": letters.standing(letter, record),
        "attributes": dict(letter.attributes),
        "body": letter.body,
    }
    value = letters.parsed(letter.body) if len(letter.body) <= VALUE_CHARS else None
    if value is not None:
        told["value"] = value
    if letter.job_id:
        told |= {"job_id": letter.job_id, "attempt": letter.attempt, "cost_micros": letter.cost}
        told["job_status"] = record.get("status") if record else None
    if letter.tries is not None:
        told["tries"] = letter.tries
    return told
