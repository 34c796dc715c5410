"""The worker on jobs of workflows: it starts executions, once for each run, and runs nothing itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.contracts import names
from lambdas.core import ids, times
from tests.integration.cloud import Cloud, Context
from tests.integration.worker_bench import Bench, message, soon
from tests.integration.workflow_bench import BRANCHES, TYPE, WORKFLOW


def execution(cloud: Cloud, record: dict[str, Any], run: int = 0) -> dict[str, Any]:
    machine = json.loads(cloud.environment("worker")[names.WORKFLOWS])[TYPE]
    arn = f"{machine.replace(':stateMachine:', ':execution:')}:{ids.execution_name(record['pk'], run)}"
    found: dict[str, Any] = cloud.client("stepfunctions").describe_execution(executionArn=arn)
    return found


def test_a_job_of_a_workflow_is_started_and_its_lease_is_the_executions(bench: Bench, cloud: Cloud):
    job = bench.job(TYPE)
    assert bench.run(message(job)) == []
    record, found = cloud.record(job["pk"]), execution(cloud, job)
    assert (record["status"], record["parts_run"], bench.calls) == (names.PROCESSING, 0, 0)
    assert record["parts"] == {name: {"state": "open"} for name in BRANCHES}
    assert found["input"] == json.dumps({"job": job["pk"], "run": 0}, separators=(",", ":"))
    ends = times.text(times.after(found["startDate"], WORKFLOW.timeout_s + 60))
    assert (record["lease_until"], record["due_at"]) == (ends, ends)


def test_a_start_costs_three_writes_and_one_call_to_step_functions(bench: Bench, cloud: Cloud):
    job = bench.job(TYPE)
    bench.module.parts()
    cloud.wire.clear()
    bench.run(message(job))
    assert [one.operation for one in cloud.wire.sent] == ["UpdateItem", "UpdateItem", "StartExecution", "UpdateItem"]


def test_the_same_job_delivered_five_times_is_one_execution(bench: Bench, cloud: Cloud):
    job = bench.job(TYPE)
    assert bench.run(*[message(job) for _ in range(5)]) == []
    assert cloud.wire.count("StartExecution") == 1


def test_a_batch_of_plain_jobs_and_workflows_does_both(bench: Bench):
    plain, flow = bench.job(), bench.job(TYPE)
    assert bench.run(message(plain), message(flow)) == []
    assert [bench.status(plain), bench.status(flow)] == [names.COMPLETED, names.PROCESSING]


@pytest.mark.parametrize("how", ["cut", "lose"])
def test_step_functions_out_of_reach_puts_the_job_off_and_the_next_start_finds_what_there_is(
    bench: Bench, cloud: Cloud, how: str
):
    job = bench.job(TYPE)
    getattr(cloud.wire, how)("StartExecution", times=3)
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["tries"], record["error"]["code"]) == (names.PENDING, 0, "EXECUTION_NOT_STARTED")
    waiting = cloud.put({**record, "not_before": soon(-1)})
    assert bench.run(message(waiting)) == []
    assert bench.status(job) == names.PROCESSING
    assert execution(cloud, job)["status"] == "RUNNING"


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        ("AccessDeniedException", names.PENDING, "EXECUTION_NOT_STARTED"),
        ("StateMachineDoesNotExist", names.PENDING, "UNKNOWN_TYPE"),
        ("InvalidExecutionInput", names.FAILED, "EXECUTION_REFUSED"),
    ],
)
def test_a_start_that_is_refused_waits_for_a_deploy_or_fails(
    bench: Bench, cloud: Cloud, code: str, status: str, reason: str
):
    job = bench.job(TYPE)
    cloud.wire.refuse("StartExecution", code)
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"]) == (status, reason)


def test_an_execution_that_was_ended_by_hand_before_its_start_was_written_down_is_followed_by_another(
    bench: Bench, cloud: Cloud
):
    job = bench.job(TYPE)
    bench.run(message(job))
    cloud.client("stepfunctions").stop_execution(executionArn=execution(cloud, job)["executionArn"])
    lapsed = cloud.put({**cloud.record(job["pk"]), "lease_until": soon(-1)})
    assert bench.run(message(lapsed)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["run"], record["error"]["code"]) == (names.PENDING, 1, "EXECUTION_ABORTED")
    again = cloud.put({**record, "not_before": soon(-1)})
    assert bench.run(message(again)) == []
    assert execution(cloud, job, run=1)["status"] == "RUNNING"
    assert cloud.record(job["pk"])["parts_run"] == 1


def test_a_start_needs_no_time_beyond_what_every_job_needs(bench: Bench, cloud: Cloud):
    job = bench.job(TYPE)
    bench.run(message(job), context=Context(90))
    assert cloud.record(job["pk"])["lease_until"] > times.text(times.after(clock.now(), 1_000))
