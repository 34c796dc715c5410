"""The part `stuck`: what is due is reaped, expired, sent again or handed over, page by page of the `due` index.

It trusts nothing but a consistent read of the record, and sends by itself: the repair does not depend on the pipe
that may be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lambdas.core import ids
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Applied, JobStore, Notice, Now, Outbox, Unavailable, Workers, WorkQueue
from lambdas.core.sweeping.batches import Batches
from lambdas.core.sweeping.machines import Machines
from lambdas.core.sweeping.plan import Conclude, Expire, Extend, HandOver, Leave, Look, Plan, Reap, SendAgain, plan
from lambdas.core.sweeping.report import Report, Turn
from lambdas.core.times import Instant, seconds_between

DUE_PAGE = 1_000
LOOKS = 2_000  # after so many without a full batch, what there is is sent: the cursor must not stand still

COUNTS = (
    "due", "reaped", "expired", "sent", "held_back", "handed_over", "pushed", "left", "unreadable", "failed",
    "described", "extended", "collected", "run_again", "given_up", "oldest_s",
)  # fmt: skip

# what the end of an execution that was found out is counted as, by the row that told it
ENDS = {"collect": "collected", "fall_short": "given_up", "run_again": "run_again", "give_up": "given_up"}
REPAIRS = ("reaped", "extended", "collected", "run_again")
SENT_AT_ONCE = ("reaped", "run_again")


@dataclass(frozen=True)
class Stuck:
    """What it works with. `max_tries(job)`: the bound of the job's own task or workflow."""

    store: JobStore
    outbox: Outbox
    queue: WorkQueue
    limits: Limits
    now: Now
    max_tries: Callable[[Job], int]
    notice: Notice
    workers: Workers
    machines: Machines

    def run(self, report: Report, turn: Turn) -> bool:
        report.counts = {**dict.fromkeys(COUNTS, 0), **report.counts}
        return _Walk(self, report, turn).to_the_end()


@dataclass(frozen=True)
class _Due:
    """A job that the index has, and where. `number`: of the shard, in the order of this sweep."""

    number: int
    due_at: str
    job_id: str


@dataclass(frozen=True)
class _Looked:
    """What a job needs. `after`: its record after the write that the plan had in it, None when that was refused.
    `described`: its execution was asked for."""

    job: Job
    plan: Plan
    after: Job | None = None
    described: bool = False


@dataclass
class _Walk:
    """Through the shards. The cursor moves when every batch is empty: what it has passed is done."""

    own: Stuck
    report: Report
    turn: Turn
    started: Instant = field(init=False)
    first: int = field(init=False)
    batches: Batches = field(init=False)
    out_of_time: bool = False
    looks: int = 0

    def __post_init__(self) -> None:
        """Each sweep begins at another shard: what one sweep does not get to, the next does first."""
        own = self.own
        self.started = own.now()
        turns = int(self.started.timestamp()) // own.limits.sweep_period_s
        self.first = int((self.report.cursor or {}).get("first", turns % len(ids.due_shards())))
        self.batches = Batches(
            own.store, own.outbox, own.queue, own.machines.executions, own.now, own.notice, self.report, self._in_time
        )

    def to_the_end(self) -> bool:
        for due, looked in self.own.workers.each(self._due(), self._look):
            self._collect(due, looked)
            self.looks += 1
            self.batches.send_what_is_full(late=self.looks >= LOOKS)
            self._move(due)
        self.batches.send_reaped()
        self.batches.hand_over()
        self.batches.send_again()
        return not self.out_of_time

    # --- what is due ---------------------------------------------------------------------------------

    def _due(self) -> Iterator[_Due]:
        shards = ids.due_shards()
        cursor = self.report.cursor or {}
        begun = int(cursor.get("number", 0))
        for number in range(begun, len(shards)):
            shard = shards[(self.first + number) % len(shards)]
            after = (cursor["due_at"], cursor["job_id"]) if number == begun and "due_at" in cursor else None
            for due_at, job_id in self._due_in(shard, after):
                if not self._in_time():
                    return
                yield _Due(number, due_at, job_id)

    def _due_in(self, shard: str, after: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
        while True:
            try:
                page = self.own.store.due(shard, self.started, after, DUE_PAGE)
            except Unavailable as trouble:
                self.batches.failed("shard_not_read", shard=shard, detail=str(trouble))
                return
            yield from page
            if len(page) < DUE_PAGE:
                return
            after = page[-1]

    def _in_time(self) -> bool:
        self.out_of_time = self.out_of_time or not self.turn.in_time()
        return not self.out_of_time

    def _move(self, due: _Due) -> None:
        if self.batches.empty:
            at = {"number": due.number, "due_at": due.due_at, "job_id": due.job_id}
            self.report.cursor = {"first": self.first, **at}
            self.looks = 0
            self.turn.save()

    # --- one job, on any thread ----------------------------------------------------------------------

    def _look(self, due: _Due) -> _Looked | UnreadableRecord | None:
        """Read it, and write what its plan says. A record that the store refuses to read or write must not keep the
        sweep from the others."""
        try:
            record = self.own.store.read(due.job_id)
            if record is None:
                return None
            job = from_record(record)
            found = plan(job, self.started, self.own.max_tries(job), self.own.limits)
            described = self.own.machines.knows(job, found)
            if described:
                found = self.own.machines.better(job, found, self.started, self.own.limits)
            return _Looked(job, found, self._write(job, found), described)
        except UnreadableRecord as broken:
            return broken

    def _write(self, job: Job, found: Plan) -> Job | None:
        if self.report.dry_run or not isinstance(found, Reap | Expire | Look | Extend | Conclude):
            return None
        outcome = self.own.store.apply(job.id, found.change)
        return from_record(outcome.record) if isinstance(outcome, Applied) else None

    # --- together ------------------------------------------------------------------------------------

    def _collect(self, due: _Due, looked: _Looked | UnreadableRecord | Unavailable | None) -> None:
        match looked:
            case None:
                return
            case UnreadableRecord():
                self.report.count("unreadable")
                self.report.trouble()
                self.own.notice("unreadable_record", job_id=due.job_id, detail=str(looked))
            case Unavailable():
                self.batches.failed("not_swept", job_id=due.job_id, detail=str(looked))
            case _Looked(job):
                self.report.count("due")
                self.report.count("described", int(looked.described))
                if not job.is_final:
                    self.report.highest("oldest_s", int(seconds_between(job.not_before, self.started)))
                self._sort(looked)

    def _sort(self, looked: _Looked) -> None:
        match looked.plan:
            case Reap():
                self._written("reaped", looked)
            case Expire():
                self._written("expired", looked)
            case Extend():
                self._written("extended", looked)
            case Conclude(change):
                self._written(ENDS[change.rule.name], looked)
            case Look():
                self.report.count("pushed")
            case SendAgain() as again:
                self.batches.waiting.append(again)
            case HandOver(final):
                self.batches.final.append(final)
            case Leave():
                self.report.count("left")

    def _written(self, what: str, looked: _Looked) -> None:
        """A job that runs again, or has the end that it came to, is a repair; one that is given up is not."""
        if looked.after is None and not self.report.dry_run:
            return
        self.report.count(what)
        if looked.after is not None:
            self.own.notice(what, job=looked.after)
        if what in REPAIRS:
            self.report.repaired(looked.job.id)
        if what in SENT_AT_ONCE:
            self.batches.reaped += [looked.after] if looked.after is not None else []
