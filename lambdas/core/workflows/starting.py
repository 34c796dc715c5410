"""A claimed job whose work is an execution: prepared, started, adopted; or what follows from one that is over (row 13).

The execution is named by job and run: whoever starts it again finds the one that there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.canonical import canonical
from lambdas.core.changes import error
from lambdas.core.execution import Try, conclude, execute
from lambdas.core.outcomes import Permanent
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.times import after
from lambdas.core.verdicts import Failed, Wait
from lambdas.core.workflows import changes, following
from lambdas.core.workflows.ports import AlreadyExists, Execution, Executions, Running


class NoExecutions:
    """Of a deployment without state machines."""

    def start(self, type_: str, name: str, written_input: str) -> Any:
        raise KeyError(type_)

    def describe(self, type_: str, name: str) -> Any:
        raise KeyError(type_)

    def stop(self, type_: str, name: str, why: str) -> None:
        raise KeyError(type_)


@dataclass(frozen=True)
class Starter:
    """The workflows by type, and where their executions run."""

    workflows: Mapping[str, Workflow] = field(default_factory=dict)
    executions: Executions = field(default_factory=NoExecutions)

    def run(self, attempt: Try) -> str:
        """A claimed job, whatever its work is. The word for what came of it. Raises Unavailable: then the record still
        says PROCESSING, and the lease's end brings the job back."""
        workflow = self.workflows.get(attempt.job.type)
        return start(attempt, workflow, self.executions) if workflow else execute(attempt)


def start(attempt: Try, workflow: Workflow, executions: Executions) -> str:
    if not _is_prepared(attempt, workflow):
        attempt.notice("fenced_out")
        return "fenced_out"
    found = _execution(attempt, executions)
    if isinstance(found, Wait | Failed):
        return conclude(attempt, found)
    return _follow(attempt, workflow, found or following.UNKNOWN)


def _is_prepared(attempt: Try, workflow: Workflow) -> bool:
    """Once for each run: a claim that comes later leaves what the branches have written."""
    job = attempt.job
    if job.parts_run == job.run or _is_used_up(attempt):
        return True
    names = [branch.name for branch in workflow.branches]
    return isinstance(attempt.worker.store.apply(job.id, changes.prepare(job, names)), Applied)


def _execution(attempt: Try, executions: Executions) -> Execution | Wait | Failed | None:
    """The execution of this job and run, or why there is none. What could not be asked for may have been started all
    the same: waiting is right in either case, since the next start finds it, and it may end while the job waits."""
    job, name = attempt.job, ids.execution_name(attempt.job.id, attempt.job.run)
    try:
        if _is_used_up(attempt):
            return _standing(attempt, executions) or _used_up(attempt)
        try:
            return Running(executions.start(job.type, name, canonical({"job": job.id, "run": job.run})))
        except AlreadyExists:
            return executions.describe(job.type, name)
    except KeyError:
        return Wait(error("UNKNOWN_TYPE", f"no state machine of {job.type} here (yet): a deploy may be under way"))
    except Unavailable as trouble:
        return Wait(error("EXECUTION_NOT_STARTED", str(trouble)))
    except Permanent as trouble:
        return Failed(error(trouble.code, str(trouble)), final=True)


def _standing(attempt: Try, executions: Executions) -> Execution | None:
    """Of a job that may not be started once more: its last holder may have died when it had started it."""
    job = attempt.job
    if job.parts_run != job.run:
        return None
    return executions.describe(job.type, ids.execution_name(job.id, job.run))


def _is_used_up(attempt: Try) -> bool:
    return attempt.job.tries > attempt.worker.limits.retry.max_attempts


def _used_up(attempt: Try) -> Failed:
    most, crashes = attempt.worker.limits.retry.max_attempts, attempt.job.crashes
    return Failed(error("ATTEMPTS_EXHAUSTED", f"{most} tries used, {crashes} crashed"), final=True)


def _follow(attempt: Try, workflow: Workflow, found: Execution) -> str:
    word, change = _change(attempt, workflow, found)
    match attempt.worker.store.apply(attempt.job.id, change):
        case Refused(record):  # cancelled, or over already: a short execution may be faster than this write
            word = "fenced_out"
            attempt.notice(word, status=(record or {}).get("status"), execution=type(found).__name__)
        case Applied():
            attempt.notice(word, run=attempt.job.run, execution=type(found).__name__)
    return word


def _change(attempt: Try, workflow: Workflow, found: Execution) -> tuple[str, Change]:
    job, worker = attempt.job, attempt.worker
    if isinstance(found, Running):
        lease = max(changes.lease_of(found.since, workflow.timeout_s), after(worker.now(), changes.LEASE_MARGIN_S))
        return "started", changes.adopt(job, now=worker.now(), lease=lease)
    change = following.ended(
        job, found, workflow=workflow, now=worker.now(), draw=worker.draw, limits=worker.limits
    )  # fmt: skip
    return following.WORDS[change.rule.name], change
