"""Rows 11 to 14 of the protocol, which are not built yet: as rules in the core's own form, to be moved there with the
code. Until then the model alone uses them, in worlds of their own."""

from __future__ import annotations

from collections.abc import Mapping

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING, WAITING
from lambdas.core.conditions import Condition, In, Param, both, equal
from lambdas.core.protocol import MINE, RULES, SEEN, Rule

THIS_RUN = equal("run", Param("run"))


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
    Rule("adopt", "13", (PROCESSING,), None, MINE),
    Rule("extend", "15", (PROCESSING,), None, SEEN),
    Rule(
        "collect",
        "14",
        (PENDING, PROCESSING),
        COMPLETED,
        both(In("status", (PENDING, PROCESSING)), THIS_RUN),
        both(equal("status", COMPLETED), THIS_RUN),
    ),
    Rule(
        "run_again",
        "14",
        (PROCESSING,),
        PENDING,
        both(equal("status", PROCESSING), THIS_RUN),
        both(equal("status", PENDING), equal("run", Param("next_run"))),
    ),
    Rule(
        "give_up",
        "14",
        (PROCESSING,),
        FAILED,
        both(equal("status", PROCESSING), THIS_RUN),
        both(equal("status", FAILED), equal("run", Param("next_run"))),
    ),
)

ROWS: Mapping[str, Rule] = {rule.name: rule for rule in _ROWS}
RULES_AHEAD: Mapping[str, Rule] = {**RULES, **ROWS}
