"""The deliveries queue: events become deliveries, and each delivery is tried until its endpoint has it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.circuits import DynamoCircuits
from lambdas.adapters.clients import client
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.endpoints import DynamoEndpoints
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.outbound import CheckedPoster
from lambdas.adapters.queue_events import at_once, delivery_in, records_of
from lambdas.adapters.secrets import SecretsManager
from lambdas.adapters.signatures import StandardSigner
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core import times
from lambdas.core.batch import Delivery as Message
from lambdas.core.batch import Done, Early, Failed
from lambdas.core.webhooks.batch import Desk, handle, is_suspect
from lambdas.core.webhooks.calling import Courier
from lambdas.core.webhooks.judging import GIVEN_UP
from lambdas.core.webhooks.planning import Planner
from lambdas.core.webhooks.registry import SECRET_AGE_S


@dataclass(frozen=True)
class Parts:
    """`planner`: what one for each invocation is made of: it remembers endpoints, and they may change."""

    courier: Courier
    planner: Callable[[], Planner]
    queue: SqsQueue
    letters: SqsQueue
    log: StepLog


def build(environment: Environment) -> Parts:
    table, dynamodb, sqs = environment.text(names.JOBS_TABLE), client("dynamodb"), client("sqs")
    limits, local = environment.delivery_limits, environment.has(names.LOCAL)
    jobs, deliveries = DynamoJobStore(dynamodb, table), DynamoDeliveries(dynamodb, table)
    endpoints = DynamoEndpoints(dynamodb, table)
    secrets, master = SecretsManager(lambda: client("secretsmanager")), environment.text(names.WEBHOOK_SECRET)
    courier = Courier(
        store=deliveries,
        endpoints=endpoints,
        circuits=DynamoCircuits(dynamodb, table, places=environment.number(names.WEBHOOK_CONCURRENCY, 2)),
        poster=CheckedPoster(local=local),
        signer=StandardSigner(),
        masters=lambda: secrets.read(master, SECRET_AGE_S),
        limits=limits,
        now=clock.now,
        draw=random.random,
        local=local,
    )
    return Parts(
        courier=courier,
        planner=lambda: Planner(jobs, deliveries, endpoints, limits, clock.now, local),
        queue=SqsQueue(sqs, environment.text(names.DELIVERIES_QUEUE_URL)),
        letters=SqsQueue(sqs, environment.text(names.DELIVERIES_DLQ_URL)),
        log=StepLog("deliver"),
    )


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    messages = [delivery_in(record, context) for record in records_of(event)]
    ends = times.after(clock.now(), context.get_remaining_time_in_millis() / 1000)
    given_up: list[str] = []
    run = _runner(own, Desk(own.planner(), own.courier, own.letters, ends), given_up)
    suspects = [message for message in messages if is_suspect(message)]
    fresh = [message for message in messages if not is_suspect(message)]
    failed = [*at_once(run, fresh), *(message.message_id for message in suspects if not run(message))]
    if given_up:
        emit_metrics({names.DELIVERIES_FAILED: len(given_up)}, MetricUnit.Count)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _runner(own: Parts, desk: Desk, given_up: list[str]) -> Callable[[Message], bool]:
    """Handles one message; False when SQS shall keep it. An error of ours never takes the batch with it. `given_up`
    gets the messages whose delivery was."""

    def run(message: Message) -> bool:
        own.log.about_message(message.message_id)
        try:
            outcome = handle(message, desk, notice=own.log.notice)
            if outcome == Done(GIVEN_UP):
                given_up.append(message.message_id)
            return _settled(own, message, outcome)
        except Exception:
            own.log.crashed("deliver_error")
            return False

    return run


def _settled(own: Parts, message: Message, outcome: Done | Early | Failed) -> bool:
    match outcome:
        case Early(wait_s):
            own.queue.hide(message.receipt_handle, math.ceil(wait_s) + 1)
            return False
        case Failed(why):
            own.log.trouble("left_on_the_queue", detail=why)
            return False
        case Done():
            return True
