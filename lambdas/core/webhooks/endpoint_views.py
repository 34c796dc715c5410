"""What a tenant sees of its endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.core import times
from lambdas.core.times import Instant
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.registry import Registered


def shown(found: Endpoint, now: Instant, circuit: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An endpoint for its owner. `circuit`: the row of its circuit, {} when it was never called, None to leave out."""
    told: dict[str, Any] = {
        "id": found.id,
        "url": found.url,
        "events": list(found.events),
        "enabled": found.enabled,
        "created_at": times.text(found.created_at),
        "links": _links(found),
    }
    if found.description:
        told["description"] = found.description
    if not found.enabled:
        told["disabled_reason"] = found.disabled_reason
    if circuit is not None:
        told["health"] = _health(circuit, now)
    return told


def _links(found: Endpoint) -> dict[str, str]:
    own = f"/webhooks/{found.id}"
    switches = {"ping": f"{own}/ping", "disable": f"{own}/disable"} if found.enabled else {"enable": f"{own}/enable"}
    return {"self": own, "secret": f"{own}/secret", "rotate": f"{own}/rotate", **switches}


def registered(found: Registered, now: Instant) -> dict[str, Any]:
    return {**shown(found.endpoint, now), "secret": found.secret}


def _health(circuit: Mapping[str, Any], now: Instant) -> dict[str, Any]:
    """What the row of its circuit says; nothing is held against one that was never called."""
    found = circuits.read(circuit)
    told: dict[str, Any] = {"state": found.state(now), "failures": found.failures}
    if found.open_until and now < found.open_until:
        told["until"] = times.text(found.open_until)
    if found.note:
        told["last"] = found.note
    if found.noted_at:
        told["last_at"] = times.text(found.noted_at)
    return told
