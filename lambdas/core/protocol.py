"""What may change a job, under which condition: the one table that adapters, fakes, tests and docs take it from.

The rows carry the numbers of the protocol's table (docs/architecture.md). `condition` must hold for the write;
`effect` is how a writer recognises its own lost reply in the record that refused it: it counts as success.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, FINAL, OPEN, PENDING, PROCESSING
from lambdas.core.conditions import Absent, Compare, Condition, In, Param, both, either, equal, holds, path

MINE = both(equal("status", PROCESSING), equal("attempt", Param("attempt")), equal("claim_id", Param("claim_id")))
SEEN = both(equal("status", Param("seen_status")), equal("attempt", Param("seen_attempt")))
LAPSED = both(equal("status", PROCESSING), Compare("lease_until", "<", Param("now")))
NOT_HELD = either(Compare("status", "<>", PROCESSING), Compare("lease_until", "<", Param("now")))
THIS_RUN = equal("run", Param("run"))
WORKED_ON = In("status", (PENDING, PROCESSING))  # a job whose execution runs may have been reaped by mistake
CLAIMABLE = either(both(equal("status", PENDING), Compare("not_before", "<=", Param("soon"))), LAPSED)


def _left_in(status: str) -> Condition:
    """The holder's own write, seen again: same attempt, same claim, the status it left."""
    return both(equal("status", status), equal("attempt", Param("attempt")), equal("claim_id", Param("claim_id")))


_PART_BY, _BOOKED_BY = "parts.:branch.by", "booked_by.:branch"


@dataclass(frozen=True)
class Rule:
    """One row: its name and number, the states it leads from and to (None: the state stays), its conditions."""

    name: str
    row: str
    frm: tuple[str, ...]
    to: str | None
    condition: Condition
    effect: Condition | None = None


_ROWS = (
    Rule("accept", "1", (), PENDING, Absent("pk")),
    Rule(
        "claim",
        "3",
        (PENDING, PROCESSING),
        PROCESSING,
        both(CLAIMABLE, Compare("tries", "<", Param("max_tries")), Compare("deadline_at", ">", Param("now"))),
        both(equal("status", PROCESSING), equal("claim_id", Param("claim_id"))),
    ),
    Rule("pull_due", "3", (PROCESSING,), None, MINE),
    Rule("complete", "4", (PROCESSING,), COMPLETED, MINE, _left_in(COMPLETED)),
    Rule("retry", "5", (PROCESSING,), PENDING, MINE, _left_in(PENDING)),
    Rule("park", "5p", (PROCESSING,), PENDING, MINE, _left_in(PENDING)),
    Rule(
        "leave",
        "5u",
        (PENDING,),
        None,
        both(equal("status", PENDING), equal("attempt", Param("attempt")), Compare("not_before", "<=", Param("soon"))),
    ),
    Rule("fail", "6", (PROCESSING,), FAILED, MINE, _left_in(FAILED)),
    Rule(
        "expire",
        "7",
        OPEN,
        FAILED,
        both(SEEN, NOT_HELD),
        both(equal("status", FAILED), equal("attempt", Param("seen_attempt"))),
    ),
    Rule(
        "reopen",
        "8",
        (FAILED, CANCELLED),
        PENDING,
        both(SEEN, either(Absent("late_cost"), equal("late_cost", Param("late_cost")))),  # it becomes part of the cost
        both(equal("status", PENDING), equal("attempt", Param("next_attempt"))),
    ),
    Rule("cancel", "9", OPEN, CANCELLED, both(In("status", OPEN), SEEN), equal("status", CANCELLED)),
    Rule("book_late", "9", (CANCELLED,), None, both(_left_in(CANCELLED), Absent("late_cost")), _left_in(CANCELLED)),
    Rule("delete", "9d", FINAL, DELETED, both(SEEN, Absent("due_shard")), equal("status", DELETED)),
    Rule("note", "9n", (*OPEN, *FINAL), None, SEEN),
    Rule("hand_over", "10", FINAL, None, SEEN),
    Rule(
        "reap",
        "15",
        (PROCESSING,),
        PENDING,
        both(SEEN, LAPSED),
        both(equal("status", PENDING), equal("attempt", Param("seen_attempt"))),
    ),
    Rule("push_due", "15", OPEN, None, SEEN),
    # jobs whose work is an execution of a state machine, named by job and run
    Rule(
        "prepare",
        "13",
        (PROCESSING,),
        None,
        both(MINE, Compare("parts_run", "<>", Param("run"))),
        MINE,  # refused to its holder: prepared already
    ),
    Rule("adopt", "13", (PROCESSING,), None, MINE),
    Rule("extend", "15", (PROCESSING,), None, SEEN),
    Rule(
        "part",
        "14",
        (PENDING, PROCESSING),
        None,
        both(
            WORKED_ON,
            THIS_RUN,
            equal("parts_run", Param("run")),
            either(Absent(_PART_BY), equal(_PART_BY, Param("seen_by"))),  # nobody else has written since it was read
        ),
        equal(_BOOKED_BY, Param("by")),
    ),
    Rule(
        "late_part",
        "14",
        (*OPEN, *FINAL),
        None,
        both(
            Compare("parts_run", ">=", 0),  # a tombstone has none
            either(Absent(_BOOKED_BY), equal(_BOOKED_BY, Param("seen_booked"))),
        ),
        equal(_BOOKED_BY, Param("by")),
    ),
    Rule(
        "collect",
        "14",
        (PENDING, PROCESSING),
        COMPLETED,
        both(WORKED_ON, THIS_RUN),
        both(equal("status", COMPLETED), THIS_RUN, equal("result_key", Param("result_key"))),
    ),
    Rule(
        "fall_short",
        "14",
        (PENDING, PROCESSING),
        FAILED,
        both(WORKED_ON, THIS_RUN),
        both(equal("status", FAILED), THIS_RUN),
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

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ROWS}


@dataclass(frozen=True)
class Change:
    """One conditional write: a rule, the values of its condition, and what it does to the record."""

    rule: Rule
    params: Mapping[str, Any]
    sets: Mapping[str, Any] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)
    removes: tuple[str, ...] = ()

    def may(self, record: Mapping[str, Any] | None) -> bool:
        return holds(self.rule.condition, record, self.params)

    def is_own_effect(self, record: Mapping[str, Any] | None) -> bool:
        effect = self.rule.effect
        return effect is not None and record is not None and holds(effect, record, self.params)

    def applied_to(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The record after this write, as the store would answer it."""
        after = dict(record)
        for name, value in self.sets.items():
            after = _with(after, path(name, self.params), value)
        for name, amount in self.adds.items():
            after[name] = after.get(name, 0) + amount
        return {name: value for name, value in after.items() if name not in self.removes}


def _with(record: Mapping[str, Any], steps: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy with this value at the end of the path; what it leads through must be there, as in the store."""
    first, *others = steps
    return {**record, first: _with(record[first], tuple(others), value) if others else value}
