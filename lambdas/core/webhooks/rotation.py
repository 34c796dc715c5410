"""The secrets of a tenant's endpoints, and how one is given another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CALLBACK
from lambdas.core import times
from lambdas.core.problems import Problem
from lambdas.core.times import Instant
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import secrets
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.registry import Registry, body_of, find, masters

LOOKS = 5  # what changes five times while it is changed changes for ever


@dataclass(frozen=True)
class Keys:
    """Its secret, and the one before it while that signs along."""

    endpoint_id: str
    secret: str
    previous: str | None
    previous_until: Instant | None


def _with_secret(tenant: str, endpoint_id: str, registry: Registry) -> tuple[Endpoint, bool] | Problem:
    """An endpoint, or what stands for callbacks, and whether there is a record of it."""
    if endpoint_id != CALLBACK:
        found = find(tenant, endpoint_id, registry)
        return found if isinstance(found, Problem) else (found, True)
    record = registry.store.read(tenant, CALLBACK)
    return endpoints.callback(tenant, record), record is not None


def keys(tenant: str, endpoint_id: str, registry: Registry) -> Keys | Problem:
    """Raises Unavailable, UnreadableRecord."""
    found = _with_secret(tenant, endpoint_id, registry)
    return found if isinstance(found, Problem) else _keys(found[0], registry)


def _keys(found: Endpoint, registry: Registry) -> Keys:
    master = masters(registry)[0]
    made = [secrets.secret(master, found.tenant, found.id, version) for version in found.versions(registry.now())]
    both = len(made) > 1
    return Keys(found.id, made[0], made[1] if both else None, found.previous_until if both else None)


def rotate(tenant: str, endpoint_id: str, raw: bytes, registry: Registry) -> Keys | Problem:
    """Another secret. While the one before it still signs along, a repeat changes nothing: it would end the only secret
    that a receiver knows. `at_once`: the new one signs alone. Raises Unavailable, UnreadableRecord."""
    body = body_of(raw, "RotateRequest")
    if isinstance(body, Problem):
        return body
    at_once = body.get("at_once") is True
    for _ in range(LOOKS):
        found = _with_secret(tenant, endpoint_id, registry)
        if isinstance(found, Problem):
            return found
        standing, is_recorded = found
        if not at_once and len(standing.versions(registry.now())) > 1:
            return _keys(standing, registry)
        turned = endpoints.rotated(standing, registry.now(), at_once=at_once)
        if _save(standing, turned, is_recorded, registry):
            return _keys(turned, registry)
    return Problem(409, "changed-meanwhile", "It was changed meanwhile", "Look at it, and ask again.")


def _save(seen: Endpoint, turned: Endpoint, is_recorded: bool, registry: Registry) -> bool:
    record = endpoints.record_of(turned)
    if not is_recorded:
        return registry.store.create(record)
    fields = {name: record[name] for name in ("secret_version", "previous_until")}
    return registry.store.save(seen.tenant, seen.id, fields, {"secret_version": seen.secret_version})


def told(found: Keys) -> dict[str, Any]:
    """For its owner."""
    before = {}
    if found.previous and found.previous_until:
        before = {"previous": found.previous, "previous_until": times.text(found.previous_until)}
    return {"id": found.endpoint_id, "secret": found.secret, **before}
