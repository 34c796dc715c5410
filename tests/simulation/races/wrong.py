"""Protocols that look right and are not. Each breaks a property by a trace that the model finds; ours breaks none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lambdas.core import times
from lambdas.core.conditions import Condition, equal
from lambdas.core.protocol import RULES, SEEN, Change, Rule
from tests.builders import later
from tests.simulation.races import hours, properties
from tests.simulation.races.clauses import clauses, without
from tests.simulation.races.law import Law, Twist
from tests.simulation.races.record import Clock, before_or_after
from tests.simulation.races.world import World

ENDS = ("complete", "retry", "park", "fail")


@dataclass(frozen=True)
class Wrong:
    """`breaks`: the property; `faults`: which it takes. `begin`: played with the clock, from there."""

    name: str
    breaks: str
    faults: Mapping[str, int] = field(default_factory=dict)
    rules: Callable[[], Mapping[str, Rule]] = lambda: RULES
    flags: frozenset[str] = frozenset()
    twist: Twist | None = None
    weak: bool = False
    begin: hours.Begin | None = None
    first_s: int = hours.PERIOD_S
    attempts: int = 4

    def world(self) -> World:
        clock: Clock = hours.seconds if self.begin else before_or_after
        law = Law(rules=self.rules(), flags=self.flags, twist=self.twist, clock=clock)
        if self.begin:
            return hours.Hours(law, self.faults, begin=self.begin, first_s=self.first_s)
        return World(law, self.faults, weak=self.weak, attempts=self.attempts)


def rules_of(*names: str, among: Mapping[str, Rule] = RULES) -> Callable[[], Mapping[str, Rule]]:
    """The rules without these clauses."""
    return lambda: without(among, *(clause for clause in clauses(among) if clause.name in names))


def _attempt_alone() -> Mapping[str, Rule]:
    fence: Condition = equal("attempt", RULES["leave"].condition.parts[1].operand)  # type: ignore[union-attr]
    return {**RULES, **{name: replace(RULES[name], condition=fence) for name in ENDS}}


def _attempt_is_given_back(change: Change) -> Change:
    if change.rule.name != "park":
        return change
    return replace(change, adds={**change.adds, "attempt": -1})


def _one_result(change: Change) -> Change:
    if change.rule.name != "complete":
        return change
    return replace(change, sets={**change.sets, "result_key": "one"})


def _everything_is_refunded(change: Change) -> Change:
    return replace(change, adds={**change.adds, "tries": -1}) if change.rule.name == "park" else change


def _sample_is_kept(change: Change) -> Change:
    sets = {name: value for name, value in change.sets.items() if name not in ("sample", "unusable")}
    return replace(change, sets=sets) if change.rule.name == "reopen" else change


def _claim_is_kept(rule: str) -> Twist:
    def kept(change: Change) -> Change:
        removes = tuple(name for name in change.removes if name != "claim_id")
        return replace(change, removes=removes) if change.rule.name == rule else change

    return kept


def _due_is_not_pulled(change: Change) -> Change:
    return replace(change, sets={"claimed_at": change.sets["due_at"]}) if change.rule.name == "pull_due" else change


def _look_is_pushed_by_age(change: Change) -> Change:
    return replace(change, sets={"due_at": times.text(later(3_000))}) if change.rule.name == "push_due" else change


def _it_still_expires(change: Change) -> Change:
    removes = tuple(name for name in change.removes if name != "expires_at")
    return replace(change, removes=removes) if change.rule.name == "reopen" else change


def _look_stays(change: Change) -> Change:
    sets = {name: value for name, value in change.sets.items() if name != "due_at"}
    return replace(change, sets=sets) if change.rule.name == "cancel" else change


def _due_is_forgotten(change: Change) -> Change:
    removes = (*change.removes, "due_at", "due_shard")
    return replace(change, removes=removes) if change.rule.name in ("complete", "fail") else change


CLAIM_IDS = tuple(f"{name}: claim_id = claim_id" for name in ENDS)

WRONG = (
    Wrong("the fence is the attempt alone", properties.OVERWRITTEN, {"cancel": 1}, rules=_attempt_alone),
    Wrong(
        "the fence is the attempt alone, and a worker outlives its lease",
        properties.OVERWRITTEN, {"crash": 1}, rules=_attempt_alone, weak=True,
    ),
    Wrong(
        "waiting gives the attempt back",
        properties.EVICTED, {"stall": 2, "ghost": 1}, rules=rules_of(*CLAIM_IDS), twist=_attempt_is_given_back,
    ),
    Wrong(
        "any message reopens a failed job",
        properties.ORDINARY, {"dup": 1, "fail": 2}, flags=frozenset({"any message reopens"}),
    ),
    Wrong(
        "one result per job, and a worker outlives its lease",
        properties.CHANGED_RESULT, {"dup": 1}, flags=frozenset({"one result per job"}), twist=_one_result, weak=True,
    ),
    Wrong(
        "answers are saved and freed by whoever comes",
        properties.CALLED_AGAIN, {"fail": 1, "retry": 1}, flags=frozenset({"rows have no holder"}), weak=True,
    ),
    Wrong("no sweep, and a stream record is lost", properties.STUCK, {"loss": 1}, flags=frozenset({"no sweep"})),
    Wrong("no sweep, and a worker crashes", properties.STUCK, {"crash": 1}, flags=frozenset({"no sweep"})),
    Wrong(
        "deleting leaves nothing",
        properties.REUSED, {"delete": 1, "resubmit": 1}, flags=frozenset({"no tombstone"}),
    ),
    Wrong(
        "deleting leaves nothing, and the fence has no claim",
        properties.STRANGE_RESULT, {"cancel": 1, "delete": 1, "resubmit": 1},
        rules=rules_of(*CLAIM_IDS), flags=frozenset({"no tombstone"}),
    ),
    Wrong(
        "rejected answers stay in the cache",
        properties.SERVED_AGAIN, {"reject": 2, "retry": 1}, flags=frozenset({"rejected answers stay"}),
    ),
    Wrong(
        "further samples are shared as the first is",
        properties.STALE_ANSWER, {"reject": 4, "retry": 1},
        flags=frozenset({"rejected answers stay", "samples are shared"}), attempts=6,
    ),
    Wrong(
        "a reopened job keeps its samples",
        properties.STALE_ANSWER, {"reject": 3, "retry": 1}, twist=_sample_is_kept,
        flags=frozenset({"samples are shared"}),
    ),
    Wrong("every wait is refunded", properties.REFUNDED, {"waste": 1}, twist=_everything_is_refunded),
    Wrong(
        "reaping leaves the claim, and a worker outlives its lease",
        properties.MISTAKEN, {"fail": 1}, twist=_claim_is_kept("reap"), weak=True,
    ),
    Wrong(
        "reopening does not look at what was booked late",
        properties.UNPAID, {"cancel": 1, "retry": 1},
        rules=lambda: {**RULES, "reopen": replace(RULES["reopen"], condition=SEEN)},
    ),
    Wrong(
        "cancelling leaves the claim of one that has ended its try",
        properties.PAID_TWICE, {"unusable": 1, "unheard": 1, "cancel": 1}, twist=_claim_is_kept("cancel"),
    ),
    Wrong("an end is no longer due, before it is told", properties.UNDUE, twist=_due_is_forgotten),
    Wrong(
        "a reopened job still expires", properties.EXPIRES, {"cancel": 1, "retry": 1}, twist=_it_still_expires,
    ),
    Wrong(
        "completed before the result is stored",
        properties.NO_RESULT, flags=frozenset({"completed before it is stored"}),
    ),
    Wrong(
        "a claim whose reply is lost is somebody else's",
        properties.NOT_RECOGNISED, {"unheard": 1},
        rules=lambda: {**RULES, "claim": replace(RULES["claim"], effect=None)},
    ),
    Wrong(
        "cancelling leaves the look where it was",
        hours.TOLD_LATE, {"cancel": 1, "loss": 1}, twist=_look_stays, begin=hours.for_later,
    ),
    Wrong(
        "a look that was pushed far ahead hides a crash",
        hours.LEFT_ALONE, {"crash": 1}, twist=_due_is_not_pulled, begin=hours.out_of_a_backlog,
    ),
    Wrong(
        "a look is pulled in only if it is later than a sweep after the lease (as it was, until the model found this)",
        hours.LEFT_ALONE, {"crash": 1}, flags=frozenset({"a period is near enough"}), begin=hours.near_its_deadline,
    ),
    Wrong(
        "the sweep leaves the sending to the stream, which is dead",
        hours.LEFT_ALONE, {"crash": 1, "loss": 2}, flags=frozenset({"reaping sends nothing"}), begin=hours.as_accepted,
    ),
    Wrong(
        "pushing a look passes the deadline",
        hours.BEYOND_DEADLINE, {"drop": 1}, twist=_look_is_pushed_by_age, begin=hours.near_its_deadline,
    ),
    Wrong(
        "a long wait has the grace on top",
        hours.BEGINS_LATE, flags=frozenset({"a long wait has the grace"}), begin=hours.for_later, first_s=110,
    ),
    Wrong(
        "each message that is sent again outdates the one before, and the queue is slow",
        hours.NEVER_TRIED, flags=frozenset({"older messages are dropped"}), begin=hours.behind_a_slow_queue,
    ),
)  # fmt: skip
