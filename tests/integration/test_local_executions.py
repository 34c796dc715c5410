"""Step Functions as our functions and tests meet it: real functions on moto's interpreter, by the virtual clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.executions import interpreter
from local.executions.limits import DATA_BYTES
from local.faults import Fault
from local.runtime import Runtime
from tests.integration.local_aws import error_code
from tests.integration.local_machines import (
    BRANCHES,
    FUNCTION_S,
    HASTY_S,
    LONGEST_RETRY_S,
    MACHINE_S,
    RETRY_S,
    STATE_S,
    WAIT_S,
    Scene,
    toys,
)
from tests.integration.local_toys import eventually, request


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("executions")
    toy = toys(folder)
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        played = Scene(runtime, folder / "notes")
        yield played
        played.states.close()


@pytest.fixture(autouse=True)
def calm(scene: Scene) -> Iterator[None]:
    yield
    scene.runtime.faults.clear()
    scene.runtime.executions.heed_events()
    for execution in scene.runtime.executions.all():
        scene.runtime.executions.stop(execution.name)
    functions = scene.runtime.functions
    for environment in map(functions.environment_of, functions.running("work")):
        if environment is not None:
            environment.kill("crash")
    eventually(lambda: not functions.running())


def kinds(execution: Any) -> list[str]:
    return [event["type"] for event in execution.history()]


# --- tasks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["Single", "Asked"])
def test_task_answers_what_the_function_does(scene: Scene, machine: str) -> None:
    execution = scene.ended(scene.start(machine))
    assert execution.status == "SUCCEEDED"
    assert json.loads(execution.output or "")["tries"] == 1
    assert scene.states.describe_execution(executionArn=execution.arn)["output"] == execution.output
    assert execution.transitions == 2


@pytest.mark.parametrize(
    ("step", "error"), [("fail", "TransientError"), ("exit", "Runtime.ExitError"), ("hang", "Sandbox.Timedout")]
)
@pytest.mark.parametrize("machine", ["Single", "Asked"])
def test_error_of_a_function_has_its_own_name(scene: Scene, machine: str, step: str, error: str) -> None:
    execution = scene.start(machine, {"alone": [step]})
    tries = 3 if machine == "Single" else 1
    for number in range(1, tries + 1):
        scene.until_called(execution, times=number, skipping_s=LONGEST_RETRY_S + 1)
        scene.runtime.clock.advance(FUNCTION_S + 1 if step == "hang" else 0)
    scene.ended(execution)
    assert (execution.status, execution.error) == ("FAILED", error)
    assert json.loads(execution.cause or "")["errorType"] == error
    assert scene.calls(execution) == tries


def test_fault_at_the_functions_start_is_a_throttle(scene: Scene) -> None:
    execution_name = "throttled"
    fault = Fault("work", "throttle", "before", times=2, service="handler", job_id=execution_name)
    scene.runtime.faults.add(fault)
    execution = scene.ended(scene.start("Single", name=execution_name), skipping_s=20)
    assert execution.status == "SUCCEEDED"
    assert fault.fired == 2
    assert scene.calls(execution) == 1
    failures = [
        one["lambdaFunctionFailedEventDetails"]["error"] for one in execution.history() if "Failed" in one["type"]
    ]
    assert failures == ["Lambda.TooManyRequestsException"] * 2


def since(scene: Scene, execution: Any, number: int) -> list[float]:
    """When it has failed, but for the first `number` times."""
    return scene.moments(execution, "LambdaFunctionFailed")[number:]


def test_retry_is_a_transition_and_waits_as_long_as_it_says(scene: Scene) -> None:
    execution = scene.start("Single", {"alone": ["fail", "fail", "answer"]})
    pauses = [RETRY_S, LONGEST_RETRY_S]  # the second would be three times as long as the first, which is too long
    for number, pause_s in enumerate(pauses):
        (failed_s,) = eventually(partial(since, scene, execution, number))
        scene.skip_to(failed_s + pause_s - 10)
        time.sleep(0.1)  # for one that would not wait so long
        scene.skip_to(failed_s + pause_s + 1)
    scene.ended(execution)
    assert execution.status == "SUCCEEDED"
    assert execution.transitions == 4
    failed, begun = (scene.moments(execution, f"LambdaFunction{kind}") for kind in ("Failed", "Scheduled"))
    assert all(next_s - end_s >= pause_s for next_s, end_s, pause_s in zip(begun[1:], failed, pauses, strict=True))


@pytest.mark.parametrize(
    ("machine", "event", "seconds"),
    [("Single", "LambdaFunctionFailed", RETRY_S + 1), ("Slow", "WaitStateEntered", WAIT_S + 1)],
)
def test_a_wait_counts_from_the_event_before_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, machine: str, event: str, seconds: float
) -> None:
    """Who sees that event may skip the clock before the execution's own thread has come to its wait."""
    add = interpreter.History.add_event

    def seen_at_once(history: Any, context: Any, event_type: Any, *more: Any, **named: Any) -> int:
        number = add(history, context, event_type, *more, **named)
        if event_type.value == event:
            scene.runtime.clock.advance(seconds)
        return number

    monkeypatch.setattr(interpreter.History, "add_event", seen_at_once)
    assert scene.ended(scene.start(machine, {"alone": ["fail", "answer"]})).status == "SUCCEEDED"


def test_a_functions_own_timeout_comes_before_that_of_its_state(scene: Scene) -> None:
    execution = scene.start("Single", {"alone": ["hang", "answer"]})
    scene.until_called(execution)
    scene.runtime.clock.advance(STATE_S + FUNCTION_S)  # past both
    scene.ended(execution, skipping_s=RETRY_S + 1)
    failed = [one for one in execution.history() if one["type"] == "LambdaFunctionFailed"]
    assert [one["lambdaFunctionFailedEventDetails"]["error"] for one in failed] == ["Sandbox.Timedout"]
    assert execution.status == "SUCCEEDED"


def test_a_state_that_times_out_is_tried_again(scene: Scene) -> None:
    execution = scene.start("Hasty", {"alone": [{"wait_for": "never"}, "answer"]})
    scene.until_called(execution)
    scene.runtime.clock.advance(HASTY_S + 1)
    eventually(lambda: "LambdaFunctionTimedOut" in kinds(execution))
    assert scene.runtime.functions.running("work"), "the function has time left, and goes on"
    scene.until_called(execution, times=2, skipping_s=RETRY_S + 1)
    assert scene.ended(execution).status == "SUCCEEDED"
    assert execution.transitions == 3
    eventually(lambda: not scene.runtime.functions.running("work"))


def test_a_frozen_function_outlives_its_state(scene: Scene) -> None:
    scene.runtime.faults.add(Fault("work", "freeze", "before", service="handler", job_id="frozen"))
    execution = scene.start("Single", name="frozen")
    functions = scene.runtime.functions
    eventually(lambda: [one for one in map(functions.environment_of, functions.running("work")) if one and one.frozen])
    scene.runtime.clock.advance(STATE_S + 1)
    eventually(lambda: "LambdaFunctionTimedOut" in kinds(execution))
    assert scene.ended(execution, skipping_s=RETRY_S + 1).status == "SUCCEEDED"


# --- side by side ------------------------------------------------------------------------------------------------


def test_branches_run_at_the_same_time(scene: Scene) -> None:
    waiting = [{"wait_for": "go"}]
    execution = scene.start("Fan", dict.fromkeys(BRANCHES, waiting))
    for branch in BRANCHES:
        scene.until_called(execution, branch)
    assert len(scene.runtime.functions.running("work")) == 3
    (scene.notes / "go").touch()
    scene.ended(execution)
    assert execution.status == "SUCCEEDED"
    assert execution.transitions == 3 + len(BRANCHES)
    assert sorted(execution.entered()[1:4]) == sorted(BRANCHES)
    assert execution.entered()[-1] == "Collect"


def test_a_branch_that_fails_is_left_out_and_the_others_stay(scene: Scene) -> None:
    execution = scene.start("Fan", {"two": ["fail"]})
    scene.ended(execution, skipping_s=LONGEST_RETRY_S + 1)
    assert execution.status == "SUCCEEDED"
    assert [scene.calls(execution, one) for one in (*BRANCHES, "c")] == [1, 3, 1, 1]
    assert "two: left out" in execution.entered()
    assert execution.transitions == 3 + len(BRANCHES) + 1 + 2


def test_an_answer_that_is_too_long_is_caught_by_nobody(scene: Scene) -> None:
    execution = scene.start("Fan", {"two": [{"bytes": DATA_BYTES + 1}]})
    scene.ended(execution)
    assert (execution.status, execution.error) == ("FAILED", "States.DataLimitExceeded")
    assert scene.calls(execution, "c") == 0


def test_an_answer_of_exactly_the_limit_goes_on(scene: Scene) -> None:
    execution = scene.ended(scene.start("Single", {"alone": [{"bytes": DATA_BYTES}]}))
    assert execution.status == "SUCCEEDED"
    assert len(execution.output or "") == DATA_BYTES


# --- ends ----------------------------------------------------------------------------------------------------------


def test_stopping_ends_it_at_once_and_lets_the_function_go_on(scene: Scene) -> None:
    execution = scene.start("Fan", {"one": [{"wait_for": "later"}]})
    scene.until_called(execution, "one")
    stopped = scene.states.stop_execution(executionArn=execution.arn, error="Cancelled", cause="by the caller")
    described = scene.states.describe_execution(executionArn=execution.arn)
    assert (described["status"], described["error"], described["cause"]) == ("ABORTED", "Cancelled", "by the caller")
    assert described["stopDate"] == stopped["stopDate"]
    events = kinds(execution)
    assert events[-1] == "ExecutionAborted"
    assert scene.runtime.functions.running("work")
    (scene.notes / "later").touch()
    eventually(lambda: not scene.runtime.functions.running("work"))
    assert kinds(execution) == events
    assert scene.calls(execution, "c") == 0


def test_stopping_what_has_ended_changes_nothing(scene: Scene) -> None:
    execution = scene.ended(scene.start("Single"))
    stopped = scene.states.stop_execution(executionArn=execution.arn)
    described = scene.states.describe_execution(executionArn=execution.arn)
    assert described["status"] == "SUCCEEDED"
    assert stopped["stopDate"] == described["stopDate"]


def test_an_execution_that_takes_too_long_ends_at_its_time(scene: Scene) -> None:
    execution = scene.start("Single", {"alone": ["fail"]})
    eventually(lambda: "LambdaFunctionFailed" in kinds(execution))
    scene.runtime.clock.advance(10 * MACHINE_S)
    scene.ended(execution)
    assert execution.status == "TIMED_OUT"
    assert execution.stopped_s == pytest.approx(execution.started_s + MACHINE_S, abs=0.01)
    assert kinds(execution)[-1] == "ExecutionTimedOut"
    assert scene.calls(execution) == 1


def test_a_wait_passes_with_the_clock(scene: Scene) -> None:
    execution = scene.start("Slow")
    (entered_s,) = eventually(lambda: scene.moments(execution, "WaitStateEntered"))
    scene.skip_to(entered_s + WAIT_S - 10)
    time.sleep(0.1)  # for one that would not wait so long
    scene.skip_to(entered_s + WAIT_S + 1)
    assert scene.ended(execution).status == "SUCCEEDED"
    assert execution.transitions == 3
    (left_s,) = scene.moments(execution, "WaitStateExited")
    assert left_s - entered_s >= WAIT_S


def test_a_stopped_runtime_leaves_no_thread(tmp_path_factory: pytest.TempPathFactory, scene: Scene) -> None:
    execution = scene.start("Slow")
    failing = scene.start("Single", {"alone": ["fail"]})
    eventually(lambda: "WaitStateEntered" in kinds(execution) and "LambdaFunctionFailed" in kinds(failing))
    assert [thread for thread in threading.enumerate() if thread.name.startswith("execution-")]
    scene.runtime.executions.stop(execution.name)
    scene.runtime.executions.stop(failing.name)
    eventually(lambda: not [one for one in threading.enumerate() if one.name.startswith("execution-")])


# --- names and inputs ------------------------------------------------------------------------------------------------


def test_a_start_with_the_same_name_and_input_is_the_same_execution(scene: Scene) -> None:
    asked = {"stateMachineArn": scene.arn("Slow"), "name": "twice", "input": '{"id":"twice","plan":{}}'}
    first, second = (scene.states.start_execution(**asked) for _ in range(2))
    assert (first["executionArn"], first["startDate"]) == (second["executionArn"], second["startDate"])
    assert sum(one.name == "twice" for one in scene.runtime.executions.all()) == 1
    for other in ('{"id":"another","plan":{}}', '{"plan":{},"id":"twice"}'):
        with pytest.raises(ClientError) as refused:
            scene.states.start_execution(**{**asked, "input": other})
        assert error_code(refused.value) == "ExecutionAlreadyExists"
    scene.runtime.executions.stop("twice")
    with pytest.raises(ClientError) as refused:
        scene.states.start_execution(**asked)
    assert error_code(refused.value) == "ExecutionAlreadyExists"


def test_many_starts_at_once_are_one_execution(scene: Scene) -> None:
    asked = {"stateMachineArn": scene.arn("Single"), "name": "race", "input": '{"id":"race","plan":{"alone":["hang"]}}'}
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(scene.states.start_execution(**asked)["executionArn"]))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [scene.runtime.executions.find("race").arn] * 5
    scene.until_called(scene.runtime.executions.find("race"))
    assert scene.calls(scene.runtime.executions.find("race")) == 1


def test_without_a_name_it_gets_one(scene: Scene) -> None:
    arn = scene.states.start_execution(stateMachineArn=scene.arn("Slow"))["executionArn"]
    described = scene.states.describe_execution(executionArn=arn)
    assert (len(described["name"]), described["input"]) == (36, "{}")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"name": "with space"}, "InvalidName"),
        ({"name": "a#b"}, "InvalidName"),
        ({"name": "a:b"}, "InvalidName"),
        ({"name": "x" * 81}, "ValidationException"),
        ({"input": "{broken"}, "InvalidExecutionInput"),
        ({"input": '"' + "é" * (DATA_BYTES // 2) + '"'}, "ValidationException"),
        ({"stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:gone"}, "StateMachineDoesNotExist"),
    ],
)
def test_a_start_that_aws_refuses_is_refused(scene: Scene, changed: dict[str, str], code: str) -> None:
    known = len(scene.runtime.executions.all())
    with pytest.raises(ClientError) as refused:
        scene.states.start_execution(**{"stateMachineArn": scene.arn("Slow"), "name": "good", "input": "{}", **changed})
    assert error_code(refused.value) == code
    assert len(scene.runtime.executions.all()) == known


@pytest.mark.parametrize("name", ["x" * 80, "a_b-c.d", "ü"])
def test_a_name_and_an_input_at_their_limits_are_taken(scene: Scene, name: str) -> None:
    text = json.dumps("x" * (DATA_BYTES - 2))
    arn = scene.states.start_execution(stateMachineArn=scene.arn("Slow"), name=name, input=text)["executionArn"]
    assert scene.states.describe_execution(executionArn=arn)["input"] == text


@pytest.mark.parametrize("operation", ["describe_execution", "stop_execution", "get_execution_history"])
def test_an_unknown_execution_does_not_exist(scene: Scene, operation: str) -> None:
    arn = scene.arn("Slow").replace(":stateMachine:", ":execution:") + ":nobody"
    with pytest.raises(ClientError) as refused:
        getattr(scene.states, operation)(executionArn=arn)
    assert error_code(refused.value) == "ExecutionDoesNotExist"


def test_lists_and_histories_come_in_pages(scene: Scene) -> None:
    execution = scene.ended(scene.start("Single"))
    listed = scene.states.list_executions(stateMachineArn=scene.arn("Single"), maxResults=1)
    assert [one["name"] for one in listed["executions"]] == [execution.name]
    assert "nextToken" in listed
    running = scene.states.list_executions(stateMachineArn=scene.arn("Single"), statusFilter="RUNNING")
    assert running["executions"] == []
    pages = scene.states.get_paginator("get_execution_history").paginate(
        executionArn=execution.arn, PaginationConfig={"PageSize": 3}
    )
    events = [event for page in pages for event in page["events"]]
    assert [event["type"] for event in events] == kinds(execution)
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))


def test_operations_that_nobody_plays_say_so(scene: Scene) -> None:
    with pytest.raises(ClientError) as refused:
        scene.states.send_task_success(taskToken="none", output="{}")
    assert error_code(refused.value) == "NotImplemented"


# --- who hears of it -------------------------------------------------------------------------------------------------


def test_a_rule_tells_its_function_of_a_bad_end(scene: Scene) -> None:
    execution = scene.start("Single", {"alone": ["hang"]})
    scene.until_called(execution)
    scene.states.stop_execution(executionArn=execution.arn, error="E", cause="C")
    (event,) = eventually(lambda: scene.heard(execution))
    assert (event["source"], event["detail-type"]) == ("aws.states", "Step Functions Execution Status Change")
    assert event["resources"] == [execution.arn]
    detail = event["detail"]
    assert (detail["status"], detail["error"], detail["cause"]) == ("ABORTED", "E", "C")
    assert (detail["executionArn"], detail["stateMachineArn"]) == (execution.arn, scene.arn("Single"))
    assert detail["startDate"] == round(execution.started_s * 1000)
    assert detail["stopDate"] == round((execution.stopped_s or 0) * 1000)
    assert (detail["input"], detail["output"]) == (execution.input, None)


def test_a_rule_hears_nothing_of_what_its_pattern_leaves_out(scene: Scene) -> None:
    scene.ended(scene.start("Single"))
    other = scene.start("Slow")
    scene.runtime.executions.stop(other.name)
    watched = scene.start("Single", {"alone": ["hang"]})
    scene.runtime.executions.stop(watched.name)
    eventually(lambda: scene.heard(watched))
    told = {event["detail"]["stateMachineArn"] for event in scene.all_heard()}
    assert told == {scene.arn("Single")}
    assert {event["detail"]["status"] for event in scene.all_heard()} <= {"ABORTED", "FAILED", "TIMED_OUT"}


def test_events_can_be_lost(scene: Scene) -> None:
    scene.runtime.executions.lose_events(1, match="lost-")
    for name in ("lost-one", "lost-two"):
        execution = scene.start("Single", {"alone": ["hang"]}, name=name)
        scene.runtime.executions.stop(execution.name)
    eventually(lambda: scene.heard(scene.runtime.executions.find("lost-two")))
    assert scene.heard(scene.runtime.executions.find("lost-one")) == []
    assert [event["detail"]["name"] for event in scene.runtime.executions.lost_events] == ["lost-one"]


def test_a_queue_hears_and_what_reaches_nobody_lies_among_the_letters(scene: Scene) -> None:
    execution = scene.ended(scene.start("Single", name="queued-one"))
    told = [json.loads(message["Body"]) for message in _received(scene, "Ended")]
    assert [one["detail"]["status"] for one in told] == ["RUNNING", "SUCCEEDED"]
    assert (told[1]["detail"]["output"], told[0]["detail"]["stopDate"]) == (execution.output, None)
    letters = _received(scene, "Letters")
    assert [json.loads(letter["Body"]) for letter in letters] == told
    attributes = {name: value["StringValue"] for name, value in letters[0]["MessageAttributes"].items()}
    assert attributes["TARGET_ARN"].endswith(":function:gone")
    assert (attributes["ERROR_CODE"], attributes["RETRY_ATTEMPTS"]) == ("NO_RESOURCE", "0")


def test_metrics_are_those_of_the_state_machine(scene: Scene) -> None:
    store = scene.runtime.metrics.store
    before = {about: store.fed(about) for about in store.metrics()}
    scene.ended(scene.start("Single"))
    stopped = scene.start("Slow")
    scene.runtime.executions.stop(stopped.name)
    fed = {
        (about.name, dict(about.dimensions)["StateMachineArn"])
        for about in store.metrics()
        if about.namespace == "AWS/States" and store.fed(about) > before.get(about, 0)
    }
    single, slow = scene.arn("Single"), scene.arn("Slow")
    assert fed == {
        ("ExecutionsStarted", single), ("ExecutionsSucceeded", single), ("ExecutionTime", single),
        ("ExecutionsStarted", slow), ("ExecutionsAborted", slow), ("ExecutionTime", slow),
        ("ExecutionThrottled", single), ("ExecutionThrottled", slow),
    }  # fmt: skip


def test_controls_show_and_stop_executions(scene: Scene) -> None:
    controls = f"{scene.runtime.api}/_local/executions"
    execution = scene.start("Slow")
    eventually(lambda: "WaitStateEntered" in kinds(execution))
    shown = {one["name"]: one for one in request("GET", controls).json["executions"]}
    assert (shown[execution.name]["status"], shown[execution.name]["transitions"]) == ("RUNNING", 2)
    assert request("POST", f"{controls}/stop", {"name": execution.name}).json["status"] == "ABORTED"
    history = request("POST", f"{controls}/history", {"name": execution.name}).json
    assert [event["type"] for event in history["events"]] == kinds(execution)
    assert request("POST", f"{controls}/stop", {"name": "nobody"}).status == 400
    assert request("POST", f"{controls}/events", {"lose": 0}).status == 400
    assert request("POST", f"{controls}/events", {}).json == {"lost": []}
    assert request("DELETE", f"{controls}/events").status == 200


def _received(scene: Scene, queue: str) -> list[dict[str, Any]]:
    sqs = scene.runtime.sources._sqs
    url = scene.runtime.outputs[queue]
    asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"]}
    return list(sqs.receive_message(**asked).get("Messages", []))
