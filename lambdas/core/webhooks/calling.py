"""One attempt of a held delivery: where it goes, whether it may go now, the call, and the write of what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CALLBACK
from lambdas.core import times
from lambdas.core.changes import error
from lambdas.core.policy import Draw
from lambdas.core.ports import Applied, Notice, Now, Refused, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.times import Instant, after, seconds_between
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import schedule, secrets, urls
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, correlation
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.judging import GIVEN_UP, MOOT, OUTLIVED, WAITS, Came, judge, kind_of
from lambdas.core.webhooks.ports import (
    Answer,
    Busy,
    Circuits,
    DeliveryStore,
    EndpointStore,
    Entered,
    Open,
    Poster,
    Signer,
    Undelivered,
)
from lambdas.core.webhooks.schedule import Kind

SPREAD_S = 30.0  # in which those come back that have waited for one circuit


@dataclass(frozen=True)
class Courier:
    """What deliveries are attempted with. `masters`: the secrets that all others are derived from, the newest first;
    raises Unavailable."""

    store: DeliveryStore
    endpoints: EndpointStore
    circuits: Circuits
    poster: Poster
    signer: Signer
    masters: Callable[[], Sequence[str]]
    limits: DeliveryLimits
    now: Now
    draw: Draw
    local: bool = False


@dataclass(frozen=True)
class Attempt:
    """One held delivery, in one invocation."""

    delivery: Delivery
    courier: Courier
    ends: Instant
    notice: Notice

    @property
    def time_s(self) -> float:
        """How long its endpoint may take: what is needed for the write of what came of it is kept free."""
        left = seconds_between(self.courier.now(), self.ends) - self.courier.limits.settle_s
        return min(float(self.courier.limits.timeout_s), left)

    def written(self, change: Change, how: str, **fields: Any) -> str:
        """What came of it, in the record. Raises Unavailable."""
        match self.courier.store.apply(self.delivery.key, change):
            case Applied():
                self.notice(how, **correlation(self.delivery), **fields)
                return how
            case Refused():
                self.notice(OUTLIVED, **correlation(self.delivery), **fields)
                return OUTLIVED


@dataclass(frozen=True)
class Target:
    """Where it goes, and with whose secret."""

    destination: urls.Destination
    endpoint: Endpoint


@dataclass(frozen=True)
class NoTarget:
    """There is nowhere to go: why, and whether its tenant has wanted it so."""

    code: str
    message: str
    wanted: bool = True


def made(own: Attempt) -> str:
    """How it ended. What could not be asked before it is no failure of its endpoint: it waits."""
    courier, delivery = own.courier, own.delivery
    try:
        target = _target(delivery, courier)
        if isinstance(target, NoTarget):
            return _nowhere(own, target)
        masters = courier.masters()
        place = _place(delivery, courier)
    except Unavailable as trouble:  # its words are for our log: they name what is ours
        own.notice("not_asked", **correlation(delivery), detail=str(trouble))
        why = error("UNAVAILABLE", "what must be known before it is sent could not be read")
        return _parked(own, schedule.park_s(delivery.waits), why)
    match place:
        case Busy():
            why = error("BUSY", "all places of its endpoint are taken")
            return _parked(own, schedule.park_s(delivery.waits), why)
        case Open(until) if not delivery.is_ping:
            why = error(
                "CIRCUIT_OPEN", f"its endpoint has failed too often, and is left alone until {times.text(until)}"
            )
            return _parked(own, seconds_between(courier.now(), until) + SPREAD_S * courier.draw(), why)
        case _:
            return _called(own, target, masters, place if isinstance(place, Entered) else None)


def _target(delivery: Delivery, courier: Courier) -> Target | NoTarget:
    """As its endpoint is now: it may have been removed or disabled since the delivery was planned. One that was
    registered again under the same URL is another one: its secret is, and its tenant began anew with it."""
    record = courier.endpoints.read(delivery.tenant, delivery.signer)
    if delivery.signer == CALLBACK:
        found = endpoints.callback(delivery.tenant, record)
    elif record is None:
        return NoTarget("ENDPOINT_DELETED", "its endpoint was removed before it was delivered")
    else:
        found = endpoints.read(record)
        if delivery.registration not in ("", found.registration):
            return NoTarget("ENDPOINT_DELETED", "its endpoint was removed before it was delivered, and registered anew")
    if not found.enabled:
        return NoTarget("ENDPOINT_DISABLED", f"its endpoint is disabled: {found.disabled_reason or 'no reason given'}")
    match urls.read(delivery.url or found.url, local=courier.local):
        case urls.UnusableUrl(reason):
            return NoTarget("URL_REFUSED", reason, wanted=False)
        case destination:
            return Target(destination, found)


def _place(delivery: Delivery, courier: Courier) -> Entered | Busy | Open:
    assert delivery.claim_id is not None
    assert delivery.lease_until is not None
    return courier.circuits.enter(
        delivery.tenant, delivery.endpoint, holder=delivery.claim_id, now=courier.now(), until=delivery.lease_until
    )


def _nowhere(own: Attempt, why: NoTarget) -> str:
    reason = error(why.code, why.message)
    change = changes.fail(own.delivery, now=own.courier.now(), why=reason, limits=own.courier.limits, receipt={})
    return own.written(change, MOOT if why.wanted or own.delivery.is_ping else GIVEN_UP, reason=why.code)


def _parked(own: Attempt, wait_s: float, why: Mapping[str, str]) -> str:
    now = own.courier.now()
    until = after(now, max(wait_s, 1.0))
    change = changes.park(own.delivery, now=now, until=until, why=why, limits=own.courier.limits)
    return own.written(change, WAITS, reason=why["code"], wait_s=round(max(wait_s, 1.0)))


def _called(own: Attempt, target: Target, masters: Sequence[str], place: Entered | None) -> str:
    """The one call of this attempt. Its outcome is written before the place is free: at worst the place lapses."""
    courier, delivery = own.courier, own.delivery
    if own.time_s < 1.0:
        if place is not None:
            with suppress(Unavailable):
                courier.circuits.release(
                    delivery.tenant, delivery.endpoint, holder=str(delivery.claim_id), slot=place.slot
                )
        return _parked(own, 1.0, error("NO_TIME", "the stores were slow: no time left for the call"))
    came = _answer(own, target, masters)
    kind = kind_of(came)
    now, draw = courier.now(), courier.draw
    how = own.written(*judge(delivery, came, now=now, draw=draw, limits=courier.limits), **_told(came))
    if kind is Kind.GONE:
        _disable(target.endpoint, courier)
    with suppress(Unavailable):
        if place is not None:
            _leave(own, place, came, ok=kind is Kind.DELIVERED)
        elif kind is Kind.DELIVERED:
            courier.circuits.reset(delivery.tenant, delivery.endpoint)
    return how


def _leave(own: Attempt, place: Entered, came: Came, *, ok: bool) -> None:
    delivery, circuits = own.delivery, own.courier.circuits
    note = f"HTTP {came.status}" if isinstance(came, Answer) else f"{came.why}: {came.detail}"
    circuits.leave(
        delivery.tenant,
        delivery.endpoint,
        holder=str(delivery.claim_id),
        slot=place.slot,
        now=own.courier.now(),
        ok=ok,
        note=note,
    )


def _answer(own: Attempt, target: Target, masters: Sequence[str]) -> Came:
    courier, delivery, now = own.courier, own.delivery, own.courier.now()
    keys = secrets.signing(masters, target.endpoint, now)
    headers = {
        "content-type": "application/json",
        "webhook-id": delivery.event_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": courier.signer.sign(keys, delivery.event_id, now, delivery.body),
    }
    try:
        return courier.poster.post(target.destination.url, headers, delivery.body.encode(), own.time_s)
    except Undelivered as why:
        return why


def _disable(found: Endpoint, courier: Courier) -> None:
    """It says that it is gone for good: this one, not who was registered under its URL meanwhile. If that cannot be
    written, its next answer says it again."""
    if found.id == CALLBACK:
        return  # of one URL: the others of its tenant are not
    with suppress(Unavailable):
        only = {"enabled": True, "created_at": found.registration}
        courier.endpoints.save(found.tenant, found.id, endpoints.disabled("it answered 410 Gone"), only)


def _told(came: Came) -> dict[str, Any]:
    """For the log: never what was sent or answered."""
    return {"http_status": came.status, "ms": came.ms} if isinstance(came, Answer) else {"no_answer": came.why}
