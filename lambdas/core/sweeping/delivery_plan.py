"""What a delivery that was found due needs: row 15, for a delivery."""

from __future__ import annotations

from dataclasses import dataclass

from lambdas.contracts.names import PROCESSING
from lambdas.core.sweeping.plan import LONG_WAIT_S, SEND_AGAIN_MIN_S, Leave, Look, Reap
from lambdas.core.times import Instant, after, seconds_between
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits
from lambdas.core.webhooks.schedule import TRIES_MAX


@dataclass(frozen=True)
class GiveUp:
    """Used up, or past its deadline, and in nobody's hands."""


@dataclass(frozen=True)
class SendAgain:
    """Claimable and perhaps without a hint. Sent first, pushed to `due_at` then: a crash in between repeats a hint.

    `left_to_us`: a wait that no message can hold back, so that nobody else was to send. `urgent`: that, or waiting for
    an hour."""

    delivery: Delivery
    due_at: Instant
    urgent: bool
    left_to_us: bool


Plan = Reap | GiveUp | Look | SendAgain | Leave


def plan(delivery: Delivery, now: Instant, limits: DeliveryLimits) -> Plan:
    """What it needs, by its record."""
    if delivery.is_final:
        return Leave()
    held = delivery.status == PROCESSING and delivery.lease_until is not None and delivery.lease_until >= now
    if not held and (delivery.deadline_at <= now or delivery.tries >= TRIES_MAX):
        return GiveUp()
    if delivery.status == PROCESSING and not held:
        return Reap(changes.reap(delivery, now=now, limits=limits))
    next_need = delivery.lease_until if held else delivery.not_before
    if next_need is not None and next_need > now:
        beyond = seconds_between(now, next_need) > limits.limits.sweep_period_s
        return Look(changes.push_due(delivery, next_need)) if beyond else Leave()
    return Leave() if held else _send_again(delivery, now)


def _send_again(delivery: Delivery, now: Instant) -> SendAgain:
    age = seconds_between(delivery.not_before, now)
    left_to_us = delivery.due_at == delivery.not_before
    return SendAgain(delivery, after(now, max(SEND_AGAIN_MIN_S, age)), left_to_us or age >= LONG_WAIT_S, left_to_us)
