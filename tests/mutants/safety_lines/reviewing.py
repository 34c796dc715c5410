"""Safety lines of reviews: on record before anything is done, by one operator at a time."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

REVIEW = "core/letters/review.py"
U_REVIEW = "tests/unit/test_review.py"

LINES = (
    SafetyLine(
        name="review: it stands before anything is done",
        file=REVIEW,
        line="    if desk.ledger.create(REVIEW_PK, letter.id, review):\n",
        without="    if not desk.ledger.read(REVIEW_PK, letter.id):\n",
        guards="G29: what an operator decides is on record before it is done",
        tests=(f"{U_REVIEW}::test_the_review_stands_before_the_message_is_sent",),
    ),
    SafetyLine(
        name="review: one decision at a time",
        file=REVIEW,
        line='        if seconds_between(times.instant(standing["at"]), now) < UNDER_WAY_S:\n',
        without="        if False:\n",
        guards="G29: two operators do not both decide about one letter",
        tests=(f"{U_REVIEW}::test_while_one_decision_is_under_way_there_is_no_other",),
    ),
    SafetyLine(
        name="review: a decision stands only where nobody else's came between",
        file=REVIEW,
        line='    same = {"at": standing["at"], "digest": standing["digest"], "done": standing["done"]}\n',
        without="    same: dict[str, Any] = {}\n",
        guards="G29: two operators do not both decide about one letter",
        tests=(f"{U_REVIEW}::test_of_two_who_decide_at_one_moment_one_is_refused_and_does_nothing",),
    ),
    SafetyLine(
        name="review: a decision that came too late is refused",
        file=REVIEW,
        line='        return _conflict("Somebody else has decided about it at this moment.")\n',
        without="        pass\n",
        guards="G29: what was not recorded is not done",
        tests=(f"{U_REVIEW}::test_of_two_who_decide_at_one_moment_one_is_refused_and_does_nothing",),
    ),
    SafetyLine(
        name="review: the same request finishes what a crash has left",
        file=REVIEW,
        line="""\
        if standing["digest"] == decision.digest:
            return standing
""",
        without="",
        guards="G29: a decision that was cut off is finished by repeating it",
        tests=(f"{U_REVIEW}::test_killed_at_any_step_the_same_request_finishes_it",),
    ),
    SafetyLine(
        name="review: only the very decision is finished",
        file=REVIEW,
        line='    if standing is not None and standing["digest"] == decision.digest:\n',
        without="    if standing is not None:\n",
        guards="G29: who asks for something else is not told that it was done",
        tests=(f"{U_REVIEW}::test_who_decides_otherwise_about_a_letter_that_is_gone_is_not_told_that_it_was_done",),
    ),
    SafetyLine(
        name="review: the repaired message is sent before its letter goes",
        file=REVIEW,
        line='        return _repeat("The repaired message could not be sent.")\n',
        without="        pass\n",
        guards="G29: nothing is removed before what replaces it stands",
        tests=(f"{U_REVIEW}::test_while_one_decision_is_under_way_there_is_no_other",),
    ),
    SafetyLine(
        name="review: a letter that could not be removed is told",
        file=REVIEW,
        line='        return _repeat("The letter could not be removed from its queue.")\n',
        without="        pass\n",
        guards="G29: a decision is done when its letter is gone",
        tests=(f"{U_REVIEW}::test_a_letter_that_cannot_be_removed_is_told_and_the_repeat_removes_it",),
    ),
    SafetyLine(
        name="review: it is marked as done",
        file=REVIEW,
        line="""\
    desk.ledger.save(REVIEW_PK, review["sk"], {"done": True}, {"digest": review["digest"], "at": review["at"]})
""",
        without="",
        guards="G29: a letter that dies once more can be decided once more",
        tests=(f"{U_REVIEW}::test_killed_at_any_step_the_same_request_finishes_it",),
    ),
    SafetyLine(
        name="review: only the very decision is marked as done",
        file=REVIEW,
        line='{"done": True}, {"digest": review["digest"], "at": review["at"]})\n',
        without='{"done": True}, {})\n',
        guards="G29: a late first operator does not mark the second one's decision as done",
        tests=(f"{U_REVIEW}::test_a_decision_that_ends_late_does_not_mark_anothers_as_done",),
    ),
    SafetyLine(
        name="review: a repair changes neither tenant nor job",
        file=REVIEW,
        line="""\
        if changed:
            return unprocessable(""",
        without="""\
        if False:
            return unprocessable(""",
        guards="G29, hole 40: an operator's repair does not reach into another tenant",
        tests=(f"{U_REVIEW}::test_hole_40_a_repair_changes_neither_tenant_nor_job",),
    ),
    SafetyLine(
        name="review: a repaired message wraps no other",
        file=REVIEW,
        line="    if envelope.original(body) != body:\n",
        without="    if False:\n",
        guards="G29, hole 40: a letter within a letter could name another job",
        tests=(f"{U_REVIEW}::test_hole_40_a_repaired_message_wraps_no_other",),
    ),
    SafetyLine(
        name="review: what is still no good is not sent",
        file=REVIEW,
        line="""\
    return unprocessable(f"the repaired message is still no good: {wrong}", "/patch") if wrong else body
""",
        without="    return body\n",
        guards="G29: a letter is not replaced by one that nobody can read",
        tests=(f"{U_REVIEW}::test_what_is_still_no_good_is_not_sent",),
    ),
    SafetyLine(
        name="review: a line in a job's history is written once",
        file=REVIEW,
        line="""\
        if job is None or any((line["what"], line["at"]) == (review["status"], review["at"]) for line in job.history):
""",
        without="        if job is None:\n",
        guards="row 9n: a repeated request adds no second line",
        tests=(f"{U_REVIEW}::test_killed_at_any_step_the_same_request_finishes_it",),
    ),
    SafetyLine(
        name="review: the job is told",
        file=REVIEW,
        line="        if isinstance(desk.store.apply(job.id, line), Applied):\n",
        without="        if line:\n",
        guards="row 9n: the job's own history says what an operator did about it",
        tests=(f"{U_REVIEW}::test_the_job_that_the_message_names_gets_a_line_in_its_history_once",),
    ),
    SafetyLine(
        name="review: a letter that is not decided about is shown again",
        file=REVIEW,
        line="""\
    if isinstance(outcome, Problem):
        found.show()
    return outcome
""",
        without="    return outcome\n",
        guards="G29: a refused decision hides no letter",
        tests=(f"{U_REVIEW}::test_hole_40_a_repair_changes_neither_tenant_nor_job",),
    ),
)
