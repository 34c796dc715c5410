"""The Circuits port over rows that are written under conditions, whatever keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import Change
from lambdas.core.times import Instant
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks.ports import Busy, Entered, Key, Open

ROUNDS = 3  # in each of which somebody else may take the place that was free


class Rows(Protocol):
    """Both raise Unavailable."""

    def apply(self, key: Key, change: Change) -> Applied | Refused: ...

    def read(self, key: Key) -> Mapping[str, Any] | None: ...


class Places:
    """`places`: how many may call one endpoint at once."""

    def __init__(self, rows: Rows, places: int) -> None:
        self._rows, self._places = rows, places

    def enter(self, tenant: str, endpoint: str, *, holder: str, now: Instant, until: Instant) -> Entered | Busy | Open:
        """Asks for the first place at once: mostly it is free, and nothing need be read."""
        key, slot = circuits.key(tenant, endpoint), 0
        for _ in range(self._places + ROUNDS):
            match self._rows.apply(key, circuits.enter(slot, holder=holder, now=now, until=until)):
                case Applied():
                    return circuits.entered(slot)
                case Refused(row):
                    found = circuits.next_place(row, holder=holder, now=now, places=self._places)
                    if not isinstance(found, int):
                        return found
                    slot = found
        return Busy()

    def leave(self, tenant: str, endpoint: str, *, holder: str, slot: int, now: Instant, ok: bool, note: str) -> None:
        """What is refused has been done, or was somebody else's by then. A crash before it opens leaves that to the
        next failure."""
        key = circuits.key(tenant, endpoint)
        if ok:
            self._rows.apply(key, circuits.leave_well(slot, holder=holder, note=note, now=now))
            return
        left = self._rows.apply(key, circuits.leave_failed(slot, holder=holder, note=note, now=now))
        if isinstance(left, Refused):  # opened meanwhile, or this is a repeat of what landed unheard
            left = self._rows.apply(key, circuits.leave_behind(slot, holder=holder))
        if circuits.must_open(left.record):
            self._rows.apply(key, circuits.open_again(circuits.read(left.record).failures, now=now))

    def release(self, tenant: str, endpoint: str, *, holder: str, slot: int) -> None:
        self._rows.apply(circuits.key(tenant, endpoint), circuits.leave_behind(slot, holder=holder))

    def reset(self, tenant: str, endpoint: str) -> None:
        self._rows.apply(circuits.key(tenant, endpoint), circuits.close())

    def read(self, tenant: str, endpoint: str) -> circuits.Circuit:
        """As it stands, for who asks how an endpoint is. Raises Unavailable."""
        return circuits.read(self._rows.read(circuits.key(tenant, endpoint)))
