"""The default bus calls it when an execution of ours has failed, was aborted or took too long: its record must know."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.executions import executions_of
from lambdas.adapters.log import StepLog
from lambdas.contracts import names, workflows
from lambdas.core.workflows.hearing import Hearing, hear


@dataclass(frozen=True)
class Parts:
    desk: Hearing
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("ended")
    declared, wrong = workflows.load()
    for type_, why in wrong.items():
        log.trouble("broken_task", type=type_, detail=why)
    desk = Hearing(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        executions=executions_of(environment),
        workflows=declared,
        limits=environment.limits,
        now=clock.now,
        draw=random.random,
        notice=log.notice,
        pause=time.sleep,
    )
    return Parts(desk, log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, str]:
    own = parts()
    own.log.started(context)
    return {"what": hear(event, own.desk, own.log.about)}
