"""What a job that was found due needs (row 15)."""

from __future__ import annotations

from dataclasses import dataclass

from lambdas.contracts.names import PENDING, PROCESSING
from lambdas.core import changes
from lambdas.core.job import Job
from lambdas.core.policy import Limits
from lambdas.core.protocol import Change
from lambdas.core.times import Instant, after, seconds_between

HAND_OVER_AGE_S = 120  # younger final jobs are left to the dispatcher: the two must not race
SEND_AGAIN_MIN_S = 300
LONG_WAIT_S = 3_600


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

    `left_to_us`: a wait that no message can hold back, so that nobody else was to send. `urgent`: that, or waiting for
    an hour, or for the urgent queue."""

    job: Job
    push: Change
    urgent: bool
    left_to_us: bool = False


@dataclass(frozen=True)
class HandOver:
    job: Job


@dataclass(frozen=True)
class Extend:
    """Its execution runs on: until it must be over nobody need look."""

    change: Change


@dataclass(frozen=True)
class Conclude:
    """Its execution is over, and its record does not say so yet."""

    change: Change


@dataclass(frozen=True)
class Leave:
    """Somebody is on it, or the index is behind the record."""


Plan = Reap | Expire | Look | SendAgain | HandOver | Extend | Conclude | Leave


def plan(job: Job, now: Instant, max_tries: int, limits: Limits) -> Plan:
    """What a job that was found due needs, as far as its record tells."""
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
        return _send_again(job, now)
    return Leave()


def _send_again(job: Job, now: Instant) -> SendAgain:
    age = seconds_between(job.not_before, now)
    left_to_us = job.due_at == job.not_before
    push = changes.push_due(job, after(now, max(SEND_AGAIN_MIN_S, age)))
    return SendAgain(job, push, left_to_us or age >= LONG_WAIT_S or job.urgent, left_to_us)
