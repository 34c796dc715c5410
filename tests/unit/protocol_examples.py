"""Examples for every rule of the protocol: records that it must write to, and records that it must leave alone.

Each entry: the values of the condition, records that satisfy it, records that violate just one clause of it."""

from __future__ import annotations

from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, FINAL, OPEN, PENDING, PROCESSING, WAITING
from lambdas.core import times
from tests.builders import CLAIM, NOW, any_record, final_record, handed_over, held_record, later

Record = dict[str, Any] | None
Examples = dict[str, tuple[dict[str, Any], list[Record], list[Record]]]

MINE = {"attempt": 1, "claim_id": CLAIM}
MINE_HOLDS: list[Record] = [held_record(), held_record(lease_until=later(-1))]
NOT_MINE: list[Record] = [
    None,
    held_record(attempt=0),
    held_record(attempt=2),
    held_record(claim_id="claim-of-another"),
    held_record(claim_id="a"),
    held_record(claim_id="z"),
    held_record(claim_id=None),
    held_record(status=PENDING),
    *(held_record(status=status) for status in (WAITING, *FINAL, DELETED)),
]
AT = {"now": times.text(NOW)}
SOON = {**AT, "soon": times.text(later(1))}  # clocks differ: a job may be claimed a little before its time


def seen(status: str, attempt: int = 1) -> dict[str, Any]:
    return {"seen_status": status, "seen_attempt": attempt}


def _left_in(status: str) -> tuple[list[Record], list[Record]]:
    """Records that show the holder's own write, and records that do not."""
    others = [held_record(status=other) for other in ("A", "Z", *OPEN, *FINAL) if other != status]
    by_others: list[Record] = [
        held_record(status=status, attempt=0),
        held_record(status=status, attempt=2),
        held_record(status=status, claim_id="a"),
        held_record(status=status, claim_id="z"),
        held_record(status=status, claim_id=None),
    ]
    return [held_record(status=status)], [None, *others, *by_others]


def lapsed(**over: Any) -> Record:
    return held_record(**{"lease_until": later(-0.001), **over})


SEEN_HOLDS: list[Record] = [final_record(COMPLETED)]
NOT_SEEN: list[Record] = [
    None,
    final_record(COMPLETED, attempt=0),
    final_record(COMPLETED, attempt=2),
    {**final_record(COMPLETED), "status": "A"},
    final_record(FAILED),
]

CONDITIONS: Examples = {
    "accept": ({}, [None], [any_record(), {"pk": "j", "status": DELETED}]),
    "claim": (
        {**SOON, "max_tries": 5, "claim_id": CLAIM},
        [
            any_record(),
            any_record(not_before=later(1)),
            any_record(not_before=later(-1), tries=4),
            any_record(deadline_at=later(0.001)),
            lapsed(),
            lapsed(tries=4, not_before=later(60)),
        ],
        [
            None,
            any_record(not_before=later(1.001)),
            any_record(not_before=later(1.001), lease_until=later(-60)),
            any_record(tries=5),
            any_record(tries=6),
            any_record(deadline_at=NOW),
            any_record(deadline_at=later(-1)),
            held_record(),
            held_record(lease_until=NOW),
            held_record(lease_until=None),
            lapsed(tries=5),
            lapsed(deadline_at=NOW),
            *(lapsed(status=status) for status in ("A", "PENDINGS", WAITING, *FINAL, DELETED)),
        ],
    ),
    **dict.fromkeys(("pull_due", "complete", "retry", "park", "fail"), (MINE, MINE_HOLDS, NOT_MINE)),
    "leave": (
        {**SOON, "attempt": 1},
        [any_record(attempt=1), any_record(attempt=1, not_before=later(1))],
        [
            None,
            any_record(attempt=1, not_before=later(1.001)),
            any_record(attempt=0),
            any_record(attempt=2),
            *(any_record(attempt=1, status=status) for status in ("A", PROCESSING, WAITING, *FINAL)),
        ],
    ),
    "expire": (
        {**AT, **seen(PROCESSING)},
        [lapsed()],
        [
            None,
            held_record(),
            held_record(lease_until=NOW),
            lapsed(attempt=0),
            lapsed(attempt=2),
            *(lapsed(status=status) for status in ("A", PENDING, WAITING, *FINAL, DELETED)),
        ],
    ),
    "expire of a pending one": (
        {**AT, **seen(PENDING)},
        [any_record(attempt=1), any_record(attempt=1, lease_until=later(60))],
        [None, any_record(attempt=2), held_record(), lapsed(), *(any_record(attempt=1, status=s) for s in FINAL)],
    ),
    "reopen": (
        {**seen(FAILED), "late_cost": 5},
        [final_record(FAILED), handed_over(FAILED), final_record(FAILED, late_cost=5)],
        [
            None,
            *(final_record(FAILED, late_cost=other) for other in (3, 7)),
            final_record(FAILED, attempt=0),
            final_record(FAILED, attempt=2),
            *({**final_record(FAILED), "status": status} for status in ("A", *OPEN, COMPLETED, CANCELLED, DELETED)),
        ],
    ),
    **{
        f"cancel of one seen {status}": (
            seen(status),
            [held_record(status=status)],
            [
                None,
                held_record(status=status, attempt=0),
                held_record(status=status, attempt=2),
                *(held_record(status=other) for other in ("A", "Z", *OPEN, *FINAL, DELETED) if other != status),
            ],
        )
        for status in OPEN
    },
    **{f"cancel of one seen {status}": (seen(status), [], [final_record(status)]) for status in FINAL},
    "book_late": (MINE, _left_in(CANCELLED)[0], [*_left_in(CANCELLED)[1], held_record(status=CANCELLED, late_cost=7)]),
    "delete": (
        seen(COMPLETED),
        [handed_over()],
        [
            None,
            final_record(),
            handed_over(attempt=0),
            handed_over(attempt=2),
            {**handed_over(), "status": "A"},
            handed_over(FAILED),
        ],
    ),
    "note": (seen(COMPLETED), SEEN_HOLDS, NOT_SEEN),
    "hand_over": (seen(COMPLETED), SEEN_HOLDS, NOT_SEEN),
    "reap": (
        {**AT, **seen(PROCESSING)},
        [lapsed()],
        [
            None,
            held_record(),
            held_record(lease_until=NOW),
            held_record(lease_until=None),
            lapsed(attempt=0),
            lapsed(attempt=2),
            *(lapsed(status=status) for status in ("A", PENDING, WAITING, *FINAL, DELETED)),
        ],
    ),
    **{
        f"reap of one seen {status}": ({**AT, **seen(status)}, [], [lapsed(), lapsed(status=status)])
        for status in ("A", PENDING, WAITING, "Z")
    },
    "push_due": (
        seen(PENDING),
        [any_record(attempt=1)],
        [
            None,
            any_record(attempt=0),
            any_record(attempt=2),
            *(any_record(attempt=1, status=s) for s in ("A", PROCESSING, *FINAL)),
        ],
    ),
}

EFFECTS: Examples = {
    "claim": (
        {**SOON, "max_tries": 5, "claim_id": CLAIM},
        [held_record(), held_record(attempt=7)],
        [
            None,
            held_record(claim_id="a"),
            held_record(claim_id="z"),
            held_record(claim_id=None),
            *(held_record(status=status) for status in ("A", PENDING, WAITING, *FINAL)),
        ],
    ),
    **{
        name: (MINE, *_left_in(status))
        for name, status in (("complete", COMPLETED), ("retry", PENDING), ("park", PENDING), ("fail", FAILED))
    },
    "expire": (
        {**AT, **seen(PROCESSING)},
        [final_record(FAILED)],
        [
            None,
            final_record(FAILED, attempt=0),
            final_record(FAILED, attempt=2),
            *({**final_record(FAILED), "status": status} for status in ("A", *OPEN, COMPLETED, CANCELLED)),
        ],
    ),
    "reopen": (
        {**seen(FAILED), "next_attempt": 2},
        [any_record(attempt=2)],
        [
            None,
            any_record(attempt=1),
            any_record(attempt=3),
            *(any_record(attempt=2, status=s) for s in ("A", PROCESSING, *FINAL)),
        ],
    ),
    "cancel": (
        seen(PROCESSING),
        [final_record(CANCELLED)],
        [None, *(held_record(status=s) for s in ("A", *OPEN, COMPLETED, FAILED))],
    ),
    "delete": (
        seen(COMPLETED),
        [{"pk": "j", "status": DELETED}],
        [None, handed_over(), *({**handed_over(), "status": status} for status in "AZ")],
    ),
    "book_late": (MINE, [held_record(status=CANCELLED, late_cost=7)], _left_in(CANCELLED)[1]),
    "reap": (
        {**AT, **seen(PROCESSING)},
        [any_record(attempt=1)],
        [
            None,
            any_record(attempt=0),
            any_record(attempt=2),
            *(lapsed(status=s) for s in ("A", PROCESSING, WAITING, *FINAL)),
        ],
    ),
}
