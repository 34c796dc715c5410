"""Who must hear of a record's state, and when a message to the worker comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PROCESSING, WAITING
from lambdas.contracts.validation import envelope_check
from lambdas.core import times, views
from lambdas.core.envelope import Hint, ReturnedLetter, read
from lambdas.core.job import from_record
from lambdas.core.policy import SKEW_S
from lambdas.core.routing import changed, route, work_message
from tests.builders import FINALS, JOB_ID, NOW, TENANT, any_job, any_record, final_job, held_record, later


# --- which writes are acted on ---------------------------------------------------------------------
def test_an_insert_is_something_to_hear_of() -> None:
    assert changed(None, any_record())


@pytest.mark.parametrize("over", [{"status": PROCESSING}, {"attempt": 1}, {"not_before": later(1)}])
def test_a_change_of_status_attempt_or_start_is_something_to_hear_of(over: dict[str, Any]) -> None:
    assert changed(any_record(), any_record(**over))


@pytest.mark.parametrize(
    "over",
    [
        {"due_at": later(900)},
        {"cost": 5},
        {"late_cost": 5},
        {"tries": 2},
        {"crashes": 1},
        {"history": []},
        {"due_shard": None},
    ],
)
def test_str_10_any_other_write_is_not(over: dict[str, Any]) -> None:
    assert not changed(any_record(), any_record(**over))


def test_a_claim_changes_the_attempt_but_asks_for_nothing_to_be_sent() -> None:
    held = held_record()
    assert changed(any_record(), held)
    assert route(any_job(status=PROCESSING, lease_until=later(130)), NOW) == route(any_job(status=WAITING), NOW)
    assert route(from_record(held), NOW).work is None


# --- work ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wait_s", "delay_s"),
    [
        (-60, 0),
        (0, 0),
        (0.001, 0),
        (1, 0),
        (1.001, 3),
        (1.2, 3),
        (59.5, 61),
        (898, 899),
        (899, 900),
        (899.5, 900),
        (900, 900),
    ],
)
def test_n11_a_delay_is_rounded_up_and_a_second_longer_but_never_above_fifteen_minutes(
    wait_s: float, delay_s: int
) -> None:
    message = work_message(any_job(not_before=later(wait_s)), NOW)
    assert message is not None
    assert message.delay_s == delay_s


@pytest.mark.parametrize("wait_s", [900.001, 901, 86_400])
def test_a_wait_beyond_fifteen_minutes_is_left_to_the_sweep(wait_s: float) -> None:
    job = any_job(not_before=later(wait_s))
    assert work_message(job, NOW) is None
    sent = route(job, NOW)
    assert (sent.work, sent.letter, sent.event, sent.hands_over) == (None, None, None, False)


@given(st.integers(0, 899_000))
def test_no_message_comes_before_its_job_may_be_claimed(wait_ms: int) -> None:
    job = any_job(not_before=later(wait_ms / 1000))
    message = work_message(job, NOW)
    assert message is not None
    assert (message.delay_s + SKEW_S) * 1000 >= wait_ms
    assert message.delay_s * 1000 <= wait_ms + 2_000


def test_the_hint_carries_the_attempt_and_the_crashes_and_is_grouped_by_tenant() -> None:
    message = route(any_job(attempt=3, crashes=2, tries=1, cost=7), NOW).work
    assert message is not None
    assert read(message.body) == Hint(JOB_ID, 3, 2)
    assert message.group == TENANT
    assert message.attributes == {
        "event_type": "job.dispatched", "job_id": JOB_ID, "tenant": TENANT, "type": "summarize", "attempt": "3",
        "tries": "1", "cost_micros": "7",
    }  # fmt: skip


# --- final -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", FINALS)
def test_every_final_state_is_published_and_only_a_failure_has_a_letter(status: str) -> None:
    sent = route(final_job(status, attempt=2), NOW)
    assert sent.work is None
    assert (sent.letter is not None) == (status == FAILED)
    assert sent.event is not None
    assert sent.hands_over
    event = json.loads(sent.event.body)
    assert event["event_id"] == f"{JOB_ID}.2.{status}"
    assert event["event_type"] == f"job.{status.lower()}"
    assert envelope_check()(event) is None


def test_the_dispatchers_and_the_sweeps_message_about_one_fact_share_their_event_id() -> None:
    job = final_job(FAILED)
    once, again = route(job, NOW), route(job, later(900))
    for one, other in ((once.letter, again.letter), (once.event, again.event)):
        assert one is not None
        assert other is not None
        assert json.loads(one.body)["event_id"] == json.loads(other.body)["event_id"]


def test_sns_attributes_carry_tenant_type_status_and_event_type() -> None:
    event = route(final_job(CANCELLED), NOW).event
    assert event is not None
    assert event.attributes == {
        "event_type": "job.cancelled", "tenant": TENANT, "type": "summarize", "status": CANCELLED,
    }  # fmt: skip


@pytest.mark.parametrize("which", ["work", "letter", "event"])
def test_what_is_told_of_a_cost_is_what_a_look_at_the_job_shows(which: str) -> None:
    found = any_job(cost=7, late_cost=5) if which == "work" else final_job(FAILED, cost=7, late_cost=5)
    message = getattr(route(found, NOW), which)
    told = {message.attributes.get("cost_micros"), json.loads(message.body)["payload"].get("cost_micros")}
    assert {int(cost) for cost in told if cost is not None} == {12} == {views.job(found)["cost_micros"]}


def test_a_letter_names_job_attempt_task_tenant_reason_tries_and_cost() -> None:
    letter = route(final_job(FAILED, attempt=4, tries=3, cost=120), NOW).letter
    assert letter is not None
    assert read(letter.body) == ReturnedLetter(JOB_ID, 4)
    assert letter.attributes == {
        "event_type": "job.dead_lettered", "job_id": JOB_ID, "tenant": TENANT, "type": "summarize", "attempt": "4",
        "reason": "TASK_ERROR", "tries": "3", "cost_micros": "120",
    }  # fmt: skip
    assert len(letter.attributes) <= 9  # SQS takes ten, one is left for a trace
    assert json.loads(letter.body)["payload"] == {
        "attempt": 4, "reason": "TASK_ERROR", "detail": "ValueError: no", "type": "summarize", "tries": 3, "crashes": 0,
        "cost_micros": 120, "created_at": times.text(NOW),
    }  # fmt: skip


def test_a_failure_without_a_recorded_reason_still_makes_a_letter() -> None:
    letter = route(final_job(FAILED, error=None), NOW).letter
    assert letter is not None
    assert (letter.attributes["reason"], json.loads(letter.body)["payload"]["detail"]) == ("UNKNOWN", "")


def test_the_event_of_a_result_says_where_it_lies_and_of_an_error_what_it_was() -> None:
    done, failed = route(final_job(COMPLETED), NOW).event, route(final_job(FAILED), NOW).event
    assert done is not None
    assert failed is not None
    assert json.loads(done.body)["payload"] == {
        "status": COMPLETED, "type": "summarize", "attempt": 1, "tries": 1, "cost_micros": 0,
        "created_at": times.text(NOW), "finished_at": times.text(NOW),
        "result": {"key": f"results/{TENANT}/{JOB_ID}/1", "bytes": 42}, "error": None,
    }  # fmt: skip
    assert json.loads(failed.body)["payload"]["error"]["code"] == "TASK_ERROR"
    assert json.loads(failed.body)["payload"]["result"] is None


@pytest.mark.parametrize("status", [*FINALS, "PENDING"])
def test_every_attribute_is_text_that_sqs_takes(status: str) -> None:
    sent = route(final_job(status), NOW)
    for message in (sent.work, sent.letter, sent.event):
        if message is not None:
            assert all(isinstance(value, str) and value.isprintable() for value in message.attributes.values())
            assert len(message.attributes) <= 9


# --- urgent jobs -----------------------------------------------------------------------------------
@pytest.mark.parametrize("urgent", [True, False])
def test_work_and_letters_of_an_urgent_job_are_urgent_whatever_attempt_they_are_about(urgent: bool) -> None:
    over = {"urgent": urgent or None}
    first, again = route(any_job(**over), NOW).work, route(any_job(attempt=4, crashes=1, **over), NOW).work
    dead = route(final_job(FAILED, **over), NOW)
    told = [message for message in (first, again, dead.letter) if message is not None]
    assert [message.urgent for message in told] == [urgent] * 3
    assert dead.event is not None
    assert dead.event.urgent is False  # there is one topic
