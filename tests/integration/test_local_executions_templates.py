"""Which state machines and rules are played, and which are refused with their logical id, before anything runs."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from local.aws.calls import Call
from local.aws.needs import needs
from local.aws.uses import Names
from local.events.sources import client
from local.executions import interpreter
from local.executions.definition import functions_of, read
from local.executions.executions import machines
from local.faults import Fault
from local.runtime import Runtime
from local.stack.errors import TemplateError
from local.stack.provision import provision
from local.stack.template import load
from tests.integration.local_aws import serving
from tests.integration.local_machines import STATES_MAY, machine, role, rule, toys
from tests.integration.local_toys import Toy, eventually

LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:f"
END = {"Type": "Pass", "End": True}


def start(toy: Toy) -> Runtime:
    return Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None)


def alone(state: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"StartAt": "s", "States": {"s": dict(state), **more}}


# --- definitions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"StartAt": "s", "States": {}}, "no States"),
        ({"StartAt": "t", "States": {"s": END}}, "starts at 't'"),
        (alone({"Type": "Pass", "Next": "t"}), "leads to 't'"),
        (alone({"Type": "Pass"}), "one of Next and End"),
        (alone({"Type": "Pass", "Next": "s"}), "never ends"),
        (alone(END, lost=END), "nothing in the definition leads to lost"),
        (alone({"Type": "Map", "End": True}), "type Map"),
        (alone({"Type": "Wait", "Timestamp": "2030-01-01T00:00:00Z", "End": True}), "Timestamp"),
        (alone({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "End": True}), "sqs:sendMessage"),
        (alone({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}), "FunctionName"),
        (alone({"Type": "Task", "Resource": LAMBDA, "HeartbeatSeconds": 5, "End": True}), "HeartbeatSeconds"),
        (alone({"Type": "Task", "Resource": LAMBDA, "Retry": [{"ErrorEquals": []}], "End": True}), "list of names"),
        (
            alone({"Type": "Task", "Resource": LAMBDA, "Retry": [{"ErrorEquals": ["States.ALL", "E"]}], "End": True}),
            "stand alone",
        ),
        (alone({"Type": "Parallel", "Branches": [], "End": True}), "no Branches"),
        (alone({"Type": "Parallel", "Branches": [alone(END)], "End": True}), "two states are called 's'"),
        ({"StartAt": "x" * 81, "States": {"x" * 81: END}}, "80 characters"),
        ({**alone(END), "QueryLanguage": "JSONata"}, "JSONata"),
        ({**alone(END), "Comment": "x" * 1_048_576}, "1048576 bytes"),
    ],
)
def test_a_definition_that_cannot_be_played_is_refused(definition: Any, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        read(json.dumps(definition))


def test_every_definition_that_is_read_is_understood_by_the_interpreter(tmp_path: Path) -> None:
    for one in machines(provision_alone(toys(tmp_path))):
        assert interpreter.parse(one.definition) is interpreter.parse(one.definition)
    with pytest.raises(TemplateError, match="not understood"):
        interpreter.parse('{"StartAt": 7}')


def provision_alone(toy: Toy) -> Any:
    """The stack, in moto and without anybody who plays it."""
    with serving() as aws:
        return provision(load(toy.write()), aws.server.url)


# --- templates -------------------------------------------------------------------------------------------------------


def _changed(logical_id: str, **properties: Any) -> Callable[[Toy], None]:
    def change(toy: Toy) -> None:
        toy.resources[logical_id]["Properties"].update(properties)

    return change


def _without(logical_id: str) -> Callable[[Toy], None]:
    def change(toy: Toy) -> None:
        del toy.resources[logical_id]

    return change


def _with(logical_id: str, resource: dict[str, Any]) -> Callable[[Toy], None]:
    return lambda toy: toy.resources.update({logical_id: resource})


HEARD = {"Arn": {"Fn::GetAtt": ["Heard", "Arn"]}}
OTHERS = {**STATES_MAY, "Principal": {"Service": "lambda.amazonaws.com"}}
ELSEWHERE = {**STATES_MAY, "Condition": {"StringEquals": {"aws:SourceAccount": "210987654321"}}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_changed("Slow", StateMachineType="EXPRESS"), r"\[Slow\].*STANDARD"),
        (_changed("Slow", DefinitionS3Location={"Bucket": "b", "Key": "k"}), r"\[Slow\].*DefinitionS3Location"),
        (_changed("Slow", Definition={}), r"\[Slow\] one of Definition and DefinitionString"),
        (_with("States", role(trust=OTHERS)), "Step Functions may not assume"),
        (_with("States", role(trust=ELSEWHERE)), "Step Functions may not assume"),
        (
            _with("States", role("arn:aws:lambda:us-east-1:123456789012:function:other")),
            "may not lambda:InvokeFunction",
        ),
        (_without("BadPermission"), r"\[Bad\] EventBridge may not invoke heard"),
        (_without("LettersPolicy"), r"\[Bad\] EventBridge may not send to .*Letters"),
        (_without("EndedPolicy"), r"\[Queued\] EventBridge may not send to .*Ended"),
        (_changed("Bad", EventBusName="mine"), r"\[Bad\].*buses"),
        (_changed("Bad", ScheduleExpression="rate(1 hour)"), r"\[Bad\].*ScheduleExpression"),
        (_changed("Off", EventPattern={"source": ["aws.s3"]}), r"\[Off\] nobody on this machine"),
        (_changed("Off", EventPattern={"detail": {"name": [{"wildcard": "a*"}]}}), r"\[Off\].*wildcard"),
        (_changed("Off", EventPattern={"detail": {"name": "text"}}), r"\[Off\].*non-empty list"),
        (_changed("Off", Targets=[{**HEARD, "Id": "a", "Input": "{}"}]), r"\[Off\] Input"),
        (
            _changed("Off", Targets=[{**HEARD, "Id": "a", "RetryPolicy": {"MaximumRetryAttempts": 186}}]),
            r"\[Off\] MaximumRetryAttempts",
        ),
        (_changed("Off", Targets=[{"Arn": "arn:aws:sns:us-east-1:1:t", "Id": "a"}]), r"\[Off\].*kind sns"),
    ],
)
def test_what_would_not_work_on_aws_or_here_is_refused(
    tmp_path: Path, change: Callable[[Toy], None], words: str
) -> None:
    toy = toys(tmp_path)
    change(toy)
    runtime = start(toy)
    with pytest.raises(TemplateError, match=words):
        runtime.start()


def test_substitutions_are_filled_in(tmp_path: Path) -> None:
    toy = toys(tmp_path)
    toy.resources["Slow"]["Properties"] = {
        "Definition": alone({"Type": "Task", "Resource": "${Function}", "End": True}),
        "DefinitionSubstitutions": {"Function": {"Fn::GetAtt": ["Work", "Arn"]}},
        "RoleArn": {"Fn::GetAtt": ["States", "Arn"]},
        "LoggingConfiguration": {"Level": "OFF"},
        "TracingConfiguration": {"Enabled": True},
    }
    stack = provision_alone(toy)
    slow = next(one for one in machines(stack) if one.logical_id == "Slow")
    assert functions_of(read(slow.definition)) == [stack.resources["Work"].attributes["Arn"]]
    assert slow.timeout_s == float("inf")


# --- permissions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "body", "resource"),
    [
        ("StartExecution", b'{"stateMachineArn": "arn:machine", "name": "n"}', "arn:machine"),
        ("DescribeExecution", b'{"executionArn": "arn:execution"}', "arn:execution"),
        ("StopExecution", b'{"executionArn": "arn:execution"}', "arn:execution"),
    ],
)
def test_a_call_needs_its_own_permission(operation: str, body: bytes, resource: str) -> None:
    headers = {"content-type": "application/x-amz-json-1.0"}
    (need,) = needs(Call(None, "states", operation, body, headers, "/"))
    assert (need.action, need.resource) == (f"states:{operation}", resource)


def test_executions_have_a_name_in_the_comparison_of_permissions(tmp_path: Path) -> None:
    stack = provision_alone(toys(tmp_path))
    arn = stack.resources["Slow"].attributes["Arn"]
    names = Names(stack)
    assert names.resource(arn) == "{Slow}"
    assert names.resource(f"{arn.replace(':stateMachine:', ':execution:')}:*") == "{Slow.executions}:*"


# Starts an execution, and says what came of it.
STARTS = """
import boto3, os
from botocore.config import Config
client = boto3.client("stepfunctions", config=Config(retries={"total_max_attempts": 1}))

def handler(event, context):
    try:
        answer = getattr(client, event["call"])(**event["asked"])
    except client.exceptions.ClientError as error:
        return error.response["Error"]["Code"]
    return answer.get("executionArn") or str(answer.get("status"))
"""


def test_functions_start_executions_as_their_role_allows_and_the_machines_role_is_used(tmp_path: Path) -> None:
    toy = toys(tmp_path)
    toy.function("starts", STARTS)
    may = {"Effect": "Allow", "Action": "states:StartExecution", "Resource": {"Ref": "Single"}}
    log = {"Effect": "Allow", "Action": "logs:*", "Resource": "*"}
    toy.resources["Starter"] = role()
    toy.resources["Starter"]["Properties"]["Policies"] = [
        {"PolicyName": "p", "PolicyDocument": {"Statement": [may, log]}}
    ]
    toy.resources["Starts"]["Properties"]["Role"] = {"Fn::GetAtt": ["Starter", "Arn"]}
    toy.resources["Unknown"] = machine(
        alone({"Type": "Task", "Resource": LAMBDA, "End": True}), RoleArn={"Fn::GetAtt": ["States", "Arn"]}
    )
    asked: list[tuple[str, str, str]] = []
    with start(toy) as runtime:
        caller: Any = runtime.executions._caller
        allowed = caller._exercise
        caller._exercise = lambda *what: [asked.append(what), allowed(*what)][1]  # type: ignore[func-returns-value]

        def call(operation: str, **parameters: Any) -> Any:
            return runtime.functions.invoke("starts", {"call": operation, "asked": parameters}).result

        single_arn, slow_arn = (runtime.stack.resources[one].ref for one in ("Single", "Slow"))
        given = {"name": "by-function", "input": '{"id": "by-function", "plan": {}}'}
        arn = call("start_execution", stateMachineArn=single_arn, **given)
        assert arn == runtime.executions.find("by-function").arn
        assert call("start_execution", stateMachineArn=slow_arn, **given) == "AccessDeniedException"
        assert call("describe_execution", executionArn=arn) == "AccessDeniedException"
        eventually(lambda: not runtime.executions.find("by-function").running)
        states_role = runtime.stack.resources["States"].attributes["Arn"]
        assert asked == [
            (states_role, "lambda:InvokeFunction", runtime.stack.resources["Work"].attributes["Arn"]),
        ]
        metered = [(one.function, one.operation, one.error) for one in runtime.meter.calls() if one.service == "states"]
        assert metered[0] == ("starts", "StartExecution", None)

        lost = Fault("starts", "lost_reply", "after", service="states", operation="StartExecution")
        runtime.faults.add(lost)
        runtime.functions.invoke(
            "starts", {"call": "start_execution", "asked": {"stateMachineArn": single_arn, **given, "name": "unheard"}}
        )
        assert lost.fired == 1
        assert runtime.executions.find("unheard").name == "unheard"

        states = client("stepfunctions", runtime.aws, "us-east-1")
        states.start_execution(stateMachineArn=runtime.stack.resources["Unknown"].ref, name="nowhere")
        eventually(lambda: not runtime.executions.find("nowhere").running)
        assert runtime.executions.find("nowhere").error == "Lambda.ResourceNotFoundException"
        caller._exercise = lambda *_: False
        states.start_execution(stateMachineArn=single_arn, name="denied", input='{"id": "denied", "plan": {}}')
        eventually(lambda: not runtime.executions.find("denied").running)
        assert runtime.executions.find("denied").error == "Lambda.AWSLambdaException"
        states.close()


def test_stopping_the_runtime_ends_every_execution_and_its_threads(tmp_path: Path) -> None:
    toy = toys(tmp_path)
    before = set(threading.enumerate())
    with start(toy) as runtime:
        states = client("stepfunctions", runtime.aws, "us-east-1")
        plans = {"Slow": "{}", "Fan": '{"one": ["hang"], "two": ["fail"]}', "Single": '{"alone": ["hang"]}'}
        for logical_id, plan in plans.items():
            name = uuid.uuid4().hex
            states.start_execution(
                stateMachineArn=runtime.stack.resources[logical_id].ref,
                name=name,
                input=f'{{"id": "{name}", "plan": {plan}}}',
            )
        eventually(lambda: len(runtime.functions.running("work")) >= 2)
        states.close()
        told = runtime.executions.all()
    eventually(lambda: set(threading.enumerate()) <= before)
    assert {one.status for one in told} == {"RUNNING"}, "the runtime is gone: that says nothing about them"


def test_a_template_without_state_machines_plays_none(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    toy.resources["Rule"] = rule({"detail": {"status": ["FAILED"]}})
    with start(toy) as runtime:
        assert runtime.executions.all() == []
        assert runtime.executions.machines == {}
        assert runtime.executions._interpreter is None
