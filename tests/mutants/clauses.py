"""A safety line for each clause of each rule of the protocol, made from the rules: a new clause has one by itself.

What the clause guards, and who notices, is said in `meanings`; a clause without a meaning is an error there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Param
from lambdas.core.protocol import RULES

FILE = "core/protocol.py"
ALWAYS = Compare("pk", "<>", "-")
ANCHOR = "RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ROWS}\n"


@dataclass(frozen=True)
class Clause:
    """One clause of a rule's condition (or effect), and the condition (or effect) without it."""

    rule: str
    part: str
    text: str
    rest: Condition

    @property
    def key(self) -> str:
        return f"{self.rule} {self.part}: {self.text}"

    @property
    def replacement(self) -> str:
        """The rules, with this one weakened."""
        return (
            f"{ANCHOR}from dataclasses import replace as _replace\n"
            f"from lambdas.core.conditions import All, AnyOf, In\n"
            f"RULES = {{**RULES, {self.rule!r}: _replace(RULES[{self.rule!r}], {self.part}={self.rest!r})}}\n"
        )


def clauses() -> Iterator[Clause]:
    """All of them, in the order of the table."""
    for rule in RULES.values():
        for part, condition in (("condition", rule.condition), ("effect", rule.effect)):
            if condition is not None:
                yield from (Clause(rule.name, part, text(gone), rest) for gone, rest in _without_one(condition))


def _without_one(condition: Condition) -> Iterator[tuple[Condition, Condition]]:
    """Each clause with what is left: a clause that stands alone leaves what always holds."""
    if not isinstance(condition, All | AnyOf):
        yield condition, ALWAYS
        return
    parts = condition.parts
    for at, part in enumerate(parts):
        before, behind = parts[:at], parts[at + 1 :]
        if type(part) is not type(condition):  # else its own clauses are taken one by one
            yield part, replace(condition, parts=(*before, *behind))
        if isinstance(part, All | AnyOf):
            for gone, rest in _without_one(part):
                yield gone, replace(condition, parts=(*before, rest, *behind))


def text(condition: Condition) -> str:
    match condition:
        case All(parts):
            return f"({' and '.join(map(text, parts))})"
        case AnyOf(parts):
            return f"({' or '.join(map(text, parts))})"
        case Absent(name):
            return f"no {name}"
        case In(name, choices):
            return f"{name} in {', '.join(choices)}"
        case Compare(name, operator, operand):
            return f"{name} {operator} {f':{operand.name}' if isinstance(operand, Param) else operand}"
