"""Safety lines of claiming: what becomes of a message whose job cannot be had, and of letters that come back."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CLAIMING = "core/claiming.py"
U_BATCH = "tests/unit/test_batch.py"
U_CLAIMING = "tests/unit/test_claiming.py"

LINES = (
    SafetyLine(
        name="claim: a message without a record is not acknowledged unheard",
        file=CLAIMING,
        line="""\
            return Claimed(_guarded_against_hiding(from_record(record), store, limits))
        case Refused(None):
            return NoSuchJob()
""",
        without="""\
            return Claimed(_guarded_against_hiding(from_record(record), store, limits))
        case Refused(None):
            return Acknowledge("no record")
""",
        guards="G17, row 3a: a message for a job that is not there becomes a letter",
        tests=(f"{U_CLAIMING}::test_3a_no_record_is_no_such_job",),
    ),
    SafetyLine(
        name="claim: a message of a tombstone is acknowledged",
        file=CLAIMING,
        line="""\
    if record.get("status") == DELETED:
        return Acknowledge("deleted")
""",
        without="",
        guards="N1, row 3a: a deleted job's late message neither runs it nor becomes a letter",
        tests=(f"{U_CLAIMING}::test_3a_a_tombstone_is_acknowledged_though_it_is_no_job_record",),
    ),
    SafetyLine(
        name="claim: a message of a final job is acknowledged",
        file=CLAIMING,
        line="""\
    if job.is_final or job.status == WAITING:
        return Acknowledge(f"already {job.status}", job)
""",
        without="",
        guards="row 3a, hole 22: a late message does nothing to a job that has ended, or waits for a human",
        tests=(f"{U_CLAIMING}::test_3a_a_final_or_waiting_job_is_acknowledged_and_left_alone",),
    ),
    SafetyLine(
        name="claim: a message of a held job is acknowledged",
        file=CLAIMING,
        line="    if job.status == PROCESSING and job.lease_until and job.lease_until >= now:\n",
        without="    if False:\n",
        guards="hole 12, row 3a: the holder's message covers it; a failure would end among the dead letters",
        tests=(f"{U_CLAIMING}::test_3a_a_live_lease_is_acknowledged",),
    ),
    SafetyLine(
        name="claim: a held job is not failed by its message",
        file=CLAIMING,
        line="    if job.status == PROCESSING and job.lease_until and job.lease_until >= now:\n",
        without="""\
    if job.status == PROCESSING and job.lease_until and job.lease_until >= now and job.tries < max_tries:
""",
        guards="G6: a job at its last try belongs to its holder until the lease is over",
        tests=(f"{U_CLAIMING}::test_3a_a_live_lease_is_acknowledged",),
    ),
    SafetyLine(
        name="claim: a job that is used up is failed by its message",
        file=CLAIMING,
        line="        store.apply(job.id, changes.expire(job, now=now, max_tries=max_tries, limits=limits))\n",
        without="",
        guards="G7, row 7: a job whose tries or time are over ends, instead of losing its message only",
        tests=(f"{U_CLAIMING}::test_3a_a_claimable_job_that_is_used_up_or_late_fails_and_its_message_is_acknowledged",),
    ),
    SafetyLine(
        name="claim: an early message of the current attempt is kept",
        file=CLAIMING,
        line="""\
        if hint.attempt == job.attempt:
            return Early(seconds_between(now, job.not_before))
""",
        without="",
        guards="row 3a: the only message that a waiting job has is hidden until its time, not acknowledged",
        tests=(f"{U_CLAIMING}::test_3a_an_early_message_of_the_current_attempt_is_hidden_until_the_jobs_time",),
    ),
    SafetyLine(
        name="claim: what has become claimable is asked for again",
        file=CLAIMING,
        line="    return Early(1.0)  # refused a moment ago and claimable now: ask again",
        without='    return Acknowledge("refused", job)',
        guards="G8: the message of a job that nobody holds is not acknowledged",
        tests=(f"{U_CLAIMING}::test_3a_a_job_that_became_claimable_a_moment_ago_is_asked_for_again_soon",),
    ),
    SafetyLine(
        name="claim: a look that a backlog pushed ahead is pulled in",
        file=CLAIMING,
        line="            store.apply(job.id, changes.pull_due(job))\n",
        without="            pass\n",
        guards="G8, N4: a crash is looked for when the lease is over, not when a backlog would have ended",
        tests=(f"{U_CLAIMING}::test_n4_a_claim_pulls_in_a_look_that_a_backlog_pushed_far_ahead",),
    ),
    SafetyLine(
        name="claim: a claim is kept though its look was not pulled in",
        file=CLAIMING,
        line="        with suppress(Unavailable):  # the job is held all the same, and looked for late at worst\n",
        without="        if True:\n",
        guards="G13: a held job is run; dropping it would cost its try",
        tests=(f"{U_CLAIMING}::test_a_claim_is_not_given_up_because_the_look_could_not_be_pulled_in",),
    ),
    SafetyLine(
        name="leave: a message that is early as well is hidden",
        file=CLAIMING,
        line="""\
            return Early(seconds_between(now, from_record(record).not_before))
        case _:""",
        without="""\
            return Acknowledge("no time left to start it here")
        case _:""",
        guards="row 5u: no fresh message is on its way for a job that was not put off",
        tests=(f"{U_BATCH}::test_5u_a_message_that_is_early_as_well_keeps_its_jobs_wait",),
    ),
    SafetyLine(
        name="leave: a message without a record becomes a letter though no time is left",
        file=CLAIMING,
        line="""\
    match store.apply(hint.job_id, changes.leave(attempt=hint.attempt, now=now)):
        case Refused(None):
            return NoSuchJob()
""",
        without="""\
    match store.apply(hint.job_id, changes.leave(attempt=hint.attempt, now=now)):
""",
        guards="G17: a message for a job that is not there is never only acknowledged",
        tests=(f"{U_BATCH}::test_an_unknown_job_gets_its_letter_though_no_time_is_left",),
    ),
    SafetyLine(
        name="reopen: a letter opens only the job that failed at its attempt",
        file=CLAIMING,
        line='    if record.get("status") != FAILED or record.get("attempt") != letter.attempt:\n',
        without='    if record.get("status") != FAILED:\n',
        guards="hole 22, row 8: a letter of an older attempt, or a second copy, opens nothing",
        tests=(f"{U_CLAIMING}::test_a_letter_does_nothing_to_a_job_in_any_other_state",),
    ),
    SafetyLine(
        name="reopen: a letter opens no job that ended well",
        file=CLAIMING,
        line='    if record.get("status") != FAILED or record.get("attempt") != letter.attempt:\n',
        without='    if record.get("attempt") != letter.attempt:\n',
        guards="G6: a letter that comes back does not undo a completed or cancelled job",
        tests=(f"{U_CLAIMING}::test_a_letter_does_nothing_to_a_job_in_any_other_state",),
    ),
)
