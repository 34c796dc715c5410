"""The stream of the Jobs table, once more: who watches a job is sent what is new of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import client
from lambdas.adapters.connections import DynamoConnections
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.push import ApiGatewayPostman, at_once, management_client
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Unavailable
from lambdas.core.watching.serving import Relay, serve


@dataclass(frozen=True)
class Parts:
    relay: Relay
    log: StepLog


def build(environment: Environment) -> Parts:
    log, dynamodb = StepLog("push"), client("dynamodb")
    relay = Relay(
        store=DynamoJobStore(dynamodb, environment.text(names.JOBS_TABLE)),
        chunks=DynamoChunks(dynamodb, environment.text(names.JOBS_TABLE)),
        results=S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET)),
        connections=DynamoConnections(dynamodb, environment.text(names.CONNECTIONS_TABLE)),
        postman=ApiGatewayPostman(management_client()),
        notice=log.notice,
        together=at_once,
    )
    return Parts(relay, log)


parts = on_start(build)


class NoStreamEvent(ValueError):
    """Something other than a DynamoDB stream invoked it."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Records are hints: what is sent comes from the tables, as they are now. Only a table that cannot be reached
    fails, and with it the records of that job alone."""
    own = parts()
    own.log.started(context)
    failed: list[str] = []
    for job_id, numbers in _hints(event).items():
        try:
            serve(own.relay.connections.watchers_of(job_id), own.relay)
        except Unavailable as trouble:
            own.log.trouble("store_unavailable", job_id=job_id, detail=str(trouble))
            failed += numbers
        except UnreadableRecord as broken:  # it stays as it is, however often we look
            own.log.trouble("unreadable_record", job_id=job_id, detail=str(broken))
        except Exception:  # nor must anything else about one job keep the others' text back
            own.log.crashed("push_error", job_id=job_id)
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


def _hints(event: Mapping[str, Any]) -> dict[str, list[str]]:
    """The sequence numbers of each job's records, in their order."""
    records = event.get("Records")
    if not isinstance(records, list) or not records:
        raise NoStreamEvent("expected the Records of a DynamoDB stream")
    found: dict[str, list[str]] = {}
    for record in records:
        changed = record.get("dynamodb") or {}
        job_id = changed.get("Keys", {}).get("pk", {}).get("S")
        if job_id:
            found.setdefault(job_id, []).append(changed.get("SequenceNumber", ""))
    return found
