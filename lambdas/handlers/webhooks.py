"""A tenant's endpoints: registered, looked at, tested, given other secrets, switched, removed; and deliveries that are
wanted once more."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.clients import client
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.endpoints import DynamoEndpoints
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.secrets import SecretsManager
from lambdas.contracts import names
from lambdas.core.identity import tenant_of
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Unavailable
from lambdas.core.problems import Problem, unreadable
from lambdas.core.webhooks import endpoint_views as views
from lambdas.core.webhooks import pings, redelivery, registry, rotation
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.redelivery import Post
from lambdas.core.webhooks.registry import Registered, Registry
from lambdas.core.webhooks.rotation import Keys

Answer = dict[str, Any]
Act = Callable[[str, str, bytes], Answer | Problem]


@dataclass(frozen=True)
class Parts:
    registry: Registry
    post: Post
    principals: dict[str, str]
    log: StepLog


def build(environment: Environment) -> Parts:
    log, table, dynamodb = StepLog("webhooks"), environment.text(names.JOBS_TABLE), client("dynamodb")
    endpoints = DynamoEndpoints(dynamodb, table)
    desk = Registry(
        store=endpoints,
        secrets=SecretsManager(lambda: client("secretsmanager")),
        master=environment.text(names.WEBHOOK_SECRET),
        now=clock.now,
        local=environment.has(names.LOCAL),
    )
    post = Post(
        jobs=DynamoJobStore(dynamodb, table),
        deliveries=DynamoDeliveries(dynamodb, table),
        endpoints=endpoints,
        limits=environment.delivery_limits,
        now=clock.now,
        notice=log.notice,
        local=environment.has(names.LOCAL),
    )
    return Parts(desk, post, environment.principals, log)


def _new_id() -> str:
    return uuid.uuid4().hex


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> Answer:
    own = parts()
    own.log.started(context)
    tenant = tenant_of(http.authorizer_of(event), own.principals)
    if isinstance(tenant, Problem):
        return http.problem(tenant)
    route, about = str(event.get("routeKey", "")), http.path_parameter(event, "id")
    try:
        return _answer(ROUTES[route](tenant, about, http.body_of(event)), route, tenant, about)
    except Unavailable as trouble:
        own.log.trouble("store_unavailable", tenant=tenant, detail=str(trouble))
        detail = "It may have happened all the same. To ask for it once more is harmless."
        return http.problem(Problem(503, "unavailable", "A store cannot be reached", detail), Retry_After="2")
    except UnreadableRecord as broken:
        own.log.trouble("unreadable_record", tenant=tenant, detail=str(broken))
        return http.problem(unreadable())


def _answer(outcome: Answer | Problem, route: str, tenant: str, about: str) -> Answer:
    """Logged with what was asked for; URLs and secrets stay out of it."""
    if isinstance(outcome, Problem):
        parts().log.notice("refused", tenant=tenant, status=outcome.status, reason=outcome.kind, route=route)
        return http.problem(outcome)
    if not route.startswith("GET "):
        parts().log.notice("done", tenant=tenant, status=outcome["statusCode"], route=route, about=about)
    return outcome


def _register(tenant: str, _id: str, raw: bytes) -> Answer | Problem:
    found = registry.register(tenant, raw, parts().registry)
    if isinstance(found, Registered):
        told = views.registered(found, clock.now())
        return http.answer(201, told, Location=told["links"]["self"])
    return found


def _list(tenant: str, _id: str, _raw: bytes) -> Answer | Problem:
    own = parts().registry
    found = registry.listed(tenant, own)
    told = [views.shown(one, clock.now(), own.store.circuit(tenant, one.id)) for one in found]
    return http.answer(200, {"webhooks": told})


def _get(tenant: str, endpoint_id: str, _raw: bytes) -> Answer | Problem:
    found = registry.find(tenant, endpoint_id, parts().registry)
    return found if isinstance(found, Problem) else http.answer(200, _shown(found))


def _shown(found: Endpoint) -> dict[str, Any]:
    own = parts()
    return {
        **views.shown(found, clock.now(), own.registry.store.circuit(found.tenant, found.id)),
        **pings.last_ping(found, own.post),
    }


def _secret(tenant: str, endpoint_id: str, _raw: bytes) -> Answer | Problem:
    return _keys(rotation.keys(tenant, endpoint_id, parts().registry))


def _rotate(tenant: str, endpoint_id: str, raw: bytes) -> Answer | Problem:
    return _keys(rotation.rotate(tenant, endpoint_id, raw, parts().registry))


def _keys(found: Keys | Problem) -> Answer | Problem:
    return found if isinstance(found, Problem) else http.answer(200, rotation.told(found))


def _switch(*, on: bool) -> Act:
    def act(tenant: str, endpoint_id: str, raw: bytes) -> Answer | Problem:
        found = registry.no_parameters(raw) or registry.switch(tenant, endpoint_id, parts().registry, on=on)
        return found if isinstance(found, Problem) else http.answer(200, _shown(found))

    return act


def _remove(tenant: str, endpoint_id: str, _raw: bytes) -> Answer | Problem:
    return registry.remove(tenant, endpoint_id, parts().registry) or http.nothing(204)


def _ping(tenant: str, endpoint_id: str, raw: bytes) -> Answer | Problem:
    refused = registry.no_parameters(raw)
    found = refused or registry.find(tenant, endpoint_id, parts().registry)
    if isinstance(found, Problem):
        return found
    event_id = pings.ping(found, parts().post, _new_id)
    if isinstance(event_id, Problem):
        return event_id
    links = {"self": f"/webhooks/{found.id}"}
    return http.answer(202, {"id": found.id, "event_id": event_id, "links": links})


def _redeliver(tenant: str, job_id: str, raw: bytes) -> Answer | Problem:
    found = redelivery.redeliver(tenant, job_id, raw, parts().post)
    return found if isinstance(found, Problem) else http.answer(202, redelivery.told(found))


ROUTES: Mapping[str, Act] = {
    "POST /webhooks": _register,
    "GET /webhooks": _list,
    "GET /webhooks/{id}": _get,
    "DELETE /webhooks/{id}": _remove,
    "GET /webhooks/{id}/secret": _secret,
    "POST /webhooks/{id}/rotate": _rotate,
    "POST /webhooks/{id}/disable": _switch(on=False),
    "POST /webhooks/{id}/enable": _switch(on=True),
    "POST /webhooks/{id}/ping": _ping,
    "POST /jobs/{id}/redeliver": _redeliver,
}
