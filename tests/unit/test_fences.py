"""Between reading a job and writing it somebody else was there: each conditional write finds out, by each clause.

The stories of `LATE` are what the clauses of the protocol's conditions are for; those of `NOT_MY_OWN` what the clauses
of its effects are for. Each is about one clause: without it, it ends badly."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, WAITING
from lambdas.core import changes
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Refused
from lambdas.core.protocol import Change
from tests.builders import JOB_ID, NOW, any_job, any_record, final_job, final_record, handed_over, held_job, later
from tests.builders import held_record as held
from tests.fakes import FakeJobStore
from tests.unit import workflow_fences

Record = dict[str, Any]
LIMITS, WHY = Limits(), {"code": "TASK_ERROR", "message": "ValueError: no"}
OTHER = "claim-of-another"


def complete(job: Job) -> Change:
    return changes.complete(job, now=NOW, result_bytes=42, cost=1, limits=LIMITS)


def retry(job: Job) -> Change:
    return changes.retry(job, now=NOW, wait_s=1, why=WHY, cost=1, limits=LIMITS)


def park(job: Job) -> Change:
    return changes.park(job, now=NOW, until=later(60), why=WHY, cost=1, refund=True, limits=LIMITS)


def fail(job: Job) -> Change:
    return changes.fail(job, now=NOW, why=WHY, cost=1, limits=LIMITS)


def claim(max_tries: int = 5) -> Change:
    return changes.claim(claim_id="mine", max_tries=max_tries, now=NOW, invocation_ends=later(120))


def expire(job: Job) -> Change:
    return changes.expire(job, now=NOW, max_tries=1, limits=LIMITS)


def reopen(job: Job) -> Change:
    return changes.reopen(job, now=NOW, limits=LIMITS)


def cancel(job: Job) -> Change:
    return changes.cancel(job, now=NOW, limits=LIMITS)


def reap(job: Job) -> Change:
    return changes.reap(job, now=NOW, limits=LIMITS)


def lapsed(**over: Any) -> Record:
    return held(**{"lease_until": later(-1), "claimed_at": later(-131), **over})


def lapsed_job() -> Job:
    return from_record(lapsed())


HOLDERS = {"pull_due": changes.pull_due, "complete": complete, "retry": retry, "park": park, "fail": fail}
LATE: dict[str, tuple[Change, Record]] = {
    **{f"{name}: its tenant has cancelled the job": (write(held_job()), held(status=CANCELLED))
       for name, write in HOLDERS.items()},
    **{f"{name}: the holder has the job again, at the next attempt": (write(held_job()), held(attempt=2))
       for name, write in HOLDERS.items()},
    **{f"{name}: the job was deleted and its number begun anew by another": (write(held_job()), held(claim_id=OTHER))
       for name, write in HOLDERS.items()},
    "claim: it waits for a human": (claim(), any_record(status=WAITING)),
    "claim: it has failed": (claim(), any_record(status=FAILED)),
    "claim: it may not start yet": (claim(), any_record(not_before=later(60))),
    "claim: somebody holds it": (claim(), held(claim_id=OTHER)),
    "claim: it has ended, and its lease is long over": (claim(), final_record(lease_until=later(-1), claim_id=OTHER)),
    "claim: its tries are used": (claim(3), any_record(tries=3)),
    "claim: its deadline has come": (claim(), any_record(deadline_at=NOW)),
    "leave: it has been cancelled": (changes.leave(attempt=0, now=NOW), any_record(status=CANCELLED)),
    "leave: it has been opened again": (changes.leave(attempt=0, now=NOW), any_record(attempt=1)),
    "leave: it waits already": (changes.leave(attempt=0, now=NOW), any_record(not_before=later(60))),
    "expire: its late holder has completed it": (expire(lapsed_job()), final_record(COMPLETED, lease_until=later(-1))),
    "expire: it has lapsed once more": (expire(lapsed_job()), lapsed(attempt=2, claim_id=OTHER)),
    "expire: its execution has prolonged the lease": (expire(lapsed_job()), held()),
    "reopen: it failed, and has been cancelled instead": (reopen(final_job(FAILED)), final_record(CANCELLED)),
    "reopen: it was opened, and has failed again": (reopen(final_job(FAILED)), final_record(FAILED, attempt=2)),
    "reopen: a late cost has come": (reopen(final_job(CANCELLED)), final_record(CANCELLED, late_cost=7)),
    "cancel: its holder has parked it": (cancel(held_job()), any_record(attempt=1)),
    "cancel: somebody else holds it now": (cancel(held_job()), held(attempt=2, claim_id=OTHER)),
    "cancel: it was read in a state that cannot be cancelled": (cancel(final_job(FAILED)), final_record(FAILED)),
    "book_late: it was opened again": (changes.book_late(held_job(), 7), held(status=PENDING)),
    "book_late: the next opening was cancelled too": (
        changes.book_late(held_job(), 7),
        held(status=CANCELLED, attempt=2),
    ),
    "book_late: it was another's call": (changes.book_late(held_job(), 7), held(status=CANCELLED, claim_id=OTHER)),
    "book_late: it is booked already": (changes.book_late(held_job(), 7), held(status=CANCELLED, late_cost=7)),
    "delete: it ended otherwise": (changes.delete(final_job(FAILED)), handed_over(CANCELLED)),
    "delete: it was opened, and has ended again": (changes.delete(final_job(FAILED)), handed_over(FAILED, attempt=3)),
    "delete: nobody has heard of its end": (changes.delete(final_job(FAILED)), final_record(FAILED)),
    "note: its state has changed": (changes.note(any_job(), "repaired", "", at=NOW), any_record(status=CANCELLED)),
    "note: somebody has claimed and parked it": (
        changes.note(any_job(), "repaired", "", at=NOW),
        any_record(attempt=1),
    ),
    "hand_over: it ended otherwise": (changes.hand_over(final_job(FAILED), now=NOW), final_record(CANCELLED)),
    "hand_over: it was opened, and has failed again": (
        changes.hand_over(final_job(FAILED), now=NOW),
        final_record(FAILED, attempt=3),
    ),
    "reap: its late holder has parked it": (reap(lapsed_job()), any_record(attempt=1, lease_until=later(-1))),
    "reap: somebody else has had it, and has lapsed": (reap(lapsed_job()), lapsed(attempt=2, claim_id=OTHER)),
    "reap: its execution has prolonged the lease": (reap(lapsed_job()), held()),
    "push_due: it has ended": (changes.push_due(any_job(), later(600)), final_record(attempt=0)),
    "push_due: it was claimed and parked": (changes.push_due(any_job(), later(600)), any_record(attempt=1)),
    **workflow_fences.LATE,
}  # fmt: skip

ENDS = {"complete": (complete, COMPLETED), "retry": (retry, PENDING), "park": (park, PENDING), "fail": (fail, FAILED)}
NOT_MY_OWN: dict[str, tuple[Change, Record]] = {
    **{f"{name}: its tenant has cancelled the job": (write(held_job()), held(status=CANCELLED))
       for name, (write, _) in ENDS.items()},
    **{f"{name}: so has the next attempt ended": (write(held_job()), held(status=end, attempt=2))
       for name, (write, end) in ENDS.items()},
    **{f"{name}: so has another's try ended": (write(held_job()), held(status=end, claim_id=OTHER))
       for name, (write, end) in ENDS.items()},
    "claim: I held it, and it has been cancelled": (claim(), held(status=CANCELLED, claim_id="mine")),
    "claim: another holds it": (claim(), held(claim_id=OTHER)),
    "expire: its late holder has completed it": (expire(lapsed_job()), final_record(COMPLETED)),
    "expire: it was opened, and has failed again": (expire(lapsed_job()), final_record(FAILED, attempt=3)),
    "reopen: it was opened and cancelled": (reopen(final_job(FAILED)), final_record(CANCELLED, attempt=2)),
    "reopen: it was opened, claimed and parked": (reopen(final_job(FAILED)), any_record(attempt=3)),
    "cancel: it has completed": (cancel(held_job()), final_record(COMPLETED)),
    "book_late: it was opened again": (changes.book_late(held_job(), 7), held(status=PENDING)),
    "book_late: the next opening was cancelled too": (
        changes.book_late(held_job(), 7),
        held(status=CANCELLED, attempt=2, late_cost=7),
    ),
    "book_late: another's late cost": (
        changes.book_late(held_job(), 7),
        held(status=CANCELLED, claim_id=OTHER, late_cost=7),
    ),
    "delete: it was opened again": (changes.delete(final_job(FAILED)), any_record(attempt=2)),
    "reap: its late holder has completed it": (reap(lapsed_job()), final_record(COMPLETED)),
    "reap: another has parked it": (reap(lapsed_job()), any_record(attempt=2)),
    **workflow_fences.NOT_MY_OWN,
}  # fmt: skip


@pytest.mark.parametrize("story", LATE)
def test_a_write_that_comes_too_late_changes_nothing(story: str) -> None:
    change, standing = LATE[story]
    store = FakeJobStore(standing)
    outcome = store.apply(JOB_ID, change)
    assert (story.partition(":")[0], store.images) == (change.rule.name, [])
    assert isinstance(outcome, Refused) or change.is_own_effect(standing)


@pytest.mark.parametrize("story", NOT_MY_OWN)
def test_what_somebody_else_has_written_is_not_taken_for_ones_own(story: str) -> None:
    change, standing = NOT_MY_OWN[story]
    assert story.partition(":")[0] == change.rule.name
    assert FakeJobStore(standing).apply(JOB_ID, change) == Refused(standing)
