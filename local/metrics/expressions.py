"""Metric math, as much of it as the template's alarms use. Anything else is refused, never passed over."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local.stack.errors import TemplateError

Series = list[float | None]
"""One value a period, the oldest first; None is missing."""


def fill(series: Series, filler: float | str) -> Series:
    """FILL: "fills the missing values of a time series", with a number or with the value before (REPEAT)."""
    filled: Series = []
    for value in series:
        last = filled[-1] if filled else None
        filled.append(value if value is not None else last if filler == "REPEAT" else float(filler))
    return filled


def diff(series: Series) -> Series:
    """DIFF: "the difference between each value in the time series and the preceding value": the first has none, and
    what is missing is passed over."""
    found: Series = []
    last: float | None = None
    for value in series:
        found.append(None if value is None or last is None else value - last)
        last = value if value is not None else last
    return found


def added(one: Series, other: Series) -> Series:
    """By the period: where one of both is missing, so is the sum."""
    return [None if a is None or b is None else a + b for a, b in zip(one, other, strict=True)]


def divided(one: Series, other: Series) -> Series:
    """By the period: where one of both is missing, or the divisor is zero, there is no value."""
    return [None if a is None or not b else a / b for a, b in zip(one, other, strict=True)]


@dataclass(frozen=True)
class Expression:
    """A parsed one. `uses`: the ids of metrics in it."""

    text: str
    uses: frozenset[str]
    _evaluate: Callable[[Mapping[str, Series]], Series]

    def of(self, series: Mapping[str, Series]) -> Series:
        return self._evaluate(series)


def parse(text: str) -> Expression:
    """TemplateError for what is no metric math, or not known here."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise TemplateError(f"the expression {text!r} is not understood") from error
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id[:1].islower()}
    return Expression(text, frozenset(names), _compiled(tree, text))


def _compiled(tree: ast.expr, text: str) -> Callable[[Mapping[str, Series]], Series]:
    match tree:
        case ast.Name(id=name) if name[:1].islower():
            return lambda series: series[name]
        case ast.Call(func=ast.Name(id="DIFF"), args=[inner], keywords=[]):
            of = _compiled(inner, text)
            return lambda series: diff(of(series))
        case ast.Call(func=ast.Name(id="FILL"), args=[inner, filler], keywords=[]):
            of, by = _compiled(inner, text), _filler(filler, text)
            return lambda series: fill(of(series), by)
        case ast.BinOp(left=left, op=(ast.Add() | ast.Div()) as sign, right=right):
            one, other = _compiled(left, text), _compiled(right, text)
            both = added if isinstance(sign, ast.Add) else divided
            return lambda series: both(one(series), other(series))
    raise TemplateError(f"{ast.unparse(tree)} in the expression {text!r} is not played on this machine")


def _filler(tree: ast.expr, text: str) -> float | str:
    match tree:
        case ast.Name(id="REPEAT"):
            return "REPEAT"
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -float(number)
    raise TemplateError(f"{ast.unparse(tree)} as a filler in {text!r} is not played on this machine")
