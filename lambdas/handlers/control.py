"""POST cancel, POST retry, DELETE: what a tenant does with a job of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.s3 import S3Objects, S3Uploads
from lambdas.contracts import names
from lambdas.core import views
from lambdas.core.identity import tenant_of
from lambdas.core.job import UnreadableRecord
from lambdas.core.lifecycle import Cancelled, Deleted, Office, Reopened, cancel, delete, no_parameters, retry
from lambdas.core.ports import Unavailable
from lambdas.core.problems import Problem, unreadable

Outcome = Cancelled | Reopened | Deleted | Problem


@dataclass(frozen=True)
class Parts:
    office: Office
    principals: dict[str, str]
    log: StepLog


def build(environment: Environment) -> Parts:
    s3 = client("s3")
    office = Office(
        store=DynamoJobStore(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        inputs=S3Objects(s3, environment.text(names.INPUTS_BUCKET)),
        results=S3Objects(s3, environment.text(names.RESULTS_BUCKET)),
        uploads=S3Uploads(s3, environment.text(names.UPLOADS_BUCKET)),
        chunks=DynamoChunks(client("dynamodb"), environment.text(names.JOBS_TABLE)),
        limits=environment.limits,
        now=clock.now,
    )
    return Parts(office, environment.principals, StepLog("control"))


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    parts().log.started(context)
    tenant = tenant_of(http.authorizer_of(event), parts().principals)
    if isinstance(tenant, Problem):
        return http.problem(tenant)
    job_id = http.path_parameter(event, "id")
    try:
        return _answer(ROUTES[str(event.get("routeKey", ""))](tenant, job_id, event), tenant)
    except Unavailable as trouble:
        parts().log.trouble("store_unavailable", tenant=tenant, job_id=job_id, detail=str(trouble))
        detail = "It may have happened all the same. To ask for it once more is harmless."
        return http.problem(Problem(503, "unavailable", "A store cannot be reached", detail), Retry_After="2")
    except UnreadableRecord as broken:
        parts().log.trouble("unreadable_record", tenant=tenant, job_id=job_id, detail=str(broken))
        return http.problem(unreadable())


def _cancel(tenant: str, job_id: str, event: Mapping[str, Any]) -> Outcome:
    return no_parameters(http.body_of(event)) or cancel(tenant, job_id, parts().office)


def _retry(tenant: str, job_id: str, event: Mapping[str, Any]) -> Outcome:
    return no_parameters(http.body_of(event)) or retry(tenant, job_id, parts().office)


def _delete(tenant: str, job_id: str, _event: Mapping[str, Any]) -> Outcome:
    return delete(tenant, job_id, parts().office)


def _answer(outcome: Outcome, tenant: str) -> dict[str, Any]:
    log = parts().log
    match outcome:
        case Cancelled(job):
            log.notice("cancelled", job=job)
            return http.answer(202, views.changed(job))
        case Reopened(job):
            log.notice("reopened", job=job)
            return http.answer(202, views.changed(job))
        case Deleted(job_id, attempt):
            log.notice("deleted", tenant=tenant, job_id=job_id, attempt=attempt)
            return http.nothing(204)
        case Problem() as problem:
            log.notice("refused", tenant=tenant, status=problem.status, reason=problem.kind, job_id=problem.job_id)
            return http.problem(problem)


ROUTES: dict[str, Callable[[str, str, Mapping[str, Any]], Outcome]] = {
    "POST /jobs/{id}/cancel": _cancel,
    "POST /jobs/{id}/retry": _retry,
    "DELETE /jobs/{id}": _delete,
}
