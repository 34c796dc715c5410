"""Asks for a sweep, and tells what is known of one: its certificate, or how far it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CERTIFICATES_PREFIX, LEASE_SK, SWEEP_SK, UPLOADS
from lambdas.core import times
from lambdas.core.lookup import is_id
from lambdas.core.policy import DAY_S
from lambdas.core.ports import Ledger, Missing, Results
from lambdas.core.sweeping.report import BROKEN, DONE, OVER, RUNNING, Report, report_of
from lambdas.core.times import Instant, seconds_between

STUCK, DELIVERIES, LETTERS, DRIFT = "stuck", "deliveries", "letters", "drift"
KEPT_DAYS = 90
STALLED_S = 900  # an invocation that was asked for is begun, or given up, long before
PART = "part "  # a part's report is an attribute of its own: two writers never take the other's away

Start = Callable[[Mapping[str, Any]], None]  # the sweep function, with this event; raises Unavailable


def known_parts(listed: Mapping[str, Any]) -> tuple[str, ...]:
    """All parts there are. `listed`: the declared sources that can list their events, by name."""
    return (STUCK, DELIVERIES, LETTERS, UPLOADS, *sorted(listed), DRIFT)


@dataclass(frozen=True)
class Order:
    """A sweep that is to be made: which parts are left to do. `round`: how often it has gone on in a new invocation."""

    sweep_id: str
    parts: tuple[str, ...]
    dry_run: bool = False
    by: str = "schedule"
    round: int = 0

    def event(self) -> dict[str, Any]:
        """As the sweep function gets it."""
        return {**vars(self), "parts": list(self.parts)}


def order_of(event: Mapping[str, Any], *, request_id: str, usual: tuple[str, ...]) -> Order:
    """Read what `event` wrote, or a schedule, or somebody who tests by hand: nothing need be there."""
    parts = event.get("parts")
    return Order(
        sweep_id=str(event.get("sweep_id") or request_id),
        parts=tuple(map(str, parts)) if isinstance(parts, list) and parts else usual,
        dry_run=event.get("dry_run") is True,
        by=str(event.get("by") or "schedule"),
        round=int(event.get("round") or 0),
    )


def open_sweep(order: Order, *, now: Instant, ledger: Ledger) -> bool:
    """Put it on record. False: it is there already. Raises Unavailable."""
    return ledger.create(
        item_of(order.sweep_id),
        SWEEP_SK,
        {
            "status": RUNNING,
            "parts": list(order.parts),
            "by": order.by,
            "dry_run": order.dry_run,
            "started_at": times.text(now),
            "expires_at": int(now.timestamp()) + KEPT_DAYS * DAY_S,
        },
    )


def ask(order: Order, *, now: Instant, ledger: Ledger, start: Start) -> None:
    """Have it made, soon and elsewhere. Raises Unavailable: then it may never begin."""
    open_sweep(order, now=now, ledger=ledger)
    start(order.event())


def item_of(sweep_id: str) -> str:
    return f"sweep#{sweep_id}"


def certificate_key(sweep_id: str) -> str:
    return f"{CERTIFICATES_PREFIX}{sweep_id}.json"


def reports_in(item: Mapping[str, Any]) -> dict[str, Report]:
    """What the item has of its parts."""
    return {name.removeprefix(PART): report_of(kept) for name, kept in item.items() if name.startswith(PART)}


def certificate(sweep_id: str, item: Mapping[str, Any], finished: Instant | None) -> dict[str, Any]:
    """For readers: what each part found and did. Without `finished`: so far."""
    reports = reports_in(item)
    status = RUNNING if finished is None else BROKEN if any(one.state == BROKEN for one in reports.values()) else DONE
    number = "would_repair" if item.get("dry_run") else "repaired"
    ended = {"finished_at": times.text(finished)} if finished else {}
    return {
        "sweep_id": sweep_id,
        "status": status,
        "by": item.get("by", ""),
        "dry_run": bool(item.get("dry_run")),
        "started_at": item.get("started_at", ""),
        **ended,
        number: sum(one.found for one in reports.values()),
        "troubles": sum(one.all_troubles for one in reports.values()),
        "parts": {name: reports[name].shown() if name in reports else {"state": RUNNING} for name in item["parts"]},
    }


def certificate_of(sweep_id: str, *, now: Instant, ledger: Ledger, certificates: Results) -> dict[str, Any] | None:
    """The certificate of a sweep that has ended, or how far it is; None when there is no such sweep. `stalled`: nobody
    is at it any more, and nobody will go on with it. Raises Unavailable."""
    item = ledger.read(item_of(sweep_id), SWEEP_SK) if is_id(sweep_id) else None
    if item is None:
        return None
    if item.get("status") != RUNNING:
        try:
            stored: dict[str, Any] = json.loads(certificates.get(certificate_key(sweep_id)))
        except Missing:  # deleted by somebody: the item knows all but
            return certificate(sweep_id, item, times.instant(str(item["finished_at"])))
        return stored
    stalled = {"stalled": True} if _is_stalled(sweep_id, item, now, ledger) else {}
    return certificate(sweep_id, item, None) | stalled


def _is_stalled(sweep_id: str, item: Mapping[str, Any], now: Instant, ledger: Ledger) -> bool:
    """No lease has a part of it, to be gone on with from there: it was killed before it had one, or between two."""
    if seconds_between(times.instant(str(item["started_at"])), now) < STALLED_S:
        return False
    leases = (lease_of(part, bool(item.get("dry_run"))) for part in item["parts"])
    left = ((ledger.read(f"lease#{lease}", LEASE_SK) or {}).get("state", {}) for lease in leases)
    return all(state.get("sweep_id") != sweep_id for state in left)


def lease_of(part: str, dry_run: bool) -> str:
    """A dry run holds nobody up, and leaves nothing behind for others to go on with."""
    return f"sweep/dry/{part}" if dry_run else f"sweep/{part}"


def are_over(item: Mapping[str, Any]) -> bool:
    """Whether each part that was asked for has ended."""
    reports = reports_in(item)
    return all(name in reports and reports[name].state in OVER for name in item["parts"])
