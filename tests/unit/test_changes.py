"""Each write of the protocol, made from a job: what it sets, what it counts, and what the record has to say of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import changes, ids, times
from lambdas.core.job import Job, from_record
from lambdas.core.policy import DAY_S, Limits
from lambdas.core.protocol import Change
from tests.builders import (
    JOB_ID,
    NOW,
    TENANT,
    any_job,
    any_record,
    final_job,
    final_record,
    handed_over,
    held_job,
    held_record,
    later,
    record_bytes,
)

LIMITS = Limits()
WHY = {"code": "TASK_ERROR", "message": "ValueError: no"}
AT = later(60)


def written(change: Change, record: dict[str, Any]) -> Job:
    """The job after this write, which the record must allow."""
    assert change.may(record)
    return from_record(change.applied_to(record))


def whats(job: Job) -> list[str]:
    return [str(line["what"]) for line in job.history]


# --- row 1: when somebody must look ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("not_before", "looks"),
    [
        (NOW, later(120)),
        (later(-5), later(120)),
        (later(60), later(180)),
        (later(900), later(1_020)),
        (later(900.001), later(900.001)),
        (later(hours=5), later(hours=5)),
    ],
)
def test_the_first_look_is_the_start_when_only_the_sweep_sends_and_a_grace_later_otherwise(
    not_before: datetime, looks: datetime
) -> None:
    assert changes.first_look(NOW, not_before, later(days=9), LIMITS) == looks


@given(st.integers(-1_000, 200_000), st.integers(-1_000, 200_000))
def test_no_look_is_later_than_the_deadline(wait: int, deadline: int) -> None:
    assert changes.first_look(NOW, later(wait), later(deadline), LIMITS) <= later(deadline)


# --- row 3 -----------------------------------------------------------------------------------------
def test_a_claim_charges_a_try_and_ends_ten_seconds_after_the_invocation() -> None:
    change = changes.claim(claim_id="me", max_tries=5, now=NOW, invocation_ends=later(120))
    job = written(change, any_record(attempt=4, tries=2))
    assert (job.status, job.attempt, job.tries, job.claim_id) == (PROCESSING, 5, 3, "me")
    assert (job.claimed_at, job.lease_until) == (NOW, later(130))
    assert job.due_at == any_job().due_at
    assert job.history == any_job().history


def test_pulling_due_in_sets_it_to_the_end_of_the_lease() -> None:
    assert written(changes.pull_due(held_job()), held_record(due_at=later(hours=1))).due_at == later(130)


# --- row 4 -----------------------------------------------------------------------------------------
def test_completing_points_to_the_result_of_this_attempt_and_lets_the_record_expire() -> None:
    change = changes.complete(held_job(attempt=3), now=AT, result_bytes=17, cost=250, limits=LIMITS)
    job = written(change, held_record(attempt=3, cost=50, error=WHY))
    assert (job.status, job.result_key, job.result_bytes) == (COMPLETED, ids.result_key(TENANT, JOB_ID, 3), 17)
    assert (job.cost, job.error, job.finished_at) == (300, None, AT)
    assert whats(job) == ["accepted", "claimed", "completed"]
    assert job.history[1]["at"] == times.text(NOW)
    assert job.due_at is not None


@pytest.mark.parametrize(
    "change",
    [
        changes.complete(held_job(), now=AT, result_bytes=1, cost=0, limits=LIMITS),
        changes.fail(held_job(), now=AT, why=WHY, cost=0, limits=LIMITS),
        changes.expire(held_job(lease_until=later(-1)), now=AT, max_tries=1, limits=LIMITS),
    ],
    ids=lambda change: change.rule.name,
)
def test_ddb_09_expiry_is_epoch_seconds_counted_from_the_end(change: Change) -> None:
    assert change.sets["expires_at"] == int(AT.timestamp()) + 90 * DAY_S
    assert len(str(change.sets["expires_at"])) == 10


def test_no_other_write_lets_a_record_expire() -> None:
    job = held_job()
    others = [
        changes.claim(claim_id="me", max_tries=5, now=NOW, invocation_ends=AT),
        changes.retry(job, now=AT, wait_s=1, why=WHY, cost=0, limits=LIMITS),
        changes.park(job, now=AT, until=AT, why=WHY, cost=0, refund=True, limits=LIMITS),
        changes.leave(attempt=1, now=AT),
        changes.reap(job, now=AT, limits=LIMITS),
        changes.push_due(job, AT),
        changes.reopen(final_job(FAILED), now=AT, limits=LIMITS),
    ]
    assert [change.rule.name for change in others if "expires_at" in change.sets] == []


# --- rows 5, 5p, 5u --------------------------------------------------------------------------------
def test_a_retry_waits_keeps_the_try_charged_and_says_why() -> None:
    change = changes.retry(held_job(), now=AT, wait_s=30, why=WHY, cost=7, limits=LIMITS)
    job = written(change, held_record(tries=2, cost=1))
    assert (job.status, job.tries, job.sample, job.unusable, job.cost) == (PENDING, 2, 0, 0, 8)
    assert (job.not_before, job.due_at, job.backoff_ms) == (later(90), later(210), 30_000)
    assert job.error == WHY
    assert whats(job) == ["accepted", "claimed", "retried"]


@pytest.mark.parametrize(("anew", "sample", "unusable"), [("sample", 2, 3), ("unusable", 1, 4)])
def test_asking_anew_raises_its_own_counter_and_no_other_in_the_same_write(
    anew: str, sample: int, unusable: int
) -> None:
    record = held_record(sample=1, unusable=3)
    change = changes.retry(from_record(record), now=AT, wait_s=0, why=WHY, cost=0, limits=LIMITS, anew=anew)
    job = written(change, record)
    assert (job.sample, job.unusable, job.not_before, job.backoff_ms) == (sample, unusable, AT, 0)
    assert whats(job)[-1] == "rejected"


def test_the_first_unusable_answer_is_counted_on_a_record_that_does_not_know_the_counter_yet() -> None:
    change = changes.retry(held_job(), now=AT, wait_s=0, why=WHY, cost=0, limits=LIMITS, anew="unusable")
    record = held_record()
    assert "unusable" not in record
    assert written(change, record).unusable == 1


@pytest.mark.parametrize(("refund", "tries"), [(True, 0), (False, 1)])
def test_parking_gives_the_try_back_only_when_it_is_told_to(refund: bool, tries: int) -> None:
    change = changes.park(held_job(), now=AT, until=later(120), why=WHY, cost=3, refund=refund, limits=LIMITS)
    job = written(change, held_record())
    assert (job.tries, job.waits, job.cost, job.attempt) == (tries, 1, 3, 1)
    assert job.not_before == later(120)


@pytest.mark.parametrize("wait_s", [0, 600, 3_600, 30 * DAY_S])
def test_no_wait_reaches_beyond_the_deadline(wait_s: float) -> None:
    change = changes.retry(held_job(), now=AT, wait_s=wait_s, why=WHY, cost=0, limits=LIMITS)
    job = written(change, held_record())
    assert job.not_before <= job.deadline_at
    assert job.due_at is not None
    assert job.due_at <= job.deadline_at


def test_a_wait_that_no_message_can_hold_back_is_due_when_it_ends() -> None:
    change = changes.park(held_job(), now=NOW, until=later(3_600), why=WHY, cost=0, refund=True, limits=LIMITS)
    assert written(change, held_record()).due_at == later(3_600)


def test_leaving_a_job_puts_it_off_by_a_second_and_charges_nothing() -> None:
    job = written(changes.leave(attempt=2, now=NOW), any_record(attempt=2, tries=1))
    assert (job.not_before, job.tries, job.attempt, job.status) == (later(1), 1, 2, PENDING)


# --- rows 6, 7 -------------------------------------------------------------------------------------
def test_failing_keeps_the_reason_and_books_the_cost() -> None:
    job = written(changes.fail(held_job(), now=AT, why=WHY, cost=9, limits=LIMITS), held_record(cost=1))
    assert (job.status, job.error, job.cost, job.finished_at) == (FAILED, WHY, 10, AT)
    assert job.history[-1]["note"] == "TASK_ERROR: ValueError: no"


def test_expiring_a_late_job_says_the_deadline_and_its_last_trouble() -> None:
    late = any_record(deadline_at=NOW, error=WHY)
    job = written(changes.expire(from_record(late), now=NOW, max_tries=5, limits=LIMITS), late)
    assert job.status == FAILED
    assert job.error is not None
    assert job.error["code"] == "DEADLINE_EXCEEDED"
    assert "Last: TASK_ERROR: ValueError: no" in job.error["message"]


def test_expiring_a_crashed_job_says_its_tries_and_crashes_and_when_it_was_claimed() -> None:
    used = held_record(tries=5, crashes=2, lease_until=later(-1))
    job = written(changes.expire(from_record(used), now=NOW, max_tries=5, limits=LIMITS), used)
    assert job.error == {"code": "ATTEMPTS_EXHAUSTED", "message": "5 of 5 tries used, 2 crashed."}
    assert whats(job) == ["accepted", "claimed", "failed"]


@given(
    st.text(st.characters(exclude_categories=()), max_size=300),
    st.text(st.characters(exclude_categories=()), max_size=300),
)
def test_a_reason_is_always_short_and_its_code_can_stand_on_a_message(code: str, message: str) -> None:
    why = changes.error(code, message)
    assert 0 < len(why["code"]) <= 64
    assert why["code"].isascii()
    assert why["code"].isprintable()
    assert len(why["message"].encode()) <= 200


def test_a_code_that_is_no_text_becomes_text() -> None:
    assert changes.error(404, "gone")["code"] == "404"  # type: ignore[arg-type]


# --- row 8 -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_reopening_starts_anew_under_the_next_attempt_and_run(status: str) -> None:
    record = final_record(
        status, attempt=4, tries=5, crashes=2, sample=1, unusable=2, waits=3, backoff_ms=9, cost=10,
        late_cost=5, due_at=None, due_shard=None,
    )  # fmt: skip
    at = later(days=2)
    job = written(changes.reopen(from_record(record), now=at, limits=LIMITS), record)
    assert (job.status, job.attempt, job.run) == (PENDING, 5, 1)
    assert (job.tries, job.crashes, job.sample, job.unusable, job.waits, job.backoff_ms) == (0, 0, 0, 0, 0, 0)
    assert (job.not_before, job.deadline_at, job.due_at) == (at, later(days=3), later(120, days=2))
    assert (job.cost, job.late_cost) == (15, 0)
    assert (job.expires_at, job.claim_id, job.finished_at, job.result_key) == (None, None, None, None)


def test_reopening_leaves_nothing_of_the_end_and_says_so_in_the_history() -> None:
    record = handed_over(FAILED, attempt=4, result_key="k", result_bytes=1)
    reopened = changes.reopen(from_record(record), now=AT, limits=LIMITS).applied_to(record)
    gone = {"expires_at", "claim_id", "finished_at", "handed_over_at", "late_cost", "result_key", "result_bytes"}
    assert gone & reopened.keys() == set()
    assert reopened["history"][-1] == {"at": times.text(AT), "what": "reopened", "attempt": 5}


def test_reopening_recognises_its_own_lost_reply() -> None:
    record = handed_over(FAILED, attempt=4)
    change = changes.reopen(from_record(record), now=AT, limits=LIMITS)
    assert change.is_own_effect(change.applied_to(record))


def test_reopening_puts_the_job_back_into_the_due_index() -> None:
    record = final_record(FAILED, due_at=None, due_shard=None)
    reopened = changes.reopen(from_record(record), now=AT, limits=LIMITS).applied_to(record)
    assert reopened["due_shard"] == ids.due_shard(JOB_ID)


# --- rows 9, 10, 15 --------------------------------------------------------------------------------
def test_late_cost_is_booked_once_however_often_the_write_is_repeated() -> None:
    record = held_record(status=CANCELLED)
    change = changes.book_late(from_record(record), 40)
    booked = change.applied_to(record)
    assert booked["late_cost"] == 40
    assert not change.may(booked)
    assert change.is_own_effect(booked)


def test_handing_over_takes_the_job_out_of_the_due_index_and_leaves_its_state() -> None:
    record = final_record(FAILED)
    handed = changes.hand_over(from_record(record), now=AT).applied_to(record)
    assert "due_at" not in handed
    assert "due_shard" not in handed
    assert handed["status"] == FAILED
    assert from_record(handed).is_handed_over


def test_reaping_counts_the_crash_keeps_the_try_and_lets_the_job_run_at_once() -> None:
    record = held_record(tries=3, crashes=1)
    found = later(300)
    job = written(changes.reap(from_record(record), now=found, limits=LIMITS), record)
    assert (job.status, job.tries, job.crashes, job.attempt) == (PENDING, 3, 2, 1)
    assert (job.not_before, job.due_at) == (found, later(420))
    assert whats(job) == ["accepted", "claimed", "crashed"]


def test_a_reaped_job_is_looked_at_by_its_deadline() -> None:
    record = held_record(deadline_at=later(310))
    assert written(changes.reap(from_record(record), now=later(300), limits=LIMITS), record).due_at == later(310)


@pytest.mark.parametrize("ending", ["retry", "park", "fail"])
def test_a_holder_that_comes_late_does_not_take_the_sweeps_write_for_its_own(ending: str) -> None:
    held, lapsed = held_job(), held_record(lease_until=later(-1))
    swept = (
        changes.expire(from_record(lapsed), now=NOW, max_tries=1, limits=LIMITS)
        if ending == "fail"
        else changes.reap(from_record(lapsed), now=NOW, limits=LIMITS)
    )
    late = {
        "retry": changes.retry(held, now=NOW, wait_s=1, why=WHY, cost=1, limits=LIMITS),
        "park": changes.park(held, now=NOW, until=AT, why=WHY, cost=1, refund=True, limits=LIMITS),
        "fail": changes.fail(held, now=NOW, why=WHY, cost=1, limits=LIMITS),
    }[ending]
    record = swept.applied_to(lapsed)
    assert not late.may(record)
    assert not late.is_own_effect(record)


def test_the_next_look_is_never_pushed_beyond_the_deadline() -> None:
    job = any_job(deadline_at=later(600))
    assert written(changes.push_due(job, later(300)), any_record()).due_at == later(300)
    assert written(changes.push_due(job, later(9_000)), any_record()).due_at == later(600)


def test_a_note_of_an_operator_adds_a_line_and_changes_nothing_else() -> None:
    record = final_record(FAILED)
    change = changes.note(from_record(record), "repaired", "by eve: " + "x" * 500, at=AT)
    assert change.may(record)
    after = change.applied_to(record)
    assert {name for name in after if after[name] != record.get(name)} == {"history"}
    line = from_record(after).history[-1]
    assert (line["what"], line["at"], line["attempt"], len(line["note"])) == ("repaired", times.text(AT), 1, 200)


# --- what a record may weigh -----------------------------------------------------------------------
def _rounds(record: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Claimed and put back that many times, with the longest reason there can be."""
    why = changes.error("C" * 500, "\N{ROCKET}" * 500)
    for _ in range(rounds):
        job = from_record(
            changes.claim(claim_id="m" * 22, max_tries=9**9, now=NOW, invocation_ends=AT).applied_to(record)
        )
        record = changes.park(job, now=NOW, until=NOW, why=why, cost=1, refund=True, limits=LIMITS).applied_to(
            {**record, "status": PROCESSING, "claim_id": "m" * 22, "claimed_at": times.text(NOW)}
        )
    return record


def test_a_record_stops_growing_however_often_its_job_waits() -> None:
    few, many = _rounds(any_record(), 12), _rounds(any_record(), 400)
    assert record_bytes(many) - record_bytes(few) < 20
    assert record_bytes(many) < 8_192


def test_the_record_of_a_usual_job_fits_in_one_write_unit_from_accept_to_hand_over() -> None:
    """1,024 bytes: a form of 200 bytes, accepted, claimed once, completed, handed over."""
    form = '{"fields":{"message":"' + "m" * 175 + '"}}'
    assert len(form) == 200
    record = any_record(type="classify", input=form, trace_id="a" * 32)
    weights = [record_bytes(record)]
    record = changes.claim(claim_id="m" * 22, max_tries=5, now=NOW, invocation_ends=AT).applied_to(record)
    weights.append(record_bytes(record))
    done = changes.complete(from_record(record), now=AT, result_bytes=1_000, cost=1_000, limits=LIMITS)
    record = done.applied_to(record)
    weights.append(record_bytes(record))
    record = changes.hand_over(from_record(record), now=AT).applied_to(record)
    weights.append(record_bytes(record))
    assert max(weights) <= 1_024
