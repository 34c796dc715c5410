"""The first letters of a redrive: it goes on only if they complete. What each of them has come to, by the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import COMPLETED, DELETED
from lambdas.core import envelope
from lambdas.core.letters import letter as letters
from lambdas.core.letters.letter import Letter
from lambdas.core.letters.redrive import Canary
from lambdas.core.ports import JobStore
from lambdas.core.times import Instant, seconds_between

DEADLINE_S = 3_600
QUIET_S = 120  # what is no job yet has arrived if it is not among the dead letters again by then


@dataclass(frozen=True)
class Good:
    """It has completed, or it has arrived."""


@dataclass(frozen=True)
class Bad:
    why: str


@dataclass(frozen=True)
class Waits:
    """Nobody can say yet."""


Verdict = Good | Bad | Waits


def canary_of(letter: Letter) -> Canary:
    """With the job that it brings back. A message that was unreadable names one if it can be read by now; an event
    from outside names none, its job's id is not known before ingest has made it."""
    if letter.kind in ("job", "hint"):
        return Canary(letter.id, letter.queue, letter.kind, letter.job_id or "", letter.attempt, letter.subject)
    match envelope.read(letter.body) if letter.queue in (letters.WORK, letters.URGENT) else None:
        case envelope.Hint(job_id, attempt, _):
            return Canary(letter.id, letter.queue, "hint", job_id, attempt, letter.subject)
        case envelope.ReturnedLetter(job_id, attempt):
            return Canary(letter.id, letter.queue, "job", job_id, attempt, letter.subject)
        case _:
            return Canary(letter.id, letter.queue, letter.kind, "", 0, letter.subject)


def judge(
    canary: Canary, record: Mapping[str, Any] | None, *, back: bool | None, sent_at: Instant, now: Instant
) -> Verdict:
    """By the record of a consistent read, or where no record tells of it by `back`: whether a letter about its message
    has come since this redrive began; None: nobody knows, not all of them could be seen."""
    if canary.job_id:
        verdict, what = _by_record(canary, record), f"job {canary.job_id} is not done"
    else:
        verdict, what = _by_silence(back, seconds_between(sent_at, now)), "it is not known to have arrived"
    if isinstance(verdict, Waits) and seconds_between(sent_at, now) >= DEADLINE_S:
        return Bad(f"{what} after {DEADLINE_S // 60} minutes")
    return verdict


def _by_silence(back: bool | None, waited_s: float) -> Verdict:
    if back:
        return Bad("it is among the dead letters again")
    return Good() if back is False and waited_s >= QUIET_S else Waits()


def _by_record(canary: Canary, record: Mapping[str, Any] | None) -> Verdict:
    if record is None or record.get("status") == DELETED:
        return Bad(f"there is no job {canary.job_id}")
    job = letters.job_of(record)
    if job is None:
        return Bad(f"the record of job {canary.job_id} cannot be read")
    if job.status == COMPLETED:
        return Good()
    if job.is_final and (canary.kind != "job" or job.attempt > canary.attempt):
        return Bad(f"job {canary.job_id} is {job.status}" + (f": {job.error['code']}" if job.error else ""))
    return Waits()


def without_job(canaries: Sequence[Canary]) -> set[str]:
    """Subjects that are looked for among the dead letters, because no record tells of them."""
    return {canary.subject for canary in canaries if not canary.job_id}


def verdicts(
    canaries: Sequence[Canary], back: set[str] | None, store: JobStore, *, sent_at: Instant, now: Instant
) -> list[tuple[Canary, Verdict]]:
    """Raises Unavailable."""
    return [
        (
            canary,
            judge(
                canary,
                letters.record_of(canary.job_id, store),
                back=None if back is None else canary.subject in back,
                sent_at=sent_at,
                now=now,
            ),
        )
        for canary in canaries
    ]
