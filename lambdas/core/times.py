"""Instants, and their one written form, `2026-11-29T15:30:44.123Z`: UTC, and text sorts as time does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

Instant = datetime


def text(instant: Instant) -> str:
    """The written form, rounded down to the millisecond."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}Z"


def instant(written: str) -> Instant:
    """Read an RFC 3339 date-time; ValueError when it is none or names no offset."""
    if "T" not in written.upper():
        raise ValueError(f"not a date-time: {written!r}")
    read = datetime.fromisoformat(written.upper())
    if read.tzinfo is None:
        raise ValueError(f"a date-time needs an offset: {written!r}")
    try:
        return read.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"beyond the calendar: {written!r}") from None


def of_milliseconds(epoch: int) -> Instant:
    """ValueError, OverflowError or OSError beyond the calendar."""
    return datetime.fromtimestamp(epoch / 1000, UTC)


def milliseconds(instant: Instant) -> int:
    """Since the epoch, rounded down."""
    return int(instant.timestamp()) * 1000 + instant.microsecond // 1000


def after(start: Instant, seconds: float) -> Instant:
    return start + timedelta(seconds=seconds)


def seconds_between(start: Instant, end: Instant) -> float:
    return (end - start).total_seconds()
