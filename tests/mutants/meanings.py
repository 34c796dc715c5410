"""What each clause of the protocol's rules guards, and who notices when it is gone."""

from __future__ import annotations

from tests.mutants.clauses import ANCHOR, FILE, clauses
from tests.mutants.safety_line import SafetyLine

CLAIMING, LIFECYCLE, SWEEP = (
    "tests/unit/test_claiming.py",
    "tests/unit/test_lifecycle.py",
    "tests/unit/test_sweep.py",
)
TOO_LATE = "tests/unit/test_fences.py::test_a_write_that_comes_too_late_changes_nothing"
NOT_MINE = "tests/unit/test_fences.py::test_what_somebody_else_has_written_is_not_taken_for_ones_own"
INTAKE = "tests/integration/test_adapter_dynamodb.py::test_create_answers_the_standing_record_and_leaves_it_as_it_is"
CLAIMED = f"{CLAIMING}::test_a_claimable_job_is_claimed_with_one_write_and_no_read"
TAKEN_OVER = f"{CLAIMING}::test_a_lapsed_holder_is_replaced_and_the_try_is_charged"
FAILED_LATE = f"{SWEEP}::test_an_expired_job_is_failed_and_left_to_be_handed_over_when_it_is_two_minutes_old"
USED_UP = f"{CLAIMING}::test_3a_a_claimable_job_that_is_used_up_or_late_fails_and_its_message_is_acknowledged"
OPENED = f"{LIFECYCLE}::test_a_job_that_failed_or_was_cancelled_starts_again"
COSTED = f"{LIFECYCLE}::test_what_came_late_after_the_cancellation_is_part_of_the_cost_of_the_next_opening"

BEGUN = "tests/unit/test_workflow_changes.py::test_a_branch_writes_its_own_entry_its_cost_and_the_time"
GOES_ON = "tests/unit/test_workflow_changes.py::test_a_try_that_was_overtaken_changes_nothing"
LATE = "tests/unit/test_workflow_changes.py::test_what_an_earlier_try_has_booked_keeps_no_later_one_from_booking"

EXAMPLE = "tests/unit/test_protocol.py::test_a_record_that_violates_one_clause_is_refused"

# of these two clauses each makes up for the other, as long as only held jobs are reaped: the examples tell them apart
DOUBLED = {"reap condition: status = :seen_status": EXAMPLE, "reap condition: status = PROCESSING": EXAMPLE}

# of these an alternative is missing, and what must be written is refused
ALTERNATIVES = {
    "accept condition: no pk": INTAKE,
    "claim condition: (status = PENDING and not_before <= :soon)": CLAIMED,
    "claim condition: (status = PROCESSING and lease_until < :now)": TAKEN_OVER,
    "expire condition: status <> PROCESSING": FAILED_LATE,
    "expire condition: lease_until < :now": USED_UP,
    "reopen condition: no late_cost": OPENED,
    "reopen condition: late_cost = :late_cost": COSTED,
    "part condition: no parts.:branch.by": BEGUN,
    "part condition: parts.:branch.by = :seen_by": GOES_ON,
    "late_part condition: no booked_by.:branch": LATE,
    "late_part condition: booked_by.:branch = :seen_booked": LATE,
}

_HOLDER = {
    "status = PROCESSING": "G6: a holder whose job was cancelled, failed or put back meanwhile changes nothing",
    "attempt = :attempt": "G6: a holder of an earlier attempt changes nothing, whatever its claim is called",
    "claim_id = :claim_id": "N1: a holder changes nothing under an attempt that is another's",
}
_SEEN = {
    "status = :seen_status": "G6: what was read and has changed since is not written over",
    "attempt = :seen_attempt": "G6: what was decided about one opening is not done to the next",
}


def _holder(rule: str) -> dict[str, str]:
    return {f"{rule} condition: {clause}": meaning for clause, meaning in _HOLDER.items()}


def _seen(rule: str) -> dict[str, str]:
    return {f"{rule} condition: {clause}": meaning for clause, meaning in _SEEN.items()}


def _of_a_run(rule: str, states: str) -> dict[str, str]:
    return {
        f"{rule} condition: status {states}": f"G6, row 14: no {rule} changes a job that has come to another end",
        f"{rule} condition: run = :run": f"hole 36: no {rule} of one execution is done to the next run",
    }


def _ended(rule: str, end: str, run: str) -> dict[str, str]:
    return {
        f"{rule} effect: status = {end}": "row 14: an end that somebody else has written is not taken for this one",
        f"{rule} effect: run = :{run}": "row 14: the end of another run is not taken for this one's",
    }


def _left_in(rule: str, end: str) -> dict[str, str]:
    return {
        f"{rule} effect: status = {end}": f"G6, hole 2: who was fenced out knows that its {rule} was not written",
        f"{rule} effect: attempt = :attempt": "G6, hole 2: the end of another attempt is not taken for one's own",
        f"{rule} effect: claim_id = :claim_id": "G6, hole 2: the end of another's try is not taken for one's own",
    }


MEANINGS: dict[str, str] = {
    "accept condition: no pk": "G2, row 1: a record that stands is never written over by a second request",
    "claim condition: ((status = PENDING and not_before <= :soon) or (status = PROCESSING and lease_until < :now))":
        "G6, row 3: a job that is final, waits or is held is not claimed",
    "claim condition: (status = PENDING and not_before <= :soon)":
        "G1, row 3: a job that is open and may start is claimed",
    "claim condition: status = PENDING": "G6, row 3: no message claims a job that has ended, or waits for a human",
    "claim condition: not_before <= :soon": "row 3: no job starts before its time",
    "claim condition: (status = PROCESSING and lease_until < :now)":
        "G8: a job whose holder was killed is claimed again",
    "claim condition: status = PROCESSING": "G6: an old lease on a job that has ended makes nobody its holder",
    "claim condition: lease_until < :now": "G12, row 3: two workers never hold one job",
    "claim condition: tries < :max_tries": "G14: a job is claimed at most max_attempts times",
    "claim condition: deadline_at > :now": "G7: a job past its deadline is not begun",
    "claim effect: status = PROCESSING": "N10: a job that was cancelled after my claim is not run",
    "claim effect: claim_id = :claim_id": "G12, hole 2: another's claim is not taken for my own lost reply",
    **_holder("pull_due"),
    **_holder("complete"),
    **_left_in("complete", "COMPLETED"),
    **_holder("retry"),
    **_left_in("retry", "PENDING"),
    **_holder("park"),
    **_left_in("park", "PENDING"),
    "leave condition: status = PENDING": "row 5u: only a job that waits is put off",
    "leave condition: attempt = :attempt": "row 5u: an old message does not put off a newer opening",
    "leave condition: not_before <= :soon": "row 5u: a job that waits longer is not made to start earlier",
    **_holder("fail"),
    **_left_in("fail", "FAILED"),
    **_seen("expire"),
    "expire condition: (status <> PROCESSING or lease_until < :now)":
        "row 7: no job is failed in its holder's hands",
    "expire condition: status <> PROCESSING": "G7: a job that nobody holds can be failed",
    "expire condition: lease_until < :now": "G7, G14: a job whose last holder was killed can be failed",
    "expire effect: status = FAILED": "hole 2: an end that somebody else has written is not taken for this one",
    "expire effect: attempt = :seen_attempt": "hole 2: the failure of another opening is not taken for this one",
    **_seen("reopen"),
    "reopen condition: (no late_cost or late_cost = :late_cost)":
        "G15, N16: a late cost that comes now is not lost",
    "reopen condition: no late_cost": "row 8: a job without a late cost can be opened again",
    "reopen condition: late_cost = :late_cost": "row 8: a job with a late cost can be opened again, and keeps it",
    "reopen effect: status = PENDING": "hole 2: an opening that has been cancelled since is told as it is",
    "reopen effect: attempt = :next_attempt": "G18: another's opening is not taken for one's own",
    "cancel condition: status in PENDING, PROCESSING, WAITING": "G6, row 9: an end is never replaced by CANCELLED",
    "cancel condition: status = :seen_status": "G15: whether a claim must stay is decided by what stands there",
    "cancel condition: attempt = :seen_attempt": "row 9: the history says who held it when it was cancelled",
    "cancel effect: status = CANCELLED": "G25: 202 is not answered for a job that ended otherwise",
    "book_late condition: status = CANCELLED": "row 9: a late cost is booked on a cancelled job alone",
    "book_late condition: attempt = :attempt": "row 9: a late cost is not booked on another attempt",
    "book_late condition: claim_id = :claim_id": "G15: only the holder of the call books what it cost",
    "book_late condition: no late_cost": "G15: a late cost is booked once, however often the write is repeated",
    "book_late effect: status = CANCELLED": "row 9: a booking is not believed to stand on a job that was opened again",
    "book_late effect: attempt = :attempt": "row 9: the late cost of another attempt is not taken for one's own",
    "book_late effect: claim_id = :claim_id": "row 9: another's late cost is not taken for one's own",
    **_seen("delete"),
    "delete condition: no due_shard": "G9, row 9d: nothing is deleted whose end nobody has heard of",
    "delete effect: status = DELETED": "G26: a job that was opened meanwhile is not believed to be deleted",
    **_seen("note"),
    **_seen("hand_over"),
    **_seen("reap"),
    "reap condition: status = PROCESSING": "row 15: only a held job is reaped",
    "reap condition: lease_until < :now": "row 15: nobody is reaped who may still be at work",
    "reap effect: status = PENDING": "row 15: a job that has ended meanwhile is not sent as reaped",
    "reap effect: attempt = :seen_attempt": "row 15: another's parking is not taken for this reap",
    **_seen("push_due"),
    **_holder("prepare"),
    "prepare condition: parts_run <> :run": "row 13: what the branches of a running execution have written stays",
    "prepare effect: status = PROCESSING": "row 13: nothing is started for a job that was cancelled",
    "prepare effect: attempt = :attempt": "row 13: who has lost its job starts nothing",
    "prepare effect: claim_id = :claim_id": "row 13: what another has prepared is started by that other",
    **_holder("adopt"),
    **_seen("extend"),
    **_of_a_run("part", "in PENDING, PROCESSING"),
    "part condition: parts_run = :run": "row 14: a run that nobody has prepared has no parts",
    "part condition: (no parts.:branch.by or parts.:branch.by = :seen_by)":
        "G15, row 14: who was overtaken neither undoes what is done nor books its cost twice",
    "part condition: no parts.:branch.by": "row 14: the first try of a branch is written",
    "part condition: parts.:branch.by = :seen_by": "row 14: a branch goes on after a try that came to nothing",
    "part effect: booked_by.:branch = :by": "G15: what another try has written is not taken for one's own",
    "late_part condition: parts_run >= 0": "N1: a tombstone gets no cost",
    "late_part condition: (no booked_by.:branch or booked_by.:branch = :seen_booked)":
        "G15: what came late is booked once, however often and however late it is written",
    "late_part condition: no booked_by.:branch": "G15: what came late is booked, the first time",
    "late_part condition: booked_by.:branch = :seen_booked": "G15: what came late is booked after an earlier try's",
    "late_part effect: booked_by.:branch = :by": "G15: a cost that is nowhere is not believed to be booked",
    **_of_a_run("collect", "in PENDING, PROCESSING"),
    **_ended("collect", "COMPLETED", "run"),
    "collect effect: result_key = :result_key": "row 14: what another collector has assembled is not told as one's own",
    **_of_a_run("fall_short", "in PENDING, PROCESSING"),
    **_ended("fall_short", "FAILED", "run"),
    **_of_a_run("run_again", "= PROCESSING"),
    **_ended("run_again", "PENDING", "next_run"),
    **_of_a_run("give_up", "= PROCESSING"),
    **_ended("give_up", "FAILED", "next_run"),
}  # fmt: skip


def _tests(key: str, part: str) -> tuple[str, ...]:
    return ({**ALTERNATIVES, **DOUBLED}.get(key) or (TOO_LATE if part == "condition" else NOT_MINE),)


# KeyError: a clause of a rule that nobody has said the meaning of
LINES = tuple(
    SafetyLine(
        name=f"rule {clause.key}",
        file=FILE,
        line=ANCHOR,
        without=clause.replacement,
        guards=MEANINGS[clause.key],
        tests=_tests(clause.key, clause.part),
    )
    for clause in clauses()
)
