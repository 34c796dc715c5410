"""What follows from the end of an execution: its result is the job's, or another run, or the job's end (row 14)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lambdas.contracts.names import COMPLETED, FAILED
from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.changes import error
from lambdas.core.job import Job
from lambdas.core.policy import Draw, Limits
from lambdas.core.protocol import Change
from lambdas.core.times import Instant
from lambdas.core.workflows import changes
from lambdas.core.workflows.parts import named, waiting
from lambdas.core.workflows.ports import EndedBadly, Ending, Succeeded

_CODES: dict[Ending, str] = {
    "failed": "EXECUTION_FAILED",
    "timed out": "EXECUTION_TIMED_OUT",
    "aborted": "EXECUTION_ABORTED",
}
UNKNOWN = EndedBadly("failed", "", "Step Functions does not know it any more")  # it forgets after 90 days


def ended(
    job: Job, found: Succeeded | EndedBadly, *, workflow: Workflow, now: Instant, draw: Draw, limits: Limits
) -> Change:
    """The write for an open job whose execution of this very run is over."""
    if isinstance(found, EndedBadly):
        return _badly(job, found, workflow=workflow, now=now, draw=draw, limits=limits)
    match _said(found.output):
        case {"status": "COMPLETED", "result_key": str(key), "result_bytes": int(size), **more} if key.startswith(
            ids.run_results(job.tenant, job.id, job.run)
        ):
            partial = more.get("partial") is True
            return changes.collect(job, now=now, key=key, result_bytes=size, partial=partial, limits=limits)
        case {"status": "FAILED", "error": {"code": str(code), "message": str(message)}}:
            return changes.fall_short(job, now=now, why=error(code, message), limits=limits)
    # it was refused, and yet the job is open in this run; or somebody else's output. There is no result
    cause = EndedBadly("failed", "", "it succeeded and told no result")
    return _badly(job, cause, workflow=workflow, now=now, draw=draw, limits=limits)


def _badly(
    job: Job, found: EndedBadly, *, workflow: Workflow, now: Instant, draw: Draw, limits: Limits
) -> Change:  # fmt: skip
    waits = waiting(job) if found.how == "timed out" else {}
    why = error(_CODES[found.how], _why(f"run {job.run} {found.how}: ", found, waits))
    if job.runs + 1 >= workflow.max_runs and not waits:
        return changes.give_up(job, now=now, why=why, limits=limits)
    wait = limits.retry.wait_s(job.runs + job.waits + 1, job.backoff_ms / 1000, draw)
    return changes.run_again(job, now=now, wait_s=wait, why=why, limits=limits, waited=bool(waits))


def _why(start: str, found: EndedBadly, waits: Mapping[str, str]) -> str:
    """What it waited for, else its code. With one, the cause is a function's stack trace: the execution's history has
    it, a tenant need not."""
    if waits:
        return named(f"{start}it waited for ", waits)
    return start + (found.code or found.cause or "it did not say why")


def _said(output: str) -> Any:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


WORDS = {
    "collect": COMPLETED.lower(),
    "fall_short": FAILED.lower(),
    "give_up": FAILED.lower(),
    "run_again": "run_again",
}
"""How a log tells what followed, by the rule of the write."""
