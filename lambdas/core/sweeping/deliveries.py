"""The part `deliveries`: those that are due are reaped, given up or sent again, page by page of the `due` index.

As `stuck` does it for jobs: it trusts nothing but a consistent read, and sends by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lambdas.core import ids
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Notice, Now, Unavailable, Workers
from lambdas.core.sweeping.batches import CROWD
from lambdas.core.sweeping.delivery_plan import GiveUp, Plan, SendAgain, plan
from lambdas.core.sweeping.hints import HintQueue, Hints
from lambdas.core.sweeping.plan import Leave, Look, Reap
from lambdas.core.sweeping.report import Report, Turn
from lambdas.core.times import Instant, seconds_between
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import judging
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, correlation
from lambdas.core.webhooks.expiring import expire
from lambdas.core.webhooks.ports import DeliveryStore, Key

DUE_PAGE = 1_000
GIVEN_UP = "given_up"
COUNTS = (
    "due",
    "reaped",
    "expired",
    GIVEN_UP,
    "sent",
    "held_back",
    "pushed",
    "left",
    "unreadable",
    "failed",
    "oldest_s",
)


@dataclass(frozen=True)
class Deliveries:
    """What it works with."""

    store: DeliveryStore
    queue: HintQueue
    limits: DeliveryLimits
    now: Now
    notice: Notice
    workers: Workers

    def run(self, report: Report, turn: Turn) -> bool:
        report.counts = {**dict.fromkeys(COUNTS, 0), **report.counts}
        return _Walk(self, report, turn).to_the_end()


@dataclass(frozen=True)
class _Due:
    """A delivery that the index has, and where."""

    shard: int
    due_at: str
    key: Key


@dataclass(frozen=True)
class _Looked:
    """What a delivery needs. `after`: its record after it was reaped. `how`: what giving it up came to. Both empty
    when that was refused."""

    delivery: Delivery
    plan: Plan
    after: Delivery | None = None
    how: str = judging.OUTLIVED


@dataclass
class _Walk:
    """Through the shards. The cursor moves when nothing waits to be sent: what it has passed is done."""

    own: Deliveries
    report: Report
    turn: Turn
    started: Instant = field(init=False)
    hints: Hints = field(init=False)
    out_of_time: bool = False
    looks: int = 0

    def __post_init__(self) -> None:
        own = self.own
        self.started = own.now()
        self.hints = Hints(own.store, own.queue, own.now, own.notice, own.workers, self.report, self._in_time)

    def to_the_end(self) -> bool:
        for due, looked in self.own.workers.each(self._due(), self._look):
            self._collect(due, looked)
            self.looks += 1
            if self.looks >= CROWD:
                self.hints.send()
            self._move(due)
        self.hints.send()
        return not self.out_of_time

    # --- what is due ---------------------------------------------------------------------------------

    def _due(self) -> Iterator[_Due]:
        shards = ids.delivery_shards()
        cursor = self.report.cursor or {}
        begun = int(cursor.get("shard", 0))
        for number in range(begun, len(shards)):
            at = (cursor["due_at"], (cursor["pk"], cursor["sk"])) if number == begun and cursor else None
            for due_at, key in self._due_in(shards[number], at):
                if not self._in_time():
                    return
                yield _Due(number, due_at, key)

    def _due_in(self, shard: str, at: tuple[str, Key] | None) -> Iterator[tuple[str, Key]]:
        while True:
            try:
                page = self.own.store.due(shard, self.started, at, DUE_PAGE)
            except Unavailable as trouble:
                self.hints.failed("shard_not_read", shard=shard, detail=str(trouble))
                return
            yield from page
            if len(page) < DUE_PAGE:
                return
            at = page[-1]

    def _in_time(self) -> bool:
        self.out_of_time = self.out_of_time or not self.turn.in_time()
        return not self.out_of_time

    def _move(self, due: _Due) -> None:
        if self.hints.empty:
            self.report.cursor = {"shard": due.shard, "due_at": due.due_at, "pk": due.key[0], "sk": due.key[1]}
            self.looks = 0
            self.turn.save()

    # --- one delivery, on any thread -----------------------------------------------------------------

    def _look(self, due: _Due) -> _Looked | UnreadableRecord | None:
        """Read it, and write what its plan says."""
        try:
            record = self.own.store.read(due.key)
            if record is None:
                return None
            delivery = deliveries.read(record)
            found = plan(delivery, self.started, self.own.limits)
            return _Looked(delivery, found) if self.report.dry_run else self._written(delivery, found)
        except UnreadableRecord as broken:
            return broken

    def _written(self, delivery: Delivery, found: Plan) -> _Looked:
        own = self.own
        match found:
            case Reap(change) | Look(change):
                outcome = own.store.apply(delivery.key, change)
                after = deliveries.read(outcome.record) if isinstance(outcome, Applied) else None
                return _Looked(delivery, found, after)
            case GiveUp():
                how = expire(delivery, now=self.started, store=own.store, limits=own.limits, notice=own.notice)
                return _Looked(delivery, found, how=how)
            case _:
                return _Looked(delivery, found)

    # --- together ------------------------------------------------------------------------------------

    def _collect(self, due: _Due, looked: _Looked | UnreadableRecord | Unavailable | None) -> None:
        match looked:
            case None:
                return
            case UnreadableRecord():
                self.report.count("unreadable")
                self.report.trouble()
                self.own.notice("unreadable_record", job_id=due.key[0], detail=str(looked))
            case Unavailable():
                self.hints.failed("not_swept", job_id=due.key[0], detail=str(looked))
            case _Looked(delivery):
                self.report.count("due")
                if not delivery.is_final:
                    self.report.highest("oldest_s", int(seconds_between(delivery.not_before, self.started)))
                self._sort(looked)

    def _sort(self, looked: _Looked) -> None:
        match looked.plan:
            case Reap():
                self._reaped(looked)
            case GiveUp():
                done = self.report.dry_run or looked.how != judging.OUTLIVED
                self.report.count("expired", int(done))
                self.report.count(GIVEN_UP, int(looked.how == judging.GIVEN_UP))
            case Look():
                self.report.count("pushed")
            case SendAgain() as again:
                self.hints.waiting.append(again)
            case Leave():
                self.report.count("left")

    def _reaped(self, looked: _Looked) -> None:
        """A crashed delivery that is tried again is a repair."""
        if looked.after is None and not self.report.dry_run:
            return
        self.report.count("reaped")
        self.report.repaired(looked.delivery.pk)
        if looked.after is not None:
            self.own.notice("reaped", **correlation(looked.after))
            self.hints.reaped.append(looked.after)
