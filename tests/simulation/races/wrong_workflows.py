"""Wrong protocols of workflows, each of which our model must find out; and what becomes of ours without each clause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lambdas.core.conditions import All
from lambdas.core.protocol import RULES, Rule
from tests.simulation.races import properties, workflows
from tests.simulation.races.reviewed import ONE_OF_TWO, Needed, Needless
from tests.simulation.races.world import World
from tests.simulation.races.wrong import rules_of

FAILS, ONE_RUN = "execution fails", frozenset({"one run"})
ROWS = ("prepare", "adopt", "extend", "part", "late_part", "collect", "fall_short", "run_again", "give_up")


@dataclass(frozen=True)
class WrongWorkflow:
    """As `wrong.Wrong`, in the world of workflows."""

    name: str
    breaks: str
    faults: Mapping[str, int] = field(default_factory=dict)
    rules: Callable[[], Mapping[str, Rule]] = lambda: RULES
    flags: frozenset[str] = frozenset()

    def world(self) -> World:
        return workflows.world(self.faults, rules=self.rules(), flags=self.flags)


def _last_part_left_out(name: str) -> Mapping[str, Rule]:
    """Whatever was written since."""
    condition = RULES[name].condition
    assert isinstance(condition, All)
    return {**RULES, name: replace(RULES[name], condition=All(condition.parts[:-1]))}


WRONG_WORKFLOWS = (
    WrongWorkflow(
        "an execution is named by the attempt",
        workflows.TWO_AT_ONCE, {"crash": 1}, flags=frozenset({"named by attempt"}),
    ),
    WrongWorkflow(
        "the collector needs a job that is held, and the sweep reaps without asking",
        workflows.DONE_AND_FAILED, {"crash": 1, FAILS: 1}, workflows.processing_alone,
        frozenset({"the sweep does not describe", "one run"}),
    ),
    WrongWorkflow(
        "the sweep reaps without asking what became of the execution",
        workflows.CUT_SHORT, {"crash": 1}, flags=frozenset({"the sweep does not describe"}),
    ),
    WrongWorkflow(
        "the sweep gives up without asking what became of the execution",
        workflows.UNHEEDED, {"crash": 2}, flags=frozenset({"the sweep does not describe"}),
    ),
    WrongWorkflow(
        "a branch pays without looking at what is stored",
        workflows.PAID_AGAIN, {"crash": 1}, flags=frozenset({"does not look at what is stored"}),
    ),
    WrongWorkflow(
        "a branch writes over whatever another try of it has written",
        properties.PAID_TWICE, {"fail": 1, "ghost": 1},
        lambda: _last_part_left_out("part"),
    ),
    WrongWorkflow(
        "what comes late is booked whatever was booked since",
        properties.PAID_TWICE, {"cancel": 1, "ghost": 1},
        lambda: _last_part_left_out("late_part"),
    ),
)  # fmt: skip

SAME_EXECUTION = "whoever starts the execution of this job and run starts the one that the other finds"
_MISTAKEN = properties.MISTAKEN
_ABOUT_PREPARE = ("prepare: attempt = attempt", "prepare: claim_id = claim_id")
_ABOUT_ADOPT = ("adopt: attempt = attempt", "adopt: claim_id = claim_id")
_ABOUT_COLLECT = ("collect effect: status = COMPLETED", "collect effect: result_key = result_key")
_ASSEMBLED = "only a completed job has a result's key, and here every collector of a run assembles the same"
_LATE = {"cancel": 1, "retry": 1}

# what becomes of the protocol without each clause of rows 13 and 14
REVIEWED_WORK: dict[str, Needed | Needless] = {
    "prepare: status = PROCESSING": Needed(properties.TOUCHED, {"cancel": 1}),
    _ABOUT_PREPARE[0]: Needless(f"{ONE_OF_TWO}; and {SAME_EXECUTION}"),
    _ABOUT_PREPARE[1]: Needless(f"{ONE_OF_TWO}; and {SAME_EXECUTION}"),
    "prepare: parts_run <> run": Needed(workflows.UNDONE, {"unheard": 1}),
    "prepare effect: status = PROCESSING": Needed(_MISTAKEN, {"cancel": 1, "unheard": 1}),
    "prepare effect: attempt = attempt": Needless(SAME_EXECUTION),
    "prepare effect: claim_id = claim_id": Needless(SAME_EXECUTION),
    "adopt: status = PROCESSING": Needed(properties.STILL_DUE, {"cancel": 1}),
    _ABOUT_ADOPT[0]: Needed(workflows.FOREIGN_LEASE, _LATE, (_ABOUT_ADOPT[1],), ONE_OF_TWO),
    _ABOUT_ADOPT[1]: Needed(workflows.FOREIGN_LEASE, _LATE, (_ABOUT_ADOPT[0],), ONE_OF_TWO),
    "extend: status = seen_status": Needed(properties.STILL_DUE, {"crash": 1, "slow": 1, "cancel": 1}),
    "extend: attempt = seen_attempt": Needless("a lease that is too long delays the next look, and its end is heard"),
    "part: status in PENDING/PROCESSING": Needed(properties.TOUCHED, {"cancel": 1}),
    "part: run = run": Needed(workflows.NOBODYS, {FAILS: 1}),
    "part: parts_run = run": Needless("a run is prepared before it is started, unless somebody starts one by hand"),
    "part: no parts.:branch.by": Needed(workflows.FOR_NOTHING),
    "part: parts.:branch.by = seen_by": Needed(workflows.FOR_NOTHING, {"fail": 1}),
    "part effect: booked_by.:branch = by": Needed(properties.UNPAID, {"cancel": 1}),
    "late_part: parts_run >= 0": Needless("a tombstone has no map to write into: the store would refuse by an error"),
    "late_part: no booked_by.:branch": Needed(properties.UNPAID, {"cancel": 1}),
    "late_part: booked_by.:branch = seen_booked": Needed(properties.UNPAID, {FAILS: 1}),
    "late_part effect: booked_by.:branch = by": Needless("the model's branch reads what was booked and books at once"),
    "collect: status in PENDING/PROCESSING": Needed(properties.OVERWRITTEN, {"cancel": 1, "slow": 1}),
    "collect: run = run": Needed(workflows.OTHER_RUN, {"slow": 1, **_LATE}),
    _ABOUT_COLLECT[0]: Needed(_MISTAKEN, {"unheard": 1, "delete": 1}, (_ABOUT_COLLECT[1],), _ASSEMBLED),
    _ABOUT_COLLECT[1]: Needed(_MISTAKEN, {"unheard": 1, "delete": 1}, (_ABOUT_COLLECT[0],), _ASSEMBLED),
    "collect effect: run = run": Needless("what is completed stays so: the end of another run comes to nobody's"),
    "fall_short: status in PENDING/PROCESSING": Needed(
        properties.OVERWRITTEN, {"permanent": 1, "cancel": 1, "slow": 1}
    ),
    "fall_short: run = run": Needed(workflows.OTHER_RUN, {"permanent": 1, "slow": 1, **_LATE}),
    "fall_short effect: status = FAILED": Needed(_MISTAKEN, {"permanent": 1, "unheard": 1, "delete": 1}),
    "fall_short effect: run = run": Needed(_MISTAKEN, {"permanent": 2, "unheard": 1, "retry": 1}),
    "run_again: status = PROCESSING": Needed(properties.OVERWRITTEN, {FAILS: 1, "slow": 1, "cancel": 1}),
    "run_again: run = run": Needed(workflows.CUT_SHORT, {FAILS: 1, "slow": 1}),
    "run_again effect: status = PENDING": Needed(_MISTAKEN, {FAILS: 1, "unheard": 1, "cancel": 1}),
    "run_again effect: run = next_run": Needed(_MISTAKEN, {FAILS: 1, "unheard": 1, **_LATE}),
    "give_up: status = PROCESSING": Needed(
        properties.OVERWRITTEN, {FAILS: 1, "slow": 1, "cancel": 1}, flags=ONE_RUN
    ),
    "give_up: run = run": Needless("as `run_again`'s, and its example takes as many faults again"),
    "give_up effect: status = FAILED": Needless("no other write leaves the run after the last one"),
    "give_up effect: run = next_run": Needless("as `run_again`'s, and its example takes as many faults again"),
}  # fmt: skip


def work_without(name: str) -> WrongWorkflow:
    """Ours without that clause, as one that must break."""
    review = REVIEWED_WORK[name]
    assert isinstance(review, Needed)
    dropped = (name, *review.with_)
    return WrongWorkflow(
        f"without {' and '.join(dropped)}", review.breaks, review.faults, rules_of(*dropped), review.flags
    )
