"""Brings dead letters back, as an operator has asked; goes on by calling itself while there are some left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.functions import LambdaFunctions
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.log import StepLog
from lambdas.adapters.sqs_letters import dead_letters_of, queues_of
from lambdas.contracts import names
from lambdas.core.letters import redrive
from lambdas.core.letters.dead_letters import Boxes
from lambdas.core.letters.redriving import Redriver
from lambdas.core.ports import Sender


@dataclass(frozen=True)
class Parts:
    ledger: DynamoLedger
    store: DynamoJobStore
    boxes: Boxes
    queues: Mapping[str, Sender]
    functions: LambdaFunctions
    log: StepLog


def build(environment: Environment) -> Parts:
    table = environment.text(names.JOBS_TABLE)
    return Parts(
        ledger=DynamoLedger(client("dynamodb"), table),
        store=DynamoJobStore(client("dynamodb"), table),
        boxes=dead_letters_of(environment),
        queues=queues_of(environment),
        functions=LambdaFunctions(client("lambda")),
        log=StepLog("redrive"),
    )


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """`event`: {redrive_id, round}. What it raises, Lambda repeats under the same request id."""
    own = parts()
    own.log.started(context)
    run = redrive.begin(event["redrive_id"], event["round"], context.aws_request_id, now=clock.now(), ledger=own.ledger)
    if run is None:
        own.log.notice("not_this_one", redrive=event["redrive_id"], round=event["round"])
        return {"state": None}
    redriver = Redriver(
        ledger=own.ledger,
        store=own.store,
        boxes=own.boxes,
        queues=own.queues,
        now=clock.now,
        sleep=time.sleep,
        time_left_s=lambda: context.get_remaining_time_in_millis() / 1000,
        notice=own.log.notice,
    )
    try:
        run = redriver.go_on(run)
    except redrive.Superseded:
        own.log.notice("superseded", redrive=event["redrive_id"], round=event["round"])
        return {"state": None}
    if run.state == redrive.RUNNING:
        own.functions.start(context.function_name, {"redrive_id": run.id, "round": run.round + 1})
    own.log.notice("redrive", redrive=run.id, state=run.state, moved=run.moved, stale=run.stale, detail=run.why)
    return redrive.shown(run, clock.now())
