"""Wrong protocols for deliveries, each of which our model must find out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lambdas.core.protocol import RULES, Change, Rule
from tests.simulation.races import attempts, deliveries, properties
from tests.simulation.races.law import Twist
from tests.simulation.races.world import World
from tests.simulation.races.wrong import rules_of


@dataclass(frozen=True)
class WrongDelivery:
    """As `wrong.Wrong`, in the world of deliveries."""

    name: str
    breaks: str
    faults: Mapping[str, int] = field(default_factory=dict)
    rules: Callable[[], Mapping[str, Rule]] = lambda: RULES
    flags: frozenset[str] = frozenset()
    twist: Twist | None = None
    weak: bool = False

    def world(self) -> World:
        return deliveries.world(
            self.faults, rules=self.rules(), flags=self.flags, twist=self.twist, weak=self.weak
        )  # fmt: skip


def _without(rule: str, *fields: str) -> Twist:
    """Its write leaves these as they are."""

    def twist(change: Change) -> Change:
        if change.rule.name != rule:
            return change
        sets = {name: value for name, value in change.sets.items() if name not in fields}
        return replace(change, sets=sets, removes=tuple(one for one in change.removes if one not in fields))

    return twist


WRONG_DELIVERIES = (
    WrongDelivery(
        "the state of a delivery is kept in its job's record",
        attempts.TOLD_AGAIN, flags=frozenset({"on the job"}),
    ),
    WrongDelivery(
        "a delivery is created whether or not it is there",
        properties.REUSED, {"dup": 1}, rules_of("accept: no pk"),
    ),
    WrongDelivery(
        "a delivery is not in the index of what is due",
        properties.STUCK, {"loss": 1}, flags=frozenset({"no sweep"}),
    ),
    WrongDelivery(
        "a delivery that was taken is left in the index",
        properties.STILL_DUE, twist=_without("complete", "due_at", "due_shard"),
    ),
    WrongDelivery(
        "a delivery that is opened again is not put into the index",
        properties.UNDUE, {"redeliver": 1}, twist=_without("reopen", "due_shard"),
    ),
    WrongDelivery(
        "a delivery that is opened again expires all the same",
        properties.EXPIRES, {"redeliver": 1}, twist=_without("reopen", "expires_at"),
    ),
    WrongDelivery(
        "a place is held until somebody leaves it",
        attempts.KEPT_FOR_EVER, {"busy": 1, "crash": 1}, flags=frozenset({"a place is no lease"}),
    ),
    WrongDelivery(
        "nobody counts who calls an endpoint",
        attempts.CROWDED, {"busy": 1}, flags=frozenset({"places are not counted"}),
    ),
    WrongDelivery(
        "what came of a call is written before it is made",
        deliveries.UNTAKEN, flags=frozenset({"written before it is sent"}),
    ),
    WrongDelivery(
        "whoever gets a hint calls the endpoint, whatever has become of the delivery",
        attempts.CALLED_LATER, {"dup": 1},
        rules_of("claim: status = PENDING", "claim: status = PROCESSING", "claim: lease_until < now"),
    ),
    WrongDelivery(
        "whoever is too late writes what came of its call",
        properties.OVERWRITTEN, {},
        rules_of("complete: attempt = attempt", "complete: claim_id = claim_id", "complete: status = PROCESSING"),
        weak=True,
    ),
    WrongDelivery(
        "a redelivery does not look at what has become of it since it was read",
        properties.EVICTED, {"redeliver": 2},
        rules_of("reopen: status = seen_status", "reopen: attempt = seen_attempt"),
    ),
)  # fmt: skip
