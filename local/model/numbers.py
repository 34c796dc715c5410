"""Brings a count into the bounds of a JSON Schema number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def within(schema: Mapping[str, Any], kind: str, wanted: float) -> int | float:
    """The number nearest to `wanted` that the schema allows; whole for "integer"."""
    step = schema.get("multipleOf") or (1 if kind == "integer" else 0)
    least, most = _bounds(schema, step)
    value = min(max(float(wanted), least), most)
    if step:
        value = math.floor(value / step) * step
        value = value + step if value < least else value
    return round(value) if kind == "integer" or float(value).is_integer() else value


def _bounds(schema: Mapping[str, Any], step: float) -> tuple[float, float]:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    margin = step or _margin(schema)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is not None:
        least = max(least, above + margin)
    if below is not None:
        most = min(most, below - margin)
    return float(least), float(most)


def _margin(schema: Mapping[str, Any]) -> float:
    """How far a number keeps from a bound that it must not reach: less than the room between the bounds."""
    low = schema.get("exclusiveMinimum", schema.get("minimum"))
    high = schema.get("exclusiveMaximum", schema.get("maximum"))
    return (high - low) / 4 if low is not None and high is not None and high > low else 0.5
