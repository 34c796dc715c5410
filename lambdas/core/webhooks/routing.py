"""Who must hear of a delivery's state: deliver, that it may be tried. For the dispatcher and for the sweep."""

from __future__ import annotations

from collections.abc import Sequence

from lambdas.contracts.names import PENDING
from lambdas.core import times
from lambdas.core.envelope import SCHEMA, written
from lambdas.core.ports import Message, Notice, Sender
from lambdas.core.routing import delay_s
from lambdas.core.times import Instant
from lambdas.core.webhooks import messages
from lambdas.core.webhooks.delivery import Delivery, correlation


def hint(delivery: Delivery, now: Instant) -> Message | None:
    """None for one that is not to be tried, and for waits that SQS cannot hold back: the sweep sends then."""
    delay = delay_s(delivery.not_before, now)
    if delivery.status != PENDING or delay is None:
        return None
    fact = f"{delivery.event_id}.{delivery.endpoint}.{delivery.attempt}"
    body = {
        "schema": SCHEMA,
        "event_id": fact,
        "event_type": messages.DISPATCHED,
        "trace_id": "",
        "run_id": delivery.pk,
        "step_index": delivery.attempt,
        "idempotency_key": fact,
        "tenant_id": delivery.tenant,
        "timestamp": times.text(now),
        "payload": {
            "endpoint": delivery.endpoint,
            "event_id": delivery.event_id,
            "attempt": delivery.attempt,
            "crashes": delivery.crashes,
        },
    }
    attributes = {
        "event_type": messages.DISPATCHED,
        "job_id": delivery.pk,
        "tenant": delivery.tenant,
        "endpoint": delivery.endpoint,
        "attempt": str(delivery.attempt),
    }
    return Message(written(body), attributes, delivery.tenant, delay)


def send(deliveries: Sequence[Delivery], *, now: Instant, queue: Sender, notice: Notice) -> set[int]:
    """A hint for each that is to be tried. Positions of those whose hint was not taken: they stay due."""
    hints = [(position, message) for position, one in enumerate(deliveries) if (message := hint(one, now)) is not None]
    if not hints:
        return set()
    refused = {hints[index][0] for index in queue.send([message for _, message in hints])}
    for position, message in hints:
        step = "not_sent" if position in refused else "dispatched"
        notice(step, **correlation(deliveries[position]), delay_s=message.delay_s)
    return refused
