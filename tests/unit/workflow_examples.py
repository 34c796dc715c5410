"""Examples for the rules of jobs whose work is an execution: as tests/unit/protocol_examples.py, for all jobs."""

from __future__ import annotations

from typing import Any

from lambdas.contracts.names import COMPLETED, DELETED, FAILED, FINAL, OPEN, PENDING, PROCESSING, WAITING
from tests.builders import held_record
from tests.unit.protocol_examples import MINE, MINE_HOLDS, NOT_MINE, Examples, Record, seen

BRANCH = "key-facts"
RUN = {"run": 1}
WRITTEN = {**RUN, "branch": BRANCH, "by": "me", "seen_by": "before"}
NOT_AT_WORK = ("A", WAITING, *FINAL, DELETED)


def of_run(run: int = 1, status: str = PROCESSING, **over: Any) -> dict[str, Any]:
    return held_record(**{"run": run, "status": status, "parts_run": 1, "parts": {BRANCH: {"state": "open"}}, **over})


def _by(who: str, **over: Any) -> dict[str, Any]:
    return of_run(**{"parts": {BRANCH: {"state": "again", "by": who}, "other": {"by": "before"}}, **over})


def _late(who: str, **over: Any) -> dict[str, Any]:
    return of_run(**{"booked_by": {BRANCH: who, "other": "z"}, **over})


def _with(records: list[Record], **more: Any) -> list[Record]:
    return [{**record, **more} if record else None for record in records]


_OTHER_RUNS: list[Record] = [of_run(0), of_run(2)]
_OF_THIS_RUN: tuple[dict[str, Any], list[Record], list[Record]] = (
    RUN,
    [of_run(), of_run(status=PENDING)],
    [None, *_OTHER_RUNS, *(of_run(status=status) for status in NOT_AT_WORK)],
)
_HELD_IN_THIS_RUN: tuple[dict[str, Any], list[Record], list[Record]] = (
    {**RUN, "next_run": 2},
    [of_run()],
    [None, *_OTHER_RUNS, *(of_run(status=status) for status in (PENDING, *NOT_AT_WORK))],
)


def _ended(status: str, run: int) -> tuple[list[Record], list[Record]]:
    others: list[Record] = [of_run(run, other) for other in ("A", "Z", *OPEN, *FINAL) if other != status]
    return [of_run(run, status)], [None, *others, of_run(run - 1, status), of_run(run + 1, status)]


CONDITIONS: Examples = {
    "prepare": (
        {**MINE, **RUN},
        [*MINE_HOLDS, *_with(MINE_HOLDS, parts_run=0)],
        [*NOT_MINE, *_with(NOT_MINE, parts_run=0), held_record(parts_run=1)],
    ),
    "adopt": (MINE, MINE_HOLDS, NOT_MINE),
    "extend": (
        seen(PROCESSING),
        MINE_HOLDS,
        [None, *(held_record(attempt=other) for other in (0, 2)),
         *(held_record(status=status) for status in (PENDING, *NOT_AT_WORK))],
    ),
    "part": (
        WRITTEN,
        [_by("before"), _by("before", status=PENDING), of_run(), of_run(parts={})],
        [
            None,
            *(_by("before", status=status) for status in NOT_AT_WORK),
            *(_by("before", run=other) for other in (0, 2)),
            *(_by("before", parts_run=other) for other in (None, 0, 2)),
            *(_by(who) for who in ("a", "z", "me")),
        ],
    ),
    "late_part": (
        {"branch": BRANCH, "by": "me", "seen_booked": "before"},
        [
            *(of_run(status=status, booked_by={}) for status in (*OPEN, *FINAL)),
            _late("before"),
            _late("before", parts_run=0),
        ],
        [None, *(_late(who) for who in ("me", "a", "z")), *(_late("before", parts_run=other) for other in (None, -1))],
    ),
    "collect": _OF_THIS_RUN,
    "fall_short": _OF_THIS_RUN,
    "run_again": _HELD_IN_THIS_RUN,
    "give_up": _HELD_IN_THIS_RUN,
}  # fmt: skip

EFFECTS: Examples = {
    "prepare": (
        {**MINE, **RUN},
        _with(MINE_HOLDS, parts_run=1),
        _with(NOT_MINE, parts_run=1),
    ),
    "part": (
        WRITTEN,
        [_late("me"), _late("me", status=COMPLETED, run=2, parts_run=2)],
        [None, of_run(), of_run(booked_by={"other": "me"}), _by("me"), _late("a"), _late("z")],
    ),
    "late_part": (
        {"branch": BRANCH, "by": "me"},
        [_late("me")],
        [None, of_run(), of_run(booked_by={"other": "me"}), _late("a"), _late("z")],
    ),
    "collect": (
        {**RUN, "result_key": "k"},
        [of_run(1, COMPLETED, result_key="k")],
        [None, *_ended(COMPLETED, 1)[0], *_with(_ended(COMPLETED, 1)[1][1:], result_key="k"),
         of_run(1, COMPLETED, result_key="a"), of_run(1, COMPLETED, result_key="l")],
    ),
    "fall_short": (RUN, *_ended(FAILED, 1)),
    "run_again": ({**RUN, "next_run": 2}, *_ended(PENDING, 2)),
    "give_up": ({**RUN, "next_run": 2}, *_ended(FAILED, 2)),
}  # fmt: skip
