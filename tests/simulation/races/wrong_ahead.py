"""Wrong protocols of the rows that are not built yet, and the worlds in which ours is explored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lambdas.core.protocol import Rule
from tests.simulation.races import approvals, properties
from tests.simulation.races.ahead import RULES_AHEAD
from tests.simulation.races.world import World
from tests.simulation.races.wrong import rules_of

Make = Callable[..., World]
WORLDS: tuple[Make, ...] = (approvals.world,)


@dataclass(frozen=True)
class WrongAhead:
    """As `wrong.Wrong`, in the world that `make` makes."""

    name: str
    make: Make
    breaks: str
    faults: Mapping[str, int] = field(default_factory=dict)
    rules: Callable[[], Mapping[str, Rule]] = lambda: RULES_AHEAD
    flags: frozenset[str] = frozenset()

    def world(self) -> World:
        return self.make(self.faults, rules=self.rules(), flags=self.flags)


def _dropping(*names: str) -> Callable[[], Mapping[str, Rule]]:
    return rules_of(*names, among=RULES_AHEAD)


WRONG_AHEAD = (
    WrongAhead(
        "nobody asks again when the question was lost",
        approvals.world, properties.STUCK, {"loss": 1}, flags=frozenset({"nobody asks again"}),
    ),
    WrongAhead(
        "a decision does not say to which question",
        approvals.world, approvals.OTHER_QUESTION, {"dup": 1}, _dropping("decide: step = step"),
    ),
    WrongAhead(
        "a decision does not look at the status",
        approvals.world, properties.OVERWRITTEN, {"cancel": 1}, _dropping("decide: status = seen_status"),
    ),
    WrongAhead(
        "whoever asks does not look at the status",
        approvals.world, properties.OVERWRITTEN, {"cancel": 1}, _dropping("ask: status = PROCESSING"),
    ),
    WrongAhead(
        "that a question was asked is written whatever has become of it",
        approvals.world, properties.STILL_DUE, {"cancel": 1}, _dropping("asked: status = seen_status"),
    ),
)  # fmt: skip
