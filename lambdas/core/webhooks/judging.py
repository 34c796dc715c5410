"""What an answer, or its absence, means for its delivery: taken, again and when, or given up."""

from __future__ import annotations

from lambdas.contracts.names import CALLBACK
from lambdas.core.changes import error
from lambdas.core.policy import Draw
from lambdas.core.protocol import Change
from lambdas.core.times import Instant
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import schedule
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits
from lambdas.core.webhooks.ports import Answer, Undelivered
from lambdas.core.webhooks.schedule import Kind

DELIVERED, RETRIED, WAITS = changes.DELIVERED, changes.RETRIED, changes.WAITS
GIVEN_UP = changes.GIVEN_UP  # FAILED, and somebody must look at it
MOOT = "moot"  # FAILED, by its tenant's own doing: the endpoint is gone or disabled, or a test was not taken
OUTLIVED = "outlived"  # somebody else had it by then: what came of this attempt is not written

Came = Answer | Undelivered


def kind_of(came: Came) -> Kind:
    """A name that leads where nothing is sent is as good as one that does not want it: a few more tries."""
    if isinstance(came, Answer):
        return schedule.kind_of(came.status)
    return Kind.REFUSED if came.why == "address" else Kind.AGAIN


def judge(delivery: Delivery, came: Came, *, now: Instant, draw: Draw, limits: DeliveryLimits) -> tuple[Change, str]:
    """The write that says how this attempt ended, and the name of that end."""
    kind = kind_of(came)
    receipt = changes.receipt(came) if isinstance(came, Answer) else {}
    if kind is Kind.DELIVERED:
        return changes.complete(delivery, now=now, receipt=receipt, limits=limits), DELIVERED
    at, why = _next(delivery, kind, came, now, draw), _why(delivery, came)
    if at is None:
        change = changes.fail(delivery, now=now, why=why, limits=limits, receipt=receipt)
        return change, MOOT if delivery.is_ping else GIVEN_UP
    refused, meaning = kind is Kind.REFUSED, kind.value if receipt else ""
    change = changes.retry(
        delivery, now=now, at=at, why=why, refused=refused, limits=limits, receipt=receipt, meaning=meaning
    )
    return change, RETRIED


def _why(delivery: Delivery, came: Came) -> dict[str, str]:
    """What its owner reads of this very delivery: of a callback URL, which is no endpoint, nothing of disabling."""
    if not isinstance(came, Answer):
        return error(f"NO_ANSWER_{came.why.upper()}", came.detail)
    said = f"its endpoint answered {came.status}"
    if schedule.kind_of(came.status) is Kind.GONE:
        said += ": never again" if delivery.signer == CALLBACK else ": never again, and it is disabled"
    return error(f"HTTP_{came.status}", said)


def _next(delivery: Delivery, kind: Kind, came: Came, now: Instant, draw: Draw) -> Instant | None:
    """When to try again; None for never. A test is one try: its human waits for what comes of it."""
    used_up = delivery.tries >= schedule.TRIES_MAX or kind is Kind.GONE or delivery.is_ping
    if used_up or (kind is Kind.REFUSED and delivery.refusals + 1 >= schedule.REFUSALS_MAX):
        return None
    retry_after = came.retry_after if isinstance(came, Answer) else ""
    return schedule.next_try(now, schedule.wait_s(delivery.tries, draw), retry_after, delivery.deadline_at)
