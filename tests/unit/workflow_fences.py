"""The stories of tests/unit/test_fences.py, of jobs whose work is an execution."""

from __future__ import annotations

from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING
from lambdas.core import changes as every
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.protocol import Change
from lambdas.core.workflows import changes, parts
from tests.builders import NOW, held_record, later

LIMITS, WHY = Limits(), {"code": "EXECUTION_TIMED_OUT", "message": ""}
BRANCH, OTHER = "key-facts", "claim-of-another"
Record = dict[str, Any]


def at_work(**over: Any) -> Record:
    """Its first run is under way: two branches, of which one is done."""
    standing = parts.all_open([BRANCH, "summary"]) | {"summary": {"state": "done", "by": "before"}}
    return held_record(**{"parts_run": 0, "parts": standing, "booked_by": {}, **over})


def job(**over: Any) -> Job:
    return from_record(at_work(**over))


def prepare() -> Change:
    return changes.prepare(from_record(held_record()), [BRANCH])


def adopt() -> Change:
    return changes.adopt(job(), now=NOW, lease=later(1_860))


def extend() -> Change:
    return changes.extend(job(), lease=later(1_860))


def part(seen: Job | None = None) -> Change:
    return changes.part(seen or job(), BRANCH, parts.Part(parts.DONE, "mine"), cost=7, now=NOW)


def late_part() -> Change:
    return changes.late_part(BRANCH, "mine", 7, seen_booked="")


def collect() -> Change:
    return changes.collect(job(), now=NOW, key="k", result_bytes=1, partial=False, limits=LIMITS)


def fall_short() -> Change:
    return changes.fall_short(job(), now=NOW, why=WHY, limits=LIMITS)


def run_again() -> Change:
    return changes.run_again(job(), now=NOW, wait_s=1, why=WHY, limits=LIMITS)


def give_up() -> Change:
    return changes.give_up(job(), now=NOW, why=WHY, limits=LIMITS)


def by(who: str, **over: Any) -> Record:
    return at_work(parts={BRANCH: {"state": "again", "by": who}}, booked_by={BRANCH: who}, **over)


def tombstone() -> Record:
    ended = from_record(at_work(status=COMPLETED, result_key="k"))
    return every.delete(ended).applied_to(at_work(status=COMPLETED, result_key="k"))


ENDS = {"collect": (collect, COMPLETED), "fall_short": (fall_short, FAILED)}
FAILURES = {"run_again": (run_again, PENDING), "give_up": (give_up, FAILED)}
LATE: dict[str, tuple[Change, Record]] = {
    **{f"{name}: its tenant has cancelled the job": (write(), at_work(status=CANCELLED, parts_run=None))
       for name, write in (("prepare", prepare), ("adopt", adopt), ("extend", extend))},
    **{f"{name}: it is held once more": (write(), at_work(attempt=2, parts_run=None))
       for name, write in (("prepare", prepare), ("adopt", adopt), ("extend", extend))},
    **{f"{name}: its number was begun anew by another": (write(), at_work(claim_id=OTHER, parts_run=None))
       for name, write in (("prepare", prepare), ("adopt", adopt))},
    "prepare: a branch of this run has come to its end": (prepare(), at_work()),
    "part: its tenant has cancelled the job": (part(), at_work(status=CANCELLED)),
    "part: its execution was given up for the next run": (part(), at_work(run=1)),
    "part: its execution was started by hand": (part(job(run=1)), at_work(run=1)),
    "part: another try of it was faster": (part(), by(OTHER)),
    "late_part: its job was deleted": (late_part(), tombstone()),
    "late_part: another try has booked meanwhile": (late_part(), at_work(booked_by={BRANCH: OTHER}, late_cost=7)),
    "late_part: it has booked that already": (late_part(), at_work(booked_by={BRANCH: "mine"}, late_cost=7)),
    **{f"{name}: its tenant has cancelled the job": (write(), at_work(status=CANCELLED))
       for name, (write, _) in {**ENDS, **FAILURES}.items()},
    **{f"{name}: the next run is at work": (write(), at_work(run=1))
       for name, (write, _) in {**ENDS, **FAILURES}.items()},
}  # fmt: skip

NOT_MY_OWN: dict[str, tuple[Change, Record]] = {
    "prepare: its tenant has cancelled the job": (prepare(), at_work(status=CANCELLED)),
    "prepare: the next attempt has prepared it": (prepare(), at_work(attempt=2)),
    "prepare: another has prepared it": (prepare(), at_work(claim_id=OTHER)),
    "part: another try of it was faster": (part(), by(OTHER)),
    "late_part: its job was deleted": (late_part(), tombstone()),
    **{f"{name}: its tenant has cancelled the job": (write(), at_work(status=CANCELLED, result_key="k"))
       for name, (write, _) in ENDS.items()},
    "collect: another collector was faster": (collect(), at_work(status=COMPLETED, result_key="another")),
    **{f"{name}: so has the next run ended": (write(), at_work(status=end, run=1, result_key="k"))
       for name, (write, end) in ENDS.items()},
    **{f"{name}: the next run was begun and cancelled": (write(), at_work(status=CANCELLED, run=1))
       for name, (write, _) in FAILURES.items()},
    "run_again: it was reaped": (run_again(), at_work(status=PENDING)),
    "give_up: it has fallen short": (give_up(), at_work(status=FAILED)),
}  # fmt: skip
