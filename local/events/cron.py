"""When a schedule expression fires next: rate(…), cron(…) and at(…), as EventBridge Scheduler reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_CRON = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_SEARCH_DAYS = 366 * 5
Next = Callable[[datetime], datetime | None]


class BadExpressionError(ValueError):
    """A schedule expression that AWS would refuse, or one of a kind that is not emulated."""


def next_after(expression: str, start: datetime, zone: str = "UTC") -> Next:
    """A function from a moment to the next one, later than it, at which the schedule fires (None: never again).

    A rate counts from `start`, the moment at which the schedule was made.
    """
    if rate := _RATE.fullmatch(expression):
        if int(rate[1]) < 1:
            raise BadExpressionError(expression)
        return _every(timedelta(**{f"{rate[2]}s": int(rate[1])}), start)
    if at := _AT.fullmatch(expression):
        moment = datetime.fromisoformat(at[1]).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        return lambda after: moment if moment > after else None
    if cron := _CRON.fullmatch(expression):
        return _Cron(cron.groups(), ZoneInfo(zone)).next
    raise BadExpressionError(f"no schedule expression: {expression}")


def _every(period: timedelta, start: datetime) -> Next:
    def next_(after: datetime) -> datetime:
        passed = max(0, (after - start) // period)
        return start + period * (passed + 1)

    return next_


class _Cron:
    """Minutes, hours, day of month, month, day of week (1 = Sunday), year."""

    def __init__(self, fields: tuple[str, ...], zone: ZoneInfo) -> None:
        minutes, hours, self._day_text, months, self._weekday_text, years = fields
        if (self._day_text == "?") == (self._weekday_text == "?"):
            raise BadExpressionError("exactly one of day of month and day of week must be ?")
        self._zone = zone
        self._minutes = sorted(_values(minutes, 0, 59))
        self._hours = sorted(_values(hours, 0, 23))
        self._months = _values(months, 1, 12, _MONTHS)
        self._years = _values(years, 1970, 2199)
        self._days = None if self._day_text in ("?", "L") else _values(self._day_text, 1, 31)
        self._weekdays = None if self._weekday_text == "?" else _values(self._weekday_text, 1, 7, _DAYS)

    def next(self, after: datetime) -> datetime | None:
        """Day by day, then through the times of that day."""
        local = after.astimezone(self._zone)
        day = local.replace(hour=0, minute=0, second=0, microsecond=0)
        for _ in range(_SEARCH_DAYS):
            if self._day_fits(day):
                for hour in self._hours:
                    for minute in self._minutes:
                        moment = day.replace(hour=hour, minute=minute).astimezone(UTC)
                        if moment > after:
                            return moment
            day = (day + timedelta(days=1)).replace(hour=0)
        return None

    def _day_fits(self, day: datetime) -> bool:
        if day.month not in self._months or day.year not in self._years:
            return False
        if self._weekdays is not None:
            return day.isoweekday() % 7 + 1 in self._weekdays
        if self._days is None:
            return self._day_text == "?" or (day + timedelta(days=1)).day == 1  # L: the last day of the month
        return day.day in self._days


def _values(text: str, lowest: int, highest: int, names: list[str] | None = None) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        found |= _part(part, lowest, highest, names)
    if not found or min(found) < lowest or max(found) > highest:
        raise BadExpressionError(f"{text} is not within {lowest} to {highest}")
    return found


def _part(part: str, lowest: int, highest: int, names: list[str] | None) -> set[int]:
    span, _, step = part.partition("/")
    if span in ("*", "?"):
        first, last = lowest, highest
    else:
        begin, _, end = span.partition("-")
        first = _number(begin, names)
        last = _number(end, names) if end else (highest if step else first)
    if step and not step.isdigit():
        raise BadExpressionError(f"not understood: {part}")
    return set(range(first, last + 1, int(step or 1)))


def _number(text: str, names: list[str] | None) -> int:
    if names is not None and text.upper() in names:
        return names.index(text.upper()) + 1
    if not text.isdigit():
        raise BadExpressionError(f"not understood or not emulated: {text}")
    return int(text)
