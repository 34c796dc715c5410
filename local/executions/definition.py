"""Reads a state machine's definition: what AWS would refuse, and what is not played here, is found before it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.stack.errors import TemplateError

LIMIT_BYTES = 1_048_576
LONGEST_NAME = 80
INVOKE = "arn:aws:states:::lambda:invoke"
_FUNCTION = "arn:aws:lambda:"

_ANY = frozenset({"Type", "Comment", "InputPath", "OutputPath"})
_GOES_ON = _ANY | {"Next", "End"}
_TRIES = frozenset({"ResultPath", "ResultSelector", "Parameters", "Retry", "Catch"})
_FIELDS = {
    "Choice": _ANY | {"Choices", "Default"},
    "Fail": frozenset({"Type", "Comment", "Error", "Cause", "ErrorPath", "CausePath"}),
    "Parallel": _GOES_ON | _TRIES | {"Branches"},
    "Pass": _GOES_ON | {"Result", "ResultPath", "Parameters"},
    "Succeed": _ANY,
    "Task": _GOES_ON | _TRIES | {"Resource", "TimeoutSeconds", "TimeoutSecondsPath"},
    "Wait": _GOES_ON | {"Seconds", "SecondsPath"},
}
"""What a state may say here. Not: Map, JSONata, variables, credentials, heartbeats, moments to wait for."""
_MACHINE = frozenset({"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"})
_NESTED = frozenset({"Comment", "StartAt", "States"})
_RETRIER = frozenset(
    {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds", "JitterStrategy", "Comment"}
)
_CATCHER = frozenset({"ErrorEquals", "Next", "ResultPath", "Comment"})
_ENDS = ("Succeed", "Fail")

State = Mapping[str, Any]


def read(text: str) -> dict[str, Any]:
    """The definition. TemplateError for one that cannot be played."""
    if len(text.encode()) > LIMIT_BYTES:
        raise TemplateError(f"a definition has at most {LIMIT_BYTES} bytes")
    try:
        definition = json.loads(text)
    except ValueError as error:
        raise TemplateError(f"the definition is no JSON: {error}") from error
    if not isinstance(definition, dict):
        raise TemplateError("the definition is no JSON object")
    if definition.get("QueryLanguage", "JSONPath") != "JSONPath":
        raise TemplateError("JSONata is not played on this machine")
    _only(definition, _MACHINE, "the definition")
    _check_states(definition, "the definition")
    _check_names(definition)
    return definition


def functions_of(definition: State) -> list[str]:
    """What tasks invoke, as far as the definition itself says so: ARNs, or names of functions."""
    return [name for _, state in all_states(definition) if (name := _invoked(state))]


def all_states(definition: State) -> Iterator[tuple[str, State]]:
    """Those inside of others, too."""
    for name, state in definition["States"].items():
        yield name, state
        for branch in state.get("Branches", ()):
            yield from all_states(branch)


def _invoked(state: State) -> str | None:
    if state["Type"] != "Task":
        return None
    if state["Resource"] != INVOKE:
        return str(state["Resource"])
    name = state.get("Parameters", {}).get("FunctionName")
    return None if name is None else str(name)


def _check_names(definition: State) -> None:
    names = [name for name, _ in all_states(definition)]
    for name in names:
        if not 1 <= len(name) <= LONGEST_NAME:
            raise TemplateError(f"the name of a state has at most {LONGEST_NAME} characters: {name!r}")
        if names.count(name) > 1:
            raise TemplateError(f"two states are called {name!r}")


def _check_states(machine: State, what: str) -> None:
    states = machine.get("States")
    if not isinstance(states, dict) or not states:
        raise TemplateError(f"{what} has no States")
    if machine.get("StartAt") not in states:
        raise TemplateError(f"{what} starts at {machine.get('StartAt')!r}, which is none of its states")
    for name, state in states.items():
        _check_state(name, state)
        for following in _following(state):
            if following not in states:
                raise TemplateError(f"{name!r} leads to {following!r}, which is none of the states beside it")
        for number, branch in enumerate(state.get("Branches", ())):
            _only(branch, _NESTED, f"branch {number} of {name!r}")
            _check_states(branch, f"branch {number} of {name!r}")
    _check_reached(machine["StartAt"], states, what)


def _check_reached(start: str, states: Mapping[str, State], what: str) -> None:
    reached, ahead = set[str](), [start]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead.extend(_following(states[name]))
    lost = sorted(set(states) - reached)
    if lost:
        raise TemplateError(f"nothing in {what} leads to {', '.join(lost)}")
    if not any(_is_last(states[name]) for name in reached):
        raise TemplateError(f"{what} never ends")


def _is_last(state: State) -> bool:
    return state["Type"] in _ENDS or state.get("End") is True


def _check_state(name: str, state: State) -> None:
    kind = state.get("Type")
    if kind not in _FIELDS:
        raise TemplateError(f"{name!r}: a state of the type {kind} is not played on this machine")
    _only(state, _FIELDS[kind], repr(name))
    if "Next" in _FIELDS[kind] and ("Next" in state) == (state.get("End") is True):
        raise TemplateError(f"{name!r} needs one of Next and End")
    if kind == "Parallel" and not state.get("Branches"):
        raise TemplateError(f"{name!r} has no Branches")
    for retrier in state.get("Retry", ()):
        _only(retrier, _RETRIER, f"a Retry of {name!r}")
    for catcher in state.get("Catch", ()):
        _only(catcher, _CATCHER, f"a Catch of {name!r}")
    for rules in (state.get("Retry", []), state.get("Catch", [])):
        _check_errors(name, [rule.get("ErrorEquals") for rule in rules])
    if kind == "Task":
        _check_task(name, state)


def _check_errors(name: str, rules: list[Any]) -> None:
    for number, errors in enumerate(rules, start=1):
        if not isinstance(errors, list) or not errors:
            raise TemplateError(f"{name!r}: ErrorEquals must be a list of names")
        if "States.ALL" in errors and (len(errors) > 1 or number < len(rules)):
            raise TemplateError(f"{name!r}: States.ALL must stand alone, and last")


def _check_task(name: str, state: State) -> None:
    resource = str(state.get("Resource"))
    if resource == INVOKE:
        parameters = state.get("Parameters", {})
        if "FunctionName" not in parameters and "FunctionName.$" not in parameters:
            raise TemplateError(f"{name!r}: lambda:invoke needs a FunctionName")
        _only(parameters, frozenset({"FunctionName", "FunctionName.$", "Payload", "Payload.$"}), f"{name!r}.Parameters")
    elif not (resource.startswith(_FUNCTION) and ":function:" in resource):
        raise TemplateError(f"{name!r}: {resource} is not played on this machine; functions and {INVOKE} are")


def _following(state: State) -> Iterator[str]:
    if "Next" in state:
        yield state["Next"]
    if "Default" in state:
        yield state["Default"]
    for rule in (*state.get("Choices", ()), *state.get("Catch", ())):
        if "Next" not in rule:
            raise TemplateError(f"without Next: {json.dumps(rule)}")
        yield rule["Next"]


def _only(given: Any, known: frozenset[str], what: str) -> None:
    if not isinstance(given, dict):
        raise TemplateError(f"{what} is no JSON object")
    unknown = sorted(set(given) - known)
    if unknown:
        raise TemplateError(f"{what}: {', '.join(unknown)} is not played on this machine")


def text_of(properties: Mapping[str, Any]) -> str:
    """The definition that a resource declares, with its substitutions. TemplateError if it declares none, or two."""
    given = [properties[name] for name in ("Definition", "DefinitionString") if name in properties]
    if len(given) != 1:
        raise TemplateError("one of Definition and DefinitionString is needed (S3 locations are not read here)")
    text = given[0] if isinstance(given[0], str) else json.dumps(given[0])
    for name, value in properties.get("DefinitionSubstitutions", {}).items():
        text = text.replace("${" + name + "}", str(value))
    return text
