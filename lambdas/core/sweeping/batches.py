"""Sends what the walk through the due jobs has gathered, in batches: hints behind the depth gate, and hand-overs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lambdas.core.dispatching import dispatch
from lambdas.core.job import Job
from lambdas.core.ports import JobStore, Notice, Now, Outbox, Unavailable, WorkQueue
from lambdas.core.protocol import Change
from lambdas.core.sweeping.plan import SendAgain
from lambdas.core.sweeping.report import Report
from lambdas.core.workflows.ports import Executions

CROWD = 100  # fewer jobs than this make no storm
HAND_OVER_PAGE = 10


@dataclass
class Batches:
    """What is to be sent. `in_time`: whether to begin with one batch more."""

    store: JobStore
    outbox: Outbox
    queue: WorkQueue
    executions: Executions
    now: Now
    notice: Notice
    report: Report
    in_time: Callable[[], bool]
    waiting: list[SendAgain] = field(default_factory=list)
    reaped: list[Job] = field(default_factory=list)
    final: list[Job] = field(default_factory=list)
    nobody_listens: bool = False

    @property
    def empty(self) -> bool:
        return not (self.waiting or self.reaped or self.final)

    def send_what_is_full(self, *, late: bool) -> None:
        """`late`: what is not full, too."""
        if late or len(self.reaped) >= HAND_OVER_PAGE:
            self.send_reaped()
        if late or len(self.final) >= HAND_OVER_PAGE:
            self.hand_over()
        if late or len(self.waiting) >= CROWD:
            self.send_again()

    def send_reaped(self) -> None:
        """The repaired record is dispatched here and now, the stream alive or not."""
        if self.reaped:
            self._depth()  # of the queue as it was found
        self._send(self.reaped)
        self.reaped.clear()

    def hand_over(self) -> None:
        """In batches; when nobody takes one whole batch, the others would be refused as well."""
        batch = list(self.final)
        if not batch or not self.in_time():
            return
        self.final.clear()
        if self.nobody_listens:
            return
        told = batch if self.report.dry_run else self._send(batch)
        self.report.count("handed_over", len(told))
        for job in told:
            self.report.repaired(job.id)
        self.nobody_listens = not told

    def send_again(self) -> None:
        """Depth gate: while the queue holds a message for each job found so far, more would only make a storm. It
        does not hold back a job that certainly has no message, nor one that has waited long: the queue's messages may
        be those of others. What may still have its message in a slow queue is sent, and is no repair."""
        batch = list(self.waiting)
        if not batch or not self.in_time():
            return
        self.waiting.clear()
        self.report.count("claimable", len(batch))
        found = self.report.counts["claimable"]
        slow = any(not again.left_to_us for again in batch) and self._depth() >= found
        gated = found >= CROWD and slow
        held = [again for again in batch if gated and not again.urgent]
        sent = self._taken([again for again in batch if not gated or again.urgent])
        self._push([*held, *sent])
        self.report.count("held_back", len(held))
        self.report.count("sent", len(sent))
        for again in sent:
            if not again.left_to_us and (again.job.urgent or not slow):
                self.report.repaired(again.job.id)

    def failed(self, what: str, **fields: object) -> None:
        self._count_failed(1)
        self.notice(what, **fields)

    def _depth(self) -> int:
        """How full the queue was before this sweep sent anything ordinary; as long as nobody can say, sending is the
        safe side."""
        if "depth" not in self.report.counts:
            try:
                self.report.counts["depth"] = self.queue.depth()
            except Unavailable as trouble:
                self.notice("depth_unknown", detail=str(trouble))
                return 0
        return self.report.counts["depth"]

    def _push(self, batch: Sequence[SendAgain]) -> None:
        if batch and not self.report.dry_run:
            pushes: list[tuple[str, Change]] = [(again.job.id, again.push) for again in batch]
            for job_id, trouble in self.store.apply_many(pushes).items():
                self.failed("not_swept", job_id=job_id, detail=trouble)

    def _taken(self, batch: Sequence[SendAgain]) -> list[SendAgain]:
        """Those whose message the queue took; the others stay due."""
        if self.report.dry_run:
            return list(batch)
        taken = {job.id for job in self._send([again.job for again in batch])}
        return [again for again in batch if again.job.id in taken]

    def _send(self, jobs: Sequence[Job]) -> list[Job]:
        if not jobs:
            return []
        sent = dispatch(
            jobs,
            now=self.now(),
            outbox=self.outbox,
            store=self.store,
            executions=self.executions,
            notice=self.notice,
        )
        failed = sent.failed
        self._count_failed(len(failed))
        return [job for position, job in enumerate(jobs) if position not in failed]

    def _count_failed(self, number: int) -> None:
        self.report.count("failed", number)
        self.report.trouble(number)
