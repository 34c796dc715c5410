"""The shapes of a template: its `Fn::If` and its conditional resources, decided in every way that is possible."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

MOST = 64
_NOTHING = {"Ref": "AWS::NoValue"}
_DROPPED = object()
_UNSEEN = "AWS::CDK::Metadata"  # its condition compares the region with every region there is

Choice = Mapping[str, str | None]


def shapes(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each possible template without conditions, with the words for when it is so. At most MOST + 1 of them."""
    conditions = body.get("Conditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    resources = {
        name: one
        for name, one in body["Resources"].items()
        if not (isinstance(one, dict) and one.get("Type") == _UNSEEN)
    }
    questions: dict[str, set[str]] = {}
    for name in sorted(_used(resources)):
        for subject, answer in _atoms({"Condition": name}, conditions, ()):
            questions.setdefault(subject, set()).add(answer)
    answers = [_answers(subject, known, body) for subject, known in questions.items()]
    for values in itertools.islice(itertools.product(*answers), MOST + 1):
        choice = dict(zip(questions, values, strict=True))
        kept = {
            name: one
            for name, one in resources.items()
            if not isinstance(one, dict) or _holds({"Condition": one.get("Condition")}, conditions, choice, ())
        }
        yield _words(choice), {**body, "Resources": _decided(kept, conditions, choice)}


def _used(resources: Mapping[str, Any]) -> set[str]:
    """Names of the conditions that something depends on."""
    named = {str(one["Condition"]) for one in resources.values() if isinstance(one, dict) and one.get("Condition")}
    return named | {str(branches[0]) for branches in _ifs(resources)}


def _ifs(value: Any) -> Iterator[list[Any]]:
    match value:
        case {"Fn::If": [str(), _, _] as branches} if len(value) == 1:
            yield branches
            yield from _ifs(branches[1:])
        case dict():
            yield from _ifs(list(value.values()))
        case list():
            for one in value:
                yield from _ifs(one)


def _atoms(expression: Any, conditions: Mapping[str, Any], trail: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What has to be known to decide an expression, as subject and answer: (Ref Env, "prod")."""
    match expression:
        case {"Condition": str(name)} if name in conditions and name not in trail:
            yield from _atoms(conditions[name], conditions, (*trail, name))
        case {"Fn::And": list(parts)} | {"Fn::Or": list(parts)} | {"Fn::Not": list(parts)}:
            for part in parts:
                yield from _atoms(part, conditions, trail)
        case {"Fn::Equals": [left, right]} if not isinstance(left, dict) and not isinstance(right, dict):
            return
        case _:
            yield _question(expression)


def _question(expression: Any) -> tuple[str, str]:
    match expression:
        case {"Fn::Equals": [dict(subject), (str() | int()) as answer]}:
            return json.dumps(subject, sort_keys=True), str(answer)
        case {"Fn::Equals": [(str() | int()) as answer, dict(subject)]}:
            return json.dumps(subject, sort_keys=True), str(answer)
    return json.dumps(expression, sort_keys=True, default=str), "true"


def _answers(subject: str, known: set[str], body: Mapping[str, Any]) -> list[str | None]:
    """Every answer to one question: one of those that are asked for, or another, unless no other is allowed."""
    match json.loads(subject), body.get("Parameters"):
        case {"Ref": str(name)}, dict(parameters) if isinstance(parameters.get(name), dict):
            allowed = {str(value) for value in parameters[name].get("AllowedValues") or ()}
            if allowed:
                possible = sorted(known & allowed)
                return [*possible, *([None] if allowed - known or not possible else [])]
    return [*sorted(known), None]


def _holds(expression: Any, conditions: Mapping[str, Any], choice: Choice, trail: tuple[str, ...]) -> bool:
    match expression:
        case {"Condition": None}:
            return True
        case {"Condition": str(name)} if name in conditions and name not in trail:
            return _holds(conditions[name], conditions, choice, (*trail, name))
        case {"Fn::And": list(parts)}:
            return all(_holds(part, conditions, choice, trail) for part in parts)
        case {"Fn::Or": list(parts)}:
            return any(_holds(part, conditions, choice, trail) for part in parts)
        case {"Fn::Not": [part]}:
            return not _holds(part, conditions, choice, trail)
        case {"Fn::Equals": [left, right]} if not isinstance(left, dict) and not isinstance(right, dict):
            return str(left) == str(right)
    subject, answer = _question(expression)
    return choice.get(subject) == answer


def _decided(value: Any, conditions: Mapping[str, Any], choice: Choice) -> Any:
    match value:
        case {"Fn::If": [str(name), yes, no]} if len(value) == 1:
            chosen = yes if _holds({"Condition": name}, conditions, choice, ()) else no
            return _decided(chosen, conditions, choice)
        case dict() if value == _NOTHING:
            return _DROPPED
        case dict():
            made = {key: _decided(one, conditions, choice) for key, one in value.items()}
            return {key: one for key, one in made.items() if one is not _DROPPED}
        case list():
            return [one for one in (_decided(one, conditions, choice) for one in value) if one is not _DROPPED]
    return value


def _words(choice: Choice) -> str:
    told = []
    for subject, answer in choice.items():
        match json.loads(subject):
            case {"Ref": str(name)}:
                subject = name  # noqa: PLW2901  the same, as people say it
        told.append(f"{subject} is {answer}" if answer is not None else f"{subject} is something else")
    return ", ".join(told)
