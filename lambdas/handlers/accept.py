"""What clients send: jobs, the wish to upload, and events of sources whose bytes must come through as they are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.s3 import S3Objects, S3Uploads
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.contracts.sources import Source
from lambdas.core import views
from lambdas.core.identity import tenant_of
from lambdas.core.inbox import binary_events
from lambdas.core.inbox.upload_forms import Counter, offer
from lambdas.core.intake import Accepted, Door, Submission, accept
from lambdas.core.problems import Problem
from lambdas.tasks import job_types

EVENTS = "POST /events/"


@dataclass(frozen=True)
class Parts:
    door: Door
    counter: Counter
    sources: Mapping[str, Source]
    inbox: SqsQueue | None
    principals: dict[str, str]
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("accept")
    checks, broken = job_types()
    for type_, why in broken.items():
        log.trouble("broken_task", type=type_, detail=why)
    limits, s3 = environment.limits, client("s3", door=True)
    door = Door(
        store=DynamoJobStore(client("dynamodb", door=True), environment.text(names.JOBS_TABLE)),
        inputs=S3Objects(s3, environment.text(names.INPUTS_BUCKET)),
        types=checks,
        limits=limits,
        now=clock.now,
        new_id=_new_id,
        local=environment.has(names.LOCAL),
    )
    uploads = S3Uploads(s3, environment.text(names.UPLOADS_BUCKET))
    inbox = None
    if environment.has(names.INBOX_QUEUE_URL):  # only where a source is binary
        inbox = SqsQueue(client("sqs", door=True), environment.text(names.INBOX_QUEUE_URL))
    counter = Counter(forms=uploads, types=checks, limits=limits, now=clock.now, new_id=_new_id)
    return Parts(door, counter, environment.sources, inbox, environment.principals, log)


def _new_id() -> str:
    return uuid.uuid4().hex


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own, route = parts(), str(event.get("routeKey", ""))
    own.log.started(context)
    if route.startswith(EVENTS):
        return _event(route.removeprefix(EVENTS), event, own)
    tenant = tenant_of(http.authorizer_of(event), own.principals)
    if isinstance(tenant, Problem):
        return _refused(tenant, own.log)
    return _upload(tenant, event, own) if route == "POST /uploads" else _job(tenant, event, own)


def _job(tenant: str, event: Mapping[str, Any], own: Parts) -> dict[str, Any]:
    submission = Submission(
        tenant=tenant,
        body=http.body_of(event),
        key=http.header(event, "idempotency-key"),
        traceparent=http.header(event, "traceparent"),
    )
    match accept(submission, own.door):
        case Accepted() as accepted:
            own.log.notice(
                "accepted", job_id=accepted.job_id, tenant=accepted.tenant, trace_id=accepted.trace_id,
                type=accepted.type, attempt=0, new=accepted.new,
            )  # fmt: skip
            return http.answer(202, views.accepted(accepted.job_id), Location=f"/jobs/{accepted.job_id}")
        case Problem() as problem:
            return _refused(problem, own.log, tenant)


def _upload(tenant: str, event: Mapping[str, Any], own: Parts) -> dict[str, Any]:
    offered = offer(tenant, http.body_of(event), own.counter)
    if isinstance(offered, Problem):
        return _refused(offered, own.log, tenant)
    own.log.notice("upload_offered", job_id=offered["job_id"], tenant=tenant)
    return http.answer(201, offered, Location=offered["links"]["self"])


def _event(name: str, event: Mapping[str, Any], own: Parts) -> dict[str, Any]:
    """Nobody is known yet: who sent it is proved behind the queue, by its signature."""
    source, context = own.sources.get(name), event.get("requestContext") or {}
    if source is None or own.inbox is None:
        return _refused(Problem(404, "no-such-source", "No such source", "This deployment does not know it."), own.log)
    request = binary_events.Request(
        body=http.body_of(event),
        header=lambda header: http.header(event, header),
        request_id=str(context.get("requestId", "")),
        received_ms=int(context.get("timeEpoch", 0)),
    )
    message = binary_events.message(name, source, request)
    if not isinstance(message, Problem) and own.inbox.send([message]):
        message = Problem(503, "not-accepted", "The event was not accepted", "Send it again.", cause="SQS refused it")
    if isinstance(message, Problem):
        return _refused(message, own.log, source.tenant)
    own.log.notice("passed_on", source=name, tenant=source.tenant)
    return http.answer(202, {"request_id": request.request_id})


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
