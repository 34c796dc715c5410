"""Who must hear of a record's state: the one routing function of the dispatcher and of the sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CANCELLED, FAILED, PENDING
from lambdas.core import ids, times
from lambdas.core.envelope import DEAD_LETTERED, DISPATCHED, envelope, written
from lambdas.core.job import Job
from lambdas.core.policy import DISPATCH_DELAY_MAX_S, SKEW_S
from lambdas.core.ports import Message
from lambdas.core.times import Instant

_WHAT_MATTERS = ("status", "attempt", "not_before")


@dataclass(frozen=True)
class Route:
    """What to do, in this order: work; stop, letter, event, and then the record is marked as handed over. `stop`: the
    name of an execution that may still run, empty for none."""

    work: Message | None = None
    stop: str = ""
    letter: Message | None = None
    event: Message | None = None

    @property
    def hands_over(self) -> bool:
        return self.event is not None


def changed(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Whether this write is something that others must hear: stream filters cannot compare the two images."""
    return old is None or any(old.get(name) != new.get(name) for name in _WHAT_MATTERS)


def route(job: Job, now: Instant) -> Route:
    """What this state of a job asks to be sent."""
    if job.status == PENDING:
        return Route(work=work_message(job, now))
    if job.is_final:
        return Route(
            stop=stopped_by(job),
            letter=letter(job, now) if job.status == FAILED else None,
            event=event(job, now),
        )
    return Route()


def stopped_by(job: Job) -> str:
    """The execution that a cancellation ends: that of the run in which the job was cancelled, if one was ever prepared.
    What a later opening starts has another name."""
    prepared = job.parts is not None and job.parts_run == job.run
    return ids.execution_name(job.id, job.run) if job.status == CANCELLED and prepared else ""


def work_message(job: Job, now: Instant) -> Message | None:
    """The hint for the worker; None for waits that SQS cannot hold back: the sweep sends then."""
    delay = delay_s(job.not_before, now)
    if delay is None:
        return None
    body = envelope(job, DISPATCHED, {"attempt": job.attempt, "crashes": job.crashes}, now)
    attributes = {
        "event_type": DISPATCHED,
        "job_id": job.id,
        "tenant": job.tenant,
        "type": job.type,
        "attempt": str(job.attempt),
        "tries": str(job.tries),
        "cost_micros": str(job.total_cost),
    }
    return Message(written(body), attributes, job.tenant, delay, job.urgent)


def delay_s(not_before: Instant, now: Instant) -> int | None:
    """For how long a hint is held back; None for waits that SQS cannot hold back."""
    wait = times.seconds_between(now, not_before)
    if wait > DISPATCH_DELAY_MAX_S:
        return None
    delay = math.ceil(wait) + 1 if wait > SKEW_S else 0  # a message is better late by a second than early
    return min(delay, DISPATCH_DELAY_MAX_S)


def letter(job: Job, now: Instant) -> Message:
    """What an operator finds in the dead-letter queue: which job, why, after how many tries, at what cost."""
    why = job.error or {"code": "UNKNOWN", "message": ""}
    payload = {
        "attempt": job.attempt,
        "reason": why["code"],
        "detail": why["message"],
        "type": job.type,
        "tries": job.tries,
        "crashes": job.crashes,
        "cost_micros": job.total_cost,
        "created_at": times.text(job.created_at),
    }
    attributes = {
        "event_type": DEAD_LETTERED,
        "job_id": job.id,
        "tenant": job.tenant,
        "type": job.type,
        "attempt": str(job.attempt),
        "reason": why["code"],
        "tries": str(job.tries),
        "cost_micros": str(job.total_cost),
    }
    return Message(written(envelope(job, DEAD_LETTERED, payload, now)), attributes, job.tenant, urgent=job.urgent)


def event(job: Job, now: Instant) -> Message:
    """The fact for whoever subscribes to `job-events`."""
    event_type = f"job.{job.status.lower()}"
    payload: dict[str, Any] = {
        "status": job.status,
        "type": job.type,
        "attempt": job.attempt,
        "tries": job.tries,
        "cost_micros": job.total_cost,
        "created_at": times.text(job.created_at),
        "finished_at": times.text(job.finished_at) if job.finished_at else None,
        "result": {"key": job.result_key, "bytes": job.result_bytes} if job.result_key else None,
        "error": dict(job.error) if job.error else None,
        **({"callback": True} if job.callback_url else {}),  # else nobody need read the record for it
        **({"partial": True} if job.partial else {}),
    }
    attributes = {"event_type": event_type, "tenant": job.tenant, "type": job.type, "status": job.status}
    if job.partial:  # for whoever subscribes to results that have all their parts, or to the others
        attributes["partial"] = "true"
    return Message(written(envelope(job, event_type, payload, now)), attributes, job.tenant)
