"""When an endpoint is called again, and what its answers mean for that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.times import after, seconds_between
from lambdas.core.webhooks import schedule
from lambdas.core.webhooks.schedule import (
    LAST_CHANCE_S,
    TRIES_MAX,
    WAITS_S,
    Kind,
    http_date,
    kind_of,
    next_try,
    park_s,
    retry_after_s,
    wait_s,
)
from tests.builders import NOW, later

DAY = 86_400.0


@pytest.mark.parametrize(("statuses", "kind"), [
    ((200, 201, 202, 204, 226, 299), Kind.DELIVERED),
    ((408, 425, 429, 500, 501, 502, 503, 504, 521, 599), Kind.AGAIN),
    ((410,), Kind.GONE),
    ((101, 300, 301, 302, 303, 307, 308, 304, 400, 401, 403, 404, 405, 409, 413, 415, 422), Kind.REFUSED),
    ((451, 499, 600, 999), Kind.REFUSED),
])  # fmt: skip
def test_wh_09_what_a_status_means(statuses: tuple[int, ...], kind: Kind) -> None:
    assert {status: kind_of(status) for status in statuses} == dict.fromkeys(statuses, kind)


def test_the_schedule_is_the_published_one() -> None:
    assert [wait_s(nth, lambda: 0.0) for nth in range(1, TRIES_MAX)] == list(WAITS_S)
    assert WAITS_S == (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 72_000)
    assert TRIES_MAX == 10


def test_the_whole_schedule_ends_within_its_three_days_and_not_long_before() -> None:
    latest = list(accumulate(wait_s(nth, lambda: 0.0) for nth in range(1, TRIES_MAX)))[-1]
    assert 71 * 3_600 < latest < 72 * 3_600 - LAST_CHANCE_S


@given(st.integers(min_value=-5, max_value=50), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_jitter_only_shortens_and_by_a_tenth_at_most(nth: int, drawn: float) -> None:
    whole = wait_s(nth, lambda: 0.0)
    assert 0.9 * whole <= wait_s(nth, lambda: drawn) <= whole


def test_waits_for_a_place_double_up_to_five_minutes() -> None:
    assert [park_s(waits) for waits in (-1, 0, 1, 2, 5, 6, 7, 1_000_000)] == [5, 5, 10, 20, 160, 300, 300, 300]


# --- Retry-After -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("header", "seconds"), [
    ("0", 0), ("1", 1), ("120", 120), ("0120", 120), (" 7 ", 7), ("86400", DAY), ("86401", DAY), ("9" * 5_000, DAY),
    ("0" * 5_000 + "3", 3),
])  # fmt: skip
def test_retry_after_in_seconds_is_honoured_and_capped_at_a_day(header: str, seconds: float) -> None:
    assert retry_after_s(header, NOW) == seconds


@pytest.mark.parametrize("header", [
    "Sun, 29 Nov 2026 15:32:44 GMT",  # the fixed form
    "Sunday, 29-Nov-26 15:32:44 GMT",  # RFC 850
    "Sun Nov 29 15:32:44 2026",  # asctime
])  # fmt: skip
def test_retry_after_as_a_date_in_each_of_its_three_forms(header: str) -> None:
    assert retry_after_s(header, NOW) == 120 - 0.123


def test_a_day_of_one_digit_in_the_form_of_asctime() -> None:
    assert http_date("Tue Dec  1 00:00:00 2026", NOW) == datetime(2026, 12, 1, tzinfo=UTC)


def test_a_year_of_two_digits_is_never_far_ahead() -> None:
    assert http_date("Monday, 01-Jan-76 00:00:00 GMT", NOW) == datetime(2076, 1, 1, tzinfo=UTC)
    assert http_date("Saturday, 01-Jan-77 00:00:00 GMT", NOW) == datetime(1977, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("header", [
    "", " ", "-1", "+5", "1.5", "1e3", "0x10", "soon", "٣", "²", "5 s", "5, 10", "Infinity", "nan", "1_000",
    "Sun, 29 Nov 2026 15:32:44", "Sun, 29 Nov 2026 15:32:44 UTC", "Sun, 29 Nov 2026 15:32:44 +0000",
    "sun, 29 nov 2026 15:32:44 gmt", "29 Nov 2026 15:32:44 GMT", "Sun, 31 Feb 2027 15:32:44 GMT",
    "Sun, 29 Foo 2026 15:32:44 GMT", "Sun, 29 Nov 2026 25:32:44 GMT", "Sun, 29 Nov 2026 15:61:44 GMT",
    "Sun, 29 Nov 0000 15:32:44 GMT", "2026-11-29T15:32:44Z", "Sun, 29 Nov 2026 15:32:44 GMT; x",
    "Sun, ٢٩ Nov 2026 15:32:44 GMT",
    "Sunday, 29-Nov-2026 15:32:44 GMT", "So, 29 Nov 2026 15:32:44 GMT",
])  # fmt: skip
def test_nonsense_asks_for_nothing(header: str) -> None:
    assert retry_after_s(header, NOW) == 0


@pytest.mark.parametrize("header", ["Sat, 28 Nov 2026 15:30:44 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_date_in_the_past_asks_for_nothing(header: str) -> None:
    assert retry_after_s(header, NOW) == 0


@pytest.mark.parametrize("header", ["Fri, 31 Dec 9999 23:59:59 GMT", "Tue, 01 Dec 2026 15:30:45 GMT"])
def test_a_date_far_ahead_is_capped(header: str) -> None:
    assert retry_after_s(header, NOW) == DAY


@given(st.integers(min_value=0, max_value=3_300_000_000))
def test_whatever_the_library_writes_is_read(second: int) -> None:
    at = datetime.fromtimestamp(second, UTC)
    assert http_date(format_datetime(at, usegmt=True), NOW) == at
    assert http_date(at.strftime("%A, %d-%b-%y %H:%M:%S GMT"), at) == at
    assert http_date(f"{at:%a %b} {at.day:2d} {at:%H:%M:%S %Y}", NOW) == at


@given(st.text(max_size=40))
def test_no_header_whatever_leads_to_a_wait_below_none_or_above_a_day(header: str) -> None:
    assert 0 <= retry_after_s(header, NOW) <= DAY


# --- the next try ------------------------------------------------------------------------------------
def test_the_longer_of_schedule_and_retry_after_counts() -> None:
    deadline = later(days=3)
    assert next_try(NOW, 300, "", deadline) == later(300)
    assert next_try(NOW, 300, "60", deadline) == later(300)
    assert next_try(NOW, 300, "900", deadline) == later(900)
    assert next_try(NOW, 300, "999999", deadline) == later(days=1)


def test_there_is_a_last_try_before_the_deadline_and_none_after_it() -> None:
    deadline = later(hours=1)
    assert next_try(NOW, 7_200, "", deadline) == after(deadline, -LAST_CHANCE_S)
    assert next_try(after(deadline, -LAST_CHANCE_S), 5, "", deadline) is None
    assert next_try(deadline, 5, "", deadline) is None
    assert next_try(after(deadline, 60), 5, "0", deadline) is None


@given(
    st.floats(min_value=0, max_value=72_000),
    st.integers(min_value=0, max_value=200_000),
    st.integers(min_value=-1_000, max_value=300_000),
)
def test_the_next_try_is_ahead_and_in_time(wait: float, asked: int, left: int) -> None:
    at = next_try(NOW, wait, str(asked), later(left))
    if at is not None:
        assert NOW < at <= later(left - LAST_CHANCE_S)
        in_full = min(asked, DAY) <= seconds_between(NOW, at) + 1e-3
        assert in_full or at == later(left) - timedelta(seconds=LAST_CHANCE_S)


@given(st.lists(st.floats(min_value=0, max_value=1, exclude_max=True), min_size=9, max_size=9), st.integers(1, 168))
def test_a_receiver_that_never_answers_is_given_up_within_its_hours_after_at_most_ten_tries(
    draws: list[float], hours: int
) -> None:
    at, tries, drawn = NOW, 1, iter(draws)
    deadline = later(hours=hours)
    while tries < TRIES_MAX:
        following = next_try(at, wait_s(tries, lambda: next(drawn)), "", deadline)
        if following is None:
            break
        assert following > at
        at, tries = following, tries + 1
    assert at <= after(deadline, -LAST_CHANCE_S)
    assert tries <= TRIES_MAX
    assert schedule.REFUSALS_MAX < TRIES_MAX
