"""The protocol's table as docs/architecture.md shows it, made from the rules themselves.

`python -m tests.protocol_table` prints it, to be put between the markers.
"""

from __future__ import annotations

from collections.abc import Iterator

from lambdas.contracts.names import FINAL, OPEN
from lambdas.core import protocol
from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Param
from lambdas.core.policy import SKEW_S
from lambdas.core.protocol import RULES, Rule

SHARED: dict[Condition, str] = {
    protocol.MINE: "MINE",
    protocol.SEEN: "SEEN",
    protocol.CLAIMABLE: "CLAIMABLE",
    protocol.LAPSED: "LAPSED",
    protocol.NOT_HELD: "NOT HELD",
    protocol.WORKED_ON: "WORKED ON",
    protocol.THIS_RUN: "THIS RUN",
}
VALUES = {
    "attempt": "mine",
    "claim_id": "mine",
    "seen_status": "as read",
    "seen_attempt": "as read",
    "late_cost": "as read",
    "run": "mine",
    "by": "mine",
    "seen_by": "as read",
    "seen_booked": "as read",
    "soon": f"now + {SKEW_S:g} s",
    "max_tries": "the policy's most",
}
SIGNS = {"<>": "≠", "<=": "≤", ">=": "≥"}


def table() -> str:
    """The rows, and what the capital words in them mean."""
    head = ["| row | write | from → to | condition |", "|---|---|---|---|"]
    rows = [f"| {rule.row} | {rule.name} | {_way(rule)} | {_text(rule.condition)} |" for rule in RULES.values()]
    return "\n".join([*head, *rows, "", *_legend()]) + "\n"


def _legend() -> Iterator[str]:
    for condition, name in SHARED.items():
        yield f"* {name}: {_text(condition, spelled_out=True)}"


def _way(rule: Rule) -> str:
    known = {(): "nothing", OPEN: "open", FINAL: "final", (*OPEN, *FINAL): "open or final"}
    start = known.get(rule.frm, ", ".join(rule.frm))
    return f"{start} → {rule.to}" if rule.to else f"{start}, stays"


def _text(condition: Condition, *, spelled_out: bool = False) -> str:
    if condition in SHARED and not spelled_out:
        return SHARED[condition]
    match condition:
        case All(parts):
            return " and ".join(f"({_text(part)})" if _is_open(part, AnyOf) else _text(part) for part in parts)
        case AnyOf(parts):
            return " or ".join(f"({_text(part)})" if _is_open(part, All) else _text(part) for part in parts)
        case Absent(field):
            return f"no `{field}`"
        case In(field, choices):
            return f"`{field}` is {', '.join(choices[:-1])} or {choices[-1]}"
        case Compare(field, operator, operand):
            value = VALUES.get(operand.name, operand.name) if isinstance(operand, Param) else operand
            return f"`{field}` {SIGNS.get(operator, operator)} {value}"


def _is_open(part: Condition, kind: type[All] | type[AnyOf]) -> bool:
    return isinstance(part, kind) and part not in SHARED


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201
