"""GET: a job, its result, its timeline, its streamed text, the tenant's list; health and the contract."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import client
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names
from lambdas.contracts.validation import load
from lambdas.core import times, views
from lambdas.core.identity import tenant_of
from lambdas.core.job import Job, UnreadableRecord
from lambdas.core.lookup import is_id, job_in, job_of
from lambdas.core.ports import JobStore, Missing, Results, Unavailable
from lambdas.core.problems import Problem, bad_request, unreadable
from lambdas.core.streaming.ports import Chunks
from lambdas.core.streaming.reading import Look, look, place_of, shown
from lambdas.core.webhooks import timeline
from lambdas.core.webhooks.ports import DeliveryStore

INLINE_RESULT_BYTES = 1_000_000  # a Lambda answers 6 MB at most; larger results are fetched from S3
LINK_S = 300
POLL_S = 0.5
WAIT_MAX_S = 20  # the contract's bound; a deployment may allow less
LISTED = (*names.OPEN, *names.FINAL)


@dataclass(frozen=True)
class Parts:
    store: JobStore
    chunks: Chunks
    deliveries: DeliveryStore
    results: Results
    principals: dict[str, str]
    wait_max_s: int
    log: StepLog
    contract: str


def build(environment: Environment) -> Parts:
    return Parts(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        chunks=DynamoChunks(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        deliveries=DynamoDeliveries(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        results=S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET)),
        principals=environment.principals,
        wait_max_s=environment.number(names.WAIT_MAX_S, WAIT_MAX_S),
        log=StepLog("query"),
        contract=json.dumps(load("openapi.json")),
    )


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    parts().log.started(context)
    route = str(event.get("routeKey", ""))
    if route in OPEN_ROUTES:
        return OPEN_ROUTES[route]()
    tenant = tenant_of(http.authorizer_of(event), parts().principals)
    if isinstance(tenant, Problem):
        return http.problem(tenant)
    try:
        return ROUTES[route](tenant, event)
    except Unavailable as trouble:
        parts().log.trouble("store_unavailable", tenant=tenant, detail=str(trouble))
        return http.problem(
            Problem(503, "unavailable", "The store cannot be read", "Ask again in a moment."), Retry_After="2"
        )
    except UnreadableRecord as broken:
        parts().log.trouble("unreadable_record", tenant=tenant, detail=str(broken))
        return http.problem(unreadable())


def _get_job(tenant: str, event: Mapping[str, Any]) -> dict[str, Any]:
    wait = _wait_of(event)
    if isinstance(wait, Problem):
        return http.problem(wait)
    found = _job_of(tenant, event)
    ends = time.time() + wait
    while isinstance(found, Job) and not found.is_final and time.time() < ends:
        time.sleep(POLL_S)
        found = _job_of(tenant, event)
    return http.problem(found) if isinstance(found, Problem) else http.answer(200, views.job(found))


def _get_result(tenant: str, event: Mapping[str, Any]) -> dict[str, Any]:
    found = _job_of(tenant, event)
    if isinstance(found, Problem):
        return http.problem(found)
    refusal = views.no_result(found)
    if isinstance(refusal, Problem):
        return http.problem(refusal)
    if refusal is not None:
        return http.answer(202, refusal)
    assert found.result_key is not None
    assert found.result_bytes is not None
    if found.result_bytes > INLINE_RESULT_BYTES:
        return http.answer(303, {"job_id": found.id}, Location=parts().results.link(found.result_key, LINK_S))
    try:
        return http.raw(200, parts().results.get(found.result_key).decode())
    except Missing:
        detail = (
            "The result was stored and is no longer there: results are kept as long as the bucket's lifecycle says."
        )
        return http.problem(Problem(410, "result-gone", "The result is gone", detail, job_id=found.id))


def _get_events(tenant: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """The job's own and those of its deliveries, as they were at one moment."""
    job_id = http.path_parameter(event, "id")
    beside = parts().deliveries.beside(job_id) if is_id(job_id) else []
    record = next((one for one in beside if one["sk"] == names.JOB_SK and one.get("tenant") == tenant), None)
    found = job_in(record, job_id) if record else _job_of(tenant, event)  # which says why it is not there
    if isinstance(found, Problem):
        return http.problem(found)
    return http.answer(200, views.timeline(found, timeline.lines(beside)))


def _get_chunks(tenant: str, event: Mapping[str, Any]) -> dict[str, Any]:
    wait = _wait_of(event, "from", "attempt")
    if isinstance(wait, Problem):
        return http.problem(wait)
    place = place_of(event.get("queryStringParameters") or {})
    if isinstance(place, Problem):
        return http.problem(place)
    ends = time.time() + wait
    while True:
        found = _job_of(tenant, event)
        seen = found if isinstance(found, Problem) else look(found, place, parts().chunks)
        if not isinstance(seen, Look):
            return http.problem(seen)
        if seen.is_news or time.time() >= ends:
            return http.answer(200, shown(seen))
        time.sleep(POLL_S)


def _get_jobs(tenant: str, event: Mapping[str, Any]) -> dict[str, Any]:
    page = views.page_of(event.get("queryStringParameters") or {}, LISTED)
    if isinstance(page, Problem):
        return http.problem(page)
    return http.answer(200, views.list_jobs(tenant, page, parts().store))


def _health() -> dict[str, Any]:
    return http.answer(200, {"status": "ok", "time": times.text(clock.now())})


def _openapi() -> dict[str, Any]:
    return http.raw(200, parts().contract)


def _job_of(tenant: str, event: Mapping[str, Any]) -> Job | Problem:
    return job_of(tenant, http.path_parameter(event, "id"), parts().store)


def _wait_of(event: Mapping[str, Any], *others: str) -> int | Problem:
    """Seconds to wait for news; `others`: what else the query may have."""
    query = event.get("queryStringParameters") or {}
    unknown = query.keys() - {"wait", *others}
    if unknown:
        known = ", ".join((*others, "wait"))
        return bad_request(f"unknown query parameter {min(unknown)[:40]!r}; known: {known}")
    wait = views.whole(query.get("wait", "0"), 0, WAIT_MAX_S)
    if wait is None:
        return bad_request(f"wait must be a whole number of seconds from 0 to {WAIT_MAX_S}")
    return min(wait, parts().wait_max_s)


ROUTES: dict[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "GET /jobs": _get_jobs,
    "GET /jobs/{id}": _get_job,
    "GET /jobs/{id}/result": _get_result,
    "GET /jobs/{id}/events": _get_events,
    "GET /jobs/{id}/chunks": _get_chunks,
}
OPEN_ROUTES: dict[str, Callable[[], dict[str, Any]]] = {"GET /health": _health, "GET /openapi.json": _openapi}
