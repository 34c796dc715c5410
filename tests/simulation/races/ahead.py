"""Rows 11 and 12 of the protocol, which are not built yet: as rules in the core's own form, to be moved there with the
code. Until then the model alone uses them, in a world of their own."""

from __future__ import annotations

from collections.abc import Mapping

from lambdas.contracts.names import PENDING, PROCESSING, WAITING
from lambdas.core.conditions import Condition, Param, both, equal
from lambdas.core.protocol import MINE, RULES, SEEN, Rule


def _left_in(status: str) -> Condition:
    return both(equal("status", status), equal("attempt", Param("attempt")), equal("claim_id", Param("claim_id")))


_ROWS = (
    Rule("ask", "11", (PROCESSING,), WAITING, MINE, _left_in(WAITING)),
    Rule("asked", "11", (WAITING,), None, SEEN),
    Rule(
        "decide",
        "12",
        (WAITING,),
        PENDING,
        both(SEEN, equal("step", Param("step"))),
        both(equal("status", PENDING), equal("attempt", Param("seen_attempt")), equal("step", Param("step"))),
    ),
)

ROWS: Mapping[str, Rule] = {rule.name: rule for rule in _ROWS}
RULES_AHEAD: Mapping[str, Rule] = {**RULES, **ROWS}
