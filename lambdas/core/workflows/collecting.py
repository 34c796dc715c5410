"""The end of an execution: one result of the parts that there are, and the one write that ends the job (row 14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import COMPLETED, DELETED, FAILED, PENDING, PROCESSING
from lambdas.contracts.workflows import ALL, LAST, Workflow
from lambdas.core import ids
from lambdas.core.canonical import canonical
from lambdas.core.changes import error
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Applied, JobStore, Missing, Notice, Now, Results, Unavailable
from lambdas.core.workflows import changes, told
from lambdas.core.workflows.parts import DONE, OPEN, named, parts_of
from lambdas.core.workflows.stored import part_in
from lambdas.core.workflows.told import Ask, WaitError

CRASHED = error("CRASHED", "its function ended without a word; the log may say why")
PART_LOST = error("PART_LOST", "it was done, but what it gave is no longer in the results bucket")


@dataclass(frozen=True)
class Collecting:
    """What a result is assembled with."""

    store: JobStore
    results: Results
    workflows: Mapping[str, Workflow]
    limits: Limits
    now: Now
    notice: Notice


@dataclass
class Collected:
    """The parts by name: what they gave, or why they are missing. `lost`: those that ended without a word. They are
    those of this run, whatever a deploy has added, renamed or removed since it was prepared."""

    outputs: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Mapping[str, str]] = field(default_factory=dict)
    lost: int = 0

    @property
    def called(self) -> set[str]:
        return {*self.outputs, *self.missing}


def collect(ask: Ask, desk: Collecting, about: Callable[[Job], None], lost: Callable[[int], None]) -> dict[str, Any]:
    """What the execution answers. `lost` is told how many parts ended without a word. Raises WaitError, to be called
    again."""
    try:
        return _collect(ask, desk, about, lost)
    except Unavailable as trouble:
        desk.notice("collect_waits", job_id=ask.job_id, detail=str(trouble))
        raise WaitError("STORE_UNAVAILABLE") from None  # it pays nothing: there is no hurry to end a whole run


def _collect(ask: Ask, desk: Collecting, about: Callable[[Job], None], lost: Callable[[int], None]) -> dict[str, Any]:
    record = desk.store.read(ask.job_id)
    if record is None or record.get("status") == DELETED:
        return _refused(ask, desk, record)
    job = from_record(record)
    about(job)
    if job.run != ask.run or job.parts_run != ask.run:
        return _refused(ask, desk, record)
    if job.status not in (PENDING, PROCESSING):
        return _over(job) or _refused(ask, desk, record)
    workflow = desk.workflows.get(job.type)
    if workflow is None:
        raise WaitError("UNKNOWN_TYPE")
    collected = _collected(job, workflow, desk.results)
    if collected.lost:
        lost(collected.lost)
    return _concluded(job, workflow, collected, desk)


def _over(job: Job) -> dict[str, Any] | None:
    """An earlier call of the collector has ended the job, and its answer was lost: it is the same again."""
    key, own = job.result_key or "", ids.run_results(job.tenant, job.id, job.run)
    if job.status == COMPLETED and key.startswith(own):
        return told.completed(key, job.result_bytes or 0, job.partial)
    return told.failed(job.error) if job.status == FAILED and job.error else None


def _collected(job: Job, workflow: Workflow, results: Results) -> Collected:
    collected, parts = Collected(), parts_of(job)
    declared = [branch.name for branch in workflow.branches if branch.name in parts]
    for name in (*declared, *sorted(parts.keys() - set(declared))):
        part = parts[name]
        if part.state != DONE:
            collected.missing[name] = part.error or CRASHED
            collected.lost += part.state == OPEN
            continue
        try:
            collected.outputs[name] = part_in(results, job, name, part)
        except Missing:
            collected.missing[name] = PART_LOST
    return collected


def _concluded(job: Job, workflow: Workflow, collected: Collected, desk: Collecting) -> dict[str, Any]:
    why = _shortfall(workflow, collected)
    if why:
        change = changes.fall_short(job, now=desk.now(), why=why, limits=desk.limits)
        answer, word = told.failed(why), "failed"
    else:
        written, partial = canonical(_result(workflow, collected)), bool(collected.missing)
        key, body = ids.run_result_key(job.tenant, job.id, job.run, written, partial=partial), written.encode()
        desk.results.put(key, body)
        change = changes.collect(
            job, now=desk.now(), key=key, result_bytes=len(body), partial=partial, limits=desk.limits
        )  # fmt: skip
        answer, word = told.completed(key, len(body), partial), "completed"
    if not isinstance(desk.store.apply(job.id, change), Applied):
        word, answer = "collect_refused", told.refused()
    reason = {"reason": why["code"], "detail": why["message"]} if why else {}
    desk.notice(word, run=job.run, done=len(collected.outputs), missing=[*collected.missing], **reason)
    return answer


def _shortfall(workflow: Workflow, collected: Collected) -> dict[str, str] | None:
    """Why the workflow does without a result, if it must. A branch that is not declared any more counts: nobody has
    said that its part may be missing."""
    counted = collected.called - {branch.name for branch in workflow.branches if branch.may_fail}
    done = len(counted & collected.outputs.keys())
    needed = max(1, len(counted) if workflow.partial == ALL else min(workflow.needed, len(counted)))
    maker = workflow.stages[-1][0].name if workflow.result == LAST else ""
    if maker and maker not in collected.called:
        changed = f"the workflow was changed while it ran: {maker}, which makes the result now, was not called"
        return error("PARTS_MISSING", f"{changed}; retry the job")
    codes = {name: why["code"] for name, why in collected.missing.items()}
    if done < needed:
        return error("PARTS_MISSING", named(f"{done} parts done, {needed} needed; missing: ", codes))
    if maker in codes:
        return error(
            "PARTS_MISSING", named(f"no {maker}, which makes the result; missing: ", {maker: codes[maker], **codes})
        )
    return None


def _result(workflow: Workflow, collected: Collected) -> Any:
    if workflow.result == LAST:
        return collected.outputs[workflow.stages[-1][0].name]
    return {
        "complete": not collected.missing,
        "parts": collected.outputs,
        "missing": [{"part": name, **why} for name, why in collected.missing.items()],
    }


def _refused(ask: Ask, desk: Collecting, record: Mapping[str, Any] | None) -> dict[str, Any]:
    """The job has gone on without this execution: to Step Functions a success."""
    desk.notice("collect_refused", job_id=ask.job_id, run=ask.run, status=(record or {}).get("status"))
    return told.refused()
