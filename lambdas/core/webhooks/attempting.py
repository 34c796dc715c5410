"""From a hint to a held delivery, or to what becomes of the hint: rows 3, 3a and 5u of the protocol."""

from __future__ import annotations

from contextlib import suppress

from lambdas.contracts.names import PENDING, PROCESSING
from lambdas.core.batch import Done, Early
from lambdas.core.policy import SKEW_S
from lambdas.core.ports import Applied, Notice, Refused, Unavailable
from lambdas.core.times import Instant, after, seconds_between
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import schedule
from lambdas.core.webhooks.calling import Attempt, Courier, made
from lambdas.core.webhooks.delivery import Delivery, correlation, read
from lambdas.core.webhooks.expiring import expire
from lambdas.core.webhooks.messages import Hint


def attempt(hint: Hint, *, claim_id: str, ends: Instant, courier: Courier, notice: Notice) -> Done | Early:
    """Claim it if it may be claimed, and try it once. `ends`: when the platform ends this invocation. Raises
    Unavailable, UnreadableRecord."""
    now = courier.now()
    if seconds_between(now, ends) < courier.limits.start_s:
        return _put_off(hint, now, courier)
    match courier.store.apply(hint.key, changes.claim(claim_id=claim_id, now=now, invocation_ends=ends)):
        case Applied(record):
            held = read(record)
            notice("claimed", **correlation(held), tries=held.tries)
            _guard_against_hiding(held, courier)
            return Done(made(Attempt(held, courier, ends, notice)))
        case Refused(None):
            return Done("no such delivery")  # it was deleted with its job, or its time was over
        case Refused(record):
            assert record is not None
            return _refused(hint, read(record), now, courier, notice)


def _put_off(hint: Hint, now: Instant, courier: Courier) -> Done | Early:
    """No time left to start it here; a fresh message is on its way when this one is acknowledged."""
    match courier.store.apply(hint.key, changes.leave(attempt=hint.attempt, now=now)):
        case Refused(record) if record and record.get("status") == PENDING and record.get("attempt") == hint.attempt:
            return Early(seconds_between(now, read(record).not_before))
        case _:
            return Done("no time left to start it here")


def _refused(hint: Hint, found: Delivery, now: Instant, courier: Courier, notice: Notice) -> Done | Early:
    if found.is_final:
        return Done(f"already {found.status}")
    if found.status == PROCESSING and found.lease_until and found.lease_until >= now:
        return Done("held by somebody else")
    if found.tries >= schedule.TRIES_MAX or found.deadline_at <= now:
        return Done(expire(found, now=now, store=courier.store, limits=courier.limits, notice=notice))
    if found.status == PENDING and seconds_between(now, found.not_before) > SKEW_S:
        if hint.attempt == found.attempt:
            return Early(seconds_between(now, found.not_before))
        return Done("early, and of an older attempt")
    return Early(1.0)  # refused a moment ago and claimable now: ask again


def _guard_against_hiding(held: Delivery, courier: Courier) -> None:
    """Once a sweep has sent it again `due_at` lies far ahead: pull it in, or a crash now is looked for only then."""
    if held.due_at is None or held.lease_until is None or held.claimed_at is None:
        return
    if held.due_at > max(held.lease_until, after(held.claimed_at, courier.limits.limits.grace_s + SKEW_S)):
        with suppress(Unavailable):  # it is held all the same, and looked for late at worst
            courier.store.apply(held.key, changes.pull_due(held))
