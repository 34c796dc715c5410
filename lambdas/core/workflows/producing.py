"""The part of a branch: found where it was stored before, or made by its task and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lambdas.contracts.validation import Violation, compile_schema
from lambdas.contracts.workflows import Branch, Workflow
from lambdas.core import ids
from lambdas.core.accepted_input import accepted_input
from lambdas.core.canonical import canonical
from lambdas.core.execution import Try, context, result_of
from lambdas.core.job import Job
from lambdas.core.outcomes import Permanent
from lambdas.core.ports import Missing, Results
from lambdas.core.tasks import Task
from lambdas.core.verdicts import Failed
from lambdas.core.workflows.inputs import NOWHERE, Output, input_of_branch
from lambdas.core.workflows.parts import DONE, parts_of
from lambdas.core.workflows.stored import part_in


@dataclass(frozen=True)
class Given:
    """The part is stored under this `sha`. `found`: it was there already, and nothing was paid."""

    sha: str
    bytes: int
    found: bool = False


def produce(attempt: Try, workflow: Workflow, branch: Branch, task: Task) -> Given | Failed:
    """Raises what the task raises, Permanent for an input that cannot be had, Unavailable."""
    job, worker = attempt.job, attempt.worker
    task_input = input_of_branch(workflow, branch, lambda: _whole(attempt, workflow), _outputs(job, worker.results))
    wrong = task.check_input(task_input)
    if wrong:
        raise Permanent(f"{wrong.pointer or '/'}: {wrong.detail}", "INVALID_INPUT")
    sha = ids.part_sha(branch.name, branch.task, canonical(task_input))
    key = ids.part_key(job.tenant, job.id, branch.name, sha)
    try:
        return Given(sha, len(worker.results.get(key)), found=True)
    except Missing:
        body = result_of(task, task_input, context(attempt, task, scope=(branch.name,)))
    if isinstance(body, Failed):
        return body
    worker.results.put(key, body)
    attempt.notice("stored", key=key, bytes=len(body))
    return Given(sha, len(body))


def _whole(attempt: Try, workflow: Workflow) -> Any:
    def check(value: Any) -> Violation | None:  # compiled for an upload alone: all else was checked at the door
        return compile_schema(workflow.input_schema)(value)

    worker = attempt.worker
    return accepted_input(attempt.job, check, worker.inputs, worker.uploads, worker.limits)


def _outputs(job: Job, results: Results) -> Output:
    """What earlier branches of this run have given."""
    parts = parts_of(job)

    def output(name: str) -> Any:
        part = parts.get(name)
        if part is None or part.state != DONE:
            return NOWHERE
        try:
            return part_in(results, job, name, part)
        except Missing:
            return NOWHERE

    return output
