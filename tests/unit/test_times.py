"""One written form of an instant: UTC, milliseconds, and text sorts as time does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core import times

INSTANTS = st.integers(0, 7 * 10**15).map(
    lambda micros: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


def test_an_instant_is_written_in_utc_with_milliseconds_rounded_down() -> None:
    here = timezone(timedelta(hours=2))
    assert times.text(datetime(2026, 11, 29, 17, 30, 44, 123_999, tzinfo=here)) == "2026-11-29T15:30:44.123Z"


@given(INSTANTS, INSTANTS)
def test_written_instants_sort_as_time_does(one: datetime, other: datetime) -> None:
    one, other = (at.replace(microsecond=at.microsecond // 1000 * 1000) for at in (one, other))
    assert (times.text(one) < times.text(other)) == (one < other)


@given(INSTANTS)
def test_reading_a_written_instant_gives_it_back_to_the_millisecond(at: datetime) -> None:
    assert times.instant(times.text(at)) == at.replace(microsecond=at.microsecond // 1000 * 1000)


@pytest.mark.parametrize(
    "written",
    ["2026-11-29T15:30:44Z", "2026-11-29t15:30:44z", "2026-11-29T16:30:44+01:00", "2026-11-29T15:30:44.000Z"],
)
def test_every_spelling_of_an_offset_is_read_as_the_same_instant(written: str) -> None:
    assert times.instant(written) == datetime(2026, 11, 29, 15, 30, 44, tzinfo=UTC)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "yesterday",
        "2026-11-29",
        "2026-11-29T15:30:44",
        "2026-13-29T15:30:44Z",
        "2026-11-29 15:30:44Z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
    ],
)
def test_what_is_no_instant_with_an_offset_is_a_value_error(written: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        times.instant(written)


def test_seconds_are_added_and_counted_with_their_sign() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert times.seconds_between(start, times.after(start, 1.5)) == 1.5
    assert times.seconds_between(times.after(start, 2), start) == -2
