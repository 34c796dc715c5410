"""Waiting burns no try and has an end; paying without an answer is bounded; a bad answer is asked for anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from tests.builders import any_hint_body
from tests.e2e.target import eventually
from tests.simulation.own_tasks import LiveStack, Record

HOUR_S = 3_600
Waits = dict[int, float]


def at(record: Record, name: str) -> datetime:
    return datetime.fromisoformat(record[name])


def noting(waits: Waits) -> Callable[[Record], None]:
    """Keeps, by attempt, for how many seconds a record was put off."""

    def saw(record: Record) -> None:
        if record["status"] == PENDING and record["attempt"]:
            waits[record["attempt"]] = record["backoff_ms"] / 1_000

    return saw


# --- inputs that are not there yet -------------------------------------------------------------------------------
def test_an_input_that_needs_twenty_looks_costs_one_try(live: LiveStack) -> None:
    (job,) = live.settle(live.submit("poll", {"polls": 20}))
    assert (job["status"], job["tries"], job["waits"], job["attempt"]) == (COMPLETED, 1, 20, 21)


def test_an_input_that_never_comes_ends_the_job_at_its_deadline_with_the_last_reason(live: LiveStack) -> None:
    job_id = live.submit("poll", {"polls": 1_000, "retry_after": 700})
    (job,) = live.settle(job_id)
    assert (job["status"], job["error"]["code"]) == (FAILED, "DEADLINE_EXCEEDED")
    assert "NOT_READY: looked " in job["error"]["message"]
    late_s = (at(job, "finished_at") - at(job, "deadline_at")).total_seconds()
    assert 0 <= late_s < 300
    (letter,) = [letter for letter in live.letters() if letter.get("job_id") == job_id]
    assert letter["reason"] == "DEADLINE_EXCEEDED"


def test_a_context_object_that_comes_later_is_waited_for(live: LiveStack, nonce: str) -> None:
    job_id = live.submit("fetch", {"key": f"calls/{nonce}.txt"}, tenant="acme")
    (waiting,) = live.pass_time([job_id], lambda record: record.get("waits", 0) >= 2)
    assert waiting["error"]["code"] == "NOT_READY"
    live.client("s3").put_object(
        Bucket=live.outputs["InputsBucketName"], Key=f"context/acme/calls/{nonce}.txt", Body=b"It is here."
    )
    (job,) = live.settle(job_id)
    assert (job["status"], job["tries"]) == (COMPLETED, 1)
    assert live.get(f"/jobs/{job_id}/result", "acme").json() == {"text": "It is here."}


def test_another_tenants_context_object_is_not_there(live: LiveStack, nonce: str) -> None:
    live.client("s3").put_object(
        Bucket=live.outputs["InputsBucketName"], Key=f"context/acme/{nonce}", Body=b"Not for you."
    )
    job_id = live.submit("fetch", {"key": nonce}, tenant="other")
    live.pass_time([job_id], lambda record: record.get("waits", 0) >= 1)
    live.leap(HOUR_S)
    (late,) = live.settle(job_id)
    (refused,) = live.settle(live.submit("fetch", {"key": f"../acme/{nonce}"}, tenant="other"))
    assert (late["status"], late["error"]["code"]) == (FAILED, "DEADLINE_EXCEEDED")
    assert (refused["status"], refused["error"]["code"]) == (FAILED, "INVALID_KEY")


# --- waits that SQS cannot hold ----------------------------------------------------------------------------------
def test_a_wait_above_fifteen_minutes_is_sent_by_the_sweep_once_and_not_before_its_time(live: LiveStack) -> None:
    job_id = live.submit("poll", {"polls": 1, "retry_after": 2_400})
    (waiting,) = live.pass_time([job_id], lambda record: record.get("waits", 0) == 1)
    live.control("DELETE", "calls")
    while (at(waiting, "not_before") - live.now).total_seconds() > 200:
        live.leap(min(290, (at(waiting, "not_before") - live.now).total_seconds() - 120))
        live.sweep()
        assert live.depth() == {"visible": 0, "in_flight": 0, "delayed": 0}
    assert sent(live) == 0
    assert live.found(job_id)["attempt"] == 1
    live.leap(510)
    live.sweep()
    done = eventually(lambda: live.found(job_id), lambda record: record["status"] == COMPLETED)
    assert sent(live) == 1
    assert at(done, "claimed_at") >= at(waiting, "not_before") - timedelta(seconds=1)


def test_a_long_wait_is_sent_in_time_though_the_queue_is_busy_with_others(live: LiveStack) -> None:
    """It has no message in the queue that the sweep could take for its own."""
    job_id = live.submit("poll", {"polls": 1, "retry_after": 1_500})
    (waiting,) = live.pass_time([job_id], lambda record: record.get("waits", 0) == 1)
    live.control("POST", "pause", {"function": "worker"})
    for _ in range(3):
        live.sqs.send_message(
            QueueUrl=live.outputs["WorkQueueUrl"], MessageBody=any_hint_body("f" * 32), MessageGroupId="others"
        )
    live.leap((at(waiting, "not_before") - live.now).total_seconds() + 1)
    assert live.sweep()["held_back"] == 0
    live.control("POST", "resume", {"function": "worker"})
    done = eventually(lambda: live.found(job_id), lambda record: record["status"] == COMPLETED)
    assert at(done, "claimed_at") - at(waiting, "not_before") < timedelta(seconds=250)  # the next sweep is later


def sent(live: LiveStack) -> int:
    """Calls that put messages on a queue, by the functions."""
    calls = live.control("GET", "calls")["calls"]
    return sum(call["operation"].startswith("SendMessage") for call in calls)


def test_a_job_for_in_three_days_runs_then_and_its_deadline_counts_from_then(live: LiveStack, nonce: str) -> None:
    start = live.now + timedelta(days=3)
    job_id = live.submit("ask", {"prompt": f"In three days: {nonce}"}, not_before=start.isoformat())
    never = live.submit("poll", {"polls": 1_000, "retry_after": 1_200}, not_before=start.isoformat())
    assert at(live.found(job_id), "deadline_at") == at(live.found(job_id), "not_before") + timedelta(hours=1)
    live.leap(3 * 86_400 - 600)
    live.sweep()
    time.sleep(0.3)
    assert [live.found(one)["status"] for one in (job_id, never)] == [PENDING, PENDING]
    assert not live.model_calls(nonce)
    job, failed = live.settle(job_id, never)
    assert (job["status"], job["tries"]) == (COMPLETED, 1)
    assert at(job, "claimed_at") >= start - timedelta(seconds=1)
    assert failed["error"]["code"] == "DEADLINE_EXCEEDED"
    assert at(failed, "finished_at") >= start + timedelta(hours=1)


# --- a provider that throttles, and one that is down -------------------------------------------------------------
def test_a_job_that_is_throttled_for_ever_fails_at_its_deadline_with_that_reason(live: LiveStack, nonce: str) -> None:
    live.script({"match": nonce, "error": "ThrottlingException"})
    (job,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert (job["status"], job["error"]["code"]) == (FAILED, "DEADLINE_EXCEEDED")
    assert "MODEL_THROTTLED" in job["error"]["message"]
    assert job["finished_at"] >= job["deadline_at"]
    assert job.get("cost", 0) == 0
    assert job["tries"] <= 1


def test_an_outage_of_an_hour_outlasts_the_usual_patience_but_not_that_of_a_patient_task(
    live: LiveStack, nonce: str
) -> None:
    live.script({"match": nonce, "error": "ServiceUnavailableException"})
    job_id = live.submit("ask", {"prompt": nonce})
    patient = live.submit("patient", {"prompt": f"{nonce} patiently"})
    (job,) = live.settle(job_id)
    assert (job["status"], job["tries"], job["error"]["code"]) == (FAILED, 5, "MODEL_TRANSIENT")
    began = at(live.found(patient), "created_at")
    live.pass_time([patient], lambda record: at(record, "not_before") - began > timedelta(minutes=45))
    live.script()
    (done,) = live.settle(patient)
    assert done["status"] == COMPLETED
    assert 5 < done["tries"] <= 12


@pytest.mark.parametrize(("jitter", "least"), [("full", 0.0), ("equal", 0.5), ("decorrelated", 0.0)])
def test_no_wait_between_tries_is_above_the_cap(live: LiveStack, jitter: str, least: float) -> None:
    waits: Waits = {}
    (job,) = live.settle(live.submit(f"retry-{jitter}", {}), saw=noting(waits))
    assert (job["status"], job["tries"]) == (FAILED, 7)
    assert len(waits) >= 3  # some pass before one looks
    assert max(waits.values()) <= 40
    assert len(set(waits.values())) > 1
    alike = jitter == "decorrelated"
    ceilings = {attempt: 40 if alike else min(40, 10 * 2 ** (attempt - 1)) for attempt in range(1, 7)}
    floors = {attempt: 10 if alike else least * most for attempt, most in ceilings.items()}
    assert all(floors[attempt] - 0.01 <= wait <= ceilings[attempt] for attempt, wait in waits.items())
    passed = between_tries(job)
    assert len(passed) >= 3
    assert all(seconds >= floors[attempt] - 0.01 for attempt, seconds in passed.items())


def between_tries(job: Record) -> Waits:
    """By attempt, how many seconds went by from its end to the beginning of the next; as far as it is remembered."""
    lines = {(line["what"], line["attempt"]): datetime.fromisoformat(line["at"]) for line in job["history"]}
    return {
        attempt: (lines["claimed", attempt + 1] - ended).total_seconds()
        for (what, attempt), ended in lines.items()
        if what == "retried" and ("claimed", attempt + 1) in lines
    }


# --- paid for, and no answer -------------------------------------------------------------------------------------
def test_a_job_that_waits_after_a_paid_answer_that_was_cut_is_bounded_by_max_attempts(
    live: LiveStack, nonce: str
) -> None:
    live.script({"match": nonce, "stop_reason": "max_tokens"})
    (job,) = live.settle(live.submit("ask", {"prompt": nonce, "waits_when_cut": True}))
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "ATTEMPTS_EXHAUSTED", 5)
    assert len(live.model_calls(nonce)) == 5
    assert job["cost"] > 0


@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        ({"cut_after": 60}, 5),
        ({"raw": '{"output": {}}'}, 5),
        ({"raw": "{broken"}, 5),
        ({"stop_reason": None}, 2),
        ({"stop_reason": "pause_turn"}, 2),
        ({"stop_reason": "tool_use"}, 2),
        ({"stop_reason": "max_tokens"}, 2),
        ({"stop_reason": "model_context_window_exceeded"}, 2),
        ({"stop_reason": "guardrail_intervened"}, 2),
    ],
    ids=str,
)
def test_an_answer_without_a_good_end_never_completes_a_job(
    live: LiveStack, nonce: str, rule: Mapping[str, Any], calls: int
) -> None:
    live.script({"match": nonce, **rule})
    (job,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert job["status"] == FAILED
    assert "result_key" not in job
    assert job["error"]["code"].startswith("MODEL_")
    assert len(live.model_calls(nonce)) == calls
    assert not [row for row in answers(live) if nonce in str(row)]


def answers(live: LiveStack) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = live.client("dynamodb").scan(TableName=live.outputs["AnswersTableName"])["Items"]
    return rows


# --- answers that the task does not take -------------------------------------------------------------------------
TOO_LONG = "x" * 101


def test_a_first_answer_that_breaks_the_schema_is_asked_for_once_more(live: LiveStack, nonce: str) -> None:
    live.script({"match": nonce, "answer": TOO_LONG, "times": 1}, {"match": nonce, "answer": "Short."})
    (job,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert (job["status"], job["sample"]) == (COMPLETED, 1)
    assert len(live.model_calls(nonce)) == 2


def test_answers_that_always_break_the_schema_end_the_job_after_max_samples_and_spoil_nothing_for_the_next(
    live: LiveStack, nonce: str
) -> None:
    live.script({"match": nonce, "answer": TOO_LONG})
    (first,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert (first["status"], first["error"]["code"], first["tries"]) == (FAILED, "OUTPUT_REJECTED", 2)
    assert len(live.model_calls(nonce)) == 2
    (second,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert second["status"] == FAILED
    assert len(live.model_calls(nonce)) == 4
    live.script({"match": nonce, "answer": "Short."})
    (third,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert third["status"] == COMPLETED
    assert len(live.model_calls(nonce)) == 5


def test_a_job_whose_answers_were_rejected_completes_when_it_is_reopened_with_the_fault_mended(
    live: LiveStack, nonce: str
) -> None:
    live.script({"match": nonce, "answer": TOO_LONG})
    live.empty("WorkDlqUrl")
    job_id = live.submit("ask", {"prompt": nonce})
    live.settle(job_id)
    live.script({"match": nonce, "answer": "Short."})
    live.sqs.start_message_move_task(SourceArn=live.arn("WorkDlqUrl"), DestinationArn=live.arn("WorkQueueUrl"))
    (job,) = live.pass_time([job_id], lambda record: record["status"] == COMPLETED)
    assert (job["run"], job["tries"], job["sample"]) == (1, 1, 0)
    assert len(live.model_calls(nonce)) == 3
    assert live.get(f"/jobs/{job_id}/result").json() == {"text": "Short."}


# --- one call for many -------------------------------------------------------------------------------------------
def test_ten_identical_jobs_in_one_batch_wait_for_one_slow_call(live: LiveStack, nonce: str) -> None:
    live.script({"match": nonce, "delay_s": 3})
    live.control("POST", "pause", {"function": "worker"})
    jobs = [live.submit("ask", {"prompt": nonce}) for _ in range(10)]
    eventually(live.depth, lambda depth: depth["visible"] == 10)
    live.control("DELETE", "invocations")
    live.control("POST", "resume", {"function": "worker"})
    found = live.settle(*jobs)
    assert {job["status"] for job in found} == {COMPLETED}
    assert {(job["tries"], job["attempt"]) for job in found} == {(1, 1)}
    assert sum(job.get("cost", 0) > 0 for job in found) == 1
    assert len(live.model_calls(nonce)) == 1
    worked = [one for one in live.control("GET", "invocations")["invocations"] if one["function"] == "worker"]
    assert len(worked) == 1
