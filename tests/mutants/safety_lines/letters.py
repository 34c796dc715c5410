"""Safety lines of dead letters: looked at, kept, and thrown away only when their job has gone on."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

I_LETTERS = "tests/integration/test_adapter_letters.py"
LETTER = "core/letters/letter.py"
LOOKING = "core/letters/dead_letters.py"
SQS = "adapters/sqs_letters.py"
STRAY = "core/letters/stray_letters.py"
U_LETTERS = "tests/unit/test_letters.py"
U_LOOKING = "tests/unit/test_dead_letters.py"
U_REDRIVING = "tests/unit/test_redriving.py"
U_REVIEW = "tests/unit/test_review.py"
U_STRAY = "tests/unit/test_stray_letters.py"

LINES = (
    SafetyLine(
        name="letters: what was only looked at is shown again",
        file=LOOKING,
        line="""\
        self.box.show([receipt for message, receipt in self._hidden.items() if message not in self._kept])
""",
        without="        pass\n",
        guards="G30: a look hides nothing from others",
        tests=(f"{U_LOOKING}::test_everything_is_visible_again_after_a_look",),
    ),
    SafetyLine(
        name="letters: what somebody keeps is not shown",
        file=LOOKING,
        line=" if message not in self._kept])\n",
        without="])\n",
        guards="G28: what is under way is not seen by another look",
        tests=(f"{U_LOOKING}::test_one_letter_is_held_with_its_copies_and_the_others_are_shown",),
    ),
    SafetyLine(
        name="letters: one that an operator decides about is hidden from others",
        file=LOOKING,
        line="                    looking.keep(one)\n",
        without="                    pass\n",
        guards="G29: two operators do not both decide about one letter",
        tests=(f"{U_LOOKING}::test_one_letter_is_held_with_its_copies_and_the_others_are_shown",),
    ),
    SafetyLine(
        name="letters: all copies of a letter go with it",
        file=LOOKING,
        line="        return not self.box.remove([copy.found.receipt for copy in self.copies])\n",
        without="        return not self.box.remove([self.letter.found.receipt])\n",
        guards="G29: a discarded letter does not come back",
        tests=(f"{U_REVIEW}::test_all_copies_of_a_letter_go_with_it",),
    ),
    SafetyLine(
        name="letters: what was not removed is told",
        file=SQS,
        line='                left |= {start + int(one["Id"]) for one in answer.get("Failed", [])}\n',
        without="                pass\n",
        guards="G28, G29: a letter that is still there is not taken for gone",
        tests=(f"{I_LETTERS}::test_what_could_not_be_removed_is_told_by_its_position",),
    ),
    SafetyLine(
        name="letters: a queue that refuses has removed nothing",
        file=SQS,
        line="                left |= set(range(start, start + len(page)))\n",
        without="                pass\n",
        guards="G28, G29: a letter that is still there is not taken for gone",
        tests=(I_LETTERS,),
    ),
    SafetyLine(
        name="letters: a letter is stale only when its job has gone on",
        file=LETTER,
        line="""\
    if job.attempt > letter.attempt:
        return "stale"
    return "due" if""",
        without="""\
    if job.attempt >= letter.attempt:
        return "stale"
    return "due" if""",
        guards="G28, hole 13: the letter of a FAILED job is not thrown away",
        tests=(f"{U_LETTERS}::test_a_letter_is_due_while_its_job_is_failed_at_its_attempt",),
    ),
    SafetyLine(
        name="letters: a letter that is ahead of its record is the operator's",
        file=LETTER,
        line='    return "due" if job.status == names.FAILED and job.attempt == letter.attempt else "unknown"\n',
        without='    return "due" if job.status == names.FAILED and job.attempt == letter.attempt else "stale"\n',
        guards="G30: after a restore no letter is thrown away that the record has not caught up with",
        tests=(f"{U_LETTERS}::test_of_a_letter_that_is_ahead_of_its_record_nobody_says_that_it_is_stale",),
    ),
    SafetyLine(
        name="letters: a letter without a record is the operator's",
        file=LETTER,
        line="""\
    if job is None:
        return "unknown"
""",
        without="""\
    if job is None:
        return "stale"
""",
        guards="G30: nobody but an operator throws away what no record tells of",
        tests=(f"{U_LETTERS}::test_of_a_letter_that_is_ahead_of_its_record_nobody_says_that_it_is_stale",),
    ),
    SafetyLine(
        name="stray: a letter stays while its message is refused",
        file=STRAY,
        line="        sent = {job.id for position, (job, _) in enumerate(made) if position not in refused}\n",
        without="        sent = {job.id for job, _ in made}\n",
        guards="G30: a letter is removed only when what replaces it stands",
        tests=(f"{U_STRAY}::test_a_letter_stays_while_its_message_is_refused",),
    ),
    SafetyLine(
        name="stray: an event stays while the inbox refuses it",
        file=STRAY,
        line="        sent = [letter for position, (letter, _) in enumerate(found) if position not in refused]\n",
        without="        sent = [letter for letter, _ in found]\n",
        guards="G30: a letter is removed only when what replaces it stands",
        tests=(f"{U_STRAY}::test_an_event_stays_while_the_inbox_refuses_it",),
    ),
    SafetyLine(
        name="stray: what was sent anew is removed",
        file=STRAY,
        line="        report.trouble(len(looking.box.remove([letter.found.receipt for letter in gone])))\n",
        without="",
        guards="G30: a letter is not sent again by each sweep",
        tests=(f"{U_STRAY}::test_a_job_that_no_worker_ever_saw_is_sent_anew_and_its_letter_goes",),
    ),
    SafetyLine(
        name="stray: a dry run removes nothing",
        file=STRAY,
        line="        if report.dry_run:\n",
        without="        if False:\n",
        guards="G30: a dry run says what it would do and does nothing",
        tests=(f"{U_STRAY}::test_a_dry_run_says_what_it_would_do_and_does_nothing",),
    ),
    SafetyLine(
        name="stray: a letter whose job has gone on stays for an hour",
        file=STRAY,
        line='        return Remove() if standing == "stale" and old else Leave()\n',
        without='        return Remove() if standing == "stale" else Leave()\n',
        guards="G30: a letter that came too late is there to be seen",
        tests=(f"{U_STRAY}::test_a_letter_whose_job_has_gone_on_goes_after_a_while",),
    ),
    SafetyLine(
        name="stray: the letter of a failed job is the operator's",
        file=STRAY,
        line='        return Remove() if standing == "stale" and old else Leave()\n',
        without="        return Remove() if old else Leave()\n",
        guards="G17, G30: the letter of a FAILED job stays until somebody decides",
        tests=(f"{U_STRAY}::test_a_letter_of_a_failed_job_is_the_operators",),
    ),
    SafetyLine(
        name="stray: only what SQS itself moved is sent anew",
        file=STRAY,
        line="job.status == PENDING and letter.found.moved else Leave()",
        without="job.status == PENDING else Leave()",
        guards="G30: what somebody put there is for the operator",
        tests=(f"{U_STRAY}::test_a_hint_that_somebody_has_put_there_stays",),
    ),
    SafetyLine(
        name="stray: an event goes back so often and no more",
        file=STRAY,
        line="    if judged or returns >= RETURNS_MAX:\n",
        without="    if judged:\n",
        guards="G30: what kills ingest each time is for the operator",
        tests=(f"{U_STRAY}::test_an_event_that_never_became_a_job_goes_back_so_often_and_then_stays",),
    ),
    SafetyLine(
        name="stray: what ingest has judged is the operator's",
        file=STRAY,
        line="    if judged or returns >= RETURNS_MAX:\n",
        without="    if returns >= RETURNS_MAX:\n",
        guards="G30: a refused event does not go round",
        tests=(f"{U_STRAY}::test_what_ingest_has_judged_or_somebody_sent_stays",),
    ),
    SafetyLine(
        name="stray: a queue that cannot be read keeps no letter of another",
        file=STRAY,
        line="""\
                report.trouble()
                troubles.append(f"{queue}: {trouble}")
""",
        without="                raise\n",
        guards="G30: what died without anybody's fault goes back, whatever became of another queue",
        tests=(f"{U_STRAY}::test_a_queue_that_cannot_be_read_keeps_no_letter_of_another",),
    ),
    SafetyLine(
        name="stray: what could not be read is no success",
        file=STRAY,
        line="""\
        if troubles:
            raise Unavailable("; ".join(troubles))
""",
        without="",
        guards="G30, G32: a certificate does not say DONE of letters that nobody has seen",
        tests=(f"{U_STRAY}::test_a_queue_that_cannot_be_read_keeps_no_letter_of_another",),
    ),
    SafetyLine(
        name="stray: what is too large for its returns is the operator's",
        file=STRAY,
        line="    return PutBack(back) if back.size <= MESSAGE_BYTES else Leave()",
        without="    return PutBack(back)",
        guards="G30: an event that SQS would refuse each time is no trouble of each sweep",
        tests=(f"{U_STRAY}::test_an_event_that_is_too_large_for_its_returns_stays_and_is_no_trouble",),
    ),
    SafetyLine(
        name="letters: a record that cannot be read holds up no other letter",
        file=LETTER,
        line="""\
    except UnreadableRecord:
        return {"pk": job_id, "status": SPOILT}
""",
        without="""\
    except ZeroDivisionError:
        return None
""",
        guards="G28, G29, G30: one spoilt record stops no sweep, no redrive and no operator",
        tests=(
            f"{U_STRAY}::test_a_record_that_cannot_be_read_leaves_its_letter_and_holds_up_no_other",
            f"{U_REDRIVING}::test_a_record_that_cannot_be_read_is_skipped_and_holds_up_no_other",
            f"{U_REVIEW}::test_a_letter_is_discarded_though_its_jobs_record_cannot_be_read",
        ),
    ),
)
