"""The stream of the Jobs table: each change of state is sent to who must hear of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore, from_item
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.outbox import AwsOutbox, outbox_of
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core.dispatching import dispatch
from lambdas.core.envelope import Unreadable, letter_about_message, written
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.ports import JobStore, Message
from lambdas.core.routing import changed


@dataclass(frozen=True)
class Parts:
    store: JobStore
    outbox: AwsOutbox
    own_letters: SqsQueue
    log: StepLog


def build(environment: Environment) -> Parts:
    return Parts(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        outbox=outbox_of(environment),
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
    records = _records(event)
    jobs: list[Job] = []
    sequence: list[str] = []
    failed: list[str] = []
    lost = 0
    for record in records:
        number = record["dynamodb"].get("SequenceNumber", "")
        job = _job_in(record)
        if isinstance(job, Unreadable):
            failed += [] if _bury(record, job) else [number]
            lost += job.reason == RECORD_LOST
        elif job is not None:
            jobs.append(job)
            sequence.append(number)
    if lost:
        emit_metrics({names.RECORDS_LOST: lost}, MetricUnit.Count)
    sent = dispatch(jobs, now=clock.now(), outbox=own.outbox, store=own.store, notice=own.log.notice)
    failed += [sequence[position] for position in sorted(sent.failed)]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


def _records(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    records = event.get("Records")
    if not isinstance(records, list) or not records or not all(_is_stream_record(record) for record in records):
        raise NoStreamEvent("expected the Records of a DynamoDB stream")
    return records


def _is_stream_record(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("dynamodb"), dict)


def _job_in(record: Mapping[str, Any]) -> Job | Unreadable | None:
    """The job whose state this record changed; None when nobody needs to hear of it."""
    images = record["dynamodb"]
    new, old = images.get("NewImage"), images.get("OldImage")
    if new is None:
        return _removed(old)
    try:
        image = from_item(new)
        if not changed(from_item(old) if old else None, image) or "due_shard" not in image:
            return None
        return from_record(image)
    except (UnreadableRecord, TypeError, ValueError, AttributeError) as broken:
        return Unreadable("UNREADABLE_RECORD", str(broken))


def _removed(old: Mapping[str, Any] | None) -> Unreadable | None:
    """A record that has had its time may go. One with something still due must not: nobody would ever come to it."""
    if not old or names.DUE_SHARD not in old:
        return None
    status = old.get("status", {}).get("S", "?")
    return Unreadable(RECORD_LOST, f"the record of a job was removed, {status}, with something still due")


def _bury(record: Mapping[str, Any], why: Unreadable) -> bool:
    """A record that nobody can read would hold up the shard for an hour: it goes aside with its reason. One that is
    lost has all that is left of its job in it."""
    body = json.dumps(record, sort_keys=True, default=str)
    letter = letter_about_message(body, why, clock.now())
    job_id = record["dynamodb"].get("Keys", {}).get("pk", {}).get("S", "")
    parts().log.trouble("unreadable_record", reason=why.reason, detail=why.detail, job_id=job_id)
    attributes = {"event_type": letter["event_type"], "reason": why.reason}
    return not parts().own_letters.send([Message(written(letter), attributes, "unreadable")])
