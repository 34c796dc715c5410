"""What DynamoDB demands of attribute values: one type each, no set with duplicates, bounded numbers and depth."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from local.aws.items import TOO_DEEP, digits_of, is_too_deep
from local.aws.sizes import significant_digits

MOST_DIGITS = 38
_LARGEST_EXPONENT = 125
_SMALLEST_EXPONENT = -130

_TYPES = frozenset({"S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"})
_ONE_TYPE = "must contain exactly one of the supported datatypes"

Value = Mapping[str, Any]


def check_value(value: Value) -> str | None:
    """Why DynamoDB takes no such value, or None."""
    if is_too_deep(value):
        return f"{TOO_DEEP}: Attributes in the item have nested levels beyond supported limit"
    for one in _all(value):
        problem = _check_type(one) or _check_set(one)
        if problem:
            return problem
    return next((problem for number in digits_of(value) if (problem := _check_number(number))), None)


def type_of(value: Value) -> str:
    """The type of a value, as in its JSON form."""
    return next(iter(value))


def comparable(value: Value) -> Any:
    """What DynamoDB orders a string, number or binary by; None for any other type, and for what is no number."""
    kind, content = next(iter(value.items()))
    if kind == "S":
        return str(content).encode("utf-8", "surrogatepass")
    if kind == "B":
        return content if isinstance(content, bytes) else base64.b64decode(content)
    return _decimal(str(content)) if kind == "N" else None


def _all(value: Value) -> Iterator[Value]:
    """A value and all in it."""
    yield value
    for one in [*(value.get("L") or ()), *(value.get("M") or {}).values()]:
        yield from _all(one)


def _check_type(value: Value) -> str | None:
    kinds = [kind for kind in value if kind in _TYPES]
    if not kinds:
        return f"Supplied AttributeValue is empty, {_ONE_TYPE}"
    if len(kinds) > 1:
        return f"Supplied AttributeValue has more than one datatypes set, {_ONE_TYPE}"
    return None


def _check_set(value: Value) -> str | None:
    """Without the values: they may be somebody's document."""
    kind, content = next(iter(value.items()))
    if kind not in ("SS", "NS", "BS") or not isinstance(content, list):
        return None
    distinct = {_decimal(str(one)) if kind == "NS" else one for one in content}
    if len(distinct) == len(content):
        return None
    if kind == "NS":
        return "Input collection contains duplicates"
    return "One or more parameter values were invalid: Input collection contains duplicates."


def _check_number(number: str) -> str | None:
    if significant_digits(number) > MOST_DIGITS:
        return f"Attempting to store more than {MOST_DIGITS} significant digits in a Number"
    exact = _decimal(number)
    if exact is None or not exact:
        return None  # moto refuses what is no number
    if exact.adjusted() > _LARGEST_EXPONENT:
        return "Number overflow. Attempting to store a number with magnitude larger than supported range"
    if exact.adjusted() < _SMALLEST_EXPONENT:
        return "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    return None


def _decimal(number: str) -> Decimal | None:
    try:
        exact = Decimal(number)
    except InvalidOperation:
        return None
    return exact if exact.is_finite() else None
