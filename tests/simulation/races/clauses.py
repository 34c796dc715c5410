"""Each clause of each condition of the protocol, and the protocol without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Param
from lambdas.core.protocol import RULES, Rule

Path = tuple[int, ...]
EVERYTHING = All(())  # what is left of a condition of one clause


class Clause(NamedTuple):
    """`part`: of the write's own condition, or of the one by which its writer knows it again (`effect`)."""

    rule: str
    part: str
    text: str
    path: Path

    @property
    def name(self) -> str:
        return f"{self.rule}{' effect' if self.part == 'effect' else ''}: {self.text}"


def clauses(rules: Mapping[str, Rule] = RULES) -> Iterator[Clause]:
    for rule in rules.values():
        for part in ("condition", "effect"):
            condition = getattr(rule, part)
            if condition is not None:
                seen: dict[str, int] = {}
                for path, text in _leaves(condition, ()):
                    seen[text] = seen.get(text, 0) + 1
                    yield Clause(rule.name, part, text if seen[text] == 1 else f"{text} ({seen[text]})", path)


def without(rules: Mapping[str, Rule], *dropped: Clause) -> dict[str, Rule]:
    """The rules without these clauses; of one rule and part, the last one first, so that places stay what they were."""
    left = dict(rules)
    for clause in sorted(dropped, key=lambda one: one.path, reverse=True):
        rule = left[clause.rule]
        if clause.part == "effect":
            assert rule.effect is not None
            left[clause.rule] = replace(rule, effect=_without(rule.effect, clause.path))
        else:
            left[clause.rule] = replace(rule, condition=_without(rule.condition, clause.path))
    return left


def _leaves(condition: Condition, path: Path) -> Iterator[tuple[Path, str]]:
    match condition:
        case All(parts) | AnyOf(parts):
            for position, part in enumerate(parts):
                yield from _leaves(part, (*path, position))
        case Absent(field):
            yield path, f"no {field}"
        case In(field, choices):
            yield path, f"{field} in {'/'.join(choices)}"
        case Compare(field, operator, operand):
            yield path, f"{field} {operator} {operand.name if isinstance(operand, Param) else operand}"


def _without(condition: Condition, path: Path) -> Condition:
    if not path:
        return EVERYTHING
    assert isinstance(condition, All | AnyOf)
    here, rest = path[0], path[1:]
    parts = list(condition.parts)
    if rest:
        parts[here] = _without(parts[here], rest)
    else:
        del parts[here]
    return type(condition)(tuple(parts))
