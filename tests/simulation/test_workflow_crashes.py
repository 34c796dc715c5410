"""Worker, branch, collector and whoever hears of an end are killed at each of their calls in turn: each workflow ends
right all the same, with one execution for each run and each part paid once.

The jobs run side by side on one stack, each struck once; each test looks at what one of them left behind."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas.core import ids
from lambdas.core.canonical import canonical
from local.events.sources import client
from local.faults import HANDLER, Fault
from tests.simulation.points import STRIKES, Point
from tests.simulation.stage import Stage
from tests.simulation.watch import is_settled, poll

pytestmark = pytest.mark.slow

TYPE, TENANT = "analyze-document", "struck"
BRANCHES = ("classify-document", "extract-entities", "flag-compliance", "score-sentiment", "summarize-document")
MAX_RUNS = 2
ROUNDS, ROUND_S = 60, 75
DELAY_S = 50.0  # that the model takes for each branch of an execution that is ended meanwhile

WORKER = (
    Point("worker", "claim", "dynamodb", "UpdateItem"),
    Point("worker", "prepare", "dynamodb", "UpdateItem", nth=2),
    Point("worker", "start", "states", "StartExecution"),
    Point("worker", "adopt", "dynamodb", "UpdateItem", nth=3),
)
BRANCH = (
    Point("branch", "read", "dynamodb", "GetItem"),
    Point("branch", "look", "s3", "GetObject"),
    Point("branch", "store", "s3", "PutObject"),
    Point("branch", "write", "dynamodb", "UpdateItem"),
)
COLLECT = (
    Point("collect", "read", "dynamodb", "GetItem"),
    Point("collect", "fetch", "s3", "GetObject"),
    Point("collect", "last fetch", "s3", "GetObject", nth=len(BRANCHES)),
    Point("collect", "store", "s3", "PutObject"),
    Point("collect", "write", "dynamodb", "UpdateItem"),
)
ENDED = (
    Point("ended", "read", "dynamodb", "GetItem"),
    Point("ended", "describe", "states", "DescribeExecution"),
    Point("ended", "write", "dynamodb", "UpdateItem"),
)
HANDLERS = tuple(Point(name, "handler", HANDLER, "Invoke") for name in ("worker", "branch", "collect"))
HEARS = Point("ended", "handler", HANDLER, "Invoke")
KILLS, SILENCES = ("crash_before", "crash_after"), ("lost_reply", "unheard")


@dataclass(frozen=True)
class Case:
    """`aborted`: somebody ends its first execution by hand, in the midst of its branches."""

    point: Point
    strike: str
    aborted: bool = False

    def __str__(self) -> str:
        return f"{self.point.function}-{self.point.name.replace(' ', '-')}-{self.strike}"


ALL = [
    *(Case(point, kill) for point in (*WORKER, *BRANCH, *COLLECT, *HANDLERS) for kill in KILLS),
    *(Case(point, silence) for point in (*WORKER, BRANCH[3], COLLECT[4]) for silence in SILENCES),
    *(Case(point, kill, aborted=True) for point in (*ENDED, HEARS) for kill in KILLS),
]
# every day: what was done, and nobody heard of, as far as it changes anything; `make prove` plays all
EVERY_DAY = [
    one for one in ALL if one.strike == "crash_after" and one.point in (*WORKER[1:], *BRANCH[2:], COLLECT[4], ENDED[2])
]
CASES = ALL if os.environ.get("WORKFLOW_CRASHES") == "all" else EVERY_DAY


@dataclass
class Play:
    """A case under way."""

    case: Case
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    faults: list[Fault] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def job_id(self) -> str:
        return Stage.job_id(self.key, TENANT)

    def begin(self, stage: Stage) -> None:
        point, strike = self.case.point, STRIKES[self.case.strike]
        named = ids.execution_name(self.job_id, 0) if point.operation == "DescribeExecution" else self.job_id
        self.faults = strike.faults(point, named)
        for fault in self.faults:
            stage.strike(fault)
        stage.submit(
            TYPE, {"text": f"{self.key}: the pump of line 4 is broken, says Anna Berg."}, key=self.key, tenant=TENANT
        )


@dataclass(frozen=True)
class Executions:
    """What Step Functions says of those of a job, by run."""

    stage: Stage

    def of(self, job_id: str) -> dict[int, str]:
        states = client("stepfunctions", self.stage.runtime.aws, "us-east-1")
        found = {}
        for machine in states.list_state_machines()["stateMachines"]:
            for one in states.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]:
                for run in range(MAX_RUNS + 1):
                    if one["name"] == ids.execution_name(job_id, run):
                        assert run not in found, "two of one name"
                        found[run] = one["status"]
        return found

    def abort(self, job_id: str) -> None:
        states = client("stepfunctions", self.stage.runtime.aws, "us-east-1")
        for machine in states.list_state_machines()["stateMachines"]:
            arn = machine["stateMachineArn"].replace(":stateMachine:", ":execution:")
            states.stop_execution(executionArn=f"{arn}:{ids.execution_name(job_id, 0)}", cause="by hand")


def play(stage: Stage, cases: list[Case]) -> dict[Case, Play]:
    """All of them side by side, until nothing moves any more."""
    plays = [Play(case) for case in cases]
    stage.reset()
    stage.batches_of(1, 1)  # a worker that is killed takes nobody with it
    stage.script(*({"match": one.key, "delay_s": DELAY_S, "times": len(BRANCHES)} for one in plays if one.case.aborted))
    for one in plays:
        one.begin(stage)
    _abort(stage, [one for one in plays if one.case.aborted])
    _drain(stage, plays)
    return {one.case: one for one in plays}


def _abort(stage: Stage, plays: list[Play]) -> None:
    """Each as soon as one of its branches has asked the model, which answers when all are."""
    executions, left = Executions(stage), list(plays)

    def asked() -> bool:
        for one in [one for one in left if stage.model_calls(one.key)]:
            executions.abort(one.job_id)
            left.remove(one)
        return not left

    poll(asked, lambda: f"they ask nobody: {[str(one.case) for one in left]}")
    if plays:
        stage.alone("branch")
        stage.advance(DELAY_S)


def _drain(stage: Stage, plays: list[Play]) -> None:
    for number in range(ROUNDS):
        stage.quiet(300)
        records = stage.records(one.job_id for one in plays)
        if len(records) == len(plays) and all(map(is_settled, records.values())):
            return
        stage.skip(ROUND_S)
        if number % 4 == 3:
            stage.sweep()
    left = [str(one.case) for one in plays if not is_settled(records.get(one.job_id, {}))]
    raise AssertionError(f"never came to an end: {left}")


@pytest.fixture(scope="module")
def played(module_stage: Stage) -> Callable[[Case], Play]:
    found = play(module_stage, [case for case in CASES if not case.aborted])
    found |= play(module_stage, [case for case in CASES if case.aborted])
    return lambda case: found[case]


@pytest.fixture(scope="module")
def told(module_stage: Stage, played: Callable[[Case], Play]) -> dict[str, set[str]]:
    """The ids of the events of each job."""
    found: dict[str, set[str]] = {}
    for message in module_stage.take_all(module_stage.inbox):
        body = json.loads(message["Body"])
        found.setdefault(body["run_id"], set()).add(body["event_id"])
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_struck_workflow_ends_right(
    module_stage: Stage, played: Callable[[Case], Play], told: dict[str, set[str]], case: Case
) -> None:
    one = played(case)
    record = module_stage.record(one.job_id)
    assert one.faults[0].spent, "the fault never found its call"
    assert (record["status"], record.get("partial", False), record.get("error")) == ("COMPLETED", False, None)
    _has_one_execution_for_each_run(module_stage, one, record)
    _has_one_result_of_all_parts(module_stage, one, record)
    _paid_each_part_once(module_stage, one, record)
    assert told[one.job_id] == {f"{one.job_id}.{record['attempt']}.COMPLETED"}


def _has_one_execution_for_each_run(stage: Stage, one: Play, record: dict[str, Any]) -> None:
    found = Executions(stage).of(one.job_id)
    assert sorted(found) == list(range(record["run"] + 1))
    assert found[record["run"]] == "SUCCEEDED"
    assert record["run"] == (1 if one.case.aborted else 0)
    assert record["run"] < MAX_RUNS


def _has_one_result_of_all_parts(stage: Stage, one: Play, record: dict[str, Any]) -> None:
    assert {name: part["state"] for name, part in record["parts"].items()} == dict.fromkeys(BRANCHES, "done")
    body = stage.result_object(record["result_key"])
    result = json.loads(body)
    assert record["result_key"] == ids.run_result_key(TENANT, one.job_id, record["run"], canonical(result))
    assert (len(body), result["complete"], result["missing"]) == (record["result_bytes"], True, [])
    assert sorted(result["parts"]) == list(BRANCHES)


def _paid_each_part_once(stage: Stage, one: Play, record: dict[str, Any]) -> None:
    """Killed with an answer that was not stored yet, a branch asks once more; nobody else does."""
    calls = len(stage.model_calls(one.key))
    again = one.case.point.function == "branch" and one.case.strike in KILLS
    assert len(BRANCHES) <= calls <= len(BRANCHES) + again
    assert record["cost"] + record.get("late_cost", 0) > 0
