"""A worker stands still between any two of its calls and goes on long after another did its work: nothing changes.

On AWS the platform kills a worker at its deadline; what these tests let it outlive is more than it ever can. Their
calls arrive late, after their job was finished by another worker, cancelled, opened again, or redriven as a letter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas.core.policy import DAY_S
from local.compute.environment import Environment
from local.faults import Fault
from tests.simulation import plays
from tests.simulation.plays import TENANT, Play, Scenario
from tests.simulation.points import ANSWER, CLAIM, COMPLETE, HAND_OVER, MODEL, SAVE, WORKER, Point
from tests.simulation.stage import LEASE_S, Stage
from tests.simulation.stalls import Stall, end, stalled
from tests.simulation.watch import poll

pytestmark = pytest.mark.slow

PLACES = [(point, when) for point in WORKER for when in ("before", "after")]
DONE = (COMPLETE, "after")
MARK = HAND_OVER[-1]
LARGE_PLACES = [(ANSWER, "before"), (ANSWER, "after"), (SAVE, "before")]


@dataclass
class Held:
    """A job whose worker stands at a place, and what its record, result and answer were when others were done."""

    place: tuple[Point, str]
    play: Play
    environment: Environment
    seen: Any = field(default=None)

    @property
    def job_id(self) -> str:
        return self.play.job_id

    def __str__(self) -> str:
        return f"{self.play.scenario.situation} {self.place[0].name} {self.place[1]}"


@contextmanager
def workers_held(stage: Stage) -> Iterator[tuple[list[Held], Callable[[], None]]]:
    """One job for each place, each with a worker of its own that stands there; and how to let them go on.

    Each job's model answers differently the second time, so that an answer that changes hands is seen."""
    plays.begin(stage)
    stage.runtime.functions.set_concurrency("worker", 40)
    places = [(place, "plain") for place in PLACES] + [(place, "large") for place in LARGE_PLACES]
    at = [(place, Play(Scenario(place[0], "frozen", size))) for place, size in places]
    asked = Play(Scenario(MODEL, "frozen"))
    first = {job.key: "y" * (9_000 if job.scenario.situation == "large" else 9) for _, job in at}
    stage.script(
        {"match": asked.key, "delay_s": 60, "answer": "first", "times": 1},
        *({"match": key, "answer": text, "times": 1} for key, text in first.items()),
        *({"match": key, "answer": text.replace("y", "z")} for key, text in first.items()),
    )
    faults = [_where(stage, job, place) for place, job in at]
    with stalled(stage, faults) as stalls:
        for job in [asked, *(job for _, job in at)]:
            job.submit(stage)
        holder = stage.calling(asked.key)
        holder.freeze(outlives=True)
        poll(lambda: all(stall.holds for stall in stalls), lambda: f"not held: {_free(stalls, at)}")
        held = [Held(place, job, _holder(stall)) for stall, (place, job) in zip(stalls, at, strict=True)]
        held.append(Held((MODEL, "during"), asked, holder))
        stage.quiet()

        def go_on() -> None:
            for one in held:
                one.seen = snapshot(stage, one.play)
            first = {one.environment: one.environment.running for one in held}
            holder.thaw()
            end(stalls)
            poll(lambda: all(one.running is not begun for one, begun in first.items()), lambda: "some stand still")
            stage.quiet()

        yield held, go_on


def _where(stage: Stage, job: Play, place: tuple[Point, str]) -> Fault:
    point, when = place
    return Fault(
        "worker",
        "",
        when,
        nth=point.nth,
        service=point.service,
        operation=point.operation,
        job_id=job.names(stage, point),
    )


def _free(stalls: list[Stall], at: list[Any]) -> list[str]:
    return [f"{place[0].name} {place[1]}" for stall, (place, _) in zip(stalls, at, strict=True) if stall.holds is None]


def _holder(stall: Stall) -> Environment:
    assert stall.holds is not None
    return stall.holds


def snapshot(stage: Stage, job: Play) -> dict[str, Any]:
    """All that a late worker could spoil."""
    record = stage.record(job.job_id)
    key = record.get("result_key")
    return {
        "record": record,
        "object": stage.result_object(key) if key else None,
        "result": stage.get(f"/jobs/{job.job_id}/result", TENANT).body if key else None,
        "answer": stage.answer_row(job.answer_row(stage)),
    }


def final(stage: Stage, held: list[Held]) -> bool:
    return stage.all_handed_over(one.job_id for one in held)


def calls(stage: Stage, held: list[Held]) -> dict[str, int]:
    return {str(one): len(stage.model_calls(one.play.key)) for one in held}


# The frozen one had asked, and had not kept the answer yet.
ASKED_TWICE = {"plain model during", "plain save before", "large answer before"}


def assert_nothing_changed(stage: Stage, held: list[Held]) -> None:
    for one in held:
        assert snapshot(stage, one.play) == one.seen, str(one)
        assert one.seen["record"]["status"] == "COMPLETED", str(one)
    assert calls(stage, held) == {str(one): 1 + (str(one) in ASKED_TWICE) for one in held}


def test_a_thawed_worker_changes_nothing_after_another_did_its_work(stage: Stage) -> None:
    with workers_held(stage) as (held, go_on):
        stage.pass_time_until(lambda: final(stage, held))
        go_on()
        assert_nothing_changed(stage, held)
    assert all(one.seen["record"]["attempt"] == 2 for one in held if one.place not in ((CLAIM, "before"), DONE))


def test_a_thawed_worker_leaves_a_cancelled_job_cancelled_and_books_what_it_paid(stage: Stage) -> None:
    with workers_held(stage) as (held, go_on):
        cancelled = [one for one in held if cancel(stage, one.job_id)]
        assert [one.place for one in held if one not in cancelled] == [DONE]
        stage.quiet()
        assert final(stage, held)
        stage.advance(60)  # the model answers now; the lease still has a minute
        go_on()
        for one in cancelled:
            now = snapshot(stage, one.play)
            late = now["record"].pop("late_cost", 0)
            assert now["record"] == one.seen["record"], str(one)
            assert now["record"]["status"] == "CANCELLED"
            assert (late > 0) == bool(stage.model_calls(one.play.key)), str(one)
            assert stage.get(f"/jobs/{one.job_id}/result", TENANT).status == 409


def test_a_thawed_worker_changes_nothing_in_a_job_that_was_opened_again(stage: Stage) -> None:
    with workers_held(stage) as (held, go_on):
        stage.advance(100)
        again = [one for one in held if cancel(stage, one.job_id)]
        stage.quiet()
        for one in again:
            assert reopen(stage, one.job_id)
        poll(lambda: all(second_worker_is_on(stage, one) for one in again), lambda: "not claimed again")
        stage.advance(25)  # now the first worker's window ends: who waits for its answer asks
        stage.pass_time_until(lambda: final(stage, held))
        go_on()
        assert_nothing_changed(stage, held)


def test_a_thawed_worker_changes_nothing_in_a_job_whose_letter_was_redriven(stage: Stage) -> None:
    with workers_held(stage) as (held, go_on):
        stage.advance(DAY_S)
        stage.pass_time_until(lambda: final(stage, held))
        dead = [one for one in held if stage.record(one.job_id)["status"] == "FAILED"]
        assert [one.place for one in held if one not in dead] == [DONE]
        redrive(stage)
        stage.pass_time_until(lambda: final(stage, held))
        go_on()
        assert_nothing_changed(stage, held)


def test_a_thawed_worker_changes_nothing_while_another_is_at_work(stage: Stage) -> None:
    """It finds its job in the very state that it left it in, but for the fence."""
    with workers_held(stage) as (everybody, go_on):
        held = [one for one in everybody if one.place not in ((CLAIM, "before"), DONE)]  # nobody follows those yet
        ends = [_where(stage, one.play, (COMPLETE, "before")) for one in held]
        with stalled(stage, ends) as seconds:
            stage.advance(LEASE_S + 5)
            stage.sweep()
            poll(lambda: all(second.holds for second in seconds), lambda: f"not there: {_behind(held, seconds)}")
            go_on()
            for one in held:
                assert stage.record(one.job_id) == one.seen["record"], str(one)
                assert (one.seen["record"]["status"], one.seen["record"]["attempt"]) == ("PROCESSING", 2), str(one)
        stage.pass_time_until(lambda: final(stage, everybody))
        for one in held:
            record = stage.record(one.job_id)
            assert (record["status"], record["attempt"]) == ("COMPLETED", 2), str(one)
            assert len(stage.result_object(record["result_key"])) == record["result_bytes"], str(one)
        assert calls(stage, held) == {str(one): 1 + (str(one) in ASKED_TWICE) for one in held}


def test_a_late_mark_of_the_dispatcher_does_not_hide_a_job_that_was_opened_again(stage: Stage) -> None:
    plays.begin(stage)
    job = Play(Scenario(MARK, "frozen", "failing"))
    mark = Fault("dispatch", "", "before", service=MARK.service, operation=MARK.operation, job_id=job.job_id)
    with stalled(stage, [mark]) as (held,):
        job.submit(stage)
        poll(lambda: held.holds is not None, lambda: "the dispatcher does not mark it")
        stage.runtime.functions.pause("worker")
        assert reopen(stage, job.job_id)
        opened = stage.record(job.job_id)
        end([held])
        stage.quiet()
        assert stage.record(job.job_id) == opened
        assert opened["status"] == "PENDING"
        assert "due_shard" in opened
    stage.runtime.functions.resume("worker")
    plays.finished(stage, [job])


def _behind(held: list[Held], seconds: list[Stall]) -> list[str]:
    return [str(one) for one, second in zip(held, seconds, strict=True) if second.holds is None]


def second_worker_is_on(stage: Stage, one: Held) -> bool:
    record = stage.record(one.job_id)
    return bool(record["status"] != "PENDING" and record["run"] == 1)


def cancel(stage: Stage, job_id: str) -> bool:
    return stage.cancel(job_id, TENANT).status == 202


def reopen(stage: Stage, job_id: str) -> bool:
    return stage.retry(job_id, TENANT).status == 202


def redrive(stage: Stage) -> None:
    """The console's "Redrive to custom destination"."""
    urls = stage.dead_letter_queues["work"], stage.target.outputs["WorkQueueUrl"]
    source, destination = (
        stage.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        for url in urls
    )
    stage.sqs.start_message_move_task(SourceArn=source, DestinationArn=destination)
