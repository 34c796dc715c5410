"""A job is cancelled at each point of its life, and deleted and sent again while its worker is still at work.

Whatever its worker does then, the job stays CANCELLED, nobody is told anything else, and what its call cost is on the
record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lambdas.core import ids
from local.faults import Fault
from tests.e2e.target import Answer
from tests.simulation import plays
from tests.simulation.plays import TENANT, Evidence, Play, Scenario
from tests.simulation.points import CLAIM, COMPLETE, GUARD, MODEL, RESULT, SAVE, Point
from tests.simulation.stage import Stage
from tests.simulation.stalls import stalled
from tests.simulation.watch import poll

ONE_CALL = 4  # micro-dollars
CALL_S = 50
Place = Callable[[Stage, Play], Any]


# --- how far a job has come ------------------------------------------------------------------------------------------
@contextmanager
def accepted(stage: Stage, job: Play) -> Iterator[None]:
    """Recorded; nobody has heard of it."""
    stage.disable("dispatch")
    job.submit(stage)
    stage.quiet()
    yield
    stage.enable("dispatch")


@contextmanager
def queued(stage: Stage, job: Play) -> Iterator[None]:
    stage.runtime.functions.pause("worker")
    job.submit(stage)
    poll(lambda: stage.depth("") == 1, lambda: "no message")
    yield
    stage.runtime.functions.resume("worker")


@contextmanager
def asked(stage: Stage, job: Play) -> Iterator[None]:
    """The model's answer is under way."""
    stage.script({"match": job.key, "delay_s": CALL_S, "times": 1})
    job.submit(stage)
    stage.calling(job.key)
    yield
    stage.alone("worker")
    stage.advance(CALL_S)


def standing(point: Point, when: str) -> Place:
    """Its worker stands at a call."""

    @contextmanager
    def place(stage: Stage, job: Play) -> Iterator[None]:
        fault = Fault(
            "worker", "", when, nth=point.nth, service=point.service, operation=point.operation,
            job_id=job.names(stage, point),
        )  # fmt: skip
        with stalled(stage, [fault]) as (stall,):
            job.submit(stage)
            poll(lambda: stall.holds is not None, lambda: f"not {when} {point.name}")
            yield

    return place


UNTOUCHED: dict[str, Place] = {"accepted": accepted, "queued": queued}
HELD: dict[str, Place] = {
    "claimed": standing(CLAIM, "after"),
    "about to ask": standing(GUARD, "after"),
    "asked": asked,
    "answered": standing(SAVE, "before"),
    "answer kept": standing(SAVE, "after"),
    "result stored": standing(RESULT, "after"),
    "about to complete": standing(COMPLETE, "before"),
}


def cancelled_at(stage: Stage, place: Place) -> tuple[Play, Evidence]:
    """The job, cancelled there, and what was left when everybody had gone on to their end."""
    plays.begin(stage)
    job = Play(Scenario(MODEL, "cancelled"))
    with place(stage, job):
        answer = stage.cancel(job.job_id, TENANT)
        assert (answer.status, answer.json()["status"]) == (202, "CANCELLED")
        assert stage.get(f"/jobs/{job.job_id}", TENANT).json()["status"] == "CANCELLED"
    (evidence,) = plays.finished(stage, [job])
    return job, evidence


def assert_ended_cancelled(stage: Stage, evidence: Evidence, attempt: int) -> None:
    """That and nothing else: one fact told, no letter, no result, nobody has to look at it again."""
    record = evidence.record
    assert (record["status"], record["attempt"]) == ("CANCELLED", attempt)
    assert {event["event_id"] for event in evidence.events} == {f"{record['pk']}.{attempt}.CANCELLED"}
    assert {event["event_type"] for event in evidence.events} == {"job.cancelled"}
    assert (evidence.letters, evidence.result_status) == ([], 409)
    assert "handed_over_at" in record
    assert not {"due_at", "due_shard", "result_key"} & record.keys()
    assert "expires_at" in record
    assert stage.cancel(record["pk"], TENANT).status == 202  # once more is the same


def completes_when_retried(stage: Stage, job: Play) -> dict[str, Any]:
    assert stage.retry(job.job_id, TENANT).json()["status"] == "PENDING"
    stage.pass_time_until(lambda: stage.all_handed_over([job.job_id]))
    plays.empty_queues(stage)
    record = stage.record(job.job_id)
    assert (record["status"], record["run"]) == ("COMPLETED", 1)
    return record


@pytest.mark.parametrize("place", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_job_that_nobody_has_begun_is_never_begun(stage: Stage, place: Place) -> None:
    job, evidence = cancelled_at(stage, place)
    assert_ended_cancelled(stage, evidence, attempt=0)
    assert (evidence.calls, evidence.record["cost"], "late_cost" in evidence.record) == (0, 0, False)
    assert completes_when_retried(stage, job)["cost"] == ONE_CALL


@pytest.mark.parametrize("place", HELD.values(), ids=HELD)
def test_a_job_whose_worker_is_at_it_ends_cancelled_and_its_late_answer_changes_nothing_but_the_bill(
    stage: Stage, place: Place
) -> None:
    job, evidence = cancelled_at(stage, place)
    assert_ended_cancelled(stage, evidence, attempt=1)
    assert evidence.calls == 1
    assert (evidence.record["cost"], evidence.record["late_cost"]) == (0, ONE_CALL)
    shown = stage.get(f"/jobs/{job.job_id}", TENANT).json()
    assert shown["cost_micros"] == ONE_CALL
    again = completes_when_retried(stage, job)
    assert (again["cost"], "late_cost" in again) == (ONE_CALL, False)  # paid once: the answer was kept
    assert len(stage.model_calls(job.key)) == 1


@pytest.mark.slow
def test_a_worker_that_dies_after_the_cancellation_leaves_the_job_cancelled(stage: Stage) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "cancelled"))
    with asked(stage, job):
        assert stage.cancel(job.job_id, TENANT).status == 202
        stage.calling(job.key).kill("crash")
    (evidence,) = plays.finished(stage, [job])
    assert_ended_cancelled(stage, evidence, attempt=1)
    assert (evidence.record["crashes"], "late_cost" in evidence.record) == (0, False)


def test_a_job_that_waits_for_its_next_try_is_cancelled_and_its_message_finds_nothing_to_do(stage: Stage) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "cancelled"))
    stage.script({"match": job.key, "error": "ThrottlingException"})
    job.submit(stage)
    stage.quiet()
    waiting = stage.record(job.job_id)
    assert (waiting["status"], waiting["waits"]) == ("PENDING", 1)
    assert stage.cancel(job.job_id, TENANT).status == 202
    (evidence,) = plays.finished(stage, [job])
    assert_ended_cancelled(stage, evidence, attempt=1)
    assert (evidence.record["cost"], "late_cost" in evidence.record) == (0, False)


def test_an_answer_that_another_job_has_paid_for_costs_a_cancelled_job_nothing(stage: Stage) -> None:
    plays.begin(stage)
    first = Play(Scenario(MODEL, "cancelled"))
    first.submit(stage)
    plays.finished(stage, [first])
    twin = Play(Scenario(MODEL, "cancelled"), key=f"{first.key} twin")
    task_input = {"text": first.text}
    fault = Fault("worker", "", "before", nth=2, service="dynamodb", operation="UpdateItem", job_id=twin.job_id)
    with stalled(stage, [fault]) as (stall,):
        stage.submit("steady", task_input, key=twin.key, tenant=TENANT)
        poll(lambda: stall.holds is not None, lambda: "not at its end")
        assert stage.cancel(twin.job_id, TENANT).status == 202
    (evidence,) = plays.finished(stage, [twin])
    assert_ended_cancelled(stage, evidence, attempt=1)
    assert (evidence.record["cost"], "late_cost" in evidence.record) == (0, False)
    assert len(stage.model_calls(first.key)) == 1


@pytest.mark.parametrize(("situation", "status"), [("plain", "COMPLETED"), ("failing", "FAILED")])
def test_a_job_that_has_ended_otherwise_cannot_be_cancelled(stage: Stage, situation: str, status: str) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "cancelled", situation))
    job.submit(stage)
    plays.finished(stage, [job])
    was = stage.record(job.job_id)
    answer = stage.cancel(job.job_id, TENANT)
    assert (answer.status, answer.json()["type"]) == (409, "urn:neverdrop:problem:wrong-state")
    assert stage.record(job.job_id) == was
    assert was["status"] == status


def test_a_cancellation_that_the_stream_loses_is_told_by_the_sweep(stage: Stage) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "cancelled"))
    stage.runtime.functions.pause("worker")
    job.submit(stage)
    stage.quiet()
    stage.disable("dispatch")
    assert stage.cancel(job.job_id, TENANT).status == 202
    stage.runtime.functions.resume("worker")
    (evidence,) = plays.finish_unheard(stage, [job]).values()
    assert_ended_cancelled(stage, evidence, attempt=0)


# --- deleted, and sent again ------------------------------------------------------------------------------------------
def test_cancelled_deleted_and_sent_again_while_the_old_call_runs_the_key_is_gone_and_the_old_worker_changes_nothing(
    stage: Stage,
) -> None:
    """N1: a second life under the same id would be taken over by the first one's worker."""
    plays.begin(stage)
    job = Play(Scenario(MODEL, "deleted"))
    result = ids.result_key(TENANT, job.job_id, 1)
    with asked(stage, job):
        assert stage.cancel(job.job_id, TENANT).status == 202
        poll(lambda: stage.all_handed_over([job.job_id]), lambda: "not handed over")
        deleted = stage.delete(job.job_id, TENANT)
        assert (deleted.status, deleted.body) == (204, b"")
        tombstone = stage.record(job.job_id)
        assert {sent(stage, job, text).status for text in (job.text, "another body")} == {410}
        assert stage.get(f"/jobs/{job.job_id}", TENANT).status == 410
    stage.quiet()
    assert stage.record(job.job_id) == tombstone
    assert (tombstone["status"], tombstone["attempt"]) == ("DELETED", 1)
    assert sent(stage, job, job.text).status == 410
    told = [json.loads(message["Body"]) for message in stage.take_all(stage.inbox)]
    assert {one["event_type"] for one in told if one["run_id"] == job.job_id} == {"job.cancelled"}
    # the old worker could not know; who deletes once more removes what it stored
    assert stage.result_object(result)
    assert stage.delete(job.job_id, TENANT).status == 204
    with pytest.raises(stage.s3.exceptions.NoSuchKey):
        stage.result_object(result)
    plays.empty_queues(stage)


def sent(stage: Stage, job: Play, text: str) -> Answer:
    """The same key again."""
    body = json.dumps({"type": "steady", "input": {"text": text}}).encode()
    headers = {"content-type": "application/json", "idempotency-key": job.key, "x-local-tenant": TENANT}
    return stage.target.request("POST", "/jobs", body, headers)


def test_a_deleted_job_leaves_its_answer_to_the_tenants_other_jobs(stage: Stage) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "deleted", "large"))
    job.submit(stage)
    plays.finished(stage, [job])
    record = stage.record(job.job_id)
    assert stage.delete(job.job_id, TENANT).status == 204
    gone = [
        (stage.target.outputs["InputsBucketName"], ids.input_key(TENANT, job.job_id, record["body_sha"])),
        (stage.target.outputs["ResultsBucketName"], record["result_key"]),
    ]
    for bucket, key in gone:
        assert stage.s3.list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"] == 0
    stage.submit("steady", {"text": job.text}, key=f"{job.key} twin", tenant=TENANT)
    twin = stage.job_id(f"{job.key} twin", TENANT)
    stage.pass_time_until(lambda: stage.all_handed_over([twin]))
    assert (stage.record(twin)["status"], len(stage.model_calls(job.key))) == ("COMPLETED", 1)
    plays.empty_queues(stage)


# --- whoever carries it out is killed ---------------------------------------------------------------------------------
ACTS: dict[str, Callable[[Stage, str, str], Answer]] = {
    "cancel": Stage.cancel,
    "retry": Stage.retry,
    "delete": Stage.delete,
}
STEPS = [
    ("cancel", "dynamodb", "GetItem"),
    ("cancel", "dynamodb", "UpdateItem"),
    ("retry", "dynamodb", "UpdateItem"),
    ("delete", "dynamodb", "UpdateItem"),
    ("delete", "s3", "DeleteObjects"),
    ("delete", "s3", "ListObjectsV2"),
    ("delete", "dynamodb", "Query"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("what", "service", "operation"), STEPS)
def test_a_request_that_dies_at_any_of_its_calls_is_finished_by_the_same_request(
    stage: Stage, what: str, service: str, operation: str, when: str
) -> None:
    plays.begin(stage)
    job = Play(Scenario(MODEL, "struck", {"retry": "failing", "delete": "large"}.get(what, "plain")))
    if what == "cancel":
        stage.runtime.functions.pause("worker")
    job.submit(stage)
    stage.quiet()
    stage.runtime.functions.pause("worker")  # what is opened again stays open
    fault = stage.strike(
        Fault("control", "crash", when, service=service, operation=operation, job_id=job.job_id, times=1)
    )
    act = ACTS[what]
    assert act(stage, job.job_id, TENANT).status >= 500
    assert fault.spent
    landed = (what, operation, when) == ("retry", "UpdateItem", "after")  # it is open again, which is what was wanted
    assert act(stage, job.job_id, TENANT).status == (409 if landed else 204 if what == "delete" else 202)
    stage.runtime.functions.resume("worker")
    if what != "delete":
        stage.pass_time_until(lambda: stage.all_handed_over([job.job_id]))
    record = stage.record(job.job_id)
    assert record["status"] == {"cancel": "CANCELLED", "retry": "FAILED", "delete": "DELETED"}[what]
    assert record.get("run", 1) == int(what != "cancel")
    if what == "delete":
        for bucket, prefix in (("InputsBucketName", "inputs"), ("ResultsBucketName", "results")):
            where = stage.target.outputs[bucket], f"{prefix}/{TENANT}/{job.job_id}/"
            assert stage.s3.list_objects_v2(Bucket=where[0], Prefix=where[1])["KeyCount"] == 0
    plays.empty_queues(stage)


def test_these_are_all_the_calls_of_each_request(stage: Stage) -> None:
    """One that is added must be struck, too."""
    plays.begin(stage)
    made = {}
    for what, situation in (("cancel", "plain"), ("retry", "failing"), ("delete", "plain")):
        stage.runtime.functions.pause("worker") if what == "cancel" else stage.runtime.functions.resume("worker")
        job = Play(Scenario(MODEL, "struck", situation))
        job.submit(stage)
        stage.quiet()
        stage.runtime.meter.reset()
        ACTS[what](stage, job.job_id, TENANT)
        calls = [call for call in stage.runtime.meter.calls() if call.function == "control"]
        made[what] = [(call.service, call.operation) for call in calls]
    stage.pass_time_until(lambda: stage.depth() == 0)
    plays.empty_queues(stage)
    change = [("dynamodb", "GetItem"), ("dynamodb", "UpdateItem")]
    folder = [("s3", "ListObjectsV2"), ("s3", "DeleteObjects")]
    removal = [("s3", "DeleteObjects"), *folder, ("dynamodb", "Query")]  # what streamed or delivered is removed, too
    assert made == {"cancel": change, "retry": change, "delete": [*change, *removal]}
