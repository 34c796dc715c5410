"""How many may call an endpoint at once, and whether it may be called: places are leases, failures in a row open it."""

from __future__ import annotations

import pytest

from lambdas.core.protocol import Change
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks.circuits import FAILURES_MAX, PROBE
from lambdas.core.webhooks.ports import Busy, Entered, Key, Open
from tests.builders import NOW, TENANT, later
from tests.fakes import Trouble
from tests.fakes_webhooks import ENDPOINT, FakeCircuits

KEY = circuits.key(TENANT, ENDPOINT)


def enter(own: FakeCircuits, holder: str, at_s: float = 0, lease_s: float = 70) -> Entered | Busy | Open:
    return own.enter(TENANT, ENDPOINT, holder=holder, now=later(at_s), until=later(at_s + lease_s))


def leave(own: FakeCircuits, holder: str, slot: int = 0, at_s: float = 0, *, ok: bool = False) -> None:
    own.leave(TENANT, ENDPOINT, holder=holder, slot=slot, now=later(at_s), ok=ok, note="HTTP 200" if ok else "HTTP 500")


def failed(own: FakeCircuits, times: int, at_s: float = 0) -> None:
    for number in range(times):
        assert enter(own, f"h{number}", at_s) == Entered(0)
        leave(own, f"h{number}", at_s=at_s)


def opened(at_s: float = 0) -> FakeCircuits:
    own = FakeCircuits()
    failed(own, FAILURES_MAX, at_s)
    return own


def state(own: FakeCircuits, at_s: float = 0) -> str:
    return own.read(TENANT, ENDPOINT).state(later(at_s))


# --- places ----------------------------------------------------------------------------------------
def test_the_first_one_enters_with_one_write() -> None:
    own = FakeCircuits()
    assert enter(own, "a") == Entered(0)
    assert own.rows.calls == ["enter"]


def test_there_are_so_many_places_and_no_more() -> None:
    own = FakeCircuits(places=3)
    assert [enter(own, holder) for holder in "abcd"] == [Entered(0), Entered(1), Entered(2), Busy()]


def test_who_is_in_gets_its_own_place_again() -> None:
    own = FakeCircuits()
    assert [enter(own, "a"), enter(own, "b"), enter(own, "b"), enter(own, "a")] == [
        Entered(0), Entered(1), Entered(1), Entered(0),
    ]  # fmt: skip


def test_a_place_is_free_when_it_is_left_or_its_time_is_over_and_not_before() -> None:
    own = FakeCircuits(places=1)
    enter(own, "a")
    assert enter(own, "b", 70) == Busy()
    assert enter(own, "b", 70.001) == Entered(0)
    leave(own, "b", at_s=71, ok=True)
    assert enter(own, "c", 71) == Entered(0)


def test_who_was_too_slow_frees_nobody_elses_place() -> None:
    own = FakeCircuits(places=1)
    enter(own, "a")
    enter(own, "b", 100)
    before = dict(own.rows.records[KEY])
    leave(own, "a", at_s=101, ok=True)
    leave(own, "a", at_s=101)
    assert own.rows.records[KEY] == before
    assert enter(own, "c", 101) == Busy()


def test_a_place_that_somebody_else_took_meanwhile_is_not_taken_twice() -> None:
    own = FakeCircuits(places=2)
    enter(own, "a")
    seen = own.rows.apply

    def overtaken(key: Key, change: Change) -> object:
        if "place_1_holder" in change.sets and "b" not in own.rows.calls:  # it was free a moment ago
            own.rows.calls.append("b")
            seen(key, circuits.enter(1, holder="b", now=NOW, until=later(70)))
        return seen(key, change)

    own.rows.apply = overtaken  # type: ignore[method-assign, assignment]
    assert enter(own, "me") == Busy()


@pytest.mark.parametrize("trouble", [Trouble.LOST_REPLY])
def test_a_lost_reply_takes_no_second_place(trouble: Trouble) -> None:
    own = FakeCircuits()
    own.rows.troubles.add("enter", trouble)
    assert enter(own, "a") == Entered(0)
    assert "place_1_holder" not in own.rows.records[KEY]


def test_a_row_that_nobody_uses_ends_by_itself() -> None:
    own = FakeCircuits()
    enter(own, "a")
    assert own.rows.records[KEY]["expires_at"] > int(later(days=29).timestamp())


# --- open, half open, closed -----------------------------------------------------------------------
def test_it_opens_after_five_failures_in_a_row() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 1)
    assert state(own) == "closed"
    failed(own, 1)
    assert enter(own, "x") == Open(later(60))
    assert enter(own, "x", 59.999) == Open(later(60))


def test_one_success_in_between_begins_anew() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 1)
    enter(own, "a")
    leave(own, "a", ok=True)
    failed(own, FAILURES_MAX - 1)
    assert state(own) == "closed"


def test_half_open_one_probe_is_let_in_and_the_others_wait() -> None:
    own = opened()
    assert state(own, 60) == "half_open"
    assert enter(own, "p", 60) == Entered(PROBE, probe=True)
    assert enter(own, "q", 60) == Busy()
    assert enter(own, "p", 60) == Entered(PROBE, probe=True)


def test_a_probe_that_was_killed_is_replaced_when_its_time_is_over() -> None:
    own = opened()
    enter(own, "p", 60, lease_s=70)
    assert enter(own, "q", 130) == Busy()
    assert enter(own, "q", 130.001) == Entered(PROBE, probe=True)


def test_a_probe_that_is_taken_closes_it() -> None:
    own = opened()
    enter(own, "p", 60)
    leave(own, "p", PROBE, 61, ok=True)
    assert (state(own, 61), own.read(TENANT, ENDPOINT).failures) == ("closed", 0)
    assert enter(own, "a", 61) == Entered(0)


def test_each_probe_that_fails_doubles_the_time_up_to_an_hour() -> None:
    own, at_s, periods = opened(), 60.0, []
    for number in range(9):
        assert enter(own, f"p{number}", at_s) == Entered(PROBE, probe=True)
        leave(own, f"p{number}", PROBE, at_s)
        found = enter(own, "x", at_s)
        assert isinstance(found, Open)
        periods.append((found.until - later(at_s)).total_seconds())
        at_s += periods[-1]
    assert periods == [120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


def test_who_was_in_when_it_opened_makes_it_no_worse_and_frees_its_place() -> None:
    own = FakeCircuits(places=2)
    enter(own, "late")
    for number in range(FAILURES_MAX):
        enter(own, f"h{number}")
        leave(own, f"h{number}", 1)
    leave(own, "late", 0, 5)
    row = own.rows.records[KEY]
    assert (row["failures"], "place_0_holder" in row) == (FAILURES_MAX, False)
    assert own.read(TENANT, ENDPOINT).open_until == later(60)


def test_who_was_in_when_it_opened_and_is_taken_closes_it() -> None:
    own = FakeCircuits(places=2)
    enter(own, "late")
    for number in range(FAILURES_MAX):
        enter(own, f"h{number}")
        leave(own, f"h{number}", 1)
    leave(own, "late", 0, 5, ok=True)
    assert state(own, 5) == "closed"


def test_a_failure_whose_reply_was_lost_counts_once() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 2)
    enter(own, "a")
    own.rows.troubles.add("leave_failed", Trouble.LOST_REPLY)
    leave(own, "a")
    assert (own.read(TENANT, ENDPOINT).failures, state(own)) == (FAILURES_MAX - 1, "closed")


def test_the_fifth_failure_opens_it_even_if_its_reply_was_lost() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 1)
    enter(own, "a")
    own.rows.troubles.add("leave_failed", Trouble.LOST_REPLY)
    leave(own, "a")
    assert state(own) == "open"


def test_who_was_killed_before_it_opened_leaves_that_to_the_next_failure() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 1)
    enter(own, "a")
    own.rows.apply(KEY, circuits.leave_failed(0, holder="a", note="", now=NOW))
    failed(own, 1)
    assert state(own) == "open"


def test_it_is_not_opened_when_somebody_was_taken_meanwhile() -> None:
    own = FakeCircuits()
    failed(own, FAILURES_MAX - 1)
    enter(own, "a")
    left = own.rows.apply(KEY, circuits.leave_failed(0, holder="a", note="", now=NOW))
    enter(own, "b")
    leave(own, "b", ok=True)
    assert left.record is not None
    own.rows.apply(KEY, circuits.open_again(left.record["failures"], now=NOW))
    assert state(own) == "closed"


def test_a_human_may_close_it() -> None:
    own = opened()
    own.reset(TENANT, ENDPOINT)
    assert (state(own), own.read(TENANT, ENDPOINT).failures) == ("closed", 0)
    assert enter(own, "a") == Entered(0)


def test_closing_what_was_never_called_makes_no_row() -> None:
    own = FakeCircuits()
    own.reset(TENANT, ENDPOINT)
    assert own.rows.records == {}


def test_what_its_last_attempt_came_to_is_told() -> None:
    own = FakeCircuits()
    assert own.read(TENANT, ENDPOINT) == circuits.Circuit()
    failed(own, 1, 7)
    found = own.read(TENANT, ENDPOINT)
    assert (found.note, found.noted_at, found.failures) == ("HTTP 500", later(7), 1)
