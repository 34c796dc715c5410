"""A toy stack with state machines: what their function does is said by the execution's input."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.aws.lock import MOTO
from local.events.sources import client
from local.executions.execution import Execution
from local.runtime import Runtime
from tests.integration.local_toys import Toy, eventually

# Notes when it began and ended, and does in between what the input says for its branch: for each try another thing.
WORK = """
import json, os, time

class TransientError(Exception):
    pass

def handler(event, context):
    place = os.path.join(os.environ["NOTES"], event.get("id", "none") + "-" + event.get("branch", "alone"))
    steps = event.get("plan", {}).get(event.get("branch", "alone"), ["answer"])
    with open(place, "a") as notes:
        notes.write("x\\n")
    with open(place) as notes:
        tries = len(notes.readlines())
    step = steps[min(tries, len(steps)) - 1]
    began = time.time()
    if step == "fail":
        raise TransientError("as asked")
    if step == "exit":
        os._exit(3)
    if step == "hang":
        time.sleep(3600)
    if isinstance(step, dict) and "wait_for" in step:
        while not os.path.exists(os.path.join(os.environ["NOTES"], step["wait_for"])):
            time.sleep(0.02)
    if isinstance(step, dict) and "bytes" in step:
        return "x" * (step["bytes"] - 2)
    return {"tries": tries, "began": began, "ended": time.time(), "branch": event.get("branch")}
"""
HEARD = """
import json, os

def handler(event, context):
    with open(os.path.join(os.environ["NOTES"], "heard"), "ab", buffering=0) as notes:
        notes.write(json.dumps(event).encode() + b"\\n")
"""
BRANCHES = ("one", "two", "three")

# In virtual time, which a test skips; far more than a slow machine needs in real time.
FUNCTION_S, HASTY_S, STATE_S, MACHINE_S = 200, 100, 10_000, 60_000
RETRY_S, LONGEST_RETRY_S = 300, 600
WAIT_S = 3_600

STATES_MAY = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "states.amazonaws.com"}}
RETRY = [
    {
        "ErrorEquals": ["TransientError", "Sandbox.Timedout", "Runtime.ExitError", "States.Timeout"],
        "IntervalSeconds": RETRY_S,
        "BackoffRate": 3,
        "MaxDelaySeconds": LONGEST_RETRY_S,
        "MaxAttempts": 2,
    },
    {"ErrorEquals": ["Lambda.TooManyRequestsException"], "MaxAttempts": 5, "JitterStrategy": "FULL"},
]


def role(allowed: str = "*", trust: Mapping[str, Any] = STATES_MAY) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": allowed}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [dict(trust)]},
            "Policies": [{"PolicyName": "p", "PolicyDocument": {"Statement": [statement]}}],
        },
    }


def machine(definition: Mapping[str, Any], **properties: Any) -> dict[str, Any]:
    """As the CDK writes it: text, with the function's ARN joined in."""
    before, *rest = json.dumps(definition).split("<WORK>")
    parts: list[Any] = [before]
    for text in rest:
        parts += [{"Fn::GetAtt": ["Work", "Arn"]}, text]
    return {
        "Type": "AWS::StepFunctions::StateMachine",
        "DependsOn": ["States"],
        "Properties": {
            "DefinitionString": {"Fn::Join": ["", parts]},
            "RoleArn": {"Fn::GetAtt": ["States", "Arn"]},
            **properties,
        },
    }


def task(branch: str, **more: Any) -> dict[str, Any]:
    said = {"id.$": "$.id", "plan.$": "$.plan", "branch": branch}
    return {"Type": "Task", "Resource": "<WORK>", "TimeoutSeconds": STATE_S, "Parameters": said, **more}


def single(**more: Any) -> dict[str, Any]:
    """One task, with the retries; `more` goes to the machine."""
    return {"StartAt": "alone", "States": {"alone": task("alone", Retry=RETRY, End=True)}, **more}


def fan() -> dict[str, Any]:
    """Side by side, each caught for itself; then one more."""
    branches = []
    for name in BRANCHES:
        left_out = f"{name}: left out"
        catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": left_out}]
        ask = task(name, Retry=RETRY, Catch=catch, ResultPath=None, End=True)
        branches.append({"StartAt": name, "States": {name: ask, left_out: {"Type": "Pass", "End": True}}})
    parallel = {"Type": "Parallel", "Branches": branches, "ResultPath": None, "Next": "Collect"}
    return {
        "StartAt": "Stage 1",
        "TimeoutSeconds": 3 * MACHINE_S,
        "States": {"Stage 1": parallel, "Collect": task("c", End=True)},
    }


class Scene:
    """The runtime, and what an execution can be seen to have done."""

    def __init__(self, runtime: Runtime, notes: Path) -> None:
        self.runtime = runtime
        self.notes = notes
        self.states = client("stepfunctions", runtime.aws, "us-east-1")

    def arn(self, logical_id: str) -> str:
        return str(self.runtime.stack.resources[logical_id].ref)

    def start(self, logical_id: str, plan: Mapping[str, Any] | None = None, name: str = "") -> Execution:
        name = name or uuid.uuid4().hex
        self.states.start_execution(
            stateMachineArn=self.arn(logical_id), name=name, input=json.dumps({"id": name, "plan": dict(plan or {})})
        )
        return self.runtime.executions.find(name)

    def ended(self, execution: Execution, *, skipping_s: float = 0) -> Execution:
        """Once it has, and everybody has been told of it."""
        eventually(lambda: self._skipped(execution, skipping_s) and not execution.running, timeout_s=120)
        with MOTO:
            return execution

    def until_called(
        self, execution: Execution, branch: str = "alone", times: int = 1, *, skipping_s: float = 0
    ) -> None:
        eventually(lambda: self._skipped(execution, skipping_s) and self.calls(execution, branch) >= times)

    def _skipped(self, execution: Execution, seconds: float) -> bool:
        """While the execution waits, the clock skips to so many seconds after its last event, and no further: neither
        where a function would be cut off, nor once more because nobody has woken up yet."""
        if not seconds:
            return True
        with self.runtime.functions.at_rest(0):  # no other one begins meanwhile
            events = execution.history()
            kinds = [event["type"].removeprefix("LambdaFunction") for event in events]
            done = sum(map(kinds.count, ("Succeeded", "Failed", "TimedOut")))
            if execution.running and 0 < kinds.count("Scheduled") == done:
                self.skip_to(events[-1]["timestamp"] + seconds)
        return True

    def skip_to(self, moment_s: float) -> None:
        """Unless it has passed."""
        self.runtime.clock.advance(max(0.0, moment_s - self.runtime.clock.now().timestamp()))

    def moments(self, execution: Execution, kind: str) -> list[float]:
        """When there were events of this kind, in virtual time."""
        return [float(event["timestamp"]) for event in execution.history() if event["type"] == kind]

    def calls(self, execution: Execution, branch: str = "alone") -> int:
        place = self.notes / f"{execution.name}-{branch}"
        return len(place.read_text().splitlines()) if place.exists() else 0

    def heard(self, execution: Execution) -> list[dict[str, Any]]:
        """What the function behind the rule has been told of it."""
        return [one for one in self.all_heard() if one["detail"]["name"] == execution.name]

    def all_heard(self) -> list[dict[str, Any]]:
        place = self.notes / "heard"
        whole, _, _ = (place.read_text() if place.exists() else "").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]


def permission(logical_id: str, rule: str) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Fn::GetAtt": [logical_id, "Arn"]},
            "Principal": "events.amazonaws.com",
            "SourceArn": {"Fn::GetAtt": [rule, "Arn"]},
        },
    }


def queue_policy(queue: str, *rules: str) -> dict[str, Any]:
    arns = [{"Fn::GetAtt": [rule, "Arn"]} for rule in rules]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": {"Fn::GetAtt": [queue, "Arn"]},
        "Condition": {"ArnEquals": {"aws:SourceArn": arns}},
    }
    return {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {"Queues": [{"Ref": queue}], "PolicyDocument": {"Statement": [statement]}},
    }


def rule(pattern: Mapping[str, Any], *targets: Mapping[str, Any], **properties: Any) -> dict[str, Any]:
    numbered = [{"Id": f"Target{number}", **target} for number, target in enumerate(targets)]
    event_pattern = {"source": ["aws.states"], **pattern}
    return {
        "Type": "AWS::Events::Rule",
        "Properties": {"EventPattern": event_pattern, "State": "ENABLED", "Targets": numbered, **properties},
    }


def toys(folder: Path) -> Toy:
    """`Single`, `Fan`, `Asked`, `Slow`: state machines over one function; `heard` is told of bad ends of the first."""
    notes = folder / "notes"
    notes.mkdir()
    toy = Toy(folder)
    where = {"NOTES": str(notes)}
    toy.function("work", WORK, environment=where, Timeout=FUNCTION_S)
    toy.function("heard", HEARD, environment=where, Timeout=FUNCTION_S)
    toy.resources["States"] = role()
    toy.resources["Single"] = machine(single(TimeoutSeconds=MACHINE_S))
    hasty = {**task("alone", Retry=RETRY, End=True), "TimeoutSeconds": HASTY_S}
    toy.resources["Hasty"] = machine({"StartAt": "alone", "States": {"alone": hasty}})
    toy.resources["Fan"] = machine(fan())
    asked = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "<WORK>", "Payload": {"id.$": "$.id", "plan.$": "$.plan"}},
        "OutputPath": "$.Payload",
        "End": True,
    }
    toy.resources["Asked"] = machine({"StartAt": "asked", "States": {"asked": asked}}, StateMachineName="asked")
    slow = {"Type": "Wait", "Seconds": WAIT_S, "Next": "done"}
    toy.resources["Slow"] = machine(
        {"StartAt": "slow", "States": {"slow": slow, "done": {"Type": "Pass", "End": True}}}
    )
    toy.queue("Ended")
    toy.queue("Letters", VisibilityTimeout=0)
    bad = {
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"], "stateMachineArn": [{"Ref": "Single"}]},
    }
    dlq = {"Arn": {"Fn::GetAtt": ["Letters", "Arn"]}}
    told = {
        "Arn": {"Fn::GetAtt": ["Heard", "Arn"]},
        "DeadLetterConfig": dlq,
        "RetryPolicy": {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 3600},
    }
    toy.resources["Bad"] = rule(bad, told, Description="bad ends")
    toy.resources["BadPermission"] = permission("Heard", "Bad")
    by_prefix = {"detail": {"name": [{"prefix": "queued-"}], "status": [{"anything-but": "ABORTED"}]}}
    nobody = {"Arn": "arn:aws:lambda:us-east-1:123456789012:function:gone", "DeadLetterConfig": dlq}
    toy.resources["Queued"] = rule(by_prefix, {"Arn": {"Fn::GetAtt": ["Ended", "Arn"]}}, nobody)
    toy.resources["Off"] = rule({}, told, State="DISABLED")
    toy.resources["OffPermission"] = permission("Heard", "Off")
    toy.resources["EndedPolicy"] = queue_policy("Ended", "Queued")
    toy.resources["LettersPolicy"] = queue_policy("Letters", "Bad", "Queued", "Off")
    return toy
