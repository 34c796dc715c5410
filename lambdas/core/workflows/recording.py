"""What became of a branch goes into the record, once, and so does what it cost; also where others were faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lambdas.contracts.names import DELETED, PENDING, PROCESSING
from lambdas.core.execution import Try
from lambdas.core.job import Job, from_record
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.workflows import changes
from lambdas.core.workflows.parts import AGAIN, DONE, FAILED, Part, parts_of

STALE = "stale"
_OVERTAKEN = 3  # so often may another invocation of the same branch be faster before this one gives up


def recorded(attempt: Try, branch: str, part: Part) -> str:
    """What the record says of the branch afterwards; "stale" where the job has gone on without it. Raises Unavailable:
    then nobody knows, and whoever comes next finds out."""
    store, seen = attempt.worker.store, attempt.job
    standing: Job | None = None
    record: Mapping[str, Any] | None = None
    for _ in range(_OVERTAKEN):
        change = changes.part(seen, branch, part, cost=attempt.bill.cost, now=attempt.worker.now())
        match store.apply(seen.id, change):
            case Applied():
                return part.state
            case Refused(record):
                standing = _standing(record, seen.run)
        if standing is None or part.state != DONE or _part(standing, branch).state == DONE:
            break  # a part that is there is a part; all else, of who was overtaken, changes nothing
        seen, part = standing, replace(part, cost=_part(standing, branch).cost + attempt.bill.cost)
    _book_late(attempt, branch, part.by, record)
    if standing is None:
        return STALE
    state = _part(standing, branch).state
    return state if state in (DONE, FAILED) else AGAIN


def _part(job: Job, branch: str) -> Part:
    return parts_of(job).get(branch, Part())


def _standing(record: Mapping[str, Any] | None, run: int) -> Job | None:
    """The job, if it is open in this run still."""
    if record is None or record.get("status") not in (PENDING, PROCESSING):
        return None
    job = from_record(record)
    return job if job.run == run == job.parts_run else None


def _book_late(attempt: Try, branch: str, by: str, record: Mapping[str, Any] | None) -> None:
    """`record`: what has refused the part. If the store cannot be reached, the log has it: who is called again finds
    that it need not do anything."""
    cost, store, job_id = attempt.bill.cost, attempt.worker.store, attempt.job.id
    for _ in range(_OVERTAKEN if cost else 0):
        if record is None or record.get("status") == DELETED:
            return
        change = changes.late_part(branch, by, cost, seen_booked=record.get("booked_by", {}).get(branch, ""))
        try:
            outcome = store.apply(job_id, change)
        except Unavailable as trouble:
            attempt.notice("late_cost_not_booked", cost_micros=cost, detail=str(trouble))
            return
        if isinstance(outcome, Applied):
            return
        record = outcome.record
