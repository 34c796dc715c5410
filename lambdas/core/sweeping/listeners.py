"""Who listens to job events: a subscription that is gone is missing until it is back, or until a day is over.

A number alone would forget: whoever compares with the report before sees the fall once, or not at all when a report is
left out. So the count that was last in order is kept, with the ledger's lease as its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.core import times
from lambdas.core.ports import Ledger, Now
from lambdas.core.times import Instant, seconds_between

NAME = "listeners"
ACCEPTED_S = 86_400
"""After a day without a further fall, fewer are what somebody wanted."""
HELD_S = 30


def missing(ledger: Ledger, count: Callable[[], int], now: Now, holder: str) -> int | None:
    """How many fewer there are than there should be; None while another sweep compares. Raises Unavailable."""
    found = count()
    state = ledger.take(NAME, holder, now(), times.after(now(), HELD_S))
    if state is None:
        return None
    lost, seen = compared(state, found, now())
    ledger.give_back(NAME, holder, seen)
    return lost


def compared(state: Mapping[str, Any], found: int, now: Instant) -> tuple[int, dict[str, Any]]:
    """How many are missing, and what is to be known the next time. Each further fall begins the day anew."""
    known = int(state.get("known", 0))
    since = state.get("since")
    if since is None or found < int(state.get("found", 0)):
        since = times.text(now)
    if found >= known or seconds_between(times.instant(since), now) >= ACCEPTED_S:
        return 0, {"known": found}
    return known - found, {"known": known, "found": found, "since": since}
