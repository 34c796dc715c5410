"""What became of the execution of a job that looks abandoned: the sweep asks before it takes it for dead (row 15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lambdas.contracts.names import PROCESSING
from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.job import Job
from lambdas.core.policy import Draw, Limits
from lambdas.core.sweeping.plan import Conclude, Expire, Extend, Leave, Plan, Reap
from lambdas.core.times import Instant, after
from lambdas.core.workflows import changes, following
from lambdas.core.workflows.ports import EndedBadly, Executions, Running, Succeeded


@dataclass(frozen=True)
class Machines:
    """The executions, and the workflows that are deployed, by type."""

    executions: Executions
    workflows: Mapping[str, Workflow]
    draw: Draw

    def knows(self, job: Job, found: Plan) -> bool:
        """Whether to ask: the job would be taken for dead, and an execution may have been started for the run that it
        is in. Of a type that is deployed no more there is nobody to ask: its jobs are as those of an unknown task,
        which end by their deadline."""
        prepared = job.parts is not None and job.parts_run == job.run
        return prepared and isinstance(found, Reap | Expire) and job.type in self.workflows

    def better(self, job: Job, found: Plan, now: Instant, limits: Limits) -> Plan:
        """The plan, as what became of the execution makes it. One call to Step Functions. Raises Unavailable."""
        workflow = self.workflows[job.type]
        try:
            execution = self.executions.describe(job.type, ids.execution_name(job.id, job.run))
        except KeyError:  # declared, and without a state machine: a deploy is under way
            return found
        match execution:
            case None:
                return found
            case Running(since):
                return _runs(job, since, workflow.timeout_s, now)
            case EndedBadly() if job.status != PROCESSING:
                return found  # nobody waits for it: what the plan says is the end of this job
            case Succeeded() | EndedBadly():
                change = following.ended(job, execution, workflow=workflow, now=now, draw=self.draw, limits=limits)
                return Conclude(change)


def _runs(job: Job, since: Instant, timeout_s: int, now: Instant) -> Plan:
    """Whoever started it died before it could say so, or the table was out of reach. One that was taken back to PENDING
    is completed by its execution all the same: it stays as it is until then."""
    if job.status != PROCESSING:
        return Leave()
    lease = changes.lease_of(since, timeout_s)
    return Extend(changes.extend(job, lease=max(lease, after(now, changes.LEASE_MARGIN_S))))
