"""The schedule: looks after every job that is due and puts back what fell out of the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.outbox import AwsOutbox, outbox_of
from lambdas.contracts import names
from lambdas.core.job import Job
from lambdas.core.policy import Limits
from lambdas.core.sweep import Sweeper
from lambdas.core.tasks import Tasks, policy_of
from lambdas.tasks import load


@dataclass(frozen=True)
class Parts:
    store: DynamoJobStore
    outbox: AwsOutbox
    limits: Limits
    tasks: Tasks
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("sweep")
    tasks, broken = load()
    for type_, why in broken.items():
        log.trouble("broken_task", type=type_, detail=why)
    return Parts(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        outbox=outbox_of(environment),
        limits=environment.limits,
        tasks=tasks,
        log=log,
    )


parts = on_start(build)

UNKNOWN = 1_000_000


def handler(_event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    swept = Sweeper(
        store=own.store,
        outbox=own.outbox,
        queue=own.outbox.work,
        limits=own.limits,
        now=clock.now,
        max_tries=_max_tries,
        time_left_s=lambda: context.get_remaining_time_in_millis() / 1000,
        notice=own.log.notice,
    ).sweep()
    own.log.notice("swept", **asdict(swept))
    troubles = swept.failed + swept.unreadable + int(not swept.complete)
    emit_metrics({names.OLDEST_OPEN_JOB: swept.oldest_s}, MetricUnit.Seconds)
    emit_metrics({names.SWEEP_TROUBLES: troubles}, MetricUnit.Count)
    return asdict(swept)


def _max_tries(job: Job) -> int:
    """Of a task that is not here (a deploy is under way, or it is broken) the worker decides, or the deadline."""
    task = parts().tasks.get(job.type)
    return policy_of(task, parts().limits.retry).max_attempts if task else UNKNOWN
