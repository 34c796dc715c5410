"""POST /jobs: an event becomes a durable record, and only then a 202."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names
from lambdas.core import views
from lambdas.core.identity import tenant_of
from lambdas.core.intake import Accepted, Door, Submission, accept
from lambdas.core.problems import Problem
from lambdas.tasks import types


@dataclass(frozen=True)
class Parts:
    door: Door
    principals: dict[str, str]
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("accept")
    checks, broken = types()
    for type_, why in broken.items():
        log.trouble("broken_task", type=type_, detail=why)
    door = Door(
        store=DynamoJobStore(client("dynamodb", door=True), environment.text(names.JOBS_TABLE)),
        inputs=S3Objects(client("s3", door=True), environment.text(names.INPUTS_BUCKET)),
        types=checks,
        limits=environment.limits,
        now=clock.now,
        new_id=lambda: uuid.uuid4().hex,
    )
    return Parts(door, environment.principals, log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    door, log = parts().door, parts().log
    log.started(context)
    tenant = tenant_of(http.authorizer_of(event), parts().principals)
    if isinstance(tenant, Problem):
        return _refused(tenant, log)
    submission = Submission(
        tenant=tenant,
        body=http.body_of(event),
        key=http.header(event, "idempotency-key"),
        traceparent=http.header(event, "traceparent"),
    )
    match accept(submission, door):
        case Accepted() as accepted:
            log.notice(
                "accepted", job_id=accepted.job_id, tenant=accepted.tenant, trace_id=accepted.trace_id,
                type=accepted.type, attempt=0, new=accepted.new,
            )  # fmt: skip
            return http.answer(202, views.accepted(accepted.job_id), Location=f"/jobs/{accepted.job_id}")
        case Problem() as problem:
            return _refused(problem, log, tenant)


def _refused(problem: Problem, log: StepLog, tenant: str = "") -> dict[str, Any]:
    say = log.trouble if problem.status >= 500 else log.notice
    say(
        "refused",
        tenant=tenant,
        status=problem.status,
        reason=problem.kind,
        job_id=problem.job_id,
        detail=problem.cause,
    )
    headers = {"Retry_After": "2"} if problem.status == 503 else {}
    return http.problem(problem, **headers)
