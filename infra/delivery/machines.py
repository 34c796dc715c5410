"""State machines: what they wait for has an end, a throttled call is made again, and a bad end reaches somebody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from infra.delivery.alarms import ALARM, tells
from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import EVENT_RULE
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, dig, listed, names_in, shown, text_of

MACHINE = "AWS::StepFunctions::StateMachine"
_THROTTLED = {"Lambda.TooManyRequestsException", "States.TaskFailed", "States.ALL"}
_BAD_ENDS = {"ExecutionsFailed": "FAILED", "ExecutionsTimedOut": "TIMED_OUT"}
_CALLED = (FUNCTION, "AWS::Lambda::Alias", "AWS::Lambda::Version")
_CALLBACK = ".waitForTaskToken"

State = Mapping[str, Any]


def timeouts(template: Template, machine: Resource) -> Iterator[Problem]:
    """Without one an execution lasts a year, and a task waits for as long for an answer that never comes."""
    body = _definition(machine)
    if "TimeoutSeconds" not in body and template.text(machine.get("StateMachineType")) != "EXPRESS":
        yield Problem(machine, "an execution that hangs lasts a year", "set TimeoutSeconds of the state machine")
    for name, state in _states(body):
        if state.get("Type") != "Task":
            continue
        wanted = ["TimeoutSeconds"]
        if _CALLBACK in str(state.get("Resource")):
            wanted.append("HeartbeatSeconds")
        missing = [one for one in wanted if not state.keys() & {one, f"{one}Path"}]
        if missing:
            yield Problem(
                machine, f"its task {name} waits without an end", f"set {' and '.join(missing)} of that state"
            )


def throttles(template: Template, machine: Resource) -> Iterator[Problem]:
    """A function that is at its limit refuses at once: what CDK writes by itself does not try again then."""
    for name, state in _states(_definition(machine)):
        if state.get("Type") != "Task" or not _calls_a_function(template, machine, state):
            continue
        retriers = [one for one in _each(state.get("Retry")) if isinstance(one, dict)]
        retried = {str(error) for one in retriers for error in _each(one.get("ErrorEquals"))}
        if not retried & _THROTTLED:
            yield Problem(
                machine,
                f"its task {name} fails when its function is throttled",
                "add Lambda.TooManyRequestsException to Retry of that state",
            )


def bad_ends(template: Template, machine: Resource) -> Iterator[Problem]:
    """An execution that fails tells nobody by itself: its input is done with."""
    heard: set[str] = set()
    unread: list[str] = []
    for one in template.of(EVENT_RULE, ALARM):
        try:
            heard |= set((_heard if one.kind == EVENT_RULE else _watched)(template, one, machine))
        except CannotTell as why:
            unread.append(f"{one.id}: {why}")
    missing = [status for status in _BAD_ENDS.values() if status not in heard]
    if missing and unread:
        raise CannotTell(f"none that tells of its bad ends is certain ({'; '.join(unread)})")
    if missing:
        yield Problem(
            machine,
            f"nobody is told of its executions that end as {' or '.join(missing)}",
            "add a rule on the status changes of its executions (source aws.states), or alarms on ExecutionsFailed and "
            "ExecutionsTimedOut",
        )


def _definition(machine: Resource) -> State:
    """Raises CannotTell for one that lies elsewhere, or is known only when deployed."""
    body = machine.get("Definition")
    if body is None:
        text = text_of(machine.get("DefinitionString"))
        if not text:
            raise CannotTell(f"the definition of {machine.id} is not in this template")
        try:
            body = json.loads(text)
        except ValueError:
            raise CannotTell(f"{shown(text)} is no JSON before it is deployed") from None
    if not isinstance(body, dict) or not isinstance(body.get("States"), dict):
        raise CannotTell(f"{shown(body)} is no definition that can be read")
    return body


def _states(body: Any) -> Iterator[tuple[str, State]]:
    """All of them, those inside of Parallel and Map too."""
    states = body.get("States") if isinstance(body, dict) else None
    for name, state in states.items() if isinstance(states, dict) else ():
        if isinstance(state, dict):
            yield str(name), state
            for inner in (*_each(state.get("Branches")), state.get("Iterator"), state.get("ItemProcessor")):
                yield from _states(inner)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _calls_a_function(template: Template, machine: Resource, state: State) -> bool:
    """By its ARN, by a reference to it, or by the integration of Step Functions."""
    resource = state.get("Resource")
    if ":lambda:" in text_of(resource):
        return True
    names = {*names_in(resource), *names_in({"Fn::Sub": text_of(resource)})}
    for placeholder in names - template.resources.keys():
        names |= set(names_in(machine.get("DefinitionSubstitutions", placeholder)))
    return any(template.resources[name].kind in _CALLED for name in names & template.resources.keys())


def _heard(template: Template, rule: Resource, machine: Resource) -> Iterator[str]:
    """The statuses that a rule hands on for this machine. What its pattern does not name, it lets through."""
    pattern, bus = rule.get("EventPattern"), rule.get("EventBusName")
    if dig(pattern, "source") != ["aws.states"] or not listed(rule.get("Targets")) or bus not in (None, "default"):
        return
    machines = dig(pattern, "detail", "stateMachineArn")
    if machines is not None and not any(template.means(one, machine) for one in listed(machines)):
        return
    statuses = dig(pattern, "detail", "status")
    yield from _BAD_ENDS.values() if statuses is None else map(str, listed(statuses))


def _watched(template: Template, alarm: Resource, machine: Resource) -> Iterator[str]:
    """The statuses that an alarm with an action counts for this machine."""
    if not tells(template, alarm):
        return
    metrics = [dig(one, "MetricStat", "Metric") for one in listed(alarm.get("Metrics"))]
    for one in filter(None, [alarm.properties, *metrics]):
        dimensions = listed(dig(one, "Dimensions"))
        named = any(template.means(dig(dimension, "Value"), machine) for dimension in dimensions)
        status = _BAD_ENDS.get(str(dig(one, "MetricName")))
        if named and status:
            yield status


RULES = (
    Rule("machine-timeouts", (MACHINE,), timeouts),
    Rule("machine-throttles", (MACHINE,), throttles),
    Rule("machine-bad-ends", (MACHINE,), bad_ends),
)
