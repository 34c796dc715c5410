"""POST /tickets: what a client shows to open a connection on which it watches jobs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.clients import client
from lambdas.adapters.connections import DynamoTickets
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.contracts import names
from lambdas.core.identity import tenant_of
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Unavailable
from lambdas.core.problems import Problem, unreadable
from lambdas.core.watching.tickets import Booth, issue


@dataclass(frozen=True)
class Parts:
    booth: Booth
    principals: dict[str, str]
    log: StepLog


def build(environment: Environment) -> Parts:
    dynamodb = client("dynamodb")
    booth = Booth(
        store=DynamoJobStore(dynamodb, environment.text(names.JOBS_TABLE)),
        tickets=DynamoTickets(dynamodb, environment.text(names.CONNECTIONS_TABLE)),
        url=environment.text(names.WEBSOCKET_URL),
        draw=lambda: secrets.token_urlsafe(32),
        now=clock.now,
    )
    return Parts(booth, environment.principals, StepLog("ticket"))


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    tenant = tenant_of(http.authorizer_of(event), own.principals)
    if isinstance(tenant, Problem):
        return http.problem(tenant)
    try:
        issued = issue(tenant, http.body_of(event), own.booth)
    except Unavailable as trouble:
        own.log.trouble("store_unavailable", tenant=tenant, detail=str(trouble))
        return http.problem(
            Problem(503, "unavailable", "A store cannot be reached", "Ask again in a moment."), Retry_After="2"
        )
    except UnreadableRecord as broken:
        own.log.trouble("unreadable_record", tenant=tenant, detail=str(broken))
        return http.problem(unreadable())
    if isinstance(issued, Problem):
        own.log.notice("refused", tenant=tenant, status=issued.status, reason=issued.kind, job_id=issued.job_id)
        return http.problem(issued)
    own.log.notice("ticket_issued", tenant=tenant, jobs=len(issued.job_ids))
    return http.answer(201, issued.answer)
