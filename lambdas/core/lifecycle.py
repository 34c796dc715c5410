"""What a tenant does with a job of its own: cancels it, starts it again, deletes it (rows 8, 9 and 9d)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.names import CANCELLED, DELETED, FAILED
from lambdas.contracts.strict_json import Malformed, parse, pointer
from lambdas.core import changes, ids
from lambdas.core.job import Job, from_record
from lambdas.core.lookup import job_in, job_of, record_of
from lambdas.core.policy import Limits
from lambdas.core.ports import Applied, Folders, JobStore, Now, Objects, Refused, Unavailable, Uploads
from lambdas.core.problems import Problem, bad_request, not_found, wrong_state
from lambdas.core.streaming.ports import Chunks

CANCEL_LOOKS = 5  # what changes five times while it is cancelled changes for ever


@dataclass(frozen=True)
class Cancelled:
    """Its end is CANCELLED: by this request, or before it."""

    job: Job


@dataclass(frozen=True)
class Reopened:
    job: Job


@dataclass(frozen=True)
class Deleted:
    """A tombstone stands; the objects are gone, and so is what was streamed and delivered."""

    job_id: str
    attempt: int


@dataclass(frozen=True)
class Office:
    """What these requests are carried out with."""

    store: JobStore
    inputs: Objects
    results: Folders
    uploads: Uploads
    chunks: Chunks
    limits: Limits
    now: Now


def no_parameters(raw: bytes) -> Problem | None:
    """What is wrong with the body of a request that takes none: empty, or `{}`."""
    if not raw.strip():
        return None
    try:
        found = parse(raw)
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    if found == {}:
        return None
    where = pointer([min(found)]) if isinstance(found, dict) else ""
    return bad_request("This request takes no parameters: send no body, or {}.", where)


def cancel(tenant: str, job_id: str, office: Office) -> Cancelled | Problem:
    """Row 9, on the record as it is: what a race has changed is looked at again.

    Raises Unavailable, UnreadableRecord."""
    found = job_of(tenant, job_id, office.store)
    for _ in range(CANCEL_LOOKS):
        if isinstance(found, Problem):
            return found
        if found.status == CANCELLED:
            return Cancelled(found)
        if found.is_final:
            return wrong_state(job_id, f"It is {found.status}: only an open job can be cancelled.")
        match office.store.apply(job_id, changes.cancel(found, now=office.now(), limits=office.limits)):
            case Applied(record):
                return Cancelled(from_record(record))
            case Refused(record):
                found = job_in(record, job_id)
    raise Unavailable(f"cancelling {job_id}: its record does not stand still", unknown=False)


def retry(tenant: str, job_id: str, office: Office) -> Reopened | Problem:
    """Row 8 by the tenant. Raises Unavailable, UnreadableRecord."""
    found = job_of(tenant, job_id, office.store)
    if isinstance(found, Problem):
        return found
    if found.status not in (FAILED, CANCELLED):
        return wrong_state(job_id, f"It is {found.status}: only a job that failed or was cancelled is started again.")
    return _reopen(found, office)


def _reopen(found: Job, office: Office) -> Reopened | Problem:
    match office.store.apply(found.id, changes.reopen(found, now=office.now(), limits=office.limits)):
        case Applied(record):
            return Reopened(from_record(record))
        case Refused(record):
            stands = job_in(record, found.id)
            if isinstance(stands, Problem):
                return stands
            if stands.run == found.run + 1:  # opened, and claimed before a lost reply was repeated
                return Reopened(stands)
            if replace(found, late_cost=stands.late_cost) == stands:  # it was booked at this moment, and is so once
                return _reopen(stands, office)
            return wrong_state(found.id, f"It was changed meanwhile and is {stands.status} now.")


def delete(tenant: str, job_id: str, office: Office) -> Deleted | Problem:
    """Row 9d: the tombstone first, so that nothing points to an object that is gone; then the objects, and what lies
    beside the record. A repeat finds the tombstone and finishes what was left. Raises Unavailable, UnreadableRecord."""
    record = record_of(tenant, job_id, office.store)
    if record is None:
        return not_found()
    if record.get("status") != DELETED:
        buried = _bury(from_record(record), office)
        if isinstance(buried, Problem):
            return buried
        record = buried
    _remove_objects(record, office)
    office.chunks.delete_all(job_id)
    return Deleted(job_id, record["attempt"])


def _bury(job: Job, office: Office) -> Mapping[str, Any] | Problem:
    """The tombstone, or why there is none."""
    if not job.is_final:
        return wrong_state(job.id, f"It is {job.status}: only a final job can be deleted. Cancel it first.")
    if not job.is_handed_over:
        return wrong_state(job.id, "Its end is not handed over yet. Ask again in a moment.")
    match office.store.apply(job.id, changes.delete(job)):
        case Applied(record):
            return record
        case Refused(None):
            return not_found()  # its time to live has ended it
        case Refused(record):
            assert record is not None
            return wrong_state(job.id, f"It was changed meanwhile and is {record.get('status')} now.")


def _remove_objects(tombstone: Mapping[str, Any], office: Office) -> None:
    """All results lie in one folder: of each attempt, of each run and of its branches, whose names the tombstone does
    not tell. A worker that comes late may still store one, which nothing points to; the bucket's lifecycle ends it."""
    tenant, job_id = tombstone["tenant"], tombstone["pk"]
    office.inputs.delete_many([ids.input_key(tenant, job_id, tombstone["body_sha"])])
    office.results.delete_folder(ids.job_objects(tenant, job_id))
    upload = tombstone.get("upload")
    if upload:
        own = upload["key"].rpartition("/")[2] == job_id  # announced: whatever was sent to that name is this job's
        office.uploads.delete(upload["key"], "" if own else upload["version"])
