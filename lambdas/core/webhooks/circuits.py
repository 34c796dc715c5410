"""Who calls an endpoint, and whether it may be called: one row per endpoint, as conditional writes.

A place is a lease, as a claim is: who was killed with it holds it until its time is over. While it is closed anybody
with a place may call. Failures in a row open it for a while; then it is half open: one probe, in a place of its own,
decides. Each change is one conditional write over the rules here; whether it was one's own shows in the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CIRCUIT_SK, TENANT_PK
from lambdas.core import times
from lambdas.core.conditions import Absent, Compare, Condition, Param, both, either, equal
from lambdas.core.job import cut
from lambdas.core.policy import DAY_S
from lambdas.core.protocol import Change, Rule
from lambdas.core.times import Instant, after
from lambdas.core.webhooks.ports import Busy, Entered, Key, Open

FAILURES_MAX = 5  # in a row: then it opens
OPEN_FIRST_S, OPEN_MAX_S = 60, 3_600
KEPT_S = 30 * DAY_S  # a row that nobody uses is removed by then
PROBE = -1  # the place of the probe
NOTE_BYTES = 200

CLOSED = Absent("open_until")


def _name(slot: int) -> str:
    return "probe" if slot == PROBE else f"place_{slot}"


def _holder(slot: int) -> str:
    return f"{_name(slot)}_holder"


def _until(slot: int) -> str:
    return f"{_name(slot)}_until"


def _free(slot: int) -> Condition:
    """Nobody's, somebody's whose time is over, or mine already: behind a lost reply it is."""
    return either(Absent(_until(slot)), Compare(_until(slot), "<", Param("now")), equal(_holder(slot), Param("holder")))


def _mine(slot: int) -> Condition:
    return equal(_holder(slot), Param("holder"))


def key(tenant: str, endpoint: str) -> Key:
    return TENANT_PK + tenant, CIRCUIT_SK + endpoint


def enter(slot: int, *, holder: str, now: Instant, until: Instant) -> Change:
    """Take this place. As the probe: when it is open, and its time is over."""
    half_open = Compare("open_until", "<=", Param("now"))
    return Change(
        Rule("enter", "c1", (), None, both(half_open if slot == PROBE else CLOSED, _free(slot)), _mine(slot)),
        {"now": times.text(now), "holder": holder},
        sets={_holder(slot): holder, _until(slot): times.text(until), "expires_at": int(now.timestamp()) + KEPT_S},
    )


def leave_well(slot: int, *, holder: str, note: str, now: Instant) -> Change:
    """It has taken something: closed, and nothing is held against it."""
    return Change(
        Rule("leave_well", "c2", (), None, _mine(slot)),
        {"holder": holder},
        sets={"failures": 0, **_noted(note, now)},
        removes=(_holder(slot), _until(slot), "open_until"),
    )


def leave_failed(slot: int, *, holder: str, note: str, now: Instant) -> Change:
    """One failure more: of the probe, or while it is closed."""
    condition = _mine(slot) if slot == PROBE else both(_mine(slot), CLOSED)
    return Change(
        Rule("leave_failed", "c3", (), None, condition),
        {"holder": holder},
        sets=_noted(note, now),
        adds={"failures": 1},
        removes=(_holder(slot), _until(slot)),
    )


def leave_behind(slot: int, *, holder: str) -> Change:
    """The place is free, and that is all: others have opened it meanwhile."""
    return Change(
        Rule("leave_behind", "c4", (), None, _mine(slot)), {"holder": holder}, removes=(_holder(slot), _until(slot))
    )


def open_again(failures: int, *, now: Instant) -> Change:
    """Nobody calls it for a while, which doubles with each probe that fails; unless it is open already, or has taken
    something meanwhile."""
    period = min(OPEN_MAX_S, OPEN_FIRST_S * 2 ** min(max(failures - FAILURES_MAX, 0), 10))
    return Change(
        Rule(
            "open", "c5", (), None,
            both(equal("failures", Param("failures")), either(CLOSED, Compare("open_until", "<=", Param("now")))),
        ),
        {"failures": failures, "now": times.text(now)},
        sets={"open_until": times.text(after(now, period))},
    )  # fmt: skip


def close() -> Change:
    """A test, or a human, has found it well. A row that is not there is closed already."""
    return Change(
        Rule("close", "c6", (), None, Compare("failures", ">=", 0)),
        {},
        sets={"failures": 0},
        removes=("open_until",),
    )


def _noted(note: str, now: Instant) -> dict[str, Any]:
    return {"note": cut(note, NOTE_BYTES) or "-", "noted_at": times.text(now)}


@dataclass(frozen=True)
class Circuit:
    """A row as it stands. `note`: what its last attempt came to."""

    failures: int = 0
    open_until: Instant | None = None
    note: str = ""
    noted_at: Instant | None = None

    def state(self, now: Instant) -> str:
        """closed | open | half_open"""
        if self.open_until is None:
            return "closed"
        return "open" if now < self.open_until else "half_open"


def read(row: Mapping[str, Any] | None) -> Circuit:
    """Without a row it is closed, and nothing is known of it."""
    found = row or {}
    until, at = found.get("open_until"), found.get("noted_at")
    return Circuit(
        failures=found.get("failures", 0),
        open_until=times.instant(until) if until else None,
        note=found.get("note", ""),
        noted_at=times.instant(at) if at else None,
    )


def must_open(row: Mapping[str, Any] | None) -> bool:
    return read(row).failures >= FAILURES_MAX


def next_place(row: Mapping[str, Any] | None, *, holder: str, now: Instant, places: int) -> int | Busy | Open:
    """Which place to ask for, after a refusal that left this row."""
    found, at = row or {}, times.text(now)
    until = read(row).open_until
    if until and now < until:
        return Open(until)
    candidates = [PROBE] if until else list(range(places))
    for slot in candidates:
        if found.get(_holder(slot)) == holder or found.get(_until(slot), "") < at:
            return slot
    return Busy()


def entered(slot: int) -> Entered:
    return Entered(slot, probe=slot == PROBE)
