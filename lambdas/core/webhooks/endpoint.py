"""An endpoint of a tenant: where what happened to its jobs is delivered, and what its record holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.names import CALLBACK, ENDPOINT_SK, FINAL, TENANT_PK
from lambdas.core import times
from lambdas.core.canonical import sha256_of
from lambdas.core.job import UnreadableRecord
from lambdas.core.times import Instant, after

EVENTS = tuple(f"job.{status.lower()}" for status in FINAL)  # what an endpoint may be told of
PING = "job.ping"  # what a test of an endpoint says
ENDPOINTS_MAX = 20  # of one tenant
ROTATION_S = 86_400  # so long the secret before this one signs along
_ID_DIGITS = 16


@dataclass(frozen=True)
class Endpoint:
    """`events`: those it wants to hear of, empty for all. `secret_version`: rises with every rotation; the one before
    it signs along until `previous_until`. `disabled_reason`: why it is not `enabled`, empty while it is. `ping`: its
    last test."""

    id: str
    tenant: str
    url: str
    events: tuple[str, ...]
    enabled: bool
    secret_version: int
    created_at: Instant
    previous_until: Instant | None = None
    disabled_reason: str = ""
    description: str = ""
    ping: str = ""

    @property
    def registration(self) -> str:
        """Tells it from one that had the same URL, and with it the same id, and was removed."""
        return times.text(self.created_at)

    def wants(self, event_type: str) -> bool:
        """Whether an event of this type is delivered to it. Never to the one that stands for callbacks: those are
        named by their jobs."""
        return self.enabled and self.id != CALLBACK and (not self.events or event_type in self.events)

    def versions(self, now: Instant) -> tuple[int, ...]:
        """Of the secrets that sign at this time, the newest first."""
        both = self.previous_until is not None and now < self.previous_until
        return (self.secret_version, self.secret_version - 1) if both else (self.secret_version,)


def endpoint_id(tenant: str, url: str) -> str:
    """The same URL is the same endpoint: registering it again makes no second one, whose deliveries would come twice.
    `url`: in its one written form."""
    return sha256_of(["endpoint", tenant, url])[:_ID_DIGITS]


def new(tenant: str, url: str, *, events: tuple[str, ...], description: str, now: Instant) -> Endpoint:
    """The first version of its secret is the time, so that an endpoint that was removed and comes back never has one
    of its old secrets again."""
    return Endpoint(
        id=endpoint_id(tenant, url),
        tenant=tenant,
        url=url,
        events=events,
        enabled=True,
        secret_version=times.milliseconds(now),
        created_at=now,
        description=description,
    )


def callback(tenant: str, record: Mapping[str, Any] | None = None) -> Endpoint:
    """What stands for all callback URLs of a tenant: it is there without a record, which only a rotation makes."""
    if record is not None:
        return read(record)
    return Endpoint(CALLBACK, tenant, "", (), True, 1, times.of_milliseconds(0))


def read(record: Mapping[str, Any]) -> Endpoint:
    """UnreadableRecord when it is none: nobody may guess what a broken record meant."""
    try:
        if record["sk"] != ENDPOINT_SK + record["id"] or record["pk"] != TENANT_PK + record["tenant"]:
            raise UnreadableRecord(f"not an endpoint: {record['pk']}, {record['sk']}")
        texts = {name: str(record[name]) for name in ("id", "tenant", "url")}
        told = {name: str(record.get(name, "")) for name in ("disabled_reason", "description", "ping")}
        until = record.get("previous_until")
        return Endpoint(
            **texts,
            **told,
            events=tuple(map(str, record.get("events", ()))),
            enabled=record["enabled"] is True,
            secret_version=int(record["secret_version"]),
            created_at=times.instant(record["created_at"]),
            previous_until=times.instant(until) if until else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as broken:
        raise UnreadableRecord(f"{record.get('pk')}, {record.get('sk')}: {broken!r}") from broken


def record_of(endpoint: Endpoint) -> dict[str, Any]:
    """As it is stored: without `expires_at`, for it ends by being removed alone."""
    until = endpoint.previous_until
    return {
        "pk": TENANT_PK + endpoint.tenant,
        "sk": ENDPOINT_SK + endpoint.id,
        "id": endpoint.id,
        "tenant": endpoint.tenant,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "enabled": endpoint.enabled,
        "secret_version": endpoint.secret_version,
        "created_at": times.text(endpoint.created_at),
        "previous_until": times.text(until) if until else "",
        "disabled_reason": endpoint.disabled_reason,
        "description": endpoint.description,
        "ping": endpoint.ping,
    }


def rotated(endpoint: Endpoint, now: Instant, *, at_once: bool) -> Endpoint:
    """With another secret. `at_once`: the one before it signs no more."""
    until = None if at_once else after(now, ROTATION_S)
    return replace(endpoint, secret_version=endpoint.secret_version + 1, previous_until=until)


def disabled(reason: str) -> dict[str, Any]:
    return {"enabled": False, "disabled_reason": reason}


def enabled() -> dict[str, Any]:
    return {"enabled": True, "disabled_reason": ""}
