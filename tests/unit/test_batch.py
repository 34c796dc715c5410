"""What one delivered message leads to: buried, run, put off, left on the queue. It never harms its batch-mates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.contracts.validation import envelope_check
from lambdas.core import ids
from lambdas.core.batch import Done, Early, Failed, is_suspect
from lambdas.core.job import Job
from tests.builders import (
    JOB_ID,
    any_delivery,
    any_envelope,
    any_hint_body,
    any_letter_body,
    any_record,
    final_record,
    handed_over,
    held_record,
    later,
)
from tests.fakes import Trouble
from tests.unit.bench import Bench

NO_TIME = "no time left to start it here"


# --- a hint ----------------------------------------------------------------------------------------
def test_a_hint_claims_runs_and_is_acknowledged() -> None:
    bench = Bench(any_record())
    about: list[Job] = []
    assert bench.handle(about=about.append) == Done("completed")
    assert bench.job().status == COMPLETED
    assert bench.notices.steps[0] == "claimed"
    assert [job.attempt for job in about] == [1]


def test_the_claim_is_named_by_the_invocation_and_the_message() -> None:
    bench = Bench(any_record())
    bench.handle(any_delivery(request_id="r7", message_id="m9"))
    assert bench.job().claim_id == ids.claim_id("r7", "m9")


def test_sqs_09_the_same_hint_under_a_new_message_id_runs_the_job_once() -> None:
    bench = Bench(any_record())
    bench.handle(any_delivery(message_id="m1"))
    assert bench.handle(any_delivery(message_id="m2")) == Done("already COMPLETED")
    assert len(bench.model.requests) == 1


def test_batch_07_a_job_held_by_somebody_else_is_acknowledged_not_failed() -> None:
    bench = Bench(held_record())
    assert bench.handle() == Done("held by somebody else")
    assert bench.notices.of("acknowledged")["reason"] == "held by somebody else"


def test_an_early_message_is_hidden_for_the_rest_of_the_wait() -> None:
    assert Bench(any_record(not_before=later(30))).handle() == Early(30)


@pytest.mark.parametrize("call", ["claim", "complete"])
@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_a_store_that_cannot_be_reached_leaves_the_message_on_the_queue(call: str, trouble: Trouble) -> None:
    bench = Bench(any_record())
    bench.store.troubles.add(call, trouble)
    assert isinstance(bench.handle(), Failed)


def test_the_tenant_the_type_and_the_input_come_from_the_record_never_from_the_message() -> None:
    bench = Bench(any_record())
    forged = any_envelope(tenant_id="globex", payload={"type": "other", "input": {"text": "forged"}})
    bench.handle(any_delivery(json.dumps(forged)))
    assert bench.answers.asked[0]["tenant"] == "acme"
    assert bench.model.requests[0].prompt == "Houston, we have had a problem."


# --- no time left: row 5u --------------------------------------------------------------------------
def test_5u_a_job_for_which_no_time_is_left_is_put_off_and_never_claimed() -> None:
    bench = Bench(any_record(), remaining_s=74.9)
    assert bench.handle() == Done(NO_TIME)
    assert (bench.job().status, bench.job().attempt, bench.job().not_before) == (PENDING, 0, later(1))
    assert bench.store.calls == ["leave"]
    assert bench.notices.told[0] == ("no_time_left", {"job_id": JOB_ID})


def test_5u_a_job_for_which_the_time_just_suffices_is_run() -> None:
    assert Bench(any_record(), remaining_s=75).handle() == Done("completed")


@pytest.mark.parametrize(
    "record",
    [held_record(lease_until=later(-1)), handed_over(COMPLETED), any_record(attempt=4)],
    ids=["lapsed", "done", "older"],
)
def test_n10_a_refused_leave_is_acknowledged(record: dict[str, Any]) -> None:
    bench = Bench(record, remaining_s=1)
    assert bench.handle() == Done(NO_TIME)
    assert bench.store.records[JOB_ID] == record


def test_5u_a_message_that_is_early_as_well_keeps_its_jobs_wait() -> None:
    record = any_record(not_before=later(60))
    bench = Bench(record, remaining_s=1)
    assert bench.handle() == Early(60)
    assert bench.store.records[JOB_ID] == record


def test_an_unknown_job_gets_its_letter_though_no_time_is_left() -> None:
    bench = Bench(None, remaining_s=1)
    assert bench.handle() == Done("buried")
    assert len(bench.letters.sent) == 1


def test_the_time_left_is_that_of_the_moment_not_of_the_start() -> None:
    bench = Bench(any_record())
    ends = later(120)
    bench.clock.advance(60)
    assert bench.handle(ends=ends) == Done(NO_TIME)


# --- letters and what is no message of ours --------------------------------------------------------
def test_a_letter_that_came_back_reopens_its_job_and_is_acknowledged() -> None:
    bench = Bench(handed_over(FAILED, attempt=3, tries=5))
    assert isinstance(bench.handle(any_delivery(any_letter_body(attempt=3))), Done)
    assert (bench.job().status, bench.job().attempt, bench.job().tries) == (PENDING, 4, 0)


def test_n22_an_ordinary_late_message_does_not_reopen_a_failed_job() -> None:
    bench = Bench(final_record(FAILED))
    assert bench.handle(any_delivery(any_hint_body(attempt=0))) == Done("already FAILED")
    assert bench.job().status == FAILED


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"job":', "MALFORMED_MESSAGE"),
        ("{}", "INVALID_ENVELOPE"),
        (json.dumps(any_envelope(event_type="job.completed")), "FOREIGN_EVENT"),
        (json.dumps(any_envelope(schema=0)), "UNSUPPORTED_SCHEMA"),
        (any_hint_body("nobody-knows"), "UNKNOWN_JOB"),
        (any_letter_body("nobody-knows"), "UNKNOWN_JOB"),
    ],
)
def test_env_09_what_is_no_message_of_ours_is_buried_at_once_without_a_model_call(body: str, reason: str) -> None:
    bench = Bench(any_record())
    assert bench.handle(any_delivery(body)) == Done("buried")
    (letter,) = bench.letters.sent
    told = json.loads(letter.body)
    assert envelope_check()(told) is None
    assert (told["payload"]["reason"], told["payload"]["body"]) == (reason, body)
    assert letter.attributes == {"event_type": "job.unreadable", "reason": reason}
    assert bench.notices.of("buried")["reason"] == reason
    assert bench.model.requests == []


def test_a_record_that_nobody_can_read_buries_its_message_with_the_reason() -> None:
    broken = handed_over(COMPLETED)
    del broken["body_sha"]
    bench = Bench(broken)
    assert bench.handle() == Done("buried")
    assert bench.letters.sent[0].attributes["reason"] == "UNREADABLE_RECORD"


def test_a_message_whose_letter_is_refused_stays_on_the_queue() -> None:
    bench = Bench()
    bench.letters.accepts = False
    assert isinstance(bench.handle(any_delivery("{}")), Failed)


def test_a_message_delivered_twice_makes_letters_with_one_id() -> None:
    bench = Bench()
    for message_id in ("m1", "m2"):
        bench.handle(any_delivery("{}", message_id=message_id))
    assert len({json.loads(letter.body)["event_id"] for letter in bench.letters.sent}) == 1


def test_a_newer_message_is_left_for_the_newer_code() -> None:
    bench = Bench(any_record())
    outcome = bench.handle(any_delivery(json.dumps(any_envelope(schema=2))))
    assert isinstance(outcome, Failed)
    assert bench.letters.sent == []
    assert bench.store.calls == []


@pytest.mark.parametrize("over", [{"payload": {"attempt": 1.0}}, {"schema": 1.0}])
def test_numbers_that_are_written_as_floats_are_handled_like_any_other_message(over: dict[str, Any]) -> None:
    bench = Bench(any_record(), remaining_s=1)
    bench.handle(any_delivery(json.dumps(any_envelope(**over))))
    assert isinstance(bench.store.records[JOB_ID]["attempt"], int)


# --- suspects --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "receives", "suspect"),
    [
        (any_hint_body(), 1, False),
        (any_hint_body(), 2, True),
        (any_hint_body(crashes=1), 1, True),
        (any_letter_body(), 1, False),
        ("{}", 1, False),
        ("{}", 2, True),
    ],
)
def test_what_was_received_before_or_crashed_before_is_a_suspect(body: str, receives: int, suspect: bool) -> None:
    assert is_suspect(any_delivery(body, receives=receives)) is suspect


def test_a_crashed_record_alone_does_not_make_a_fresh_message_wait() -> None:
    bench = Bench(any_record(crashes=1, status=PENDING))
    assert bench.handle() == Done("completed")


def test_a_claim_that_cannot_be_finished_leaves_the_job_to_its_lease() -> None:
    bench = Bench(any_record())
    bench.store.troubles.add("complete", Trouble.UNSENT)
    bench.handle()
    assert bench.job().status == PROCESSING
    assert bench.job().lease_until == later(130)


def test_a_letter_about_a_message_that_came_back_unfixed_is_buried_as_the_same_letter() -> None:
    bench = Bench(None)
    bench.handle(any_delivery("not JSON"))
    (first,) = bench.letters.sent
    assert bench.handle(any_delivery(first.body)) == Done("buried")
    assert bench.letters.sent[1] == first
