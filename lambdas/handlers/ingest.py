"""The inbox: events of declared sources and uploads become jobs, or dead letters that say why they did not."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.log import StepLog
from lambdas.adapters.queue_events import records_of
from lambdas.adapters.s3 import S3Objects, S3Uploads
from lambdas.adapters.secrets import SecretsManager
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core import times
from lambdas.core.inbox.ingest import Ingest, ingest
from lambdas.core.inbox.message import Incoming
from lambdas.core.inbox.uploads import Yard
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.intake import Door
from lambdas.core.ports import Unavailable
from lambdas.tasks import job_types

ENOUGH_MS = 8_000  # two stores that stay silent take less; a message that is not begun is not half settled


@dataclass(frozen=True)
class Parts:
    ingest: Ingest
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("ingest")
    checks, broken = job_types()
    for type_, why in broken.items():
        log.trouble("broken_task", type=type_, detail=why)
    dynamodb, s3 = client("dynamodb", door=True), client("s3", door=True)
    bucket = environment.text(names.UPLOADS_BUCKET)
    door = Door(
        store=DynamoJobStore(dynamodb, environment.text(names.JOBS_TABLE)),
        inputs=S3Objects(s3, environment.text(names.INPUTS_BUCKET)),
        types=checks,
        limits=environment.limits,
        now=clock.now,
        new_id=lambda: uuid.uuid4().hex,
    )
    reception = Reception(
        door=door,
        sources=environment.sources,
        secrets=SecretsManager(lambda: client("secretsmanager", door=True)),
        reviews=DynamoLedger(dynamodb, environment.text(names.JOBS_TABLE)),
    )
    letters = SqsQueue(client("sqs", door=True), environment.text(names.INBOX_DLQ_URL))
    return Parts(Ingest(reception, Yard(door, S3Uploads(s3, bucket), bucket), letters), log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    failed = [record["messageId"] for record in records_of(event) if not _is_settled(record, own, context)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _is_settled(record: Mapping[str, Any], own: Parts, context: Any) -> bool:
    """False when SQS shall keep it. What one message does, its batch-mates do not feel."""
    own.log.about_message(record["messageId"])
    if context.get_remaining_time_in_millis() < ENOUGH_MS:
        own.log.trouble("left_on_the_queue", detail="no time left")
        return False
    try:
        ingest(_incoming(record), own.ingest, own.log.notice)
    except Unavailable as trouble:
        own.log.trouble("left_on_the_queue", detail=str(trouble))
        return False
    except Exception:
        own.log.crashed("ingest_error")
        return False
    return True


def _incoming(record: Mapping[str, Any]) -> Incoming:
    attributes = record.get("messageAttributes") or {}
    return Incoming(
        body=record["body"],
        attributes={name: one["stringValue"] for name, one in attributes.items() if one.get("stringValue")},
        sent_at=times.of_milliseconds(int(record["attributes"]["SentTimestamp"])),
    )
