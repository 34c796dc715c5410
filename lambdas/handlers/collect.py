"""Step Functions calls it when all branches have come to an end: assembles the result and ends the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names, workflows
from lambdas.core.workflows.collecting import Collecting, collect
from lambdas.core.workflows.told import TransientError, WaitError, ask_of


@dataclass(frozen=True)
class Parts:
    desk: Collecting
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("collect")
    declared, wrong = workflows.load()
    for type_, why in wrong.items():
        log.trouble("broken_task", type=type_, detail=why)
    desk = Collecting(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        results=S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET)),
        workflows=declared,
        limits=environment.limits,
        now=clock.now,
        notice=log.notice,
    )
    return Parts(desk, log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    ask = ask_of(event, of_branch=False)
    try:
        return collect(ask, own.desk, own.log.about, _tell_lost)
    except (TransientError, WaitError):
        raise
    except Exception:
        own.log.crashed("collect_error", job_id=ask.job_id)
        raise TransientError("COLLECT_ERROR") from None  # its own text may quote what no history should keep


def _tell_lost(parts_: int) -> None:
    emit_metrics({names.PARTS_LOST: parts_}, MetricUnit.Count)
