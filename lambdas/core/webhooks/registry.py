"""What a tenant does with its endpoints: registers them, looks at them, switches them off and on, removes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lambdas.contracts.names import CALLBACK
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import body_check
from lambdas.core.ports import Now, Secrets, Unavailable
from lambdas.core.problems import Problem, bad_request, unprocessable
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import secrets, urls
from lambdas.core.webhooks.endpoint import ENDPOINTS_MAX, EVENTS, Endpoint
from lambdas.core.webhooks.ports import EndpointStore

SECRET_AGE_S = 300.0  # the master secret is read again after that: so long a change of it takes to be everywhere
BY_THE_TENANT = "by the tenant"


class Endpoints(EndpointStore, Protocol):
    """The store, and what is known of how they are doing."""

    def circuit(self, tenant: str, endpoint_id: str) -> Mapping[str, Any]:
        """The row of its circuit, {} when it was never called. Raises Unavailable."""


@dataclass(frozen=True)
class Registry:
    """What these requests are carried out with. `master`: the name of the secret that all others are made of; `local`:
    receivers may be on this machine, without TLS."""

    store: Endpoints
    secrets: Secrets
    master: str
    now: Now
    local: bool = False


@dataclass(frozen=True)
class Registered:
    """There it is, now or before. `secret`: what its deliveries are signed with."""

    endpoint: Endpoint
    secret: str


def not_found() -> Problem:
    return Problem(404, "no-such-webhook", "No such endpoint", "There is no endpoint with this id for this tenant.")


def body_of(raw: bytes, schema: str) -> dict[str, Any] | Problem:
    """The body that this schema of the contract describes; an empty one is `{}`."""
    try:
        found = parse(raw) if raw.strip() else {}
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    wrong = body_check(schema)(found)
    if wrong:
        return bad_request(wrong.detail, wrong.pointer)
    return dict(found)


def no_parameters(raw: bytes) -> Problem | None:
    """What is wrong with the body of a request that takes none: empty, or `{}`."""
    found = body_of(raw, "NoParameters")
    return found if isinstance(found, Problem) else None


def register(tenant: str, raw: bytes, registry: Registry) -> Registered | Problem:
    """A repeat finds what it has registered, under an id made of the URL, and changes nothing.

    Raises Unavailable, UnreadableRecord."""
    body = body_of(raw, "WebhookRequest")
    if isinstance(body, Problem):
        return body
    found = urls.read(body["url"], local=registry.local)
    if isinstance(found, urls.UnusableUrl):
        return unprocessable(f"Nothing can be delivered to this URL: {found.reason}.", "/url")
    asked = tuple(event for event in EVENTS if event in body.get("events", EVENTS))
    wanted = endpoints.new(tenant, found.url, events=asked, description=body.get("description", ""), now=registry.now())
    return _put(wanted, registry)


def _put(wanted: Endpoint, registry: Registry) -> Registered | Problem:
    standing = registry.store.read(wanted.tenant, wanted.id)
    if standing is None:
        if len(listed(wanted.tenant, registry)) >= ENDPOINTS_MAX:
            return _too_many()
        if registry.store.create(endpoints.record_of(wanted)):
            return _counted(wanted, registry)
        standing = registry.store.read(wanted.tenant, wanted.id)
    if standing is None:
        raise Unavailable(f"registering {wanted.id}: removed at the same moment", unknown=False)
    found = endpoints.read(standing)
    if (found.events, found.description) != (wanted.events, wanted.description):
        detail = f"This URL is the endpoint {found.id} already, with other events or another description: remove that."
        return Problem(409, "webhook-exists", "This URL is registered otherwise", detail, "/url")
    return _registration(found, registry)


def _counted(created: Endpoint, registry: Registry) -> Registered | Problem:
    """Many at once have each seen room for one: whoever finds too many takes its own back."""
    if len(listed(created.tenant, registry)) > ENDPOINTS_MAX:
        registry.store.remove(created.tenant, created.id)
        return _too_many()
    return _registration(created, registry)


def _too_many() -> Problem:
    detail = f"A tenant has {ENDPOINTS_MAX} endpoints at most: remove one, or let one receiver take what others need."
    return Problem(409, "too-many-webhooks", "There are too many endpoints", detail)


def _registration(found: Endpoint, registry: Registry) -> Registered:
    return Registered(found, secrets.current(masters(registry), found))


def masters(registry: Registry) -> tuple[str, ...]:
    """What every secret is made of: several while it is changed, the one that counts first. Raises Unavailable."""
    return registry.secrets.read(registry.master, SECRET_AGE_S)


def listed(tenant: str, registry: Registry) -> list[Endpoint]:
    """All of a tenant's endpoints. Raises Unavailable, UnreadableRecord."""
    found = [endpoints.read(record) for record in registry.store.of_tenant(tenant)]
    return [one for one in found if one.id != CALLBACK]


def find(tenant: str, endpoint_id: str, registry: Registry) -> Endpoint | Problem:
    """The tenant's own endpoint. Raises Unavailable, UnreadableRecord."""
    if not 0 < len(endpoint_id) <= 128 or endpoint_id == CALLBACK:
        return not_found()
    record = registry.store.read(tenant, endpoint_id)
    return not_found() if record is None else endpoints.read(record)


def switch(tenant: str, endpoint_id: str, registry: Registry, *, on: bool) -> Endpoint | Problem:
    """Enabled or disabled, now or before. Raises Unavailable, UnreadableRecord."""
    found = find(tenant, endpoint_id, registry)
    if isinstance(found, Problem) or found.enabled == on:
        return found
    fields = endpoints.enabled() if on else endpoints.disabled(BY_THE_TENANT)
    if not registry.store.save(tenant, endpoint_id, fields, {"id": endpoint_id}):
        return not_found()  # removed meanwhile
    return replace(found, enabled=on, disabled_reason=str(fields["disabled_reason"]))


def remove(tenant: str, endpoint_id: str, registry: Registry) -> Problem | None:
    """Raises Unavailable, UnreadableRecord."""
    found = find(tenant, endpoint_id, registry)
    if isinstance(found, Problem):
        return found
    registry.store.remove(tenant, endpoint_id)
    return None
