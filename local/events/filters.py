"""Event filter patterns: which records an event source mapping lets through."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_MISSING = object()
_MOST = 5
"""Filters of a mapping; an account may ask for 10."""
_LONGEST = 4096


class BadPatternError(ValueError):
    """A filter pattern that AWS would refuse."""


class Filters:
    """The filters of a mapping: a record passes when any of them matches, or when there is none."""

    def __init__(self, criteria: dict[str, Any] | None) -> None:
        """`criteria` as in the template: {"Filters": [{"Pattern": "…json…"}]}. BadPatternError if AWS would refuse."""
        filters = (criteria or {}).get("Filters", [])
        if len(filters) > _MOST:
            raise BadPatternError(f"a mapping has at most {_MOST} filters, unless the account has asked for more")
        self.patterns = [_parse(item["Pattern"]) for item in filters]

    def pass_(self, record: dict[str, Any]) -> bool:
        """Whether the mapping hands the record on."""
        return not self.patterns or any(matches(pattern, record) for pattern in self.patterns)

    def keys(self) -> set[str]:
        """The top-level keys that the patterns look at."""
        return {key for pattern in self.patterns for key in pattern}


def matches(pattern: dict[str, Any], event: Any) -> bool:
    """Every key of the pattern must match; a list of values matches when one of its rules does."""
    for key, rule in pattern.items():
        if key == "$or":
            if not any(matches(alternative, event) for alternative in rule):
                return False
            continue
        value = event.get(key, _MISSING) if isinstance(event, dict) else _MISSING
        if isinstance(rule, dict):
            if not matches(rule, {} if value is _MISSING else value):
                return False
        elif not _any_rule(rule, value):
            return False
    return True


def _any_rule(rules: list[Any], value: Any) -> bool:
    values = value if isinstance(value, list) and value else [value]
    return any(_rule(rule, single) for rule in rules for single in values)


def _rule(rule: Any, value: Any) -> bool:
    if not isinstance(rule, dict):
        return _same(rule, value)
    ((kind, operand),) = rule.items()
    return _RULES[kind](operand, value)


def _same(wanted: Any, value: Any) -> bool:
    if value is _MISSING or isinstance(value, dict):
        return False
    if isinstance(wanted, bool) or isinstance(value, bool) or wanted is None or value is None:
        return wanted is value
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        return wanted == value
    return type(wanted) is type(value) and bool(wanted == value)


def _exists(operand: Any, value: Any) -> bool:
    # `exists` looks at leaves only: a map is not there for it
    return bool(operand) == (value is not _MISSING and not isinstance(value, dict))


def _anything_but(operand: Any, value: Any) -> bool:
    if value is _MISSING or isinstance(value, dict):
        return False
    if isinstance(operand, dict):
        return not _rule(operand, value)
    return not any(_same(excluded, value) for excluded in (operand if isinstance(operand, list) else [operand]))


def _numeric(operand: list[Any], value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return all(_COMPARE[operand[at]](value, operand[at + 1]) for at in range(0, len(operand), 2))


def _text(test: Callable[[str, Any], bool]) -> Callable[[Any, Any], bool]:
    def rule(operand: Any, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        if isinstance(operand, dict):
            return test(value.lower(), operand["equals-ignore-case"].lower())
        return test(value, operand)

    return rule


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": lambda value, operand: value == operand,
    "<": lambda value, operand: value < operand,
    "<=": lambda value, operand: value <= operand,
    ">": lambda value, operand: value > operand,
    ">=": lambda value, operand: value >= operand,
}
_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "exists": _exists,
    "prefix": _text(str.startswith),
    "suffix": _text(str.endswith),
    "equals-ignore-case": _text(lambda value, operand: value.lower() == operand.lower()),
    "anything-but": _anything_but,
    "numeric": _numeric,
}


def _parse(text: str) -> dict[str, Any]:
    if len(text) > _LONGEST:
        raise BadPatternError(f"a filter pattern has at most {_LONGEST} characters, not {len(text)}")
    try:
        pattern = json.loads(text)
    except ValueError as error:
        raise BadPatternError(f"a filter pattern is no JSON: {text}") from error
    if not isinstance(pattern, dict) or not pattern:
        raise BadPatternError(f"a filter pattern must be an object with at least one key: {text}")
    check(pattern)
    return pattern


def check(pattern: dict[str, Any]) -> None:
    """BadPatternError for a pattern that AWS would refuse, or that is not understood here."""
    for key, rule in pattern.items():
        if key == "$or":
            for alternative in rule:
                check(alternative)
        elif isinstance(rule, dict):
            check(rule)
        elif isinstance(rule, list) and rule:
            for single in rule:
                _check_rule(key, single)
        else:
            raise BadPatternError(f"{key}: a rule must be a non-empty list, or an object with further keys")


def _check_rule(key: str, rule: Any) -> None:
    if isinstance(rule, list):
        raise BadPatternError(f"{key}: a list cannot stand in a list")
    if not isinstance(rule, dict):
        return
    if len(rule) != 1 or next(iter(rule)) not in _RULES:
        raise BadPatternError(f"{key}: unknown rule {rule}")
    ((kind, operand),) = rule.items()
    if kind == "numeric" and (len(operand) % 2 or any(sign not in _COMPARE for sign in operand[::2])):
        raise BadPatternError(f"{key}: numeric wants pairs of a comparison and a number, not {operand}")
    if kind == "exists" and not isinstance(operand, bool):
        raise BadPatternError(f"{key}: exists wants true or false, not {operand!r}")
    if kind in ("prefix", "suffix") and not isinstance(operand, dict) and not (isinstance(operand, str) and operand):
        raise BadPatternError(f"{key}: {kind} wants a text, not {operand!r}")
