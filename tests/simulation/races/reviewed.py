"""What becomes of the protocol without each single clause: the property that breaks, or why none does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.simulation.races import hours, properties
from tests.simulation.races.clauses import clauses
from tests.simulation.races.wrong import Wrong, rules_of


@dataclass(frozen=True)
class Needed:
    """Without it `breaks` does. `with_`: it has a second in these; they must go, too, for anything to break (`why`)."""

    breaks: str
    faults: Mapping[str, int] = field(default_factory=dict)
    with_: tuple[str, ...] = ()
    why: str = ""
    weak: bool = False
    flags: frozenset[str] = frozenset()
    begin: hours.Begin | None = None


@dataclass(frozen=True)
class Needless:
    """Nothing breaks in the model, and this is why it stands there all the same."""

    why: str


ONE_OF_TWO = "attempts never come twice and no two claims have one name: each alone is a fence, both are two"
EARLY_LOOK = "a look that comes too early finds nothing to do"


def _mine(rule: str, ending: Mapping[str, int], again: Mapping[str, int]) -> dict[str, Needed]:
    """A holder's own write. `ending`: the fault that leads to it; `again`: what makes another do the same."""
    attempt, claim = f"{rule}: attempt = attempt", f"{rule}: claim_id = claim_id"
    late = {"cancel": 1, "retry": 1, **ending}
    left = {"complete": "COMPLETED", "retry": "PENDING", "park": "PENDING", "fail": "FAILED"}[rule]
    known = [f"{rule} effect: {name} = {name}" for name in ("attempt", "claim_id")]
    return {
        f"{rule}: status = PROCESSING": Needed(properties.OVERWRITTEN, {"cancel": 1, **ending}),
        attempt: Needed(properties.EVICTED, late, (claim,), ONE_OF_TWO),
        claim: Needed(properties.EVICTED, late, (attempt,), ONE_OF_TWO),
        f"{rule} effect: status = {left}": Needed(properties.MISTAKEN, {"cancel": 1, **ending}),
        known[0]: Needed(properties.MISTAKEN, {**late, **again}, (known[1],), ONE_OF_TWO),
        known[1]: Needed(properties.MISTAKEN, {**late, **again}, (known[0],), ONE_OF_TWO),
    }


REVIEWED: dict[str, Needed | Needless] = {
    "accept: no pk": Needed(properties.REUSED, {"resubmit": 1}),
    "claim: status = PENDING": Needed(properties.EVICTED),
    "claim: not_before <= soon": Needed(properties.TOO_EARLY, {"stall": 1}),
    "claim: status = PROCESSING": Needed(properties.OVERWRITTEN, {"dup": 1}),
    "claim: lease_until < now": Needed(properties.EVICTED),
    "claim: tries < max_tries": Needed(properties.TOO_MANY_TRIES, {"crash": 2}),
    "claim: deadline_at > now": Needed(properties.TOO_LATE, {"deadline": 1}),
    "claim effect: status = PROCESSING": Needed(properties.MISTAKEN, {"unheard": 1}),
    "claim effect: claim_id = claim_id": Needed(properties.NOT_HELD),
    "pull_due: status = PROCESSING": Needed(properties.STILL_DUE, {"ghost": 1}, begin=hours.out_of_a_backlog),
    "pull_due: attempt = attempt": Needless(EARLY_LOOK),
    "pull_due: claim_id = claim_id": Needless(EARLY_LOOK),
    **_mine("complete", {}, {}),
    **_mine("retry", {"fail": 1}, {}),
    **_mine("park", {"stall": 1}, {}),
    **_mine("fail", {"permanent": 1}, {"permanent": 2}),
    "leave: status = PENDING": Needed(properties.TOUCHED, {"cancel": 1, "put off": 1}),
    "leave: attempt = attempt": Needless("an older message costs the job a second, and brings it a message of its own"),
    "leave: not_before <= soon": Needed(properties.TOO_EARLY, {"stall": 1, "put off": 1}),
    "expire: status = seen_status": Needed(properties.OVERWRITTEN, {"slow": 1, "deadline": 1, "cancel": 1}),
    "expire: attempt = seen_attempt": Needed(
        properties.GIVEN_UP, {"slow": 1, "deadline": 1, "cancel": 1, "retry": 1}
    ),
    "expire: status <> PROCESSING": Needed(properties.STUCK, {"deadline": 1}),
    "expire: lease_until < now": Needed(properties.STUCK, {"crash": 2}),
    "expire effect: status = FAILED": Needed(properties.MISTAKEN, {"deadline": 1, "unheard": 1, "delete": 1}),
    "expire effect: attempt = seen_attempt": Needed(
        properties.MISTAKEN, {"deadline": 1, "unheard": 1, "retry": 1, "permanent": 1}
    ),
    "reopen: status = seen_status": Needed(properties.REVIVED, {"cancel": 1, "retry": 1, "delete": 1}),
    "reopen: attempt = seen_attempt": Needed(properties.NOT_READ, {"cancel": 2, "retry": 2}),
    "reopen: no late_cost": Needed(properties.REFUSED, {"cancel": 1, "retry": 1}),
    "reopen: late_cost = late_cost": Needed(properties.REFUSED, {"cancel": 1, "retry": 1}),
    "reopen effect: status = PENDING": Needed(properties.MISTAKEN, {"cancel": 2, "retry": 1, "unheard": 1}),
    "reopen effect: attempt = next_attempt": Needed(
        properties.MISTAKEN, {"cancel": 1, "retry": 1, "unheard": 1, "stall": 1}
    ),
    "cancel: status in PENDING/PROCESSING/WAITING": Needed(
        properties.OVERWRITTEN, {"cancel": 1}, ("cancel: status = seen_status",),
        "whoever cancels has read an open state, and SEEN holds it to that",
    ),
    "cancel: status = seen_status": Needed(properties.PAID_TWICE, {"unusable": 1, "unheard": 1, "cancel": 1}),
    "cancel: attempt = seen_attempt": Needless("what it writes depends on the status that was read, and on that alone"),
    "cancel effect: status = CANCELLED": Needed(properties.MISTAKEN, {"cancel": 1}),
    "book_late: status = CANCELLED": Needless("a record that is CANCELLED no more has lost its claim"),
    "book_late: attempt = attempt": Needless("no two claims have one name"),
    "book_late: claim_id = claim_id": Needed(properties.PAID_TWICE, {"unusable": 1, "unheard": 1, "cancel": 1}),
    "book_late: no late_cost": Needed(properties.PAID_TWICE, {"cancel": 1, "ghost": 1}),
    **{
        f"book_late effect: {text}": Needless("its writer does nothing with the answer")
        for text in ("status = CANCELLED", "attempt = attempt", "claim_id = claim_id")
    },
    "delete: status = seen_status": Needless("no two final states of a job have one attempt"),
    "delete: attempt = seen_attempt": Needed(properties.NOT_READ, {"permanent": 2, "retry": 1, "delete": 1}),
    "delete: no due_shard": Needed(
        properties.UNTOLD, {"cancel": 1, "delete": 1}, flags=frozenset({"deleting does not look"}),
        why="who deletes has looked whether it is handed over, and what is handed over stays so",
    ),
    "delete effect: status = DELETED": Needed(properties.MISTAKEN, {"cancel": 1, "delete": 1, "retry": 1}),
    "note: status = seen_status": Needless("it writes a line of the history, which the model leaves out"),
    "note: attempt = seen_attempt": Needless("it writes a line of the history, which the model leaves out"),
    "hand_over: status = seen_status": Needed(properties.REVIVED, {"cancel": 1, "delete": 1}),
    "hand_over: attempt = seen_attempt": Needed(properties.UNTOLD, {"permanent": 2, "retry": 1}),
    "reap: status = seen_status": Needed(
        properties.OVERWRITTEN, {"crash": 1, "slow": 1, "cancel": 1}, ("reap: status = PROCESSING",),
        "LAPSED names the status again",
    ),
    "reap: status = PROCESSING": Needed(
        properties.OVERWRITTEN, {"crash": 1, "slow": 1, "cancel": 1}, ("reap: status = seen_status",),
        "only who has read PROCESSING reaps, and SEEN holds it to that",
    ),
    "reap: attempt = seen_attempt": Needed(
        properties.EVICTED, {"crash": 1, "slow": 1}, ("reap: lease_until < now",),
        "a lapsed claim is lapsed, whichever it is",
    ),
    "reap: lease_until < now": Needed(
        properties.EVICTED, {"crash": 1, "slow": 1}, ("reap: attempt = seen_attempt",),
        "the lease of one attempt moves with its execution alone, and of that the sweep asks first",
    ),
    "reap effect: status = PENDING": Needed(properties.MISTAKEN, {"crash": 1, "unheard": 1, "cancel": 1}),
    "reap effect: attempt = seen_attempt": Needed(properties.MISTAKEN, {"crash": 1, "unheard": 1, "stall": 1}),
    "push_due: status = seen_status": Needed(properties.STILL_DUE, {"slow": 1, "cancel": 1}),
    "push_due: attempt = seen_attempt": Needless("the job of that name is looked for a wait later, and found then"),
}  # fmt: skip


def wrong_without(name: str) -> Wrong:
    """The protocol without that clause, as one that must break."""
    review = REVIEWED[name]
    assert isinstance(review, Needed)
    dropped = (name, *review.with_)
    return Wrong(
        f"without {' and '.join(dropped)}", review.breaks, review.faults, rules=rules_of(*dropped), weak=review.weak,
        flags=review.flags, begin=review.begin,
    )  # fmt: skip


def named() -> set[str]:
    return {clause.name for clause in clauses()}
