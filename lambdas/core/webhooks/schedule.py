"""When an endpoint is called again, and what its answer means for that. In seconds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from math import isfinite

from lambdas.core.policy import DAY_S, Draw
from lambdas.core.times import Instant, after, seconds_between

# after the first, the second … failure: quick for who restarts, patient for who is away over a weekend
WAITS_S = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 72_000)
TRIES_MAX = len(WAITS_S) + 1
REFUSALS_MAX = 5  # of an endpoint that answers, and does not want it
JITTER = 0.1  # downwards, so that the whole schedule stays within its hours
RETRY_AFTER_MAX_S = DAY_S
PARK_FIRST_S, PARK_MAX_S = 5, 300  # while all places of an endpoint are taken
LAST_CHANCE_S = 600.0  # before the deadline: two sweeps, one of which may be what sends it

_AGAIN = frozenset({408, 425, 429})


class Kind(Enum):
    """What an answer means, in the words of a receipt where another try follows."""

    DELIVERED = "taken"
    AGAIN = "not now: again, by the schedule"
    GONE = "never again"
    REFUSED = "not like this: again, a few times at most"


def kind_of(status: int) -> Kind:
    if 200 <= status < 300:
        return Kind.DELIVERED
    if status in _AGAIN or 500 <= status < 600:
        return Kind.AGAIN
    return Kind.GONE if status == 410 else Kind.REFUSED


def wait_s(nth: int, draw: Draw) -> float:
    """Before the next try, after the `nth` (1 is the first) one."""
    whole = WAITS_S[min(max(nth, 1), len(WAITS_S)) - 1]
    return whole * (1 - JITTER * draw())


def park_s(waits: int) -> float:
    """Before looking for a free place again, after so many waits."""
    return min(PARK_MAX_S, PARK_FIRST_S * 2.0 ** min(max(waits, 0), 10))


def next_try(now: Instant, wait: float, retry_after: str, deadline: Instant) -> Instant | None:
    """When to try again: after this wait, and not before the endpoint's own `Retry-After`; at the latest when there
    still is time for one last try. None when there is not."""
    at = after(now, max(wait, retry_after_s(retry_after, now)))
    last = after(deadline, -LAST_CHANCE_S)
    at = min(at, last)
    return at if at > now else None


def retry_after_s(header: str, now: Instant) -> float:
    """What a `Retry-After` asks for, in seconds or as an HTTP date; 0 for nonsense and for the past."""
    asked = header.strip()
    if asked.isascii() and asked.isdigit():
        digits = asked.lstrip("0") or "0"
        return float(min(int(digits), RETRY_AFTER_MAX_S) if len(digits) < 10 else RETRY_AFTER_MAX_S)
    then = http_date(asked, now)
    wait = seconds_between(now, then) if then else 0.0
    return min(max(wait, 0.0), float(RETRY_AFTER_MAX_S)) if isfinite(wait) else 0.0


# --- the three forms of an HTTP date, RFC 9110 5.6.7; none of them in the words of a locale -----------------
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: at for at, name in enumerate(_NAMES, 1)}
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<hour>\d{2}):(?P<minute>\d{2}):(?P<second>\d{2})"
_FIXED = re.compile(rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>\d{{2}}) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT", re.A)
_RFC850 = re.compile(
    rf"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<day>\d{{2}})-{_MONTH}-(?P<short_year>\d{{2}}) {_TIME} GMT", re.A
)
_ASCTIME = re.compile(rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})", re.A)


def http_date(written: str, now: Instant) -> Instant | None:
    """None when it is none."""
    found = next((match for form in (_FIXED, _RFC850, _ASCTIME) if (match := form.fullmatch(written))), None)
    if found is None:
        return None
    part = found.groupdict()
    month, clock = _MONTHS[part["month"]], (int(part["hour"]), int(part["minute"]), min(int(part["second"]), 59))

    def on(year: int) -> Instant:
        return datetime(year, month, int(part["day"]), *clock, tzinfo=UTC)  # a leap second is the one before it

    try:
        return on(int(part["year"])) if part.get("year") else _of_this_century(on, int(part["short_year"]), now)
    except ValueError:
        return None


def _of_this_century(on: Callable[[int], Instant], short: int, now: Instant) -> Instant:
    """More than 50 years ahead it means the century before, as RFC 9110 wants it."""
    year = now.year - now.year % 100 + short
    return on(year - 100) if year > now.year + 50 else on(year)
