"""Crashed jobs run again in time; nobody waits for himself or for a dead leader; a killer kills himself alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from lambdas.core import ids
from local.faults import Fault
from tests.simulation import plays
from tests.simulation.expectations import assert_completed, assert_settled
from tests.simulation.plays import TENANT, Play, Scenario
from tests.simulation.points import CLAIM, GUARD, SAVE
from tests.simulation.stage import LEASE_S, SWEEP_PERIOD_S, VISIBILITY_S, Stage
from tests.simulation.watch import poll

pytestmark = pytest.mark.slow

GRACE_S = 120
BOUND_S = max(GRACE_S, LEASE_S) + SWEEP_PERIOD_S
REAL_S = 15  # the virtual clock ticks, too
LAG_S = 2  # each sweep is a little later: waits that double must not end within the very tick of a sweep
OFFSETS = (0, 60, 120, 165, 175, 240, 290)  # of crashes between two sweeps


class Schedule:
    """A sweep every five minutes, from now on."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._began, self._done = stage, stage.now(), 0

    def reach(self, seconds: float) -> None:
        """Let time come to so many seconds after the beginning, with the sweeps that fall into it."""
        while (self._done + 1) * SWEEP_PERIOD_S <= seconds:
            self._done += 1
            self._to(self._done * SWEEP_PERIOD_S + (self._done - 1) * LAG_S)
            outcome = self._stage.sweep()
            assert outcome is not None
            assert outcome.ok
            self._stage.quiet()
        self._to(seconds)

    def _to(self, seconds: float) -> None:
        self._stage.advance(max(0.0, self._began + seconds - self._stage.now()))


def crash(stage: Stage, job: Play, nth: int = 1) -> None:
    """The worker dies right after its nth write to this job's record: 1 is the claim."""
    stage.strike(
        Fault("worker", "crash", "after", nth=nth, service="dynamodb", operation="UpdateItem", job_id=job.job_id)
    )


def waited_s(stage: Stage, job: Play) -> float:
    """From the first claim to the second."""
    claims = [line["at"] for line in stage.record(job.job_id)["history"] if line["what"] == "claimed"]
    first, second = (datetime.fromisoformat(at) for at in claims[:2])
    return (second - first).total_seconds()


def new_jobs(number: int) -> list[Play]:
    return [Play(Scenario(CLAIM, "none")) for _ in range(number)]


def finish(stage: Stage, jobs: Sequence[Play]) -> list[plays.Evidence]:
    found = plays.finished(stage, jobs)
    for one in found:
        assert_settled(one)
    return found


@pytest.mark.parametrize("stream", ["alive", "dead"])
def test_a_crashed_job_runs_again_within_its_lease_and_one_sweep_period(stage: Stage, stream: str) -> None:
    plays.begin(stage)
    began = time.monotonic()
    schedule, jobs = Schedule(stage), new_jobs(len(OFFSETS))
    for job, offset in zip(jobs, OFFSETS, strict=True):
        schedule.reach(offset)
        stage.enable("dispatch")
        crash(stage, job)
        job.submit(stage)
        stage.quiet()
        if stream == "dead":
            stage.disable("dispatch")
    schedule.reach(3 * SWEEP_PERIOD_S)
    waits = [waited_s(stage, job) for job in jobs]
    assert max(waits) <= BOUND_S + REAL_S + time.monotonic() - began
    assert max(waits) > LEASE_S + SWEEP_PERIOD_S / 2  # the bound is no empty one
    schedule.reach(5 * SWEEP_PERIOD_S)  # told by the sweep, if need be
    assert stage.all_handed_over(job.job_id for job in jobs)
    evidence = finish(stage, jobs)
    for one in evidence:
        assert_completed(one)
        assert (one.record["crashes"], one.record["tries"], one.calls) == (1, 2, 1)
    stage.enable("dispatch")
    stage.quiet()
    plays.empty_queues(stage)


def behind_a_backlog(stage: Stage, schedule: Schedule) -> Play:
    """A job that nobody came to for an hour: sent again by the sweep, which then looks ever more rarely."""
    plays.begin(stage)
    stage.runtime.functions.pause("worker")
    (job,) = new_jobs(1)
    job.submit(stage)
    stage.quiet()
    stage.take_all(stage.target.outputs["WorkQueueUrl"])
    schedule.reach(3_600 + SWEEP_PERIOD_S)
    record = stage.record(job.job_id)
    assert stage.depth() >= 1
    assert (datetime.fromisoformat(record["due_at"]).timestamp() - stage.now()) > 2 * BOUND_S
    return job


def test_a_job_that_crashes_after_an_hours_backlog_runs_again_as_soon(stage: Stage) -> None:
    schedule = Schedule(stage)
    job = behind_a_backlog(stage, schedule)
    crash(stage, job, nth=2)  # the claim pulls the sweep's next look in
    now, began = stage.now(), time.monotonic()
    stage.runtime.functions.resume("worker")
    stage.quiet()
    record = stage.record(job.job_id)
    assert record["due_at"] == record["lease_until"]
    schedule.reach(3_600 + 3 * SWEEP_PERIOD_S)
    assert waited_s(stage, job) <= BOUND_S + REAL_S + time.monotonic() - began
    assert stage.now() - now < VISIBILITY_S  # it was the sweep, not the message that came back
    assert_completed(finish(stage, [job])[0])


def test_a_crash_between_a_late_claim_and_its_pulling_in_waits_for_the_message_at_most(stage: Stage) -> None:
    """The two are two writes. The one gap in the bound: then it is the message's visibility that brings it back."""
    schedule = Schedule(stage)
    job = behind_a_backlog(stage, schedule)
    crash(stage, job)
    stage.runtime.functions.resume("worker")
    stage.quiet()
    first = datetime.fromisoformat(stage.record(job.job_id)["claimed_at"])
    schedule.reach(3_600 + 3 * SWEEP_PERIOD_S)
    assert stage.record(job.job_id)["status"] == "PROCESSING"  # no sweep looks at it yet
    before = time.monotonic()
    stage.skip(first.timestamp() + VISIBILITY_S + 1 - stage.now())
    stage.quiet()
    second = datetime.fromisoformat(stage.record(job.job_id)["claimed_at"])
    most = VISIBILITY_S + REAL_S + time.monotonic() - before
    assert VISIBILITY_S <= (second - first).total_seconds() <= most
    assert_completed(finish(stage, [job])[0])


@pytest.mark.parametrize(
    "points", [(GUARD,), (SAVE,), (GUARD, SAVE)], ids=lambda points: "+".join(p.name for p in points)
)
def test_a_worker_does_not_wait_for_its_own_lost_reply(stage: Stage, points: Any) -> None:
    plays.begin(stage)
    (job,) = new_jobs(1)
    for point in points:
        job.faults.append(
            stage.strike(
                Fault("worker", "lost_reply", "after", service="dynamodb", operation=point.operation,
                      job_id=job.answer_row(stage))
            )
        )  # fmt: skip
    job.submit(stage)
    stage.quiet()  # no time need pass
    record = stage.record(job.job_id)
    assert job.struck
    assert (record["status"], record["attempt"], record["tries"]) == ("COMPLETED", 1, 1)
    assert [line["what"] for line in record["history"]] == ["accepted", "claimed", "completed"]
    assert len(stage.model_calls(job.key)) == 1
    finish(stage, [job])


# --- identical jobs -----------------------------------------------------------------------------------------------


def identical(
    stage: Stage, number: int, nonce: str, rule: dict[str, Any], later_s: float = 95
) -> tuple[str, list[str]]:
    """A leader that waits for the model, and so many others that wait for the leader's answer: its window ends 120 s
    after it began, theirs so much later. `rule`: what the model does to the leader."""
    plays.begin(stage)
    stage.batches_of(10, 100)
    stage.script({"match": nonce, "times": 1, **rule})
    leader, *followers = (stage.job_id(f"{nonce}-{n}", TENANT) for n in range(number + 1))
    stage.submit("steady", {"text": nonce}, key=f"{nonce}-0", tenant=TENANT)
    leading = stage.calling(nonce).running
    assert leading is not None
    stage.runtime.functions.pause("worker")
    for n in range(1, number + 1):
        stage.submit("steady", {"text": nonce}, key=f"{nonce}-{n}", tenant=TENANT)
    poll(lambda: stage.depth("") == number, lambda: "not all are in the queue")
    stage.alone("worker")
    stage.advance(leading.deadline_s - 120 + later_s - stage.now())
    stage.runtime.functions.resume("worker")
    poll(lambda: under_way(stage, followers), lambda: "not all are claimed")
    return leader, followers


def under_way(stage: Stage, job_ids: list[str]) -> bool:
    found = stage.records(job_ids)
    return len(found) == len(job_ids) and all(record["attempt"] > 0 for record in found.values())


def statuses(stage: Stage, job_ids: Sequence[str]) -> dict[str, int]:
    found = [record["status"] for record in stage.records(job_ids).values()]
    return {status: found.count(status) for status in set(found)}


def drain(stage: Stage, job_ids: Sequence[str]) -> None:
    stage.pass_time_until(lambda: stage.all_handed_over(job_ids))
    stage.pass_time_until(lambda: stage.depth() == 0)


def test_fifty_jobs_whose_leader_dies_in_mid_call_are_fifty_results_and_one_more_call(stage: Stage, nonce: str) -> None:
    leader, followers = identical(stage, 49, nonce, {"delay_s": 5_000})
    stage.calling(nonce).kill("crash")
    stage.advance(27)  # its window ends, theirs do not
    everybody = [leader, *followers]
    drain(stage, everybody)
    assert statuses(stage, everybody) == {"COMPLETED": 50}
    assert len({stage.get(f"/jobs/{job_id}/result", TENANT).body for job_id in everybody}) == 1
    assert len(stage.model_calls(nonce)) == 2
    found = stage.records(everybody)
    assert sum(record["cost"] > 0 for record in found.values()) == 1
    assert {job_id for job_id, record in found.items() if record["crashes"]} == {leader}


def test_followers_of_a_leader_that_fails_for_good_ask_for_themselves(stage: Stage, nonce: str) -> None:
    leader, followers = identical(stage, 9, nonce, {"delay_s": 40, "error": "ValidationException"}, later_s=35)
    stage.advance(10)
    drain(stage, [leader, *followers])
    assert stage.record(leader)["error"]["code"] == "MODEL_PERMANENT"
    assert statuses(stage, followers) == {"COMPLETED": 9}
    assert len(stage.model_calls(nonce)) == 2


def test_no_failure_is_an_answer_for_somebody_else(stage: Stage, nonce: str) -> None:
    plays.begin(stage)
    stage.batches_of(10, 100)
    stage.script({"match": nonce, "error": "ValidationException"})
    jobs = [stage.submit("steady", {"text": nonce}, key=f"{nonce}-{n}", tenant=TENANT) for n in range(10)]
    job_ids = [job.result() for job in jobs]
    drain(stage, job_ids)
    assert statuses(stage, job_ids) == {"FAILED": 10}
    assert len(stage.model_calls(nonce)) == 10


# --- a job that kills its process ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_job_that_kills_its_process_fails_alone_in_a_batch_of_ten(stage: Stage, nonce: str, how: str) -> None:
    plays.begin(stage)
    stage.batches_of(10, 100)
    innocents = new_jobs(9)
    stage.script(*({"match": job.key, "delay_s": 50, "times": 1} for job in innocents))
    stage.runtime.functions.pause("worker")
    for job in innocents[:5]:
        job.submit(stage)
    killer = stage.submit("lethal", {"how": how, "signal": nonce}, key=nonce, tenant=TENANT).result()
    for job in innocents[5:]:
        job.submit(stage)
    stage.quiet()
    stage.runtime.functions.resume("worker")
    asking = [job.key for job in innocents]
    poll(lambda: all(map(stage.model_calls, asking)), lambda: "they are not all in the middle of it")
    inputs, place = stage.target.outputs["InputsBucketName"], ids.context_key(TENANT, nonce)
    stage.s3.put_object(Bucket=inputs, Key=place, Body=b"now")
    stage.quiet()
    stage.runtime.functions.pause("worker")  # so that they meet again in one batch
    stage.pass_time()
    stage.runtime.functions.resume("worker")
    stage.pass_time_until(lambda: stage.all_handed_over([killer]))
    record = stage.record(killer)
    assert (record["status"], record["error"]["code"], record["tries"]) == ("FAILED", "ATTEMPTS_EXHAUSTED", 5)
    drain(stage, [job.job_id for job in innocents])
    (letter,) = stage.take_all(stage.dead_letter_queues["work"])
    assert letter["MessageAttributes"]["job_id"]["StringValue"] == killer
    found = finish(stage, innocents)
    for evidence in found:
        assert_completed(evidence)
        assert evidence.record["crashes"] <= 1
        assert evidence.record["tries"] == 1 + evidence.record["crashes"]
    assert {evidence.calls for evidence in found} == {2}  # they were in the middle of it
