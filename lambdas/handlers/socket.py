"""What comes over the WebSocket API: connections that open and close, and what their clients ask for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import client
from lambdas.adapters.connections import DynamoConnections
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.push import ApiGatewayPostman, at_once, management_client
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names
from lambdas.core.ports import Unavailable
from lambdas.core.watching.conversation import Switchboard, closed, heard, opened
from lambdas.core.watching.ports import Grant
from lambdas.core.watching.serving import Relay


@dataclass(frozen=True)
class Parts:
    board: Switchboard
    log: StepLog


def build(environment: Environment) -> Parts:
    log, dynamodb = StepLog("socket"), client("dynamodb")
    relay = Relay(
        store=DynamoJobStore(dynamodb, environment.text(names.JOBS_TABLE)),
        chunks=DynamoChunks(dynamodb, environment.text(names.JOBS_TABLE)),
        results=S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET)),
        connections=DynamoConnections(dynamodb, environment.text(names.CONNECTIONS_TABLE)),
        postman=ApiGatewayPostman(management_client()),
        notice=log.notice,
        together=at_once,
    )
    return Parts(Switchboard(relay, clock.now, lambda: uuid.uuid4().hex), log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What is answered here reaches nobody but at `$connect`: without a 200 there is no connection."""
    own = parts()
    own.log.started(context)
    about = event["requestContext"]
    connection_id = str(about["connectionId"])
    try:
        match about["eventType"]:  # not the route: a client chooses that by what it writes into `action`
            case "CONNECT":
                grant = _grant(about.get("authorizer") or {})
                opened(connection_id, grant, own.board)
                own.log.notice("connected", tenant=grant.tenant, jobs=len(grant.job_ids))
            case "DISCONNECT":
                closed(connection_id, own.board)
                own.log.notice("disconnected")
            case _:
                heard(connection_id, http.body_of(event), own.board)
    except Unavailable as trouble:
        own.log.trouble("store_unavailable", detail=str(trouble))
        return {"statusCode": 503}
    return {"statusCode": 200}


def _grant(authorizer: Mapping[str, Any]) -> Grant:
    """As `connect` has written it into the context of its policy."""
    return Grant(str(authorizer["tenant"]), tuple(json.loads(authorizer["job_ids"])))
