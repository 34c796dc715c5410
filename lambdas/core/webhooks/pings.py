"""A test of an endpoint: a delivery like any other, behind which stands no job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lambdas.contracts.names import PING_PK
from lambdas.core import times
from lambdas.core.envelope import SCHEMA, written
from lambdas.core.problems import Problem
from lambdas.core.webhooks import messages
from lambdas.core.webhooks.delivery import new_record, read
from lambdas.core.webhooks.endpoint import PING, Endpoint
from lambdas.core.webhooks.redelivery import Post


def ping(found: Endpoint, post: Post, new_id: Callable[[], str]) -> str | Problem:
    """A delivery without a job, of one try; its event id. `new_id`: 32 hex digits. Raises Unavailable."""
    drawn, now = new_id(), post.now()
    if not found.enabled or not post.endpoints.save(found.tenant, found.id, {"ping": drawn}, {"enabled": True}):
        detail = "It is disabled, or was removed: nothing is delivered to it. Enable it first."
        return Problem(409, "webhook-disabled", "The endpoint is not enabled", detail)
    event_id = _ping_event(drawn)
    body = written(
        {
            "schema": SCHEMA,
            "event_id": event_id,
            "event_type": PING,
            "trace_id": drawn,
            "run_id": PING_PK + drawn,
            "step_index": 0,
            "idempotency_key": event_id,
            "tenant_id": found.tenant,
            "timestamp": times.text(now),
            "payload": {"endpoint": found.id, "sequence": 0},
        }
    )
    post.deliveries.create(
        new_record(
            pk=PING_PK + drawn,
            tenant=found.tenant,
            endpoint=found.id,
            event_type=PING,
            event_id=event_id,
            sequence=0,
            body=body,
            now=now,
            limits=post.limits,
            registration=found.registration,
        )
    )
    return event_id


def last_ping(found: Endpoint, post: Post) -> dict[str, Any]:
    """What became of it, as a field of the endpoint's view; nothing when none was sent, or it is long ago. Raises
    Unavailable, UnreadableRecord."""
    if not found.ping:
        return {}
    event_id = _ping_event(found.ping)
    record = post.deliveries.read(messages.key(PING_PK + found.ping, found.id, event_id))
    if record is None or record.get("tenant") != found.tenant:
        return {}
    delivery = read(record)
    shown: dict[str, Any] = {"event_id": event_id, "status": delivery.status}
    if delivery.error:
        shown["error"] = dict(delivery.error)
    return {"ping": shown}


def _ping_event(drawn: str) -> str:
    return f"ping.{drawn}"
