"""The bus tells that an execution has ended badly: the record goes on, once, and only where it must."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.ports import Unavailable
from lambdas.core.workflows.hearing import PAUSES_S, StillRunning, hear
from lambdas.core.workflows.ports import EndedBadly, Running, Succeeded
from tests.builders import JOB_ID, NOW, TENANT, later
from tests.fakes import Trouble
from tests.fakes_workflows import WORKFLOW, FakeExecutions
from tests.unit.assembly import NAME, Assembly, ended_event, started_record

FAILURE = EndedBadly("failed", "States.Runtime", "x")


def over(how: Any = FAILURE, **fields: Any) -> Assembly:
    bench = Assembly(started_record(**fields))
    if how:
        bench.executions.standing[WORKFLOW, NAME] = how
    return bench


def test_a_job_whose_execution_has_failed_runs_again() -> None:
    bench = over()
    assert bench.hear() == "run_again"
    job = bench.job()
    assert (job.status, job.run, job.runs, (job.error or {})["code"]) == (PENDING, 1, 1, "EXECUTION_FAILED")
    assert bench.notices.of("run_again")["reason"] == "EXECUTION_FAILED"


def test_a_job_whose_last_execution_has_failed_fails() -> None:
    bench = over(runs=1)
    assert bench.hear() == "failed"
    assert bench.job().status == FAILED


def test_an_execution_that_is_said_to_have_failed_and_has_succeeded_ends_the_job_with_its_result() -> None:
    key = ids.run_result_key(TENANT, JOB_ID, 0, "{}")
    bench = over(Succeeded(json.dumps({"status": "COMPLETED", "result_key": key, "result_bytes": 4})))
    assert bench.hear() == "completed"
    assert bench.job().status == COMPLETED


def test_an_event_that_comes_twice_counts_once() -> None:
    bench = over()
    assert [bench.hear(), bench.hear()] == ["run_again", "not_needed"]
    assert bench.job().run == 1


@pytest.mark.parametrize("status", [PENDING, COMPLETED, FAILED, CANCELLED, DELETED])
def test_a_record_that_has_gone_on_hears_of_nothing(status: str) -> None:
    bench = over(status=status)
    before = dict(bench.store.records[JOB_ID])
    assert bench.hear() == "not_needed"
    assert (bench.store.records[JOB_ID], bench.executions.calls) == (before, [])


def test_an_event_of_an_earlier_run_is_not_needed() -> None:
    bench = over(run=1)
    assert bench.hear() == "not_needed"
    assert bench.job().run == 1


def test_an_event_of_a_job_that_is_gone_is_not_needed() -> None:
    bench = over()
    bench.store.records.clear()
    assert bench.hear() == "not_needed"


@pytest.mark.parametrize("stopped", [None, "yesterday", True, {}, 10**30, float("nan"), float("inf")], ids=str)
@pytest.mark.parametrize("how", [Running(NOW), None])
def test_what_step_functions_does_not_say_is_left_to_the_sweep(how: Any, stopped: Any) -> None:
    bench = over(how)
    assert bench.hear(stopDate=stopped) == "left_to_the_sweep"
    assert (bench.job().status, bench.pauses) == (PROCESSING, [])


STARTED, STOPPED = later(-9), times.milliseconds(NOW)


def test_an_execution_that_was_redriven_since_its_event_is_left_alone() -> None:
    bench = over(Running(later(0.001)))
    assert bench.hear(stopDate=STOPPED) == "left_to_the_sweep"
    assert (bench.job().status, bench.pauses) == (PROCESSING, [])


@pytest.mark.parametrize("looks", [1, len(PAUSES_S)])
def test_step_functions_that_is_behind_its_own_event_is_asked_again_a_moment_later(looks: int) -> None:
    bench = over(Running(STARTED))

    def ended(name: str) -> None:
        if bench.executions.called("describe")[looks:]:
            bench.executions.standing[WORKFLOW, NAME] = FAILURE

    bench.executions.before = ended
    assert bench.hear(stopDate=STOPPED) == "run_again"
    assert bench.pauses == [*PAUSES_S[:looks]]


@pytest.mark.parametrize(("since", "told_again"), [(later(0), True), (later(0.001), False)], ids=["before", "since"])
def test_an_execution_that_is_still_said_to_run_is_to_be_told_of_again(since: Any, told_again: bool) -> None:
    bench = over(Running(since))
    if told_again:
        with pytest.raises(StillRunning, match="run 0 has ended, says its event"):
            bench.hear(stopDate=STOPPED)
    else:
        assert bench.hear(stopDate=STOPPED) == "left_to_the_sweep"
    assert bench.job().status == PROCESSING


def test_an_event_that_was_told_a_third_time_in_vain_is_no_dead_letter() -> None:
    bench = over(Running(STARTED))
    words = []
    for seconds in (0, 60, 180):
        bench.clock.at = later(seconds)
        try:
            words.append(bench.hear(stopDate=STOPPED))
        except StillRunning:
            words.append("told again")
    assert words == ["told again", "told again", "left_to_the_sweep"]


def test_a_type_that_is_deployed_no_more_changes_nothing() -> None:
    bench, other = over(), over()
    bench.workflows.clear()
    other.executions = FakeExecutions(types=())
    assert [bench.hear(), other.hear()] == ["unknown_type", "unknown_type"]


@pytest.mark.parametrize(("store", "call"), [("store", "read"), ("executions", "describe"), ("store", "run_again")])
def test_what_cannot_be_reached_is_raised(store: str, call: str) -> None:
    bench = over()
    getattr(bench, store).troubles.add(call, Trouble.UNSENT)
    with pytest.raises(Unavailable):
        bench.hear()


def test_a_lost_reply_of_its_own_write_is_no_refusal() -> None:
    bench = over()
    bench.store.troubles.add("run_again", Trouble.LOST_REPLY)
    assert bench.hear() == "run_again"


def test_a_write_that_is_refused_is_no_trouble() -> None:
    bench = over()
    bench.store.before = lambda name: (
        bench.store.records[JOB_ID].update(status=COMPLETED) if name == "run_again" else None
    )
    assert bench.hear() == "not_needed"


FOREIGN: dict[str, Any] = {
    "no event": None,
    "a list": [],
    "empty": {},
    "no detail": {"detail": None},
    "no input": ended_event(input=None),
    "no JSON": ended_event(input="{"),
    "deep": ended_event(input="[" * 100_000),
    "a list as input": ended_event(input="[1]"),
    "no run": ended_event(input='{"job":"x"}'),
    "a run that is true": ended_event(input='{"job":"x","run":true}'),
    "a branch too": ended_event(input=f'{{"job":"{JOB_ID}","run":0,"branch":"x"}}'),
    "another name": ended_event(name="started-by-hand"),
    "half of a surrogate pair": ended_event(input='{"job":"\\ud800","run":0}'),
    "the name of another run": ended_event(name=ids.execution_name(JOB_ID, 1)),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_end_of_an_execution_of_ours_is_told_and_left(name: str) -> None:
    bench = over()
    assert hear(FOREIGN[name], bench.hearing, lambda job: None) == "foreign_event"
    assert (bench.store.calls, bench.notices.steps) == ([], ["foreign_event"])
