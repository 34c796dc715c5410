"""From a message to a held job: a message is a hint, the record is the truth (rows 3 and 3a)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import DELETED, FAILED, PENDING, PROCESSING, WAITING
from lambdas.core import changes
from lambdas.core.envelope import Hint, ReturnedLetter
from lambdas.core.job import Job, from_record
from lambdas.core.policy import SKEW_S, Limits
from lambdas.core.ports import Applied, JobStore, Refused, Unavailable
from lambdas.core.times import Instant, after, seconds_between


@dataclass(frozen=True)
class Claimed:
    job: Job


@dataclass(frozen=True)
class Acknowledge:
    """The record says what happens next; this message is no longer needed."""

    why: str
    job: Job | None = None


@dataclass(frozen=True)
class NoSuchJob:
    """A well-formed message for a job that is not there: a letter, then acknowledge."""


@dataclass(frozen=True)
class Early:
    """The current message came before its job's time: hide it for this long, and report it."""

    wait_s: float


Outcome = Claimed | Acknowledge | NoSuchJob | Early


def claim(
    hint: Hint,
    *,
    claim_id: str,
    invocation_ends: Instant,
    now: Instant,
    max_tries: int,
    store: JobStore,
    limits: Limits,
) -> Outcome:
    """Take the job if it may be taken. Raises Unavailable."""
    change = changes.claim(claim_id=claim_id, max_tries=max_tries, now=now, invocation_ends=invocation_ends)
    match store.apply(hint.job_id, change):
        case Applied(record):
            return Claimed(_guarded_against_hiding(from_record(record), store, limits))
        case Refused(None):
            return NoSuchJob()
        case Refused(record):
            assert record is not None
            return _refused(hint, record, now=now, max_tries=max_tries, store=store, limits=limits)


def put_off(hint: Hint, *, now: Instant, store: JobStore) -> Outcome:
    """Row 5u: no time left to start it here; a fresh message is on its way when this is acknowledged."""
    match store.apply(hint.job_id, changes.leave(attempt=hint.attempt, now=now)):
        case Refused(None):
            return NoSuchJob()
        case Refused(record) if record and record.get("status") == PENDING and record.get("attempt") == hint.attempt:
            return Early(seconds_between(now, from_record(record).not_before))
        case _:
            return Acknowledge("no time left to start it here")


def reopen(letter: ReturnedLetter, *, now: Instant, store: JobStore, limits: Limits) -> Outcome:
    """A dead letter came back: its job starts again, but only if it is dead at the very attempt it names."""
    record = store.read(letter.job_id)
    if record is None:
        return NoSuchJob()
    if record.get("status") != FAILED or record.get("attempt") != letter.attempt:
        return Acknowledge(f"letter of attempt {letter.attempt}, job is {record.get('status')}")
    job = from_record(record)
    match store.apply(job.id, changes.reopen(job, now=now, limits=limits)):
        case Applied():
            return Acknowledge("reopened by its letter", job)
        case Refused():
            return Acknowledge("reopened by somebody else", job)


def _guarded_against_hiding(job: Job, store: JobStore, limits: Limits) -> Job:
    """Once a sweep has sent it again `due_at` lies far ahead: pull it in, or a crash now is looked for only then."""
    if _is_hidden(job, limits):
        with suppress(Unavailable):  # the job is held all the same, and looked for late at worst
            store.apply(job.id, changes.pull_due(job))
    return job


def _is_hidden(job: Job, limits: Limits) -> bool:
    """Not by a look within the grace, which every fresh job has: an ordinary claim costs no second write."""
    if job.due_at is None or job.lease_until is None or job.claimed_at is None:
        return False
    return job.due_at > max(job.lease_until, after(job.claimed_at, limits.grace_s + SKEW_S))


def _refused(
    hint: Hint, record: Mapping[str, Any], *, now: Instant, max_tries: int, store: JobStore, limits: Limits
) -> Outcome:
    if record.get("status") == DELETED:
        return Acknowledge("deleted")
    job = from_record(record)
    if job.is_final or job.status == WAITING:
        return Acknowledge(f"already {job.status}", job)
    if job.status == PROCESSING and job.lease_until and job.lease_until >= now:
        return Acknowledge("held by somebody else", job)
    if job.tries >= max_tries or job.deadline_at <= now:
        if job.parts_run == job.run:  # its execution may be running: the sweep, which is due, asks for it first (N9)
            return Acknowledge("used up, and perhaps at work: left to the sweep", job)
        store.apply(job.id, changes.expire(job, now=now, max_tries=max_tries, limits=limits))
        return Acknowledge("used up", job)
    if job.status == PENDING and seconds_between(now, job.not_before) > SKEW_S:
        if hint.attempt == job.attempt:
            return Early(seconds_between(now, job.not_before))
        return Acknowledge("early, and of an older attempt", job)
    return Early(1.0)  # refused a moment ago and claimable now: ask again
