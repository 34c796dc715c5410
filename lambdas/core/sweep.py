"""Finds what fell out of the way and puts it back: reaps, expires, sends again, hands over (row 15).

It trusts nothing but a consistent read of the record, and sends by itself: the repair does not depend on the pipe
that may be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import PENDING, PROCESSING
from lambdas.core import changes, ids
from lambdas.core.dispatching import dispatch
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Applied, JobStore, Notice, Now, Outbox, Unavailable, WorkQueue
from lambdas.core.protocol import Change
from lambdas.core.times import Instant, after, seconds_between

HAND_OVER_AGE_S = 120  # younger final jobs are left to the dispatcher: the two must not race
SEND_AGAIN_MIN_S = 300
LONG_WAIT_S = 3_600
CROWD = 100  # fewer jobs than this make no storm
PAGE = 100
HAND_OVER_PAGE = 10
DUE_PER_SHARD = 1_000


@dataclass(frozen=True)
class Reap:
    change: Change


@dataclass(frozen=True)
class Expire:
    change: Change


@dataclass(frozen=True)
class Look:
    """Nobody need look before then."""

    change: Change


@dataclass(frozen=True)
class SendAgain:
    """Claimable and perhaps without a message. Sent first, pushed then: a crash in between repeats a hint.

    `urgent`: certainly without one (its wait was left to the sweep), or waiting for an hour."""

    job: Job
    push: Change
    urgent: bool


@dataclass(frozen=True)
class HandOver:
    job: Job


@dataclass(frozen=True)
class Leave:
    """Somebody is on it, or the index is behind the record."""


Plan = Reap | Expire | Look | SendAgain | HandOver | Leave


def plan(job: Job, now: Instant, max_tries: int, limits: Limits) -> Plan:
    """What a job that was found due needs."""
    if job.is_final:
        old = job.finished_at is None or seconds_between(job.finished_at, now) >= HAND_OVER_AGE_S
        return HandOver(job) if old and not job.is_handed_over else Leave()
    held = job.status == PROCESSING and job.lease_until is not None and job.lease_until >= now
    if not held and (job.deadline_at <= now or job.tries >= max_tries):
        return Expire(changes.expire(job, now=now, max_tries=max_tries, limits=limits))
    if job.status == PROCESSING and not held:
        return Reap(changes.reap(job, now=now, limits=limits))
    next_need = job.lease_until if held else job.not_before
    if next_need is not None and next_need > now:
        beyond = seconds_between(now, next_need) > limits.sweep_period_s
        return Look(changes.push_due(job, next_need)) if beyond else Leave()
    if job.status == PENDING:
        age = seconds_between(job.not_before, now)
        urgent = job.due_at == job.not_before or age >= LONG_WAIT_S
        return SendAgain(job, changes.push_due(job, after(now, max(SEND_AGAIN_MIN_S, age))), urgent)
    return Leave()


@dataclass
class Swept:
    """What one sweep did, in jobs; `oldest_s`: age of the oldest open one it found, in seconds since it could start."""

    due: int = 0
    reaped: int = 0
    expired: int = 0
    sent: int = 0
    held_back: int = 0
    handed_over: int = 0
    pushed: int = 0
    left: int = 0
    unreadable: int = 0
    failed: int = 0
    oldest_s: int = 0
    complete: bool = True


@dataclass
class Sweeper:
    """What sweeping works with. `max_tries(job)`: the bound of the job's own task."""

    store: JobStore
    outbox: Outbox
    queue: WorkQueue
    limits: Limits
    now: Now
    max_tries: Callable[[Job], int]
    time_left_s: Callable[[], float]
    notice: Notice
    swept: Swept = field(default_factory=Swept)
    _waiting: list[SendAgain] = field(default_factory=list)
    _final: list[Job] = field(default_factory=list)

    def sweep(self) -> Swept:
        """All jobs that are due, as far as the time goes; what is left stays due."""
        started = self.now()
        for job_id in self._due(started):
            self._look_after(job_id, started)
        self._hand_over()
        self._send_again()
        return self.swept

    def _look_after(self, job_id: str, now: Instant) -> None:
        """One job; a record that the store refuses to read or write must not keep the sweep from the others."""
        try:
            job = self._read(job_id)
            if job is not None:
                self._act(job, now)
        except (Unavailable, UnreadableRecord) as trouble:
            self._failed("not_swept", job_id=job_id, detail=str(trouble))

    def _due(self, started: Instant) -> Iterator[str]:
        """Ids of due jobs. Each sweep begins at another shard: what one sweep does not get to, the next does first."""
        shards = ids.due_shards()
        first = int(started.timestamp()) // self.limits.sweep_period_s % len(shards)
        for shard in shards[first:] + shards[:first]:
            for job_id in self._due_in(shard, started):
                if not self._in_time():
                    return
                yield job_id

    def _due_in(self, shard: str, started: Instant) -> list[str]:
        try:
            found = self.store.due(shard, started, DUE_PER_SHARD)
        except Unavailable as trouble:
            self._failed("shard_not_read", shard=shard, detail=str(trouble))
            return []
        self.swept.complete = self.swept.complete and len(found) < DUE_PER_SHARD
        return found

    def _in_time(self) -> bool:
        if self.time_left_s() >= 2 * self.limits.settle_s:
            return True
        self.swept.complete = False
        return False

    def _failed(self, what: str, **fields: Any) -> None:
        self.swept.failed += 1
        self.notice(what, **fields)

    def _read(self, job_id: str) -> Job | None:
        try:
            record = self.store.read(job_id)
            return from_record(record) if record is not None else None
        except UnreadableRecord as broken:
            self.swept.unreadable += 1
            self.notice("unreadable_record", job_id=job_id, detail=str(broken))
            return None

    def _act(self, job: Job, now: Instant) -> None:
        swept = self.swept
        swept.due += 1
        if not job.is_final:
            swept.oldest_s = max(swept.oldest_s, int(seconds_between(job.not_before, now)))
        match plan(job, now, self.max_tries(job), self.limits):
            case Reap(change):
                swept.reaped += self._write_and_send("reaped", job, change)
            case Expire(change):
                swept.expired += self._write_and_send("expired", job, change)
            case Look(change):
                self.store.apply(job.id, change)
                swept.pushed += 1
            case SendAgain() as again:
                self._waiting.append(again)
            case HandOver(final):
                self._final.append(final)
            case Leave():
                swept.left += 1

    def _write_and_send(self, what: str, job: Job, change: Change) -> int:
        """The repaired record is dispatched here and now, the stream alive or not."""
        outcome = self.store.apply(job.id, change)
        if not isinstance(outcome, Applied):
            return 0
        after_write = from_record(outcome.record)
        self.notice(what, job=after_write)
        if what == "reaped":
            self._send([after_write])
        return 1

    def _send(self, jobs: Sequence[Job]) -> int:
        failed = dispatch(jobs, now=self.now(), outbox=self.outbox, store=self.store, notice=self.notice).failed
        self.swept.failed += len(failed)
        return len(jobs) - len(failed)

    def _hand_over(self) -> None:
        """In batches; when nobody takes one whole batch, the others would be refused as well."""
        for batch in _batches(self._final, HAND_OVER_PAGE):
            if not self._in_time():
                return
            told = self._send(batch)
            self.swept.handed_over += told
            if not told:
                return

    def _send_again(self) -> None:
        """Depth gate: while the queue holds a message for each of a crowd, more would only make a storm. It does not
        hold back a job that certainly has no message, nor one that has waited long: the queue's messages may be
        those of others."""
        gated = len(self._waiting) >= CROWD and self._depth() >= len(self._waiting)
        held = [again for again in self._waiting if gated and not again.urgent]
        sent = [again for again in self._waiting if not gated or again.urgent]
        for batch in _batches(sent, PAGE):
            if not self._in_time():
                return
            taken = self._taken(batch)
            self._push(taken)
            self.swept.sent += len(taken)
        for batch in _batches(held, PAGE):
            if not self._in_time():
                return
            self._push(batch)
            self.swept.held_back += len(batch)

    def _depth(self) -> int:
        """How full the queue is; as long as nobody can say, sending is the safe side."""
        try:
            return self.queue.depth()
        except Unavailable as trouble:
            self.notice("depth_unknown", detail=str(trouble))
            return 0

    def _push(self, batch: Sequence[SendAgain]) -> None:
        for job_id, trouble in self.store.apply_many([(again.job.id, again.push) for again in batch]).items():
            self._failed("not_swept", job_id=job_id, detail=trouble)

    def _taken(self, batch: Sequence[SendAgain]) -> list[SendAgain]:
        """Those whose message the queue took; the others stay due."""
        jobs = [again.job for again in batch]
        sent = dispatch(jobs, now=self.now(), outbox=self.outbox, store=self.store, notice=self.notice)
        self.swept.failed += len(sent.failed)
        return [again for position, again in enumerate(batch) if position not in sent.failed]


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
