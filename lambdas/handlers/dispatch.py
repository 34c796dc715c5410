"""The stream of the Jobs table: each change of state is sent to who must hear of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.attributes import from_item
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.executions import executions_of
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.outbox import AwsOutbox, outbox_of
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core.dispatching import dispatch
from lambdas.core.envelope import Unreadable, letter_about_message, written
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.ports import JobStore, Message, Unavailable
from lambdas.core.routing import changed
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import routing
from lambdas.core.webhooks.delivery import Delivery
from lambdas.core.workflows.ports import Executions


@dataclass(frozen=True)
class Parts:
    store: JobStore
    outbox: AwsOutbox
    executions: Executions
    deliveries: SqsQueue
    own_letters: SqsQueue
    log: StepLog


def build(environment: Environment) -> Parts:
    return Parts(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        outbox=outbox_of(environment),
        executions=executions_of(environment),
        deliveries=SqsQueue(client("sqs"), environment.text(names.DELIVERIES_QUEUE_URL)),
        own_letters=SqsQueue(client("sqs"), environment.text(names.DISPATCH_DLQ_URL)),
        log=StepLog("dispatch"),
    )


parts = on_start(build)


RECORD_LOST = "RECORD_LOST"


class NoStreamEvent(ValueError):
    """Something other than a DynamoDB stream invoked the dispatcher: nothing may be taken for handled."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    batch = _Batch()
    for record in _records(event):
        batch.sort(record)
    if batch.lost:
        emit_metrics({names.RECORDS_LOST: batch.lost}, MetricUnit.Count)
    failed = [*batch.failed, *_told(batch.jobs), *_hinted(batch.deliveries)]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


@dataclass
class _Batch:
    """What a batch asks for, each with the number of its record. `failed`: records to be handed over again."""

    jobs: list[tuple[str, Job]] = field(default_factory=list)
    deliveries: list[tuple[str, Delivery]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    lost: int = 0

    def sort(self, record: Mapping[str, Any]) -> None:
        number = record["dynamodb"].get("SequenceNumber", "")
        try:
            match _state_in(record):
                case Job() as job:
                    self.jobs.append((number, job))
                case Delivery() as delivery:
                    self.deliveries.append((number, delivery))
                case Unreadable() as why:
                    self.failed += [] if _bury(record, why) else [number]
                    self.lost += why.reason == RECORD_LOST
        except Unavailable as trouble:
            parts().log.trouble("store_unavailable", detail=str(trouble))
            self.failed.append(number)


def _told(jobs: Sequence[tuple[str, Job]]) -> list[str]:
    """Numbers of the records whose job somebody has not heard of."""
    own = parts()
    sent = dispatch(
        [job for _, job in jobs],
        now=clock.now(),
        outbox=own.outbox,
        store=own.store,
        executions=own.executions,
        notice=own.log.notice,
    )
    return [jobs[position][0] for position in sorted(sent.failed)]


def _hinted(found: Sequence[tuple[str, Delivery]]) -> list[str]:
    """Numbers of the records whose delivery has no hint."""
    own = parts()
    refused = routing.send(
        [delivery for _, delivery in found], now=clock.now(), queue=own.deliveries, notice=own.log.notice
    )
    return [found[position][0] for position in sorted(refused)]


def _records(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    records = event.get("Records")
    if not isinstance(records, list) or not records or not all(_is_stream_record(record) for record in records):
        raise NoStreamEvent("expected the Records of a DynamoDB stream")
    return records


def _is_stream_record(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("dynamodb"), dict)


def _state_in(record: Mapping[str, Any]) -> Job | Delivery | Unreadable | None:
    """The job or the delivery whose state this record changed; None when nobody needs to hear of it. Raises
    Unavailable."""
    images = record["dynamodb"]
    new, old = images.get("NewImage"), images.get("OldImage")
    if new is None:
        return _removed(old)
    try:
        image = from_item(new)
        if not changed(from_item(old) if old else None, image) or "due_shard" not in image:
            return None
        return deliveries.read(image) if _is_delivery(new) else from_record(image)
    except (UnreadableRecord, TypeError, ValueError, AttributeError) as broken:
        return Unreadable("UNREADABLE_RECORD", str(broken))


def _is_delivery(image: Mapping[str, Any]) -> bool:
    return str(image["sk"]["S"]).startswith(names.DELIVERY_SK) if "sk" in image else False


def _removed(old: Mapping[str, Any] | None) -> Unreadable | None:
    """A record that has had its time may go. One with something still due must not: nobody would ever come to it.
    Raises Unavailable."""
    if not old or names.DUE_SHARD not in old:
        return None
    if _is_delivery(old) and _went_with_its_job(old):
        return None
    what = "delivery" if _is_delivery(old) else "job"
    status = old.get("status", {}).get("S", "?")
    return Unreadable(RECORD_LOST, f"the record of a {what} was removed, {status}, with something still due")


def _went_with_its_job(old: Mapping[str, Any]) -> bool:
    """Its tenant has deleted the job: the tombstone stands before anything beside it goes. A record that cannot be
    read is no tombstone of ours."""
    try:
        record = parts().store.read(old["pk"]["S"])
    except UnreadableRecord:
        return False
    return record is not None and record.get("status") == names.DELETED


def _bury(record: Mapping[str, Any], why: Unreadable) -> bool:
    """A record that nobody can read would hold up the shard for an hour: it goes aside with its reason. One that is
    lost has all that is left of its job in it."""
    body = json.dumps(record, sort_keys=True, default=str)
    letter = letter_about_message(body, why, clock.now())
    job_id = record["dynamodb"].get("Keys", {}).get("pk", {}).get("S", "")
    parts().log.trouble("unreadable_record", reason=why.reason, detail=why.detail, job_id=job_id)
    attributes = {"event_type": letter["event_type"], "reason": why.reason}
    return not parts().own_letters.send([Message(written(letter), attributes, "unreadable")])
