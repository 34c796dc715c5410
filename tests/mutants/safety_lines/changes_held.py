"""Safety lines of what claims, ends and waits do to a record: counters, times, and what must be gone afterwards."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CHANGES = "core/changes.py"
U_CHANGES = "tests/unit/test_changes.py"

LINES = (
    SafetyLine(
        name="claim: the lease is over only when the platform has killed its holder",
        file=CHANGES,
        line="LEASE_MARGIN_S = 10 ",
        without="LEASE_MARGIN_S = 0 ",
        guards="hole 10: nobody is replaced who may still be at work",
        tests=(f"{U_CHANGES}::test_a_claim_charges_a_try_and_ends_ten_seconds_after_the_invocation",),
    ),
    SafetyLine(
        name="claim: a claim charges a try",
        file=CHANGES,
        line='adds={"attempt": 1, "tries": 1},',
        without='adds={"attempt": 1},',
        guards="G14, hole 8: a job that kills its worker each time ends",
        tests=(f"{U_CHANGES}::test_a_claim_charges_a_try_and_ends_ten_seconds_after_the_invocation",),
    ),
    SafetyLine(
        name="claim: a claim raises the attempt",
        file=CHANGES,
        line='adds={"attempt": 1, "tries": 1},',
        without='adds={"tries": 1},',
        guards="G6: every holder has its own attempt, and writes its own result object",
        tests=(f"{U_CHANGES}::test_a_claim_charges_a_try_and_ends_ten_seconds_after_the_invocation",),
    ),
    SafetyLine(
        name="claim: a claim names its holder",
        file=CHANGES,
        line="""\
            "claim_id": claim_id,
            "lease_until": times.text(lease),""",
        without='            "lease_until": times.text(lease),',
        guards="G6, N1: the fence is attempt and holder",
        tests=("tests/unit/test_claiming.py::test_a_claimable_job_is_claimed_with_one_write_and_no_read",),
    ),
    SafetyLine(
        name="complete: the result is that of this attempt",
        file=CHANGES,
        line="key = ids.result_key(job.tenant, job.id, job.attempt)",
        without="key = ids.result_key(job.tenant, job.id, 1)",
        guards="row 4, hole 20: the record points to the very bytes that its holder stored",
        tests=(f"{U_CHANGES}::test_completing_points_to_the_result_of_this_attempt_and_lets_the_record_expire",),
    ),
    SafetyLine(
        name="complete: what it cost is booked",
        file=CHANGES,
        line="""\
            **history_with(job, *lines),
        },
        adds=nonzero(cost=cost),
        removes=("error",),""",
        without="""\
            **history_with(job, *lines),
        },
        removes=("error",),""",
        guards="G15: what a job's calls cost is on its record",
        tests=("tests/unit/test_verdicts.py::test_a_stored_result_completes_the_job_and_books_its_cost",),
    ),
    SafetyLine(
        name="retry: a job that is open does not expire and is looked for",
        file=CHANGES,
        line="""\
        "due_at": times.text(first_look(now, start, job.deadline_at, limits)),
        "backoff_ms\"""",
        without="""\
        "backoff_ms\"""",
        guards="G8, G10: who waits is looked for when it may start, not when it was accepted",
        tests=(f"{U_CHANGES}::test_a_wait_that_no_message_can_hold_back_is_due_when_it_ends",),
    ),
    SafetyLine(
        name="retry: no wait reaches beyond the deadline",
        file=CHANGES,
        line="    start = min(not_before, job.deadline_at)\n",
        without="    start = not_before\n",
        guards="G7: the end comes by the deadline",
        tests=(f"{U_CHANGES}::test_no_wait_reaches_beyond_the_deadline",),
    ),
    SafetyLine(
        name="look: no look is later than the deadline",
        file=CHANGES,
        line="    return min(after(max(now, not_before), limits.grace_s), deadline_at)\n",
        without="    return after(max(now, not_before), limits.grace_s)\n",
        guards="G7, N4: D(x): whoever waits for ever is found by its deadline",
        tests=(f"{U_CHANGES}::test_no_look_is_later_than_the_deadline",),
    ),
    SafetyLine(
        name="look: a wait that no message can hold back is looked for when it ends",
        file=CHANGES,
        line="        return min(not_before, deadline_at)\n",
        without="        return min(after(not_before, limits.grace_s), deadline_at)\n",
        guards="N12: where nobody else sends, the sweep does not wait for the grace",
        tests=(f"{U_CHANGES}::test_the_first_look_is_the_start_when_only_the_sweep_sends_and_a_grace_later_otherwise",),
    ),
    SafetyLine(
        name="retry: an answer that is asked for anew raises its counter",
        file=CHANGES,
        line="nonzero(cost=cost, **({anew: 1} if anew else {})))",
        without="nonzero(cost=cost))",
        guards="G14, hole 14: the next try asks under another key, and only so often",
        tests=(f"{U_CHANGES}::test_asking_anew_raises_its_own_counter_and_no_other_in_the_same_write",),
    ),
    SafetyLine(
        name="park: a wait gives the try back only when it is told to",
        file=CHANGES,
        line="tries=-int(refund)))",
        without="tries=-1))",
        guards="G13, N7: a wait that paid keeps its try charged",
        tests=(f"{U_CHANGES}::test_parking_gives_the_try_back_only_when_it_is_told_to",),
    ),
    SafetyLine(
        name="park: a wait burns no try",
        file=CHANGES,
        line="tries=-int(refund)))",
        without="))",
        guards="G13: waiting burns no try",
        tests=(f"{U_CHANGES}::test_parking_gives_the_try_back_only_when_it_is_told_to",),
    ),
    SafetyLine(
        name="leave: a job that is put off gets a fresh message",
        file=CHANGES,
        line='        sets={"not_before": times.text(after(now, 1))},\n',
        without='        sets={"left_at": times.text(now)},\n',
        guards="row 5u: the stream sends anew only what has another start",
        tests=(f"{U_CHANGES}::test_leaving_a_job_puts_it_off_by_a_second_and_charges_nothing",),
    ),
    SafetyLine(
        name="reap: the crash is counted",
        file=CHANGES,
        line='        adds={"crashes": 1},\n',
        without="",
        guards="G16, hole 11: who crashed before is known, and runs alone",
        tests=(f"{U_CHANGES}::test_reaping_counts_the_crash_keeps_the_try_and_lets_the_job_run_at_once",),
    ),
    SafetyLine(
        name="reap: a late holder does not take the sweep's write for its own",
        file=CHANGES,
        line='        removes=("claim_id",),  # a late holder must not take this for an effect of its own\n',
        without="",
        guards="G6: who has lost its job is fenced out, and forgets no answer for it",
        tests=(f"{U_CHANGES}::test_a_holder_that_comes_late_does_not_take_the_sweeps_write_for_its_own",),
    ),
    SafetyLine(
        name="pull: the look is pulled in to the lease's end",
        file=CHANGES,
        line='sets={"due_at": times.text(job.lease_until)})',
        without='sets={"due_at": times.text(job.deadline_at)})',
        guards="G8, N4: a crash is looked for when the lease is over",
        tests=(f"{U_CHANGES}::test_pulling_due_in_sets_it_to_the_end_of_the_lease",),
    ),
    SafetyLine(
        name="push: the next look is never pushed beyond the deadline",
        file=CHANGES,
        line="""\
    return Change(RULES["push_due"], seen(job), sets={"due_at": times.text(min(due_at, job.deadline_at))})
""",
        without='    return Change(RULES["push_due"], seen(job), sets={"due_at": times.text(due_at)})\n',
        guards="G7, N4: doubling hides no job past its deadline",
        tests=(f"{U_CHANGES}::test_the_next_look_is_never_pushed_beyond_the_deadline",),
    ),
)
