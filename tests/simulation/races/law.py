"""The core's own functions, run on one record of the model and remembered: what was written, sent and said.

A wrong protocol is a law of its own: with other rules, with changes twisted before they are judged, or with flags that
the model's actors look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lambdas.contracts.names import DUE_SHARD, HEARD
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Message, Refused, Unavailable
from lambdas.core.protocol import RULES, Change, Rule
from lambdas.core.routing import changed
from tests.simulation.races.record import LIMITS, Clock, Rec, before_or_after, read, written

Record = Mapping[str, Any]
Twist = Callable[[Change], Change]


class Killed(BaseException):
    """The platform ends whoever is at work."""


class Write(NamedTuple):
    """One write that was applied. `booked`: by how much it raised what the job is said to have cost."""

    rule: str
    number: int
    before: Rec
    after: Rec
    booked: int


class Ran(NamedTuple):
    """What one run of a function did. `said`: its answer, in a word. `calls`: how often it could have been killed."""

    said: str
    rec: Rec
    writes: tuple[Write, ...]
    images: tuple[Rec, ...]  # what the stream says of them, as far as somebody must hear
    hints: tuple[tuple[str, int], ...]
    letters: tuple[tuple[str, int], ...]
    told: tuple[tuple[str, int], ...]
    calls: int


class Store:
    """JobStore, Outbox and WorkQueue at once, on one record. `seen`: what reads find, if not the record as it is."""

    def __init__(self, law: Law, rec: Rec, seen: Rec | None, lives: int | None) -> None:
        self.law, self.rec, self.seen, self.lives, self.calls = law, rec, seen, lives, 0
        self.record = law.record(rec)
        self.writes: list[Write] = []
        self.images: list[Rec] = []
        self.hints: list[tuple[str, int]] = []
        self.letters: list[tuple[str, int]] = []
        self.told: list[tuple[str, int]] = []

    def _called(self) -> None:
        self.calls += 1
        if self.lives is not None and self.calls > self.lives:
            raise Killed

    def apply(self, job_id: str, change: Change) -> Applied | Refused:
        self._called()
        law = self.law
        if change.rule.name == "pull_due" and "a period is near enough" in law.flags and self._is_near():
            return Refused(self.record)
        change = law.twisted(change)
        rule = law.rules[change.rule.name]
        change = Change(rule, change.params, change.sets, change.adds, change.removes)
        if not change.may(self.record):
            return Applied(self.record) if change.is_own_effect(self.record) else Refused(self.record)
        self.put(rule.name, change.applied_to(self.record), law.number(change))
        return Applied(self.record)

    def _is_near(self) -> bool:
        return self.rec.due - self.rec.lease <= LIMITS.sweep_period_s

    def put(self, rule: str, new: Record, number: int) -> None:
        old, before = self.record, self.rec
        self.record, self.rec = new, self.law.abstract(new)
        self.writes.append(Write(rule, number, before, self.rec, _cost(new) - _cost(old)))
        if new["status"] in self.law.heard and DUE_SHARD in new and changed(old, new):
            self.images.append(_heard(self.rec))

    def create(self, record: Record) -> Record | None:
        return self.record  # there always is one

    def read_many(self, job_ids: Sequence[str]) -> list[Record]:
        return [self.record for _ in job_ids]

    def of_tenant(self, shard: str, before: object, limit: int) -> list[tuple[str, str]]:
        return []  # nobody who acts here lists a tenant's jobs

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        for job_id, change in changes:
            self.apply(job_id, change)
        return {}

    def read(self, job_id: str) -> Record | None:
        if self.seen is None:
            return self.record
        seen, self.seen = self.seen, None
        return self.law.record(seen)

    def due(self, shard: str, before: object, after: object, limit: int) -> list[tuple[str, str]]:
        found = self.law.record(self.seen or self.rec)
        mine = found.get(DUE_SHARD) == shard and (self.seen or self.rec).due < 0
        return [(found["due_at"], found["pk"])] if mine else []

    def depth(self) -> int:
        return 0

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return self._sent(self.hints, "hint", messages)

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        return self._sent(self.letters, "letter", messages)

    def publish(self, messages: Sequence[Message]) -> set[int]:
        return self._sent(self.told, "", messages)

    def _sent(self, where: list[tuple[str, int]], kind: str, messages: Sequence[Message]) -> set[int]:
        self._called()
        if "reaping sends nothing" in self.law.flags and any(write.rule == "reap" for write in self.writes):
            return set()
        bodies = [json.loads(message.body) for message in messages]
        where += [(kind or body["event_id"].split(".")[2], body["step_index"]) for body in bodies]
        return set()


Act = Callable[[Store], str]


def _cost(record: Record) -> int:
    return int(record.get("cost", 0)) + int(record.get("late_cost", 0))


def _heard(rec: Rec) -> Rec:
    """As much of an image as the dispatcher looks at."""
    return Rec(rec.status, rec.attempt, run=rec.run, not_before=rec.not_before, life=rec.life, shard=True, due=0)


@dataclass
class Law:
    """`remembered`: what each run came to. The same function on the same record does the same."""

    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    flags: frozenset[str] = frozenset()
    twist: Twist | None = None
    clock: Clock = before_or_after
    heard: tuple[str, ...] = HEARD
    remembered: dict[tuple[Any, ...], Ran] = field(default_factory=dict)
    records: dict[Rec, Record] = field(default_factory=dict)
    values: dict[tuple[Any, Rec], Any] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def record(self, rec: Rec) -> Record:
        if rec not in self.records:
            self.records[rec] = written(rec)
        return self.records[rec]

    def abstract(self, record: Record) -> Rec:
        return read(record, self.clock)

    def twisted(self, change: Change) -> Change:
        return self.twist(change) if self.twist else change

    def number(self, change: Change) -> int:
        """The same write has the same number: so a state can hold one that is still under way."""
        key = repr((change.rule.name, change.params, change.sets, change.adds))
        if key not in self.numbers:
            self.numbers[key] = len(self.changes)
            self.changes.append(change)
        return self.numbers[key]

    def run(
        self, act: Callable[..., str], rec: Rec, *args: Any, seen: Rec | None = None, lives: int | None = None
    ) -> Ran:
        key = (act, rec, args, seen, lives)
        if key not in self.remembered:
            store = Store(self, rec, seen, lives)
            try:
                said = act(store, *args)
            except Killed:
                said = "killed"
            except (Unavailable, UnreadableRecord, RecursionError):  # only wrong laws lead there
                said = "refused"
            self.remembered[key] = Ran(
                said,
                store.rec,
                tuple(store.writes),
                tuple(store.images),
                tuple(store.hints),
                tuple(store.letters),
                tuple(store.told),
                store.calls,
            )
        return self.remembered[key]

    def derived(self, of: Callable[[Record], Any], rec: Rec) -> Any:
        key = (of, rec)
        if key not in self.values:
            self.values[key] = of(self.record(rec))
        return self.values[key]

    def again(self, rec: Rec, number: int) -> Ran:
        """A write that was applied before comes once more."""
        return self.run(_once_more, rec, number)


def _once_more(store: Store, number: int) -> str:
    change = store.law.changes[number]
    if change.may(store.record):
        store.put(change.rule.name, change.applied_to(store.record), number)
        return "applied"
    return "own" if change.is_own_effect(store.record) else "refused"
