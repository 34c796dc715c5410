"""Makes the conditional writes of rows 13 and 14. Each function is one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lambdas.contracts.names import COMPLETED, FAILED
from lambdas.core import times
from lambdas.core.changes import claimed_line, ending, mine, nonzero, pending_again, seen
from lambdas.core.job import Job, entry, history_with
from lambdas.core.policy import Limits
from lambdas.core.protocol import RULES, Change
from lambdas.core.times import Instant, after
from lambdas.core.workflows.parts import Part, all_open

LEASE_MARGIN_S = 60  # after its own timeout Step Functions has ended the execution


def lease_of(since: Instant, timeout_s: int) -> Instant:
    """An execution that was started then is over by this time, whatever became of it: nobody need renew its lease."""
    return after(since, timeout_s + LEASE_MARGIN_S)


def prepare(job: Job, branches: Iterable[str]) -> Change:
    """Row 13, before the start: nothing is done yet in this run. Once for each run: a later claim finds what the
    branches of its running execution have written, and leaves it. `booked_by` stays from one run to the next."""
    place: dict[str, Any] = {} if job.booked_by is not None else {"booked_by": {}}
    return Change(
        RULES["prepare"],
        {**mine(job), "run": job.run},
        sets={"parts": all_open(branches), "parts_run": job.run, **place},
    )


def adopt(job: Job, *, now: Instant, lease: Instant) -> Change:
    """Row 13: this claim is the execution's from now on, until its own time is over. The claim's line is written here,
    so that nobody writes it again."""
    lines = [*claimed_line(job), entry(now, "started", job.attempt, f"run {job.run}")]
    return Change(
        RULES["adopt"],
        mine(job),
        sets={
            "lease_until": times.text(lease),
            "due_at": times.text(min(lease, job.deadline_at)),
            **history_with(job, *lines),
        },
        removes=("claimed_at",),
    )


def extend(job: Job, *, lease: Instant) -> Change:
    """Row 15: the sweep found the execution running though the lease is over: its starter died before row 13."""
    sets = {"lease_until": times.text(lease), "due_at": times.text(min(lease, job.deadline_at))}
    return Change(RULES["extend"], seen(job), sets=sets)


def part(job: Job, branch: str, became: Part, *, cost: int, now: Instant) -> Change:
    """Row 14: what became of one try of a branch, and what it cost, in micro-dollars. `job`: as it was read when the
    try began: who was overtaken changes nothing. `became.by` tells a repeat, whatever run the job is in by then."""
    seen_by = (job.parts or {}).get(branch, {}).get("by", "")
    return Change(
        RULES["part"],
        {"run": job.run, "branch": branch, "by": became.by, "seen_by": seen_by},
        sets={"parts.:branch": became.written(), "booked_by.:branch": became.by, "progress_at": times.text(now)},
        adds=nonzero(cost=cost),
    )


def late_part(branch: str, by: str, cost: int, *, seen_booked: str) -> Change:
    """Row 14: a branch that comes back to a job that goes on without it: what it cost is kept. Each branch has a place
    of its own: those of a cancelled job come back all at once, and a repeat must find its own."""
    return Change(
        RULES["late_part"],
        {"branch": branch, "by": by, "seen_booked": seen_booked},
        sets={"booked_by.:branch": by},
        adds={"late_cost": cost},
    )


def collect(job: Job, *, now: Instant, key: str, result_bytes: int, partial: bool, limits: Limits) -> Change:
    """Row 14: what its execution has assembled."""
    line = entry(now, "completed", job.attempt, "without all parts" if partial else "")
    return Change(
        RULES["collect"],
        {"run": job.run, "result_key": key},
        sets={
            "status": COMPLETED,
            "result_key": key,
            "result_bytes": result_bytes,
            **({"partial": True} if partial else {}),
            **_ended(job, now, limits),
            **history_with(job, *claimed_line(job), line),
        },
        removes=("error", "claim_id"),
    )


def fall_short(job: Job, *, now: Instant, why: Mapping[str, str], limits: Limits) -> Change:
    """Row 14: its execution came to its end without what the workflow asks for. The parts that are done stay."""
    return Change(RULES["fall_short"], {"run": job.run}, sets=_failed(job, now, why, limits), removes=("claim_id",))


def give_up(job: Job, *, now: Instant, why: Mapping[str, str], limits: Limits) -> Change:
    """Row 14: this execution ended badly, and no other one follows it. `run` rises all the same: its name is used."""
    return Change(
        RULES["give_up"],
        {"run": job.run, "next_run": job.run + 1},
        sets=_failed(job, now, why, limits),
        adds={"run": 1, "runs": 1},
        removes=("claim_id",),
    )


def run_again(
    job: Job, *, now: Instant, wait_s: float, why: Mapping[str, str], limits: Limits, waited: bool = False
) -> Change:
    """Row 14: this execution ended badly; the next one has another name, and finds the parts that are done. `waited`:
    its time was over and it had only waited, as a plain job may until its deadline: it counts as a wait, neither
    as a run nor as a try."""
    return Change(
        RULES["run_again"],
        {"run": job.run, "next_run": job.run + 1},
        sets=pending_again(job, now=now, not_before=after(now, wait_s), why=why, what="ended_badly", limits=limits),
        adds={"run": 1, "tries": -1, "waits": 1} if waited else {"run": 1, "runs": 1},
        removes=("claim_id",),
    )


def _failed(job: Job, now: Instant, why: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    line = entry(now, "failed", job.attempt, f"{why['code']}: {why['message']}")
    return {
        "status": FAILED,
        "error": dict(why),
        **_ended(job, now, limits),
        **history_with(job, *claimed_line(job), line),
    }


def _ended(job: Job, now: Instant, limits: Limits) -> dict[str, Any]:
    """The look is pulled in: it lies at the end of the execution's lease, and a lost stream record must not keep the
    end from everybody for that long."""
    return {"due_at": times.text(min(after(now, limits.grace_s), job.deadline_at)), **ending(now, limits)}
