"""The state machine of a workflow: what it costs at most, what it passes on, and what it does about errors."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.declarations import CALLS_MAX
from infra.workflow_definition import MORE_TRIES, definition
from lambdas.contracts import workflows
from lambdas.contracts.workflows import Branch, Workflow
from tests.infrastructure.conftest import ROOT

BRANCH, COLLECT = "arn:aws:lambda:us-east-1:111122223333:function:b", "arn:aws:lambda:us-east-1:111122223333:function:c"
POINTER = {"job.$": "$.job", "run.$": "$.run"}
AWS_LISTS = {  # what Lambda's service errors are called, and what it answers when it is at its limit
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
}
KILLED = {"Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory", "Lambda.Unknown", "States.Timeout"}

NEVER_BEGAN = {"Runtime.ImportModuleError", "Runtime.HandlerNotFound", "Runtime.UserCodeSyntaxError"}

State = dict[str, Any]


def workflow(*stages: int) -> Workflow:
    """Of so many branches in each stage, with the longest names that there may be."""
    made = tuple(
        tuple(Branch(f"b{stage}-{number}-".ljust(40, "x"), "summarize") for number in range(count))
        for stage, count in enumerate(stages)
    )
    return Workflow("analyze", "Some analyses.", made)


def made(*stages: int, **over: Any) -> State:
    return definition(
        replace(workflow(*stages), **over),
        branch_arn=BRANCH,
        collect_arn=COLLECT,
        branch_timeout_s=300,
        collect_timeout_s=60,
    )


def every_state(body: State) -> Iterator[tuple[str, State]]:
    for name, state in body["States"].items():
        yield name, state
        for inside in state.get("Branches", ()):
            yield from every_state(inside)


def asking(body: State) -> dict[str, State]:
    """The tasks that run a branch, by the name of their state."""
    return {name: state for name, state in every_state(body) if state.get("Resource") == BRANCH}


def transitions(body: State) -> int:
    """What Step Functions bills when nothing fails: each state that is entered, and the start."""

    def entered(part: State) -> int:
        name, count = part["StartAt"], 0
        while name:
            state = part["States"][name]
            count += 1 + sum(entered(inside) for inside in state.get("Branches", ()))
            name = state.get("Next", "")
        return count

    return 1 + entered(body)


SHAPES = [(1,), (5,), (40,), (1, 1, 1), (5, 1), (1, 5), (1, 38, 1)]


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_a_job_costs_three_transitions_more_than_it_has_branches(stages: tuple[int, ...]) -> None:
    assert transitions(made(*stages)) <= sum(stages) + 3


def test_each_further_stage_of_several_branches_costs_one_more() -> None:
    assert [transitions(made(*[3] * count)) for count in (1, 2, 3)] == [6, 10, 14]
    assert transitions(made(1, 1, 1)) == 5


def test_the_documented_prices_are_those_of_the_state_machines() -> None:
    """$25 for a million transitions."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\d, ]+)` \| (\d+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert len(rows) >= 4
    for stages, count, dollars in rows:
        billed = transitions(made(*map(int, stages.split(", "))))
        assert (billed, 25 * billed) == (int(count), int(dollars.replace(",", "")))


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_branches_stand_in_their_order_and_the_collector_is_last(stages: tuple[int, ...]) -> None:
    body = made(*stages)
    name, met = body["StartAt"], []
    while name != "Collect":
        state = body["States"][name]
        inside = [one["StartAt"] for one in state.get("Branches", ())] or [name]
        met.append([asking(body)[one]["Parameters"]["branch"] for one in inside])
        name = state["Next"]
    assert met == [[branch.name for branch in stage] for stage in workflow(*stages).stages]
    assert body["States"]["Collect"]["End"] is True


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_nothing_but_job_and_run_goes_from_state_to_state(stages: tuple[int, ...]) -> None:
    """SFN-06: whatever forty branches answer, and whatever they fail with. The collector's answer is the output."""
    for name, state in every_state(made(*stages)):
        assert not state.keys() & {"InputPath", "OutputPath", "ResultSelector", "Result", "Assign", "Output"}
        if state["Type"] == "Task":
            given = {"branch": name} if state["Resource"] == BRANCH else {}
            assert state["Parameters"] == POINTER | given
        else:
            assert "Parameters" not in state
        if state["Type"] in ("Task", "Parallel") and name != "Collect":
            assert state["ResultPath"] is None
        assert all(one["ResultPath"] is None for one in state.get("Catch", ()))


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_no_branch_takes_its_siblings_with_it(stages: tuple[int, ...]) -> None:
    """SFN-11: each is caught by itself, after its retries, and everything goes on as if it had answered."""
    body = made(*stages)
    for part in (body, *(inside for _, state in every_state(body) for inside in state.get("Branches", ()))):
        for name, state in part["States"].items():
            if state.get("Resource") != BRANCH:
                continue
            (caught,) = state["Catch"]
            assert caught["ErrorEquals"] == ["States.ALL"]
            left_out = part["States"][caught["Next"]]
            if "Next" in state:
                assert caught["Next"] == state["Next"]
            else:
                assert (left_out, caught["Next"]) == ({"Type": "Pass", "End": True}, f"{name}: left out")


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_everything_that_is_waited_for_has_an_end(stages: tuple[int, ...]) -> None:
    """SFN-04. Beyond the function's own timeout: its error is worth more than that of Step Functions."""
    body = made(*stages)
    assert body["TimeoutSeconds"] == workflow(*stages).timeout_s
    for name, state in every_state(body):
        if state["Type"] == "Task":
            assert state["TimeoutSeconds"] == (90 if name == "Collect" else 330)
            assert "waitForTaskToken" not in state["Resource"]


@pytest.mark.parametrize("stages", SHAPES, ids=str)
def test_names_are_those_that_step_functions_takes(stages: tuple[int, ...]) -> None:
    """SFN-03: 80 characters, and none twice in a state machine, inside of Parallel neither. All of it below 1 MB."""
    body = made(*stages)
    names = [name for name, _ in every_state(body)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9 :-]{1,80}", name) for name in names)
    assert len(json.dumps(body)) < 1_048_576


# --- errors -----------------------------------------------------------------------------------------------------------


def retried(state: State) -> dict[str, int]:
    """How often each error is tried again; the first retrier that names it counts."""
    found: dict[str, int] = {}
    for retrier in state["Retry"]:
        for error in retrier["ErrorEquals"]:
            found.setdefault(error, retrier["MaxAttempts"])
    return found


def test_a_throttled_function_and_one_that_is_not_ready_are_waited_for() -> None:
    """SFN-12. Time is what ends the waiting, not a count: what is left out is missing for good."""
    body = made(5, 1)
    for _, state in every_state(body):
        if state["Type"] == "Task":
            tried = retried(state)
            assert tried.keys() >= AWS_LISTS
            assert tried.keys() >= KILLED | NEVER_BEGAN
            assert {"Lambda.CodeArtifactUserPendingException", "Lambda.ResourceNotReadyException"} <= tried.keys()


@pytest.mark.parametrize("timeout_s", [60, 600, 1_800, 7_200, 86_400])
def test_time_ends_the_waiting_however_short_the_waits_are_drawn(timeout_s: int) -> None:
    """All the waits of a branch take longer than its execution may, six standard deviations below their mean: each is
    drawn evenly between nothing and its longest."""
    body = made(40, timeout_s=timeout_s)
    for state in asking(body).values():
        (patient,) = [one for one in state["Retry"] if "WaitError" in one["ErrorEquals"]]
        longest = [min(patient["IntervalSeconds"] * patient["BackoffRate"] ** n, patient["MaxDelaySeconds"])
                   for n in range(min(patient["MaxAttempts"], 60))]  # fmt: skip
        longest += [patient["MaxDelaySeconds"]] * (patient["MaxAttempts"] - len(longest))
        mean, deviation = sum(longest) / 2, math.sqrt(sum(one**2 for one in longest) / 12)
        assert mean - 6 * deviation > body["TimeoutSeconds"] == timeout_s


def test_the_collector_is_more_patient_than_a_branch() -> None:
    body = made(2)
    branch, collect = retried(next(iter(asking(body).values()))), retried(body["States"]["Collect"])
    assert branch.keys() == collect.keys()
    assert all(collect[error] > branch[error] for error in branch)


def test_no_error_is_tried_again_that_nobody_has_named() -> None:
    """COST-03: what is permanent is not paid twice. An error of ours that has another name is permanent."""
    for _, state in every_state(made(3)):
        for error in retried(state) if state["Type"] == "Task" else ():
            assert error not in ("States.ALL", "States.TaskFailed")
            assert error in ("TransientError", "WaitError", "States.Timeout") or error.startswith(
                ("Lambda.", "Sandbox.", "Runtime.")
            )


def test_waits_have_a_jitter_and_an_end() -> None:
    """Forty branches that were throttled together must not come back together."""
    for _, state in every_state(made(40)):
        for retrier in state.get("Retry", ()):
            assert retrier["JitterStrategy"] == "FULL"
            assert retrier["MaxDelaySeconds"] <= 300
            assert retrier["BackoffRate"] >= 2


def test_the_names_of_our_errors_are_those_that_the_code_raises() -> None:
    """SFN-08: Step Functions compares the class's own name, and knows nothing of what it derives from."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "lambdas").rglob("*.py"))
    ours = {error for _, state in every_state(made(1)) for error in retried(state) if "." not in error}
    assert ours == {"TransientError", "WaitError"}
    for name in ours:
        assert len(re.findall(rf"^class {name}\b", sources, re.MULTILINE)) == 1


@pytest.mark.parametrize("type_", workflows.load()[0])
def test_one_question_is_paid_six_times_at_most(type_: str) -> None:
    """COST-01: the tries of the state machine, in each of its runs. The model's client repeats nothing (BED-01), Lambda
    neither: it is asked to wait. What is waited for has paid nothing, or what it paid is kept."""
    declared = workflows.load()[0][type_]
    body = definition(declared, branch_arn=BRANCH, collect_arn=COLLECT, branch_timeout_s=300, collect_timeout_s=60)
    assert len(asking(body)) == len(declared.branches)
    for state in asking(body).values():
        # each retrier has a count of its own, and any of them may come first
        billed = [one for one in state["Retry"] if {"TransientError", *KILLED} & set(one["ErrorEquals"])]
        assert not any(NEVER_BEGAN & set(one["ErrorEquals"]) for one in billed)
        tries = 1 + sum(one["MaxAttempts"] for one in billed)
        assert tries == 1 + MORE_TRIES
        assert tries * declared.max_runs <= CALLS_MAX == 6


def test_aws_own_grammar_has_no_complaint(tmp_path: Path) -> None:
    machines = {
        f"Machine{number}": {
            "Type": "AWS::StepFunctions::StateMachine",
            "Properties": {"RoleArn": "arn:aws:iam::111122223333:role/x", "Definition": made(*stages)},
        }
        for number, stages in enumerate(SHAPES)
    }
    path = tmp_path / "machines.json"
    path.write_text(json.dumps({"Resources": machines}), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("cfn-lint")), "-r", "us-east-1", "-t", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (run.returncode, run.stdout) == (0, "")
