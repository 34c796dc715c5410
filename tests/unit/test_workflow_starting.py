"""A claimed job of a workflow: prepared, started once, adopted; or what follows from the execution that there is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import changes, ids, times
from lambdas.core.batch import Done, Failed
from lambdas.core.job import from_record
from lambdas.core.outcomes import Permanent
from lambdas.core.ports import Unavailable
from lambdas.core.workflows.ports import EndedBadly, Ending, Running, Succeeded
from tests.builders import JOB_ID, TENANT, any_delivery, any_record, any_task, held_record, later
from tests.fakes import Trouble
from tests.fakes_workflows import BRANCHES, WORKFLOW, FakeExecutions, any_workflow
from tests.unit.assembly import NAME, Assembly, started_record

TOLD = {"status": "COMPLETED", "result_key": ids.run_result_key(TENANT, JOB_ID, 0, "{}"), "result_bytes": 42}


def claimed(**over: Any) -> Assembly:
    """The job in the worker's hands; nothing was started for it yet."""
    return Assembly(held_record(type=WORKFLOW, **over))


def again(bench: Assembly, **over: Any) -> None:
    """The job is claimed once more."""
    record = {**bench.store.records[JOB_ID], "status": PROCESSING, "claim_id": "the next one", "claimed_at": "", **over}
    bench.store.records[JOB_ID] = {**record, "attempt": record["attempt"] + 1, "claimed_at": times.text(bench.clock())}


# --- the good way ----------------------------------------------------------------------------------
def test_a_job_is_prepared_then_started_then_adopted() -> None:
    bench = claimed()
    bench.executions.before = bench.order.append
    assert bench.start() == "started"
    assert bench.order == ["prepare", "start", "adopt"]
    job = bench.job()
    assert (job.status, job.attempt, job.parts_run) == (PROCESSING, 1, 0)
    assert job.parts == {name: {"state": "open"} for name in BRANCHES}
    assert (job.lease_until, job.due_at) == (later(1_800 + 60), later(1_800 + 60))
    assert [line["what"] for line in job.history] == ["accepted", "claimed", "started"]


def test_its_execution_is_named_by_job_and_run_and_given_a_pointer_in_one_byte_form() -> None:
    bench = claimed(run=3)
    bench.start()
    assert bench.executions.inputs == {
        (WORKFLOW, ids.execution_name(JOB_ID, 3)): f'{{"job":"{JOB_ID}","run":3}}',
    }  # fmt: skip


def test_the_message_is_acknowledged_and_no_task_is_run() -> None:
    bench = Assembly(any_record(type=WORKFLOW))
    assert bench.handle() == Done("started")
    assert (bench.asked, bench.results.objects) == ([], {})


def test_a_job_that_is_delivered_five_times_is_started_once() -> None:
    bench = Assembly(any_record(type=WORKFLOW))
    outcomes = [bench.handle(any_delivery(message_id=f"message-{n}", request_id=f"request-{n}")) for n in range(5)]
    assert outcomes == [Done("started"), *[Done("held by somebody else")] * 4]
    assert bench.executions.called("start") == [NAME]


def test_a_plain_job_is_run_as_ever() -> None:
    bench = Assembly(held_record(), any_task())
    assert bench.start() == "completed"
    assert bench.executions.calls == []


def test_the_lease_of_an_execution_that_runs_beyond_its_time_is_not_in_the_past() -> None:
    bench = claimed()
    bench.executions.standing[WORKFLOW, NAME] = Running(later(-5_000))
    assert bench.start() == "started"
    assert bench.job().lease_until == later(60)


# --- once more -------------------------------------------------------------------------------------
def test_who_comes_after_a_starter_that_died_adopts_its_execution_and_leaves_what_the_branches_have_done() -> None:
    bench = claimed()
    bench.store.troubles.add("adopt", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        bench.start()
    assert bench.branch("summary") == "done"
    bench.clock.advance(400)
    again(bench)
    assert bench.start() == "started"
    assert bench.part("summary").state == "done"
    assert (len(bench.executions.standing), bench.job().lease_until) == (1, later(1_800 + 60))


def test_a_job_in_a_new_run_begins_with_nothing_done() -> None:
    bench = Assembly(started_record(run=1, parts_run=0, parts={"summary": {"state": "done", "by": "b", "sha": "s"}}))
    assert bench.start() == "started"
    assert bench.job().parts_run == 1
    assert {name: bench.part(name).state for name in BRANCHES} == dict.fromkeys(BRANCHES, "open")


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_a_start_that_nobody_heard_of_makes_the_job_wait_and_is_found_by_the_next(trouble: Trouble) -> None:
    bench = claimed()
    bench.executions.troubles.add("start", trouble)
    assert bench.start() == "waits"
    job = bench.job()
    assert (job.status, job.tries, (job.error or {})["code"]) == (PENDING, 0, "EXECUTION_NOT_STARTED")
    bench.clock.advance(10)
    again(bench)
    assert bench.start() == "started"
    assert len(bench.executions.standing) == 1


def test_an_execution_that_was_started_unheard_may_end_while_the_job_waits() -> None:
    bench = claimed()
    bench.executions.troubles.add("start", Trouble.UNHEARD)
    bench.start()
    assert bench.play()["status"] == COMPLETED
    assert bench.job().status == COMPLETED


def test_a_record_that_cannot_be_prepared_starts_nothing_and_keeps_its_message() -> None:
    bench = Assembly(any_record(type=WORKFLOW))
    bench.store.troubles.add("prepare", Trouble.UNSENT)
    assert isinstance(bench.handle(), Failed)
    assert bench.executions.calls == []


@pytest.mark.parametrize("name", ["prepare", "adopt"])
def test_a_lost_reply_of_its_own_write_is_no_refusal(name: str) -> None:
    bench = claimed()
    bench.store.troubles.add(name, Trouble.LOST_REPLY)
    assert bench.start() == "started"


def test_a_workflow_whose_state_machine_is_not_deployed_yet_is_waited_for() -> None:
    bench = claimed()
    bench.executions = FakeExecutions(types=())
    assert bench.start() == "waits"
    assert (bench.job().tries, (bench.job().error or {})["code"]) == (0, "UNKNOWN_TYPE")


def test_a_workflow_that_is_unknown_here_is_waited_for() -> None:
    bench = claimed()
    bench.workflows = {}
    assert bench.start() == "waits"
    assert (bench.job().error or {})["code"] == "UNKNOWN_TYPE"


def test_waiting_for_a_start_ends_at_the_deadline() -> None:
    bench = claimed(deadline_at=later(-1))
    bench.executions.troubles.add("start", Trouble.REFUSED)
    assert bench.start() == "failed"
    assert (bench.job().error or {})["code"] == "DEADLINE_EXCEEDED"


def test_a_start_that_is_refused_for_good_is_the_jobs_end() -> None:
    bench = claimed()

    def refused(name: str) -> None:
        raise Permanent("no such name", "EXECUTION_REFUSED")

    bench.executions.before = refused
    assert bench.start() == "failed"
    assert (bench.job().status, (bench.job().error or {})["code"]) == (FAILED, "EXECUTION_REFUSED")


# --- there is one already, and it is over ------------------------------------------------------------
def test_an_execution_that_has_succeeded_gives_its_result() -> None:
    bench = claimed()
    bench.executions.standing[WORKFLOW, NAME] = Succeeded(json.dumps({**TOLD, "partial": True}))
    assert bench.start() == "completed"
    job = bench.job()
    assert (job.status, job.result_key, job.result_bytes, job.partial) == (COMPLETED, TOLD["result_key"], 42, True)


def test_an_execution_that_has_told_a_failure_ends_the_job_with_it() -> None:
    bench = claimed()
    why = {"code": "PARTS_MISSING", "message": "1 of 3"}
    bench.executions.standing[WORKFLOW, NAME] = Succeeded(json.dumps({"status": "FAILED", "error": why}))
    assert bench.start() == "failed"
    assert (bench.job().status, bench.job().error) == (FAILED, why)


@pytest.mark.parametrize(
    "output",
    ["", "null", "[]", '{"status":"refused"}', '{"status":"COMPLETED"}', '{"status":"FAILED","error":1}', "{" * 9],
)
def test_an_execution_that_has_told_no_result_counts_as_one_that_ended_badly(output: str) -> None:
    bench = claimed()
    bench.executions.standing[WORKFLOW, NAME] = Succeeded(output)
    assert bench.start() == "run_again"
    assert (bench.job().status, bench.job().run) == (PENDING, 1)


def used(bench: Assembly) -> None:
    """A branch of this run has used a try."""
    parts = {"parts": {"summary": {"state": "again", "by": "x", "used": 1}}, "parts_run": bench.job().run}
    bench.store.records[JOB_ID] |= parts


@pytest.mark.parametrize(
    ("how", "code"),
    [("failed", "EXECUTION_FAILED"), ("timed out", "EXECUTION_TIMED_OUT"), ("aborted", "EXECUTION_ABORTED")],
)
def test_an_execution_that_ended_badly_is_followed_by_another_run_up_to_the_workflows_bound(
    how: Ending, code: str
) -> None:
    bench = claimed()
    used(bench)
    bench.executions.standing[WORKFLOW, NAME] = EndedBadly(how, "States.Runtime", "x" * 9_000)
    assert bench.start() == "run_again"
    job = bench.job()
    assert (job.status, job.run, job.runs, job.tries, (job.error or {})["code"]) == (PENDING, 1, 1, 1, code)
    assert job.not_before > bench.clock()
    message = (job.error or {})["message"]  # what a tenant reads: never a function's stack trace
    assert "States.Runtime" in message
    assert "xxx" not in message
    second = ids.execution_name(JOB_ID, 1)
    bench.executions.standing[WORKFLOW, second] = EndedBadly(how)
    again(bench)
    used(bench)
    assert bench.start() == "failed"
    job = bench.job()
    assert (job.status, job.run, job.runs, (job.error or {})["code"]) == (FAILED, 2, 2, code)


def test_a_workflow_of_one_run_fails_with_it() -> None:
    bench = Assembly(held_record(type=WORKFLOW), workflow=any_workflow(max_runs=1))
    bench.executions.standing[WORKFLOW, NAME] = EndedBadly("timed out")
    assert bench.start() == "failed"


def test_an_execution_that_is_forgotten_is_followed_by_another_run() -> None:
    bench = claimed()
    bench.executions.standing[WORKFLOW, NAME] = EndedBadly("failed")
    bench.executions.before = lambda name: bench.executions.standing.clear() if name == "describe" else None
    assert bench.start() == "run_again"


def test_what_cannot_be_described_makes_the_job_wait() -> None:
    bench = claimed()
    bench.executions.standing[WORKFLOW, NAME] = EndedBadly("failed")
    bench.executions.troubles.add("describe", Trouble.REFUSED)
    assert bench.start() == "waits"
    assert (bench.job().run, bench.job().tries) == (0, 0)


# --- fenced out ------------------------------------------------------------------------------------
def test_a_job_that_was_cancelled_before_it_was_prepared_is_not_started() -> None:
    bench = claimed()
    job = bench.job()
    bench.store.apply(JOB_ID, changes.cancel(job, now=bench.clock(), limits=bench.limits))
    assert bench.start(job) == "fenced_out"
    assert bench.executions.calls == []
    assert bench.job().parts is None


def test_a_job_that_was_cancelled_while_it_was_started_stays_so_and_its_branches_pay_nothing() -> None:
    bench = claimed()
    cancel = changes.cancel(bench.job(), now=bench.clock(), limits=bench.limits)

    def cancelled(name: str) -> None:
        bench.store.apply(JOB_ID, cancel)

    bench.executions.before = cancelled
    assert bench.start() == "fenced_out"
    assert bench.job().status == CANCELLED
    assert {bench.branch(name) for name in BRANCHES} == {"stale"}
    assert bench.collect() == {"status": "refused"}
    assert bench.asked == []


def test_an_execution_that_is_faster_than_its_starter_has_ended_the_job() -> None:
    bench = claimed()
    stock = bench.executions.start

    def start(type_: str, name: str, written_input: str) -> Any:
        since = stock(type_, name, written_input)
        bench.play()
        return since

    bench.executions.start = start  # type: ignore[method-assign]
    assert bench.start() == "fenced_out"
    assert (bench.job().status, bench.notices.of("fenced_out")["status"]) == (COMPLETED, COMPLETED)


# --- used up ---------------------------------------------------------------------------------------
def test_a_job_whose_tries_are_used_up_is_not_started_but_its_running_execution_is_adopted() -> None:
    bench = Assembly(started_record(tries=6))
    bench.executions.standing[WORKFLOW, NAME] = Running(later(-10))
    assert bench.start() == "started"
    assert bench.executions.called("start") == []


@pytest.mark.parametrize("prepared", [True, False])
def test_a_job_whose_tries_are_used_up_and_for_which_nothing_runs_fails(prepared: bool) -> None:
    bench = Assembly(started_record(tries=6) if prepared else held_record(type=WORKFLOW, tries=6))
    assert bench.start() == "failed"
    assert (bench.job().error or {})["code"] == "ATTEMPTS_EXHAUSTED"
    assert bench.executions.called("start") == []
    assert len(bench.executions.called("describe")) == int(prepared)


@pytest.mark.parametrize("over", [{"tries": 5}, {"deadline_at": later(300)}], ids=["tries", "deadline"])
def test_n9_a_message_does_not_fail_a_job_whose_execution_may_be_running(over: dict[str, Any]) -> None:
    bench = Assembly(started_record(**over))
    bench.clock.advance(400)
    assert bench.handle() == Done("used up, and perhaps at work: left to the sweep")
    assert bench.job().status == PROCESSING
    unprepared = Assembly(started_record(**over, run=1, parts_run=0))
    unprepared.clock.advance(400)
    assert unprepared.handle() == Done("used up")
    assert unprepared.job().status == FAILED


def test_a_record_of_a_workflow_is_read_as_it_was_written() -> None:
    bench = claimed()
    bench.start()
    assert from_record(bench.store.records[JOB_ID]).parts_run == 0
