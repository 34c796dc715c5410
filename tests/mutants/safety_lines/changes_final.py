"""Safety lines of what opens, ends and tells a job: counters, times, and what must be gone afterwards."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CHANGES = "core/changes.py"
U_CHANGES = "tests/unit/test_changes.py"
U_LIFECYCLE = "tests/unit/test_lifecycle.py"

LINES = (
    SafetyLine(
        name="end: what is final expires, and in seconds",
        file=CHANGES,
        line='"expires_at": int(now.timestamp()) + limits.record_days * DAY_S}',
        without='"expires_at": int(now.timestamp() * 1000) + limits.record_days * DAY_S}',
        guards="G10, hole 6: a time to live is epoch seconds; milliseconds never end",
        tests=(f"{U_CHANGES}::test_ddb_09_expiry_is_epoch_seconds_counted_from_the_end",),
    ),
    SafetyLine(
        name="expire: a late holder does not take the sweep's write for its own",
        file=CHANGES,
        line="""\
**history_with(job, *claimed, line)},
        removes=("claim_id",),
""",
        without="**history_with(job, *claimed, line)},\n",
        guards="G6: who has lost its job is fenced out, and says so",
        tests=(f"{U_CHANGES}::test_a_holder_that_comes_late_does_not_take_the_sweeps_write_for_its_own",),
    ),
    SafetyLine(
        name="reopen: the attempt rises",
        file=CHANGES,
        line="adds=nonzero(attempt=1, run=1, cost=job.late_cost),",
        without="adds=nonzero(run=1, cost=job.late_cost),",
        guards="hole 22: old letters, copies and holders name another attempt",
        tests=(f"{U_CHANGES}::test_reopening_starts_anew_under_the_next_attempt_and_run",),
    ),
    SafetyLine(
        name="reopen: the run rises",
        file=CHANGES,
        line="adds=nonzero(attempt=1, run=1, cost=job.late_cost),",
        without="adds=nonzero(attempt=1, cost=job.late_cost),",
        guards="N2: a new opening does not read the answers that were rejected before",
        tests=(f"{U_CHANGES}::test_reopening_starts_anew_under_the_next_attempt_and_run",),
    ),
    SafetyLine(
        name="reopen: what came late is part of the cost",
        file=CHANGES,
        line="adds=nonzero(attempt=1, run=1, cost=job.late_cost),",
        without="adds=nonzero(attempt=1, run=1),",
        guards="G15, N16: no cost is lost when a cancelled job is opened again",
        tests=(f"{U_LIFECYCLE}::test_what_came_late_after_the_cancellation_is_part_of_the_cost_of_the_next_opening",),
    ),
    SafetyLine(
        name="reopen: a job that is open again does not expire",
        file=CHANGES,
        line="""\
            "expires_at",
            "claim_id",
            "finished_at",""",
        without="""\
            "claim_id",
            "finished_at",""",
        guards="G10, hole 6: open work never expires",
        tests=(f"{U_CHANGES}::test_reopening_leaves_nothing_of_the_end_and_says_so_in_the_history",),
    ),
    SafetyLine(
        name="reopen: the old holder's claim goes",
        file=CHANGES,
        line="""\
            "claim_id",
            "finished_at",
            "handed_over_at",""",
        without="""\
            "finished_at",
            "handed_over_at",""",
        guards="N1: no holder of the opening before is taken for one of this",
        tests=(f"{U_CHANGES}::test_reopening_leaves_nothing_of_the_end_and_says_so_in_the_history",),
    ),
    SafetyLine(
        name="reopen: the result of the opening before goes",
        file=CHANGES,
        line="""\
            "result_key",
            "result_bytes",
            "partial",
        ),""",
        without="""\
            "result_bytes",
            "partial",
        ),""",
        guards="G6: an open job shows no result",
        tests=(f"{U_CHANGES}::test_reopening_leaves_nothing_of_the_end_and_says_so_in_the_history",),
    ),
    SafetyLine(
        name="reopen: the job is due again",
        file=CHANGES,
        line="""\
            "due_shard": ids.due_shard(job.id),
            "tries": 0,""",
        without='            "tries": 0,',
        guards="G11: a job that is open is in the index of what is due",
        tests=(f"{U_CHANGES}::test_reopening_puts_the_job_back_into_the_due_index",),
    ),
    SafetyLine(
        name="reopen: the tries begin anew",
        file=CHANGES,
        line="""\
            "tries": 0,
            "crashes": 0,""",
        without='            "crashes": 0,',
        guards="row 8: a job that was opened again can be claimed",
        tests=(f"{U_CHANGES}::test_reopening_starts_anew_under_the_next_attempt_and_run",),
    ),
    SafetyLine(
        name="reopen: the samples begin anew",
        file=CHANGES,
        line="""\
            "sample": 0,
            "unusable": 0,""",
        without='            "unusable": 0,',
        guards="N2: a job whose answers were rejected may ask again when its task was mended",
        tests=(f"{U_CHANGES}::test_reopening_starts_anew_under_the_next_attempt_and_run",),
    ),
    SafetyLine(
        name="reopen: the deadline begins anew",
        file=CHANGES,
        line="""\
            "deadline_at": times.text(deadline),
            "due_at": times.text(first_look(now, now,""",
        without='            "due_at": times.text(first_look(now, now,',
        guards="row 8: a job that was opened again after its deadline can be claimed",
        tests=(f"{U_CHANGES}::test_reopening_starts_anew_under_the_next_attempt_and_run",),
    ),
    SafetyLine(
        name="cancel: the look is pulled in",
        file=CHANGES,
        line="""\
            "due_at": times.text(min(after(now, limits.grace_s), job.deadline_at)),
            **ending(now, limits),""",
        without="            **ending(now, limits),",
        guards="G9: a lost stream record delays the hand-over of a cancelled job by no more than a sweep",
        tests=(f"{U_LIFECYCLE}::test_the_look_at_a_job_that_waits_for_days_is_pulled_in",),
    ),
    SafetyLine(
        name="cancel: a holder's claim stays",
        file=CHANGES,
        line='removes=() if held else ("claim_id",),',
        without='removes=("claim_id",),',
        guards="G15, hole 21: a holder that comes late finds where to book what its call cost",
        tests=(f"{U_LIFECYCLE}::test_the_claim_of_a_holder_stays_so_that_it_can_book_what_its_call_cost",),
    ),
    SafetyLine(
        name="cancel: the claim of one that has written its end goes",
        file=CHANGES,
        line='removes=() if held else ("claim_id",),',
        without="removes=(),",
        guards="G15: what was booked with its end is not booked once more as late",
        tests=(
            f"{U_LIFECYCLE}::test_the_claim_of_one_that_has_written_its_end_goes_so_that_its_lost_reply_books_nothing_twice",
        ),
    ),
    SafetyLine(
        name="delete: the tombstone keeps its attempt and its body's hash",
        file=CHANGES,
        line='"pk", "sk", "tenant", "type", "attempt", "body_sha", "expires_at",',
        without='"pk", "sk", "type", "expires_at",',
        guards="N1: the same key, a repeated DELETE and a late writer find what they must know",
        tests=(f"{U_LIFECYCLE}::test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own",),
    ),
    SafetyLine(
        name="delete: nothing of what the job was about stays",
        file=CHANGES,
        line="    removes = tuple(sorted(RECORD_FIELDS - OF_A_TOMBSTONE))\n",
        without='    removes = ("due_at",)\n',
        guards="row 9d: a tombstone holds no input, no error and no claim",
        tests=(f"{U_LIFECYCLE}::test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own",),
    ),
    SafetyLine(
        name="late cost: it is booked apart",
        file=CHANGES,
        line='    return Change(RULES["book_late"], mine(job), adds={"late_cost": cost})\n',
        without='    return Change(RULES["book_late"], mine(job), adds={"cost": cost})\n',
        guards="row 9: a repeat of the write finds its own effect, and books once",
        tests=(f"{U_CHANGES}::test_late_cost_is_booked_once_however_often_the_write_is_repeated",),
    ),
    SafetyLine(
        name="note: a note changes nothing else",
        file=CHANGES,
        line="""\
    return Change(RULES["note"], seen(job), sets=history_with(job, entry(at, what, job.attempt, why)))
""",
        without="""\
    return Change(
        RULES["note"],
        seen(job),
        sets={**history_with(job, entry(at, what, job.attempt, why)), "not_before": times.text(at)},
    )
""",
        guards="row 9n: an operator's line makes no message and no other state",
        tests=(f"{U_CHANGES}::test_a_note_of_an_operator_adds_a_line_and_changes_nothing_else",),
    ),
    SafetyLine(
        name="hand-over: the job leaves the index of what is due",
        file=CHANGES,
        line='removes=("due_at", "due_shard")\n',
        without='removes=("due_at",)\n',
        guards="G10: nothing is left behind in the index; what is told is not told at each sweep",
        tests=(f"{U_CHANGES}::test_handing_over_takes_the_job_out_of_the_due_index_and_leaves_its_state",),
    ),
    SafetyLine(
        name="fail: the reason is kept and the cost booked",
        file=CHANGES,
        line="""\
        sets={"status": FAILED, "error": dict(why), **ending(now, limits), **history_with(job, *lines)},
        adds=nonzero(cost=cost),
""",
        without="""\
        sets={"status": FAILED, "error": dict(why), **ending(now, limits), **history_with(job, *lines)},
""",
        guards="G15: what a job that failed has cost is on its record",
        tests=(f"{U_CHANGES}::test_failing_keeps_the_reason_and_books_the_cost",),
    ),
)
