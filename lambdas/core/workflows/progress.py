"""How far a workflow's job is, for whoever looks at it: which of its branches are done, and which have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.names import COMPLETED
from lambdas.contracts.names import FAILED as JOB_FAILED
from lambdas.core import times
from lambdas.core.job import Job
from lambdas.core.workflows.parts import AGAIN, DONE, FAILED, Part, parts_of

_LINES: Mapping[str, str] = {DONE: "branch_done", FAILED: "branch_failed", AGAIN: "branch_retried"}


@dataclass(frozen=True)
class Progress:
    """Names of branches, in their order. `total`: how many the workflow has."""

    done: tuple[str, ...]
    failed: tuple[str, ...]
    total: int

    @property
    def settled(self) -> int:
        """Branches that have come to an end. It only rises while one execution runs."""
        return len(self.done) + len(self.failed)

    def shown(self) -> dict[str, Any]:
        return {"done": list(self.done), "failed": list(self.failed), "total": self.total}


def progress_of(job: Job) -> Progress | None:
    """None for a job that was never prepared as a workflow's."""
    parts = _last(job)
    if not parts:
        return None
    done, failed = (
        tuple(sorted(name for name, part in parts.items() if part.state == state)) for state in (DONE, FAILED)
    )
    return Progress(done, failed, len(parts))


def is_under_way(job: Job) -> bool:
    """Whether what the record says of its branches is about the run that it is in, and may still change."""
    return job.parts is not None and job.parts_run == job.run and not job.is_final


def lines(job: Job) -> list[dict[str, Any]]:
    """What its branches have last come to, as lines of its timeline, in their order."""
    found = [
        {
            "at": times.text(part.at),
            "what": _LINES[part.state],
            "attempt": job.attempt,
            "note": name,
            **({"error": dict(part.error)} if part.error and part.state != DONE else {}),
        }
        for name, part in _last(job).items()
        if part.at is not None and part.state in _LINES
    ]
    return sorted(found, key=lambda line: (line["at"], line["note"]))


def _last(job: Job) -> dict[str, Part]:
    """What there is to be told of each branch. With its job's end every branch has come to one: what is not done by
    then, put off or never heard of again, has failed. A cancelled job's branches were only left."""
    parts = _standing(job)
    if job.status not in (COMPLETED, JOB_FAILED):
        return parts
    return {
        name: part if part.state == DONE else replace(part, state=FAILED, at=part.at or job.finished_at)
        for name, part in parts.items()
    }


def _standing(job: Job) -> dict[str, Part]:
    """Of this run. The run of an execution that ended badly is over with it: what its branches had come to by then is
    what there is to be told of a job that has ended so."""
    if job.is_final and (job.runs or job.waits) and job.parts_run == job.run - 1:
        return parts_of(replace(job, run=job.run - 1))
    return parts_of(job)
