"""Executions of jobs that are cancelled or look abandoned: `dispatch` stops them, `sweep` asks what became of them."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from moto.stepfunctions.models import stepfunctions_backends

from lambdas.adapters import clock
from lambdas.contracts import names
from lambdas.core import changes, ids
from lambdas.core.canonical import canonical
from lambdas.core.job import from_record
from lambdas.core.workflows.changes import prepare
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.events import failures, stream, stream_record
from tests.integration.records import LIMITS, pending, processing
from tests.integration.worker_bench import soon

TYPE = "analyze-document"
BRANCHES = ("summarize-document", "extract-entities")


@pytest.fixture
def dispatch(load_handler: Load, pauses: list[float]) -> ModuleType:
    return load_handler("dispatch")


@pytest.fixture
def sweep(load_handler: Load, pauses: list[float]) -> ModuleType:
    return load_handler("sweep")


def workflow(*, lease_s: float = 100, **over: Any) -> dict[str, Any]:
    """A job that was claimed and prepared, and whose worker was heard of no more."""
    record = processing(pending(type=TYPE), lease_s=lease_s)
    return {**prepare(from_record(record), BRANCHES).applied_to(record), **over}


def lapsed(**over: Any) -> dict[str, Any]:
    record = workflow(lease_s=-20)
    return {**record, "due_at": soon(-10), "due_shard": ids.due_shard(record["pk"]), **over}


def cancelled(cloud: Cloud, **over: Any) -> dict[str, Any]:
    record = workflow(**over)
    return cloud.put(changes.cancel(from_record(record), now=clock.now(), limits=LIMITS).applied_to(record))


class Machine:
    """The workflow's state machine, whose executions do nothing by themselves."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.states = cloud, cloud.client("stepfunctions")
        self.arn = json.loads(cloud.environment("sweep")[names.WORKFLOWS])[TYPE]

    def start(self, record: dict[str, Any], run: int | None = None) -> str:
        run = record["run"] if run is None else run
        name, said = ids.execution_name(record["pk"], run), canonical({"job": record["pk"], "run": run})
        started = self.states.start_execution(stateMachineArn=self.arn, name=name, input=said)
        return str(started["executionArn"])

    def ends(self, arn: str, status: str, output: Any = None) -> None:
        backend = stepfunctions_backends[self.cloud.stack.account][self.cloud.stack.region]
        execution = backend.describe_execution(arn)
        execution.status, execution.output = status, json.dumps(output)

    def status(self, arn: str) -> str:
        return str(self.states.describe_execution(executionArn=arn)["status"])


@pytest.fixture
def machine(cloud: Cloud) -> Machine:
    return Machine(cloud)


def swept(sweep: ModuleType) -> dict[str, Any]:
    told = sweep.handler({"parts": ["stuck"]}, Context(240))["parts"]["stuck"]
    return {name: told[name] for name in ("described", "extended", "collected", "run_again", "reaped", "failed")}


# --- cancelled -----------------------------------------------------------------------------------------
def test_a_cancelled_jobs_execution_is_stopped_and_its_end_told(cloud: Cloud, dispatch: ModuleType, machine: Machine):
    record = cancelled(cloud)
    running = machine.start(record)
    assert failures(dispatch.handler(stream(stream_record(record, processing())), Context(30))) == []
    assert machine.status(running) == "ABORTED"
    assert [fact.body["event_type"] for fact in cloud.heard()] == ["job.cancelled"]
    assert "due_shard" not in cloud.record(record["pk"])


def test_while_it_cannot_be_stopped_the_record_comes_again_and_nobody_is_told(
    cloud: Cloud, dispatch: ModuleType, machine: Machine
):
    record, plain = cancelled(cloud), cloud.put(pending())
    machine.start(record)
    cloud.wire.refuse("StopExecution", "ServiceUnavailable", 503)
    told = stream(stream_record(record, processing()), stream_record(plain))
    failed = failures(dispatch.handler(told, Context(30)))
    assert failed == [told["Records"][0]["dynamodb"]["SequenceNumber"]]
    assert (cloud.heard(), len(cloud.receive(cloud.work_url))) == ([], 1)
    assert "due_shard" in cloud.record(record["pk"])


def test_what_was_never_started_needs_no_stop(cloud: Cloud, dispatch: ModuleType):
    record = cancelled(cloud)
    assert failures(dispatch.handler(stream(stream_record(record, processing())), Context(30))) == []
    assert len(cloud.heard()) == 1


def test_a_cancelled_job_of_which_nobody_heard_is_stopped_by_the_sweep(
    cloud: Cloud, sweep: ModuleType, machine: Machine
):
    record = cancelled(cloud)
    old = {**record, "finished_at": soon(-200), "due_at": soon(-10), "due_shard": ids.due_shard(record["pk"])}
    running = machine.start(cloud.put(old))
    assert sweep.handler({"parts": ["stuck"]}, Context(240))["parts"]["stuck"]["handed_over"] == 1
    assert machine.status(running) == "ABORTED"
    assert len(cloud.heard()) == 1


# --- abandoned -----------------------------------------------------------------------------------------
def test_n9_a_job_whose_execution_runs_gets_its_lease_back(cloud: Cloud, sweep: ModuleType, machine: Machine):
    record = cloud.put(lapsed())
    machine.start(record)
    cloud.wire.clear()
    assert swept(sweep) == {"described": 1, "extended": 1, "collected": 0, "run_again": 0, "reaped": 0, "failed": 0}
    after = cloud.record(record["pk"])
    assert (after["status"], after["crashes"]) == (names.PROCESSING, 0)
    assert soon(1_800) < after["lease_until"] < soon(1_920)
    assert cloud.wire.count("DescribeExecution") == 1


def test_what_an_execution_has_collected_is_found_by_the_sweep(cloud: Cloud, sweep: ModuleType, machine: Machine):
    record = cloud.put(lapsed())
    key = ids.run_result_key("acme", record["pk"], 0, "{}")
    told = {"status": "COMPLETED", "result_key": key, "result_bytes": 2}
    machine.ends(machine.start(record), "SUCCEEDED", told)
    assert swept(sweep)["collected"] == 1
    after = cloud.record(record["pk"])
    assert (after["status"], after["result_key"]) == (names.COMPLETED, key)


def test_an_execution_that_ended_badly_is_followed_by_another_run(
    cloud: Cloud, sweep: ModuleType, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("random.random", lambda: 0.0)  # its wait: a message that waits is not to be seen yet
    record = cloud.put(lapsed())
    machine.ends(machine.start(record), "FAILED")
    assert swept(sweep)["run_again"] == 1
    after = cloud.record(record["pk"])
    assert (after["status"], after["run"], after["runs"]) == (names.PENDING, 1, 1)
    assert [body["run_id"] for body in cloud.bodies(cloud.work_url)] == [record["pk"]]


def test_an_execution_that_had_only_waited_when_its_time_was_over_is_not_counted(
    cloud: Cloud, sweep: ModuleType, machine: Machine
):
    record = cloud.put({**lapsed(), "tries": 2})
    machine.ends(machine.start(record), "TIMED_OUT")
    assert swept(sweep)["run_again"] == 1
    after = cloud.record(record["pk"])
    assert (after["status"], after["run"], after.get("runs", 0), after["tries"]) == (names.PENDING, 1, 0, 1)


def test_a_job_that_was_prepared_and_never_started_is_reaped(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(lapsed())
    done = swept(sweep)
    assert (done["described"], done["reaped"]) == (1, 1)
    assert cloud.record(record["pk"])["crashes"] == 1


def test_while_nobody_answers_nothing_is_written(cloud: Cloud, sweep: ModuleType, machine: Machine):
    record = cloud.put(lapsed())
    machine.start(record)
    cloud.wire.refuse("DescribeExecution", "ServiceUnavailable", 503)
    assert swept(sweep)["failed"] == 1
    assert cloud.record(record["pk"]) == record
