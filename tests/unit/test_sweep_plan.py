"""Row 15: what a job that was found due needs, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, WAITING
from lambdas.core import changes, times
from lambdas.core.job import from_record
from lambdas.core.policy import Limits
from lambdas.core.sweeping.plan import HAND_OVER_AGE_S, Expire, HandOver, Leave, Look, Plan, Reap, SendAgain, plan
from tests.builders import FINALS, NOW, any_record, final_record, handed_over, held_record, later

LIMITS = Limits()
OLD = later(-120)


def _plan(record: dict[str, Any], max_tries: int = 5) -> Plan:
    return plan(from_record(record), NOW, max_tries, LIMITS)


def due(found: Plan) -> str:
    """When the plan lets the next sweep look."""
    assert isinstance(found, Look | SendAgain)
    change = found.change if isinstance(found, Look) else found.push
    return str(change.sets["due_at"])


def test_final_jobs_are_left_to_the_dispatcher_for_two_minutes() -> None:
    assert HAND_OVER_AGE_S == 120


def test_a_final_job_that_does_not_say_when_it_ended_is_handed_over() -> None:
    assert isinstance(_plan(final_record(COMPLETED, finished_at=None)), HandOver)


@pytest.mark.parametrize("status", FINALS)
def test_a_final_job_two_minutes_old_is_handed_over(status: str) -> None:
    assert isinstance(_plan(final_record(status, finished_at=OLD)), HandOver)


@pytest.mark.parametrize("status", FINALS)
def test_a_younger_final_job_is_left_to_the_dispatcher(status: str) -> None:
    assert isinstance(_plan(final_record(status, finished_at=later(-119.9))), Leave)


def test_a_final_job_that_was_handed_over_needs_nothing() -> None:
    assert isinstance(_plan(handed_over(COMPLETED, finished_at=OLD)), Leave)


def test_a_lapsed_job_is_reaped() -> None:
    assert isinstance(_plan(held_record(lease_until=later(-0.001))), Reap)


@pytest.mark.parametrize("lease_s", [0, 1, 300])
def test_swp_01_a_live_lease_that_ends_before_the_next_sweep_is_left_alone(lease_s: int) -> None:
    assert isinstance(_plan(held_record(lease_until=later(lease_s))), Leave)


def test_a_live_lease_beyond_the_next_sweep_is_looked_at_when_it_ends() -> None:
    assert due(_plan(held_record(lease_until=later(301)))) == times.text(later(301))


@pytest.mark.parametrize("over", [{"tries": 9}, {"deadline_at": later(-1)}])
def test_a_live_lease_is_left_alone_even_by_a_used_up_or_late_job(over: dict[str, Any]) -> None:
    assert isinstance(_plan(held_record(**over)), Leave)


@pytest.mark.parametrize(
    "record",
    [
        held_record(lease_until=later(-1), tries=5),
        held_record(lease_until=later(-1), deadline_at=NOW),
        any_record(tries=5),
        any_record(deadline_at=NOW),
        any_record(deadline_at=later(-1), not_before=later(60)),
        any_record(status=WAITING, deadline_at=NOW),
    ],
)
def test_swp_03_a_used_up_or_late_job_is_failed(record: dict[str, Any]) -> None:
    found = _plan(record)
    assert isinstance(found, Expire)
    assert found.change.sets["status"] == FAILED


def test_the_bound_is_that_of_the_jobs_own_task() -> None:
    assert isinstance(_plan(any_record(tries=2), max_tries=2), Expire)
    assert isinstance(_plan(any_record(tries=2), max_tries=3), SendAgain)


def test_an_early_job_beyond_the_next_sweep_is_looked_at_when_it_may_start() -> None:
    assert due(_plan(any_record(not_before=later(301)))) == times.text(later(301))
    assert isinstance(_plan(any_record(not_before=later(300))), Leave)


def test_the_next_look_is_never_after_the_deadline() -> None:
    assert due(_plan(any_record(not_before=later(3_600), deadline_at=later(600)))) == times.text(later(600))
    assert due(_plan(any_record(deadline_at=later(10)))) == times.text(later(10))


@pytest.mark.parametrize(("age_s", "next_s"), [(0, 300), (120, 300), (300, 300), (301, 301), (3_600, 3_600)])
def test_a_claimable_job_is_sent_again_and_looked_at_later_and_later(age_s: int, next_s: int) -> None:
    found = _plan(any_record(not_before=later(-age_s)))
    assert isinstance(found, SendAgain)
    assert due(found) == times.text(later(next_s))


@pytest.mark.parametrize(
    ("over", "urgent"),
    [
        ({"not_before": later(-1), "due_at": later(-1)}, True),
        ({"not_before": later(-250), "due_at": later(-250)}, True),
        ({"not_before": later(-250), "due_at": later(-130)}, False),
        ({"not_before": later(-1), "due_at": later(-2)}, False),
        ({"not_before": later(-3_599.9), "due_at": later(-1)}, False),
        ({"not_before": later(-3_600), "due_at": later(-1)}, True),
        ({"not_before": later(-90_000), "due_at": later(-1), "deadline_at": later(1)}, True),
        ({"not_before": later(-1), "due_at": None}, False),
        ({"not_before": later(-1), "due_at": None, "urgent": True}, True),
    ],
)
def test_who_certainly_has_no_message_or_has_waited_an_hour_is_urgent(over: dict[str, Any], urgent: bool) -> None:
    found = _plan(any_record(**over))
    assert isinstance(found, SendAgain)
    assert found.urgent is urgent


@pytest.mark.parametrize(("wait_s", "urgent"), [(900, False), (901, True)])
def test_a_wait_that_no_message_can_hold_back_is_urgent_at_its_first_look_and_at_no_further_one(
    wait_s: float, urgent: bool
) -> None:
    held = held_record()
    why = {"code": "NOT_READY", "message": ""}
    parked = changes.park(
        from_record(held), now=NOW, until=later(wait_s), why=why, cost=0, refund=True, limits=LIMITS
    ).applied_to(held)  # fmt: skip
    first = plan(from_record(parked), later(wait_s + 300), 5, LIMITS)
    assert isinstance(first, SendAgain)
    assert first.urgent is urgent
    second = plan(from_record(first.push.applied_to(parked)), later(wait_s + 900), 5, LIMITS)
    assert isinstance(second, SendAgain)
    assert not second.urgent
