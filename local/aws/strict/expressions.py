"""What DynamoDB demands of expressions, where moto looks away: words, placeholders, operands and paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from local.aws.calls import Refusal
from local.aws.strict.values import comparable, type_of

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_OLDER_PARAMETERS = (
    "AttributesToGet",
    "AttributeUpdates",
    "ConditionalOperator",
    "Expected",
    "KeyConditions",
    "QueryFilter",
    "ScanFilter",
)
_LONGEST = 4096
_MOST_OPERANDS = 100

_TOKEN = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_]*|[#:][A-Za-z0-9_]+")
_SYNTAX = frozenset({"ADD", "AND", "BETWEEN", "DELETE", "IN", "NOT", "OR", "REMOVE", "SET"})
_FUNCTION = re.compile(r"[A-Za-z_]+(?=\s*\()")
_HEAD = re.compile(r"(?<![\w.#:])(?:#\w+|[A-Za-z_]\w*)")
_BETWEEN = re.compile(r"\bBETWEEN\s+(:\w+)\s+AND\s+(:\w+)", re.IGNORECASE)
_IN = re.compile(r"\bIN\s*\(([^()]*)\)", re.IGNORECASE)
_PATH = r"[#A-Za-z_][\w#.\[\]]*+"
_COMPARED = re.compile(rf"(?<![\w#:.\]])({_PATH})\s*(<=|>=|<>|=|<|>)\s*({_PATH})(?!\s*\()")
_STEP = re.compile(r"[^.\[\]]+")


def check_expressions(parameters: Mapping[str, Any]) -> Refusal | None:
    """Why DynamoDB would refuse the expressions of one operation (or of one part of a transaction), or None."""
    given = {name: str(parameters[name]) for name in EXPRESSIONS if parameters.get(name) is not None}
    older = [name for name in _OLDER_PARAMETERS if parameters.get(name)]
    if given and older:
        return _invalid(
            "Can not use both expression and non-expression parameters in the same request: Non-expression "
            f"parameters: {{{', '.join(older)}}} Expression parameters: {{{', '.join(given)}}}"
        )
    for name, text in given.items():
        refusal = _check_length(name, text) or _check_reserved(name, text)
        if refusal:
            return refusal
    return _check_placeholders(parameters, given) or _check_operands(parameters, given)


def heads(text: str) -> list[str]:
    """The attributes that an expression names, by their first steps: placeholders, or names as they are."""
    found = _HEAD.findall(_FUNCTION.sub(_only_attributes, text))
    return [one for one in found if one.upper() not in _SYNTAX]


def _check_length(name: str, text: str) -> Refusal | None:
    if not text.strip():
        return _invalid(f"Invalid {name}: The expression can not be empty;")
    size = len(text.encode())
    if size <= _LONGEST:
        return None
    return _invalid(f"Invalid {name}: Expression size has exceeded the maximum allowed size; expression size: {size}")


def _check_reserved(name: str, text: str) -> Refusal | None:
    reserved = ReservedKeywords.get_reserved_keywords()
    for word in _TOKEN.findall(_FUNCTION.sub(_only_attributes, text)):
        if word[0] not in "#:" and word.upper() in reserved and word.upper() not in _SYNTAX:
            return _invalid(f"Invalid {name}: Attribute name is a reserved keyword; reserved keyword: {word}")
    return None


def _only_attributes(match: re.Match[str]) -> str:
    """A word before a bracket is a function (`size(x)`) or syntax (`AND (…)`), no attribute."""
    return ""


def _check_placeholders(parameters: Mapping[str, Any], given: Mapping[str, str]) -> Refusal | None:
    used = {token for text in given.values() for token in _TOKEN.findall(text) if token[0] in "#:"}
    for kind, sign in (("Names", "#"), ("Values", ":")):
        declared = set(parameters.get(f"ExpressionAttribute{kind}") or {})
        unused = sorted(declared - used)
        if unused:
            return _invalid(f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{unused[0]}}}")
        missing = sorted(token for token in used - declared if token.startswith(sign))
        if missing:
            what = "name" if sign == "#" else "value"
            return _invalid(
                f"Invalid expression: An expression attribute {what} used in expression is not defined; attribute "
                f"{what}: {missing[0]}"
            )
    return None


def _check_operands(parameters: Mapping[str, Any], given: Mapping[str, str]) -> Refusal | None:
    """Asked when all placeholders are known to be there."""
    values = parameters.get("ExpressionAttributeValues") or {}
    names = parameters.get("ExpressionAttributeNames") or {}
    for name, text in given.items():
        problem = _check_bounds(text, values) or _check_choices(text)
        if name == "ProjectionExpression":
            problem = _check_overlap(text, names)
        elif name in ("ConditionExpression", "FilterExpression"):
            problem = problem or _check_distinct(text, names)
        if problem:
            return _invalid(f"Invalid {name}: {problem}")
    return None


def _check_bounds(text: str, values: Mapping[str, Any]) -> str | None:
    """AWS's text goes on with the two values; here it does not: they may be somebody's document."""
    for first, last in _BETWEEN.findall(text):
        low, high = values[first], values[last]
        if type_of(low) != type_of(high) or comparable(low) is None or comparable(high) is None:
            continue
        if comparable(low) > comparable(high):
            return "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"
    return None


def _check_choices(text: str) -> str | None:
    for choices in _IN.findall(text):
        count = choices.count(",") + 1
        if count > _MOST_OPERANDS:
            return f"The IN operator is provided with too many operands; number of operands: {count}"
    return None


def _check_distinct(text: str, names: Mapping[str, str]) -> str | None:
    for left, operator, right in _COMPARED.findall(text):
        path = _steps(left, names)
        if path == _steps(right, names):
            return (
                "The first operand must be distinct from the remaining operands for this operator or function; "
                f"operator: {operator}, first operand: {_told(path)}"
            )
    return None


def _check_overlap(text: str, names: Mapping[str, str]) -> str | None:
    paths = [_steps(path.strip(), names) for path in text.split(",")]
    for at, one in enumerate(paths):
        for other in paths[at + 1 :]:
            shared = min(len(one), len(other))
            if one[:shared] == other[:shared]:
                return (
                    "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
                    f"{_told(one)}, path two: {_told(other)}"
                )
    return None


def _steps(path: str, names: Mapping[str, str]) -> list[str]:
    return [names.get(step, step) for step in _STEP.findall(path)]


def _told(path: list[str]) -> str:
    return f"[{', '.join(path)}]"


def _invalid(message: str) -> Refusal:
    return Refusal("ValidationException", message)
