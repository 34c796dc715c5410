"""What deliveries need of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import Change
from lambdas.core.times import Instant

Key = tuple[str, str]  # pk (a job id, or ping#…), sk (delivery#<endpoint>#<event id>)


class DeliveryStore(Protocol):
    """The records of deliveries, in their job's partition."""

    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """None when it was created, else the record that stands there. Raises Unavailable."""

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        """One conditional write; its own effect counts as applied. Raises Unavailable."""

    def read(self, key: Key) -> Mapping[str, Any] | None:
        """Strongly consistent. Raises Unavailable."""

    def beside(self, job_id: str) -> list[Mapping[str, Any]]:
        """One query: the job's record and its deliveries, without chunks, in the order of their `sk`. Consistent.
        Raises Unavailable."""

    def due(self, shard: str, before: Instant, after: tuple[str, Key] | None, limit: int) -> list[tuple[str, Key]]:
        """(due_at, key) of one shard of deliveries in the `due` index, oldest first, behind `after`; fewer than the
        limit are all. May lag behind. Raises Unavailable."""


class EndpointStore(Protocol):
    """A tenant's registered endpoints: records as core/webhooks/endpoint.py reads and writes them."""

    def of_tenant(self, tenant: str) -> list[Mapping[str, Any]]:
        """Consistent, in the order of their ids. Raises Unavailable."""

    def read(self, tenant: str, endpoint_id: str) -> Mapping[str, Any] | None:
        """Consistent. Raises Unavailable."""

    def create(self, record: Mapping[str, Any]) -> bool:
        """False when this id is there already; its own effect counts as success. Raises Unavailable."""

    def save(self, tenant: str, endpoint_id: str, fields: Mapping[str, Any], when: Mapping[str, Any]) -> bool:
        """Set these fields if those in `when` are as given. False when they are not, or it is gone. Raises
        Unavailable."""

    def remove(self, tenant: str, endpoint_id: str) -> None:
        """With its circuit: nothing of it is held against one that is registered under its URL later. Raises
        Unavailable."""


@dataclass(frozen=True)
class Entered:
    """An attempt may be made, in this place. `probe`: the circuit is half open, and this attempt decides."""

    slot: int
    probe: bool = False


@dataclass(frozen=True)
class Busy:
    """All its places are taken: somebody else is waiting for its answer."""


@dataclass(frozen=True)
class Open:
    """It has failed too often in a row: nobody calls it before this time."""

    until: Instant


class Circuits(Protocol):
    """Per endpoint: how many call it at once, and whether it may be called. Places are leases, as claims are."""

    def enter(self, tenant: str, endpoint: str, *, holder: str, now: Instant, until: Instant) -> Entered | Busy | Open:
        """Raises Unavailable."""

    def leave(self, tenant: str, endpoint: str, *, holder: str, slot: int, now: Instant, ok: bool, note: str) -> None:
        """The place is free; `ok` closes the circuit, failures in a row open it. Raises Unavailable."""

    def release(self, tenant: str, endpoint: str, *, holder: str, slot: int) -> None:
        """The place is free, and nothing was tried in it. Raises Unavailable."""

    def reset(self, tenant: str, endpoint: str) -> None:
        """Closed, and nothing held against it: a test, or a human, has found it well. Raises Unavailable."""


@dataclass(frozen=True)
class Answer:
    """What an endpoint answered. `retry_after`: the header as it came; `excerpt`: the first bytes of its body."""

    status: int
    retry_after: str
    excerpt: str
    ms: int


Why = Literal["address", "lookup", "connect", "tls", "timeout", "cut", "malformed"]


class Undelivered(Exception):
    """No answer came. `why` "address": refused before a connection was opened, because of where the name leads."""

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail


class Poster(Protocol):
    def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> Answer:
        """One attempt under one deadline, to an address that was checked and is the one connected to; follows no
        redirect. Raises Undelivered."""


class Signer(Protocol):
    def sign(self, secrets: Sequence[str], message_id: str, at: Instant, body: str) -> str:
        """The `webhook-signature` header: one signature for each secret (`whsec_…`), as Standard Webhooks wants it."""
