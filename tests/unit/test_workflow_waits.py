"""Runs in which branches only waited, and runs in which they may have paid: those are counted, the others are not."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, PENDING
from lambdas.core import changes
from lambdas.core.job import from_record
from lambdas.core.outcomes import ModelError, NotReady, Permanent
from lambdas.core.policy import Limits
from lambdas.core.times import seconds_between
from lambdas.core.workflows.ports import EndedBadly, Ending
from lambdas.core.workflows.progress import progress_of
from lambdas.core.workflows.told import TransientError, WaitError
from tests.builders import any_task
from tests.fakes import FakeModel, Trouble, any_reply
from tests.fakes_workflows import WORKFLOW, any_workflow
from tests.unit.assembly import Assembly, raising
from tests.unit.test_workflow_runs import Reaper, call, name_of

THROTTLED = ModelError("throttled", "ThrottlingException", "slow down")


def timed_out(bench: Assembly) -> str:
    bench.executions.standing[WORKFLOW, name_of(bench)] = EndedBadly("timed out")
    return bench.hear(run_=bench.job().run)


def begun_again(bench: Assembly) -> int:
    bench.store.records[bench.job().id] |= {"status": "PROCESSING", "claim_id": "me"}
    assert bench.start() == "started"
    return bench.job().run


def test_of_many_branches_that_wait_those_that_fit_are_named_whole_and_the_others_counted() -> None:
    names = tuple(f"branch-{'x' * 30}-{n}" for n in range(9))
    bench = Assembly(model=FakeModel(*[THROTTLED] * 9), workflow=any_workflow(branches=names))
    for name in names:
        with pytest.raises(WaitError):
            bench.branch(name)
    timed_out(bench)
    told = ", ".join(f"{name} (MODEL_THROTTLED)" for name in names[:2])
    assert (bench.job().error or {})["message"] == f"run 0 timed out: it waited for {told} and 7 more"


def test_an_overload_that_outlasts_every_run_is_waited_for_and_costs_neither_a_run_nor_a_try() -> None:
    """As a plain job's wait: its deadline ends it, no count does."""
    bench = Assembly(model=FakeModel(*[THROTTLED] * 5), workflow=any_workflow(branches=("one",), max_runs=1))
    for run in range(5):
        with pytest.raises(WaitError):
            bench.branch("one", run_=run)
        assert timed_out(bench) == "run_again"
        job = bench.job()
        assert (job.status, job.run, job.runs, job.tries) == (PENDING, run + 1, 0, 0)
        assert (job.error or {})["message"] == f"run {run} timed out: it waited for one (MODEL_THROTTLED)"
        bench.store.records[job.id]["tries"] = 1  # as the next claim counts
        begun_again(bench)
    assert bench.play(run_=5)["status"] == COMPLETED


def test_a_stage_that_waits_may_have_others_behind_it() -> None:
    stages = [["one", "two"], ["three"]]
    bench = Assembly(model=FakeModel(any_reply(), THROTTLED), workflow=any_workflow(stages=stages, max_runs=1))
    bench.branch("one")
    with pytest.raises(WaitError):
        bench.branch("two")
    assert timed_out(bench) == "run_again"


@pytest.mark.parametrize(
    "said",
    [ModelError("transient", "ReadTimeoutError", "cut", maybe_billed=True), any_reply(stop_reason="max_tokens")],
    ids=["cut", "truncated"],
)
def test_a_run_in_which_a_try_was_used_is_counted_though_it_waits_in_the_end(said: Any) -> None:
    """Else a question would be paid three times for every execution that there is time for."""
    bench = Assembly(model=FakeModel(said, THROTTLED), workflow=any_workflow(branches=("one",), max_runs=1))
    with pytest.raises(TransientError):
        bench.branch("one")
    with pytest.raises(WaitError):
        bench.branch("one")
    assert timed_out(bench) == "failed"


def test_a_run_whose_branches_found_no_room_has_only_waited() -> None:
    bench = Assembly(workflow=any_workflow(branches=("one", "two"), max_runs=1))
    assert timed_out(bench) == "run_again"
    assert (bench.job().error or {})["message"].endswith("it waited for one (NOT_BEGUN), two (NOT_BEGUN)")


@pytest.mark.parametrize("before", [0, 1])
def test_a_run_in_which_a_branch_was_killed_is_counted_whatever_it_waited_for_before_and_after(before: int) -> None:
    """At its model call, when it may have been paid. What comes after it waits for the call that nobody makes."""
    script = [THROTTLED] * (before + 1)
    bench, reaper = Assembly(model=FakeModel(*script), workflow=any_workflow(branches=("one",), max_runs=1)), Reaper(0)
    for _ in range(before):
        with pytest.raises(WaitError):
            bench.branch("one")
    reaper.watch(bench)
    reaper.at = 3  # read, charge, model
    call(lambda: bench.branch("one"))
    reaper.rest()
    with pytest.raises(WaitError):
        bench.branch("one")
    assert timed_out(bench) == "failed"


def test_a_run_in_which_a_paid_try_could_not_be_told_is_counted_though_it_waits_in_the_end() -> None:
    script = (any_reply(stop_reason="max_tokens"), THROTTLED)
    bench = Assembly(model=FakeModel(*script), workflow=any_workflow(branches=("one",), max_runs=1))
    bench.store.troubles.add("part", None, Trouble.UNSENT)
    with pytest.raises(TransientError, match="PART_NOT_RECORDED"):
        bench.branch("one")
    with pytest.raises(WaitError):
        bench.branch("one")
    assert timed_out(bench) == "failed"


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("stages", [[["one", "two"]], ["one", "two"]], ids=["side by side", "one after the other"])
@pytest.mark.parametrize("paid", ["one", "two"])
def test_a_run_in_which_a_branch_has_failed_having_paid_is_counted_though_another_waits(
    stages: Any, paid: str, samples: int
) -> None:
    """Its part would be asked for anew in each run."""
    waits = {"one": "two", "two": "one"}[paid]
    bench = Assembly(
        None,
        any_task(raising(NotReady("not yet")), type_=waits),
        model=FakeModel(*[any_reply(stop_reason="max_tokens")] * samples),
        workflow=any_workflow(stages=stages, max_runs=1, partial="best_effort"),
        limits=Limits(max_samples=samples),
    )
    with pytest.raises(WaitError):
        bench.branch(waits)
    assert bench.called_until_it_ends(paid) == "failed"
    assert timed_out(bench) == "failed"


def test_a_run_in_which_a_branch_has_failed_for_nothing_has_only_waited() -> None:
    bench = Assembly(
        None,
        any_task(raising(Permanent("no such input")), type_="one"),
        model=FakeModel(THROTTLED),
        workflow=any_workflow(branches=("one", "two"), max_runs=1, partial="best_effort"),
    )
    assert bench.branch("one") == "failed"
    with pytest.raises(WaitError):
        bench.branch("two")
    assert timed_out(bench) == "run_again"


def test_runs_that_only_waited_are_further_and_further_apart() -> None:
    bench = Assembly(model=FakeModel(*[THROTTLED] * 12), workflow=any_workflow(branches=("one",), max_runs=1))
    waits = []
    for run in range(12):
        with pytest.raises(WaitError):
            bench.branch("one", run_=run)
        assert timed_out(bench) == "run_again"
        waits.append(seconds_between(bench.clock(), bench.job().not_before))
        begun_again(bench)
    assert waits[-1] > 100 * waits[0]
    assert bench.job().waits == 12


def test_what_a_run_that_only_waited_has_come_to_is_told_when_the_job_ends_before_the_next() -> None:
    bench = Assembly(model=FakeModel(any_reply(), THROTTLED), workflow=any_workflow(branches=("one", "two")))
    bench.branch("one")
    with pytest.raises(WaitError):
        bench.branch("two")
    assert timed_out(bench) == "run_again"
    job = bench.job()
    change = changes.expire(job, now=job.deadline_at, max_tries=5, limits=bench.limits)
    ended = from_record(change.applied_to(bench.store.records[job.id]))
    told = progress_of(ended)
    assert told is not None
    assert (told.shown()["done"], told.shown()["failed"]) == (["one"], ["two"])


@pytest.mark.parametrize("how", ["failed", "aborted"])
def test_a_run_that_did_not_end_by_its_time_is_counted_though_it_waited(how: Ending) -> None:
    bench = Assembly(model=FakeModel(THROTTLED), workflow=any_workflow(branches=("one",), max_runs=1))
    with pytest.raises(WaitError):
        bench.branch("one")
    bench.executions.standing[WORKFLOW, name_of(bench)] = EndedBadly(how)
    assert bench.hear() == "failed"
