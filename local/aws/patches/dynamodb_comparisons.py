"""Comparisons of values of two types, and of the size of what has none: no match, as in DynamoDB. Stock moto breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.dynamodb.comparisons import (
    FuncBetween,
    OpEqual,
    OpGreaterThan,
    OpGreaterThanOrEqual,
    OpLessThan,
    OpLessThanOrEqual,
)

from local.aws.patches.patch import Patch


def _no_match(stock: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def expr(comparison: Any, item: Any) -> bool:
        try:
            return stock(comparison, item)
        except (TypeError, ValueError):
            return False

    return expr


PATCHES = tuple(
    Patch(one, "expr", _no_match(one.expr))
    for one in (FuncBetween, OpEqual, OpGreaterThan, OpGreaterThanOrEqual, OpLessThan, OpLessThanOrEqual)
)
