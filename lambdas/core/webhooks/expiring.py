"""Gives up a delivery that is used up or past its deadline, in the name of a message or of the sweep: row 7."""

from __future__ import annotations

from lambdas.core.ports import Notice, Refused
from lambdas.core.times import Instant
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, correlation
from lambdas.core.webhooks.judging import GIVEN_UP, MOOT, OUTLIVED
from lambdas.core.webhooks.ports import DeliveryStore


def expire(found: Delivery, *, now: Instant, store: DeliveryStore, limits: DeliveryLimits, notice: Notice) -> str:
    """What it came to. Raises Unavailable."""
    if isinstance(store.apply(found.key, changes.expire(found, now=now, limits=limits)), Refused):
        return OUTLIVED
    how = MOOT if found.is_ping else GIVEN_UP
    notice(how, **correlation(found), tries=found.tries)
    return how
