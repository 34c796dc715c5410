"""Safety lines of the dispatcher: letter, event and mark, and what the stream is told of them."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

DISPATCH = "handlers/dispatch.py"
DISPATCHING = "core/dispatching.py"
I_DISPATCH = "tests/integration/test_handler_dispatch.py"
ROUTING = "core/routing.py"
U_DISPATCHING = "tests/unit/test_dispatching.py"
U_ROUTING = "tests/unit/test_routing.py"
U_STOPPING = "tests/unit/test_stopping.py"

LINES = (
    SafetyLine(
        name="hand-over: no event before its letter was accepted",
        file=DISPATCHING,
        line="    failed |= _send(routes, lambda r: r.event, outbox.publish, failed)\n",
        without="    failed |= _send(routes, lambda r: r.event, outbox.publish, set())\n",
        guards="G9, hole 29: letter, event, mark, in that order: who hears of a failure finds its letter",
        tests=(f"{U_DISPATCHING}::test_an_event_is_not_published_before_its_letter_was_accepted",),
    ),
    SafetyLine(
        name="hand-over: the letter goes first",
        file=DISPATCHING,
        line="""\
    failed |= _send(routes, lambda r: r.letter, outbox.send_letters, failed)
    failed |= _send(routes, lambda r: r.event, outbox.publish, failed)
""",
        without="""\
    failed |= _send(routes, lambda r: r.event, outbox.publish, failed)
    failed |= _send(routes, lambda r: r.letter, outbox.send_letters, failed)
""",
        guards="G9, hole 29: letter, event, mark, in that order",
        tests=(f"{U_DISPATCHING}::test_a_failure_is_told_in_the_order_letter_event_mark",),
    ),
    SafetyLine(
        name="hand-over: what runs for a cancelled job is stopped before anybody hears of it",
        file=DISPATCHING,
        line="    failed |= _stop(jobs, routes, executions, notice)\n",
        without="    failed |= set()\n",
        guards="row 10, hole 38: a cancelled workflow pays for nothing more",
        tests=(f"{U_STOPPING}::test_the_execution_is_stopped_before_the_end_is_published_and_marked",),
    ),
    SafetyLine(
        name="hand-over: what could not be stopped is not told",
        file=DISPATCHING,
        line="""\
        notice("not_stopped", job=job, detail=str(trouble))
        return False
""",
        without="""\
        notice("not_stopped", job=job, detail=str(trouble))
        return True
""",
        guards="row 10: the record comes again until nothing runs for it",
        tests=(f"{U_STOPPING}::test_while_it_cannot_be_stopped_nobody_is_told_and_the_record_comes_again",),
    ),
    SafetyLine(
        name="hand-over: others of its type fail with it",
        file=DISPATCHING,
        line="            failed |= {position}\n",
        without="            failed |= {position} if len(silent) == 0 else set()\n",
        guards="row 10: who was not asked to stop is not taken for stopped",
        tests=(
            f"{U_STOPPING}::test_one_that_stays_silent_is_asked_once_for_all_jobs_of_its_type_and_holds_up_no_other",
        ),
    ),
    SafetyLine(
        name="hand-over: the run that was cancelled is stopped, and no later one",
        file=ROUTING,
        line='    return ids.execution_name(job.id, job.run) if job.status == CANCELLED and prepared else ""\n',
        without='    return ids.execution_name(job.id, job.run + 1) if job.status == CANCELLED and prepared else ""\n',
        guards="row 10: who cancels and opens it again at once keeps the new run",
        tests=(
            f"{U_STOPPING}::test_who_cancels_and_opens_it_again_at_once_stops_the_run_that_was_cancelled_and_not_the_next",
        ),
    ),
    SafetyLine(
        name="hand-over: no mark before everybody was told",
        file=DISPATCHING,
        line="""\
        if position in failed:
            notice("not_sent", job=job)
        elif""",
        without="""\
        if position in failed:
            notice("not_sent", job=job)
        if""",
        guards="G9: only what was told is marked as handed over",
        tests=(
            f"{U_DISPATCHING}::test_str_07_a_job_whose_letter_or_event_was_refused_is_not_marked_and_counts_as_failed",
        ),
    ),
    SafetyLine(
        name="hand-over: a final job is marked",
        file=DISPATCHING,
        line="""\
        store.apply(job.id, changes.hand_over(job, now=now))  # refused: reopened meanwhile; nothing to do
""",
        without="        pass\n",
        guards="G10: what was told leaves the index of what is due",
        tests=(f"{U_DISPATCHING}::test_a_failure_is_told_in_the_order_letter_event_mark",),
    ),
    SafetyLine(
        name="hand-over: a mark that could not be written counts as failed",
        file=DISPATCHING,
        line="            failed.add(position)\n",
        without="            pass\n",
        guards="G10: the record comes again until its job has left the index",
        tests=(f"{U_DISPATCHING}::test_a_mark_that_could_not_be_written_counts_as_failed",),
    ),
    SafetyLine(
        name="dispatch: a refused hint is reported",
        file=DISPATCHING,
        line="    failed = _send(routes, lambda r: r.work, outbox.send_work, set())\n",
        without="""\
    _send(routes, lambda r: r.work, outbox.send_work, set())
    failed: set[int] = set()
""",
        guards="G9: a job whose message the queue refused is not taken for sent",
        tests=(f"{U_DISPATCHING}::test_a_refused_hint_is_reported_and_the_others_are_sent",),
    ),
    SafetyLine(
        name="dispatch: failures are told by the job's position",
        file=DISPATCHING,
        line="    return {chosen[index][0] for index in refused}\n",
        without="    return set(refused)\n",
        guards="G9: the record that failed comes again, not its neighbour",
        tests=(f"{U_DISPATCHING}::test_positions_of_failures_are_those_of_the_jobs_in_a_mixed_batch",),
    ),
    SafetyLine(
        name="stream: what could not be sent fails its record",
        file=DISPATCH,
        line="    return [jobs[position][0] for position in sorted(sent.failed)]\n",
        without="    return []\n",
        guards="G9: a stream record is acknowledged only when who must hear of it was told",
        tests=(f"{I_DISPATCH}::test_str_07_what_could_not_be_sent_stays_due_and_fails_its_item",),
    ),
    SafetyLine(
        name="stream: an unreadable record is acknowledged only with its letter",
        file=DISPATCH,
        line="                    self.failed += [] if _bury(record, why) else [number]\n",
        without="                    _bury(record, why)\n",
        guards="G17: what nobody can read is not dropped from the stream",
        tests=(f"{I_DISPATCH}::test_an_unreadable_record_whose_letter_cannot_be_sent_fails_its_item",),
    ),
    SafetyLine(
        name="stream: an unreadable record holds up nobody",
        file=DISPATCH,
        line="                    self.failed += [] if _bury(record, why) else [number]\n",
        without="                    self.failed += [number]\n",
        guards="G17, hole 31: one spoilt record does not hold up its shard",
        tests=(f"{I_DISPATCH}::test_an_unreadable_record_is_buried_and_holds_up_nobody",),
    ),
    SafetyLine(
        name="stream: an unreadable record gets a letter",
        file=DISPATCH,
        line='    return not parts().own_letters.send([Message(written(letter), attributes, "unreadable")])\n',
        without="    return bool(written(letter) and attributes)\n",
        guards="G17: what nobody can read is told to an operator",
        tests=(f"{I_DISPATCH}::test_an_unreadable_record_is_buried_and_holds_up_nobody",),
    ),
    SafetyLine(
        name="stream: a record that is removed before its time gets a letter",
        file=DISPATCH,
        line="        return _removed(old)\n",
        without="        return None\n",
        guards="G10: a time to live that takes away open work, or an end that nobody was told of, is noticed",
        tests=(f"{I_DISPATCH}::test_a_record_that_is_removed_while_something_is_due_is_kept_in_a_letter_and_counted",),
    ),
    SafetyLine(
        name="stream: a record whose time was over is no lost one",
        file=DISPATCH,
        line="    if not old or names.DUE_SHARD not in old:\n        return None\n",
        without="    old = old or {}\n",
        guards="G10: a record that has had its time may go, without a letter",
        tests=(f"{I_DISPATCH}::test_str_03_a_removal_without_a_new_image_is_ignored",),
    ),
    SafetyLine(
        name="stream: only what failed is reported",
        file=DISPATCH,
        line='    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}\n',
        without='    return {"batchItemFailures": [{"itemIdentifier": n} for n, _ in batch.jobs if failed]}\n',
        guards="G9, batch-09: what was told is not told again because of a neighbour",
        tests=(f"{I_DISPATCH}::test_batch_09_only_the_items_that_failed_are_told",),
    ),
    SafetyLine(
        name="stream: what is no batch of the stream is not taken for handled",
        file=DISPATCH,
        line='        raise NoStreamEvent("expected the Records of a DynamoDB stream")\n',
        without="        return []\n",
        guards="G9: an answer to what was not understood would acknowledge it",
        tests=(f"{I_DISPATCH}::test_batch_02_what_is_no_stream_event_raises",),
    ),
    SafetyLine(
        name="stream: a batch of SQS is not taken for handled",
        file=DISPATCH,
        line='    return isinstance(record, dict) and isinstance(record.get("dynamodb"), dict)\n',
        without="""\
    record.setdefault("dynamodb", {})
    return isinstance(record, dict)
""",
        guards="G9: an answer to what was not understood would acknowledge it",
        tests=(f"{I_DISPATCH}::test_batch_02_a_batch_of_sqs_raises",),
    ),
    SafetyLine(
        name="stream: what is handed over already is not told again",
        file=DISPATCH,
        line=' or "due_shard" not in image:\n',
        without=":\n",
        guards="hole 27: the mark itself makes no second publication",
        tests=(f"{I_DISPATCH}::test_a_final_image_that_was_handed_over_already_sends_nothing",),
    ),
    SafetyLine(
        name="stream: only a change of state is told",
        file=ROUTING,
        line="    return old is None or any(old.get(name) != new.get(name) for name in _WHAT_MATTERS)\n",
        without="    return True\n",
        guards="hole 27: a push of due_at, a note or a late cost makes no message and no event",
        tests=(f"{U_ROUTING}::test_str_10_any_other_write_is_not",),
    ),
    SafetyLine(
        name="stream: a job that was put off is told",
        file=ROUTING,
        line='_WHAT_MATTERS = ("status", "attempt", "not_before")\n',
        without='_WHAT_MATTERS = ("status", "attempt")\n',
        guards="row 5u: who was put off gets a fresh message",
        tests=(f"{U_ROUTING}::test_a_change_of_status_attempt_or_start_is_something_to_hear_of",),
    ),
    SafetyLine(
        name="stream: a new opening is told",
        file=ROUTING,
        line='_WHAT_MATTERS = ("status", "attempt", "not_before")\n',
        without='_WHAT_MATTERS = ("status", "not_before")\n',
        guards="row 10: attempts are told apart",
        tests=(f"{U_ROUTING}::test_a_change_of_status_attempt_or_start_is_something_to_hear_of",),
    ),
)
