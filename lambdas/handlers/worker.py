"""The work and the urgent queue: claims jobs and runs them, fresh ones at once, suspects one by one afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.executions import executions_of
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.queue_events import at_once, delivery_in, records_of
from lambdas.adapters.sqs import SqsQueue
from lambdas.adapters.working import Working, working
from lambdas.contracts import names, workflows
from lambdas.core import times
from lambdas.core.batch import Delivery, Desk, Done, Early, Failed, handle, is_suspect
from lambdas.core.execution import Worker
from lambdas.core.tasks import most_tries
from lambdas.core.workflows.starting import Starter
from lambdas.tasks import load


@dataclass(frozen=True)
class Lane:
    """One of the two queues, and the dead letters of what lies in it."""

    name: str
    queue: SqsQueue
    letters: SqsQueue


@dataclass(frozen=True)
class Parts:
    working: Working
    starter: Starter
    work: Lane
    urgent: Lane
    log: StepLog

    @property
    def worker(self) -> Worker:
        return self.working.worker


def build(environment: Environment) -> Parts:
    log = StepLog("worker")
    tasks, broken = load()
    declared, wrong = workflows.load()
    for type_, why in (*broken.items(), *wrong.items()):
        log.trouble("broken_task", type=type_, detail=why)
    sqs = client("sqs")
    work = _lane(sqs, environment, names.WORK_QUEUE_URL, names.WORK_DLQ_URL)
    urgent = _lane(sqs, environment, names.URGENT_QUEUE_URL, names.URGENT_DLQ_URL)
    starter = Starter(declared, executions_of(environment))
    return Parts(working(environment, tasks), starter, work, urgent, log)


def _lane(sqs: Any, environment: Environment, queue: str, letters: str) -> Lane:
    url = environment.text(queue)
    return Lane(url.rpartition("/")[2], SqsQueue(sqs, url), SqsQueue(sqs, environment.text(letters)))


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    own.working.invocation_started(context)
    records = records_of(event)
    deliveries = [delivery_in(record, context) for record in records]
    ends = times.after(clock.now(), context.get_remaining_time_in_millis() / 1000)
    waiting: list[int] = []
    run = _runner(own, _lane_of(records[0], own), ends, waiting)
    suspects = [delivery for delivery in deliveries if is_suspect(delivery)]
    fresh = [delivery for delivery in deliveries if not is_suspect(delivery)]
    failed = [*at_once(run, fresh), *(delivery.message_id for delivery in suspects if not run(delivery))]
    if waiting:  # who waits is seldom found due: the sweep would not see how long
        emit_metrics({names.OLDEST_OPEN_JOB: max(waiting)}, MetricUnit.Seconds)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _lane_of(record: Mapping[str, Any], own: Parts) -> Lane:
    """Which queue a batch came from: Lambda never mixes two. Any message may claim any job, whichever it lies in."""
    source = str(record.get("eventSourceARN", "")).rpartition(":")[2]
    return own.urgent if source == own.urgent.name else own.work


def _runner(own: Parts, lane: Lane, ends: datetime, waiting: list[int]) -> Callable[[Delivery], bool]:
    """Handles one delivery; False when SQS shall keep it. An error of ours never takes the batch with it. `waiting`
    gets the ages, in seconds, of jobs that have to wait."""
    bound = most_tries(own.worker.tasks, own.worker.limits.retry)
    desk = Desk(own.worker, lane.letters, ends, bound, own.starter)

    def notice(step: str, **fields: Any) -> None:
        if step == "waits":
            waiting.append(fields["open_s"])
        own.log.notice(step, **fields)

    def run(delivery: Delivery) -> bool:
        own.log.about_message(delivery.message_id)
        try:
            return _settled(own, lane, delivery, handle(delivery, desk, notice=notice, about=own.log.about))
        except Exception:
            own.log.crashed("worker_error")
            return False

    return run


def _settled(own: Parts, lane: Lane, delivery: Delivery, outcome: Done | Early | Failed) -> bool:
    match outcome:
        case Early(wait_s):
            lane.queue.hide(delivery.receipt_handle, math.ceil(wait_s) + 1)
            return False
        case Failed(why):
            own.log.trouble("left_on_the_queue", detail=why)
            return False
        case Done():
            return True
