"""Conditions on a record, as data: judged here, and rendered by the store's adapter into its own language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Record = Mapping[str, Any]
Operator = Literal["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Param:
    """A value that is known only when the write is made."""

    name: str


@dataclass(frozen=True)
class Compare:
    """`field`: an attribute, or a path into a map, `parts.:branch.by`; a step with a colon is named by a parameter."""

    field: str
    operator: Operator
    operand: Param | str | int


@dataclass(frozen=True)
class In:
    field: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Absent:
    field: str


@dataclass(frozen=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[Condition, ...]


Condition = Compare | In | Absent | All | AnyOf


def both(*parts: Condition) -> All:
    return All(parts)


def either(*parts: Condition) -> AnyOf:
    return AnyOf(parts)


def equal(field: str, operand: Param | str | int) -> Compare:
    return Compare(field, "=", operand)


def holds(condition: Condition, record: Record | None, params: Mapping[str, Any]) -> bool:
    """DynamoDB's meaning: of the comparisons with an attribute that is not there, `<>` alone is true."""
    found: Record = record or {}
    match condition:
        case All(parts):
            return all(holds(part, found, params) for part in parts)
        case AnyOf(parts):
            return any(holds(part, found, params) for part in parts)
        case Absent(field):
            return _at(found, path(field, params)) is None
        case In(field, choices):
            return found.get(field) in choices
        case Compare(field, operator, operand):
            left = _at(found, path(field, params))
            if left is None:
                return operator == "<>"
            right = params[operand.name] if isinstance(operand, Param) else operand
            return _compare(operator, left, right)


def path(field: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that lead to what a condition or a change means, from the record on."""
    return tuple(params[step[1:]] if step.startswith(":") else step for step in field.split("."))


def _at(record: Record, steps: tuple[str, ...]) -> Any:
    """None for what is not there: no attribute of ours is null."""
    found: Any = record
    for step in steps:
        if not isinstance(found, Mapping) or step not in found:
            return None
        found = found[step]
    return found


def _compare(operator: Operator, left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return operator == "<>"
    outcomes: dict[Operator, bool] = {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    return outcomes[operator]
