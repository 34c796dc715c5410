"""Makes the conditional writes of the protocol from a job, the time and the policy. Each function is one row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lambdas.contracts.names import CANCELLED, DELETED, FAILED, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.job import RECORD_FIELDS, Job, cut, entry, history_with
from lambdas.core.policy import DAY_S, DISPATCH_DELAY_MAX_S, SKEW_S, Limits
from lambdas.core.protocol import RULES, Change
from lambdas.core.times import Instant, after

ERROR_BYTES = 200
_NO_CODE = re.compile(r"[^A-Za-z0-9_.-]")
LEASE_MARGIN_S = 10  # after the invocation's deadline the platform has killed the holder

# what a late writer, the same key, a repeated DELETE or a sweep must find of a job that was deleted
OF_A_TOMBSTONE = frozenset({
    "pk", "sk", "tenant", "type", "attempt", "body_sha", "expires_at", "status", "upload", "upload_shard", "upload_key",
})  # fmt: skip


def error(code: str, message: str) -> dict[str, str]:
    """A reason for the record and for messages: a task chooses codes too, and a bad one must not stop a letter."""
    return {"code": _NO_CODE.sub("_", str(code))[:64] or "UNKNOWN", "message": cut(message, ERROR_BYTES)}


def first_look(now: Instant, not_before: Instant, deadline_at: Instant, limits: Limits) -> Instant:
    """When the sweep need look at the earliest: D(x) of row 1. For waits above 15 minutes nobody else sends."""
    if times.seconds_between(now, not_before) > DISPATCH_DELAY_MAX_S:
        return min(not_before, deadline_at)
    return min(after(max(now, not_before), limits.grace_s), deadline_at)


def mine(job: Job) -> dict[str, Any]:
    return {"attempt": job.attempt, "claim_id": job.claim_id}


def seen(job: Job) -> dict[str, Any]:
    return {"seen_status": job.status, "seen_attempt": job.attempt}


def ending(now: Instant, limits: Limits) -> dict[str, Any]:
    return {"finished_at": times.text(now), "expires_at": int(now.timestamp()) + limits.record_days * DAY_S}


def nonzero(**amounts: int) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


def claimed_line(job: Job) -> list[Mapping[str, Any]]:
    """The claim's own line: it is written by whoever ends the claim, so that a claim costs no list."""
    return [entry(job.claimed_at, "claimed", job.attempt)] if job.claimed_at else []


def claim(*, claim_id: str, max_tries: int, now: Instant, invocation_ends: Instant) -> Change:
    lease = after(invocation_ends, LEASE_MARGIN_S)
    return Change(
        RULES["claim"],
        {
            "now": times.text(now),
            "soon": times.text(after(now, SKEW_S)),
            "max_tries": max_tries,
            "claim_id": claim_id,
        },
        sets={
            "status": PROCESSING,
            "claim_id": claim_id,
            "lease_until": times.text(lease),
            "claimed_at": times.text(now),
        },
        adds={"attempt": 1, "tries": 1},
    )


def pull_due(job: Job) -> Change:
    """A crash of this holder must not hide behind a look that was pushed far ahead by a backlog."""
    assert job.lease_until is not None
    return Change(RULES["pull_due"], mine(job), sets={"due_at": times.text(job.lease_until)})


def complete(job: Job, *, now: Instant, result_bytes: int, cost: int, limits: Limits) -> Change:
    key = ids.result_key(job.tenant, job.id, job.attempt)
    lines = [*claimed_line(job), entry(now, "completed", job.attempt)]
    return Change(
        RULES["complete"],
        mine(job),
        sets={
            "status": "COMPLETED",
            "result_key": key,
            "result_bytes": result_bytes,
            **ending(now, limits),
            **history_with(job, *lines),
        },
        adds=nonzero(cost=cost),
        removes=("error",),
    )


def pending_again(
    job: Job, *, now: Instant, not_before: Instant, why: Mapping[str, str], what: str, limits: Limits
) -> dict[str, Any]:
    start = min(not_before, job.deadline_at)
    lines = [*claimed_line(job), entry(now, what, job.attempt, f"{why['code']}: {why['message']}")]
    return {
        "status": PENDING,
        "not_before": times.text(start),
        "due_at": times.text(first_look(now, start, job.deadline_at, limits)),
        "backoff_ms": int(max(0.0, times.seconds_between(now, start)) * 1000),
        "error": dict(why),
        **history_with(job, *lines),
    }


def retry(
    job: Job,
    *,
    now: Instant,
    wait_s: float,
    why: Mapping[str, str],
    cost: int,
    limits: Limits,
    anew: str = "",
) -> Change:
    """Row 5. A rejected answer raises `sample`, so that the next try asks under another key; one that was never stored
    raises `unusable` alone: the task's other answers stay as they are."""
    what = "rejected" if anew else "retried"
    sets = pending_again(job, now=now, not_before=after(now, wait_s), why=why, what=what, limits=limits)
    return Change(RULES["retry"], mine(job), sets, nonzero(cost=cost, **({anew: 1} if anew else {})))


def park(
    job: Job, *, now: Instant, until: Instant, why: Mapping[str, str], cost: int, refund: bool, limits: Limits
) -> Change:
    """Row 5p. The try is given back unless something was billed without a stored answer."""
    sets = pending_again(job, now=now, not_before=until, why=why, what="waits", limits=limits)
    return Change(RULES["park"], mine(job), sets, nonzero(cost=cost, waits=1, tries=-int(refund)))


def leave(*, attempt: int, now: Instant) -> Change:
    """Row 5u: no time to start it here; the stream sends a fresh message."""
    return Change(
        RULES["leave"],
        {"attempt": attempt, "soon": times.text(after(now, SKEW_S))},
        sets={"not_before": times.text(after(now, 1))},
    )


def fail(job: Job, *, now: Instant, why: Mapping[str, str], cost: int, limits: Limits) -> Change:
    lines = [*claimed_line(job), entry(now, "failed", job.attempt, f"{why['code']}: {why['message']}")]
    return Change(
        RULES["fail"],
        mine(job),
        sets={"status": FAILED, "error": dict(why), **ending(now, limits), **history_with(job, *lines)},
        adds=nonzero(cost=cost),
    )


def expire(job: Job, *, now: Instant, max_tries: int, limits: Limits) -> Change:
    """Row 7: open, and used up or past its deadline. Its last trouble is told along."""
    last = f" Last: {job.error['code']}: {job.error['message']}" if job.error else ""
    if job.deadline_at <= now:
        why = error("DEADLINE_EXCEEDED", f"not done by {times.text(job.deadline_at)}.{last}")
    else:
        why = error("ATTEMPTS_EXHAUSTED", f"{job.tries} of {max_tries} tries used, {job.crashes} crashed.{last}")
    line = entry(now, "failed", job.attempt, f"{why['code']}: {why['message']}")
    claimed = claimed_line(job) if job.status == PROCESSING else []
    return Change(
        RULES["expire"],
        {**seen(job), "now": times.text(now)},
        sets={"status": FAILED, "error": why, **ending(now, limits), **history_with(job, *claimed, line)},
        removes=("claim_id",),
    )


def reopen(job: Job, *, now: Instant, limits: Limits) -> Change:
    """Row 8: a new opening with fresh counters; `attempt` rises, so that old letters and copies name another one."""
    deadline = after(now, limits.deadline_s)
    return Change(
        RULES["reopen"],
        {**seen(job), "next_attempt": job.attempt + 1, "late_cost": job.late_cost},
        sets={
            "status": PENDING,
            "not_before": times.text(now),
            "deadline_at": times.text(deadline),
            "due_at": times.text(first_look(now, now, deadline, limits)),
            "due_shard": ids.due_shard(job.id),
            "tries": 0,
            "crashes": 0,
            "sample": 0,
            "unusable": 0,
            "waits": 0,
            "backoff_ms": 0,
            "runs": 0,
            **history_with(job, entry(now, "reopened", job.attempt + 1)),
        },
        adds=nonzero(attempt=1, run=1, cost=job.late_cost),
        removes=(
            "expires_at",
            "claim_id",
            "finished_at",
            "handed_over_at",
            "late_cost",
            "result_key",
            "result_bytes",
            "partial",
        ),
    )


def cancel(job: Job, *, now: Instant, limits: Limits) -> Change:
    """Row 9. A holder's claim stays: by it one that comes back late finds where to book what its call cost. The claim
    of one that has written its end goes: it has booked that already. The look is pulled in: a wait of days must not
    delay the hand-over that a lost stream record leaves to the sweep."""
    line = entry(now, "cancelled", job.attempt)
    held = job.status == PROCESSING
    return Change(
        RULES["cancel"],
        seen(job),
        sets={
            "status": CANCELLED,
            "due_at": times.text(min(after(now, limits.grace_s), job.deadline_at)),
            **ending(now, limits),
            **history_with(job, *(claimed_line(job) if held else []), line),
        },
        removes=() if held else ("claim_id",),
    )


def delete(job: Job) -> Change:
    """Row 9d: a tombstone, and nothing of what the job was about."""
    removes = tuple(sorted(RECORD_FIELDS - OF_A_TOMBSTONE))
    return Change(RULES["delete"], seen(job), sets={"status": DELETED}, removes=removes)


def book_late(job: Job, cost: int) -> Change:
    """Row 9: what a cancelled job's call cost after all."""
    return Change(RULES["book_late"], mine(job), adds={"late_cost": cost})


def note(job: Job, what: str, why: str, *, at: Instant) -> Change:
    """Row 9n: a line of its history that an operator has caused, and nothing else."""
    return Change(RULES["note"], seen(job), sets=history_with(job, entry(at, what, job.attempt, why)))


def hand_over(job: Job, *, now: Instant) -> Change:
    """Row 10: told to everybody; the job leaves the `due` index."""
    return Change(
        RULES["hand_over"], seen(job), sets={"handed_over_at": times.text(now)}, removes=("due_at", "due_shard")
    )


def reap(job: Job, *, now: Instant, limits: Limits) -> Change:
    """Row 15: its holder was killed by the platform; the try stays charged and the crash is counted."""
    lines = [*claimed_line(job), entry(now, "crashed", job.attempt)]
    return Change(
        RULES["reap"],
        {**seen(job), "now": times.text(now)},
        sets={
            "status": PENDING,
            "not_before": times.text(now),
            "due_at": times.text(min(after(now, limits.grace_s), job.deadline_at)),
            **history_with(job, *lines),
        },
        adds={"crashes": 1},
        removes=("claim_id",),  # a late holder must not take this for an effect of its own
    )


def push_due(job: Job, due_at: Instant) -> Change:
    return Change(RULES["push_due"], seen(job), sets={"due_at": times.text(min(due_at, job.deadline_at))})
