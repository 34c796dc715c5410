"""What a client sees of a job: the record as JSON, its timeline, and the pages of a tenant's jobs."""

from __future__ import annotations

import base64
import binascii
import heapq
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, FINAL, OPEN, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.ports import JobStore
from lambdas.core.problems import Problem, bad_request
from lambdas.core.workflows import progress

LIST_DEFAULT, LIST_MAX = 20, 100


def links(job_id: str, status: str, *, stream: bool = False) -> dict[str, str]:
    """Where to look, and what may be done to it in this state."""
    looks = {
        "self": f"/jobs/{job_id}",
        "result": f"/jobs/{job_id}/result",
        "events": f"/jobs/{job_id}/events",
    }
    if stream:
        looks["chunks"] = f"/jobs/{job_id}/chunks"
    if status in OPEN:
        looks["cancel"] = f"/jobs/{job_id}/cancel"
    if status in (FAILED, CANCELLED):
        looks["retry"] = f"/jobs/{job_id}/retry"
    if status in FINAL:
        looks["redeliver"] = f"/jobs/{job_id}/redeliver"
    return looks


def accepted(job_id: str) -> dict[str, Any]:
    """The answer to an accepted event: the same for every repeat of it, whatever became of the job since."""
    return {"job_id": job_id, "status": PENDING, "links": links(job_id, PENDING)}


def changed(found: Job) -> dict[str, Any]:
    """The answer to a request that changed a job's state."""
    return {
        "job_id": found.id,
        "status": found.status,
        "links": links(found.id, found.status, stream=found.stream),
    }


def job(found: Job) -> dict[str, Any]:
    """The record for its owner. Costs are micro-dollars."""
    shown: dict[str, Any] = {
        "job_id": found.id,
        "type": found.type,
        "status": found.status,
        "attempt": found.attempt,
        "tries": found.tries,
        "crashes": found.crashes,
        "waits": found.waits,
        "sample": found.sample,
        "cost_micros": found.total_cost,
        "created_at": times.text(found.created_at),
        "not_before": times.text(found.not_before),
        "deadline_at": times.text(found.deadline_at),
        "trace_id": found.trace_id,
        "links": links(found.id, found.status, stream=found.stream),
    }
    if found.urgent:
        shown["urgent"] = True
    if found.stream:
        shown["stream"] = True
    if found.source:
        shown["source"] = found.source
    if found.callback_url:
        shown["callback_url"] = found.callback_url
    if found.finished_at:
        shown["finished_at"] = times.text(found.finished_at)
    if found.is_final:
        shown["handed_over"] = found.is_handed_over
    if found.error:
        shown["error"] = dict(found.error)
    if found.status == COMPLETED:
        shown["result_bytes"] = found.result_bytes
    return shown | _of_a_workflow(found)


def _of_a_workflow(found: Job) -> dict[str, Any]:
    """How far it is, and whether its result lacks parts: that is never left unsaid."""
    shown: dict[str, Any] = {}
    come = progress.progress_of(found)
    if come:
        shown["progress"] = come.shown()
    if found.partial:
        shown["partial"] = True
    return shown


def timeline(found: Job, told: tuple[list[dict[str, Any]], int] = ([], 0)) -> dict[str, Any]:
    """Everything that happened, in order: receipt to delivery; of each branch the last that became of it. `told`: lines
    about its deliveries, and how many of them are left out."""
    events = [dict(line) for line in found.history]
    if found.status == PROCESSING and found.claimed_at:
        events.append({"at": times.text(found.claimed_at), "what": "claimed", "attempt": found.attempt})
    if found.handed_over_at:
        events.append({"at": times.text(found.handed_over_at), "what": "handed_over", "attempt": found.attempt})
    lines, left_out = told
    of_branches = progress.lines(found)
    events = list(heapq.merge(events, of_branches, lines, key=lambda line: str(line["at"])))  # each in its own order
    return {
        "job_id": found.id,
        "status": found.status,
        "events": events,
        "left_out": found.history_left_out + left_out,
    }


def no_result(found: Job) -> dict[str, Any] | Problem | None:
    """What is answered instead of a result: where it stands while it is open, why there is none when it ended
    badly; None when there is one."""
    if found.status == COMPLETED:
        return None
    if not found.is_final:
        return changed(found)
    word = "was cancelled" if found.status == CANCELLED else "failed"
    why = f": {found.error['code']}: {found.error['message']}" if found.error else "."
    return Problem(409, "no-result", f"The job {word}", f"There is no result; the job {word}{why}", job_id=found.id)


@dataclass(frozen=True)
class Page:
    """What part of a tenant's jobs is asked for."""

    limit: int = LIST_DEFAULT
    status: str | None = None
    type: str | None = None
    cursor: Mapping[str, tuple[str, str]] | None = None  # shard -> (created_at, job id) of the last one seen


def whole(written: str, least: int, most: int) -> int | None:
    """A whole number as a query string writes it; None when it is none or out of bounds."""
    if not re.fullmatch(r"0|[1-9][0-9]{0,8}", written):
        return None
    return int(written) if least <= int(written) <= most else None


def page_of(query: Mapping[str, str], statuses: tuple[str, ...]) -> Page | Problem:
    """The page that a query string asks for, or what is wrong with it."""
    unknown = query.keys() - {"limit", "status", "type", "cursor"}
    if unknown:
        return bad_request(f"unknown query parameter {min(unknown)[:40]!r}; known: status, type, limit, cursor")
    limit = query.get("limit", str(LIST_DEFAULT))
    if whole(limit, 1, LIST_MAX) is None:
        return bad_request(f"limit must be a whole number from 1 to {LIST_MAX}")
    if "status" in query and query["status"] not in statuses:
        return bad_request(f"status must be one of {', '.join(statuses)}")
    cursor = None
    if "cursor" in query:
        cursor = _read_cursor(query["cursor"])
        if cursor is None:
            return bad_request("cursor is not one that this route gave out")
    return Page(int(limit), query.get("status"), query.get("type"), cursor)


def list_jobs(tenant: str, page: Page, store: JobStore) -> dict[str, Any]:
    """One page, newest first. Reads at most `limit` entries of each shard: filters make pages short, never slow.

    Raises Unavailable."""
    shards = ids.tenant_shards(tenant)
    at = dict(page.cursor or {})
    found = {shard: store.of_tenant(shard, at.get(shard.rpartition("#")[2]), page.limit) for shard in shards}
    streams = [[(created, job_id, shard) for created, job_id in rows] for shard, rows in found.items()]
    merged = list(heapq.merge(*streams, key=lambda row: row[:2], reverse=True))
    taken = merged[: page.limit]
    for created, job_id, shard in taken:
        at[shard.rpartition("#")[2]] = (created, job_id)
    records = store.read_many([job_id for _, job_id, _ in taken])
    jobs = [shown for record in records if (shown := _listed(record, tenant, page))]
    more = len(merged) > len(taken) or any(len(rows) == page.limit for rows in found.values())
    return {"jobs": jobs, "cursor": _write_cursor(at)} if more and taken else {"jobs": jobs}


def _listed(record: Mapping[str, Any], tenant: str, page: Page) -> dict[str, Any] | None:
    try:
        found = from_record(record)
    except UnreadableRecord:
        return None  # a tombstone: deleted jobs are not listed
    wanted = (page.status in (None, found.status)) and (page.type in (None, found.type))
    return job(found) if wanted and found.tenant == tenant else None


def _write_cursor(at: Mapping[str, tuple[str, str]]) -> str:
    return base64.urlsafe_b64encode(json.dumps(at, separators=(",", ":")).encode()).decode().rstrip("=")


def _read_cursor(written: str) -> dict[str, tuple[str, str]] | None:
    try:
        found = json.loads(base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)))
        read = {str(shard): (str(row[0]), str(row[1])) for shard, row in found.items()}
        known = {str(shard) for shard in range(ids.TENANT_SHARDS)}
        well_formed = bool(read) and read.keys() <= known and all(len(row) == 2 for row in found.values())
        for created, job_id in read.values():
            written_by_us = times.text(times.instant(created)) == created and re.fullmatch(r"[0-9a-f]{32}", job_id)
            well_formed = well_formed and bool(written_by_us)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, binascii.Error, RecursionError):
        return None
    return read if well_formed else None
