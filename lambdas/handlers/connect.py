"""Who may open a connection: the authorizer of `$connect`. Each ticket is taken once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.connections import DynamoTickets
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.contracts import names
from lambdas.core.ports import Unavailable
from lambdas.core.watching.tickets import redeem


@dataclass(frozen=True)
class Parts:
    tickets: DynamoTickets
    log: StepLog


def build(environment: Environment) -> Parts:
    tickets = DynamoTickets(client("dynamodb"), environment.text(names.CONNECTIONS_TABLE))
    return Parts(tickets, StepLog("connect"))


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """A policy for the very route. A store that cannot be reached is raised: the client is answered 500, not 403."""
    own = parts()
    own.log.started(context)
    shown = event.get("queryStringParameters")
    ticket = shown.get("ticket") if isinstance(shown, Mapping) else None
    try:
        grant = redeem(ticket if isinstance(ticket, str) else None, own.tickets, clock.now)
    except Unavailable as trouble:
        own.log.trouble("store_unavailable", detail=str(trouble))
        raise
    route = str(event.get("methodArn", ""))
    if grant is None:
        own.log.notice("refused", reason="no_such_ticket")
        return _policy("Deny", route, "nobody", {})
    own.log.notice("admitted", tenant=grant.tenant, jobs=len(grant.job_ids))
    return _policy("Allow", route, grant.tenant, {"tenant": grant.tenant, "job_ids": json.dumps(grant.job_ids)})


def _policy(effect: str, route: str, principal: str, context: dict[str, str]) -> dict[str, Any]:
    """Format 1.0; values of its context are plain texts.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-lambda-auth.html
    """
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": route}
    return {
        "principalId": principal,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": context,
    }
