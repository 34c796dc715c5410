"""Safety lines of redrives: sent before they are removed, once, and no further than the canary says."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ADMIN = "handlers/admin.py"
CANARY = "core/letters/canary.py"
HANDLER = "handlers/redrive.py"
I_ADMIN = "tests/integration/test_handler_admin.py"
REDRIVE = "core/letters/redrive.py"
REDRIVING = "core/letters/redriving.py"
U_REDRIVING = "tests/unit/test_redriving.py"

LINES = (
    SafetyLine(
        name="redrive: it is on record before it is started",
        file=REDRIVE,
        line="    ledger.create(_pk(run.id), REDRIVE_SK, {**_written(run, now), **expires})\n",
        without="    assert expires\n",
        guards="G28: who asked for a redrive can ask how far it is, and it can go on",
        tests=(f"{U_REDRIVING}::test_a_group_is_sent_to_its_queue_and_then_removed",),
    ),
    SafetyLine(
        name="redrive: one that could not be started says so",
        file=REDRIVE,
        line="""\
            save(replace(run, state=FAILED, why="it could not be started"), now, ledger)
        raise
""",
        without="""\
            pass
        raise
""",
        guards="G28: a redrive that nobody goes on with is not RUNNING",
        tests=(f"{U_REDRIVING}::test_one_that_could_not_be_started_says_so",),
    ),
    SafetyLine(
        name="redrive: a second delivery of a round does nothing",
        file=REDRIVE,
        line='    before = {"round": round_ - 1, "state": RUNNING}\n',
        without='    before = {"state": RUNNING}\n',
        guards="G28: two invocations of one round do not both send",
        tests=(f"{U_REDRIVING}::test_a_second_delivery_of_a_round_does_nothing",),
    ),
    SafetyLine(
        name="redrive: one that has ended is not gone on with",
        file=REDRIVE,
        line='    before = {"round": round_ - 1, "state": RUNNING}\n',
        without='    before = {"round": round_ - 1}\n',
        guards="G28: a redrive that an operator sees as ended sends nothing more",
        tests=(f"{U_REDRIVING}::test_one_that_has_ended_at_this_moment_is_not_gone_on_with",),
    ),
    SafetyLine(
        name="redrive: a refused round is somebody else's",
        file=REDRIVE,
        line="    return mine if ledger.save(_pk(redrive_id), REDRIVE_SK, _written(mine, now), before) else None\n",
        without="""\
    ledger.save(_pk(redrive_id), REDRIVE_SK, _written(mine, now), before)
    return mine
""",
        guards="G28: two invocations of one round do not both send",
        tests=(f"{U_REDRIVING}::test_a_second_delivery_of_a_round_does_nothing",),
    ),
    SafetyLine(
        name="redrive: only its holder saves it",
        file=REDRIVE,
        line='_written(run, now), {"round": run.round, "holder": run.holder}):\n',
        without="_written(run, now), {}):\n",
        guards="G28: an invocation that another has replaced sends nothing more",
        tests=(f"{U_REDRIVING}::test_an_invocation_that_another_has_replaced_sends_nothing_more",),
    ),
    SafetyLine(
        name="redrive: who was replaced stops",
        file=REDRIVE,
        line="        raise Superseded(run.id)\n",
        without="        return\n",
        guards="G28: an invocation that another has replaced sends nothing more",
        tests=(f"{U_REDRIVING}::test_an_invocation_that_another_has_replaced_sends_nothing_more",),
    ),
    SafetyLine(
        name="redrive: what dies again is left for the next one",
        file=REDRIVE,
        line="        return named and letter.found.sent_at <= self.at\n",
        without="        return named\n",
        guards="G28: a redrive of what was not fixed has an end",
        tests=(f"{U_REDRIVING}::test_what_dies_again_meanwhile_is_left_for_the_next_redrive",),
    ),
    SafetyLine(
        name="redrive: the queue is held while it is emptied",
        file=REDRIVING,
        line="            if self.ledger.take(lease, run.id, self.now(), until) is None:\n",
        without="            if self.ledger.take(lease, run.id, self.now(), until) is None and run.dry_run:\n",
        guards="G28: two redrives of one queue take turns",
        tests=(f"{U_REDRIVING}::test_two_redrives_of_one_queue_take_turns",),
    ),
    SafetyLine(
        name="redrive: the lease of a queue is given back",
        file=REDRIVING,
        line="                self.ledger.give_back(lease, run.id, {})\n",
        without="                pass\n",
        guards="G28: the next redrive of this queue does not wait for nobody",
        tests=(f"{U_REDRIVING}::test_two_redrives_of_one_queue_take_turns",),
    ),
    SafetyLine(
        name="redrive: it has an end",
        file=REDRIVING,
        line="        if run.round > redrive.ROUNDS_MAX:\n",
        without="        if False:\n",
        guards="G28: a function that calls itself has an end",
        tests=(f"{U_REDRIVING}::test_it_ends_after_so_many_rounds",),
    ),
    SafetyLine(
        name="redrive: a letter is sent before it is removed",
        file=REDRIVING,
        line="""\
            refused = self.own.queues[self.queue].send([message_of(letter[0]) for letter in batch])
            gone = [letter for position, letter in enumerate(batch) if position not in refused]
""",
        without="""\
            self.box.remove([one.found.receipt for letter in batch for one in letter])
            refused = self.own.queues[self.queue].send([message_of(letter[0]) for letter in batch])
            gone = [letter for position, letter in enumerate(batch) if position not in refused]
""",
        guards="G28: a letter is never only in flight",
        tests=(f"{U_REDRIVING}::test_a_letter_lies_there_until_its_queue_has_taken_it",),
    ),
    SafetyLine(
        name="redrive: what the queue refused stays a letter",
        file=REDRIVING,
        line="gone = [letter for position, letter in enumerate(batch) if position not in refused]",
        without="gone = list(batch)",
        guards="G28: only what was sent is removed",
        tests=(f"{U_REDRIVING}::test_what_the_queue_refuses_stays_a_letter_and_the_redrive_says_so",),
    ),
    SafetyLine(
        name="redrive: a letter that was sent is removed",
        file=REDRIVING,
        line="            self._remove([one for letter in gone for one in letter])\n",
        without="",
        guards="G28: a letter that was sent is not sent again by the next round",
        tests=(f"{U_REDRIVING}::test_a_group_is_sent_to_its_queue_and_then_removed",),
    ),
    SafetyLine(
        name="redrive: only what is certainly stale is removed",
        file=REDRIVING,
        line="""\
            case "stale":
                taken.stale.append(letter)
""",
        without="""\
            case "stale" | "unknown":
                taken.stale.append(letter)
""",
        guards="G30, hole 13: a letter without a readable record is the operator's",
        tests=(f"{U_REDRIVING}::test_a_letter_without_a_record_is_neither_sent_nor_removed",),
    ),
    SafetyLine(
        name="redrive: a dry run removes nothing",
        file=REDRIVING,
        line="""\
        if not self.run.dry_run:
            for letter in taken.stale:
""",
        without="""\
        if True:
            for letter in taken.stale:
""",
        guards="G28: a dry run counts and touches nothing",
        tests=(f"{U_REDRIVING}::test_a_dry_run_counts_and_touches_nothing",),
    ),
    SafetyLine(
        name="redrive: a letter that could not be removed is not sent once more",
        file=REDRIVING,
        line="        self._left |= {copies[position].id for position in left}\n",
        without="",
        guards="G28: a queue from which nothing can be removed is not sent for ever",
        tests=(f"{U_REDRIVING}::test_a_queue_from_which_nothing_can_be_removed_is_not_sent_for_ever",),
    ),
    SafetyLine(
        name="redrive: no letter is sent that others may see by now",
        file=REDRIVING,
        line="            if not self._may_send() or self.own.now() >= until:\n",
        without="            if not self._may_send():\n",
        guards="G28: two redrives do not send one letter",
        tests=(f"{U_REDRIVING}::test_no_letter_is_sent_that_others_may_see_by_now",),
    ),
    SafetyLine(
        name="redrive: the canary is recorded before it is sent",
        file=REDRIVING,
        line="            self._save(phase=CANARY_SENDING, canaries=chosen)\n",
        without="            self.run = replace(self.run, phase=CANARY_SENDING, canaries=chosen)\n",
        guards="G28: no crash doubles the canary",
        tests=(f"{U_REDRIVING}::test_killed_between_canary_and_its_record_sends_no_second_canary",),
    ),
    SafetyLine(
        name="redrive: a canary that died stops it",
        file=REDRIVING,
        line="            self._save(state=STOPPED, why=f\"the canary did not live: {'; '.join(bad)}\"[:1_000])\n",
        without="            self._save(phase=PASSED)\n",
        guards="G28: a canary that does not complete stops a redrive of what was not fixed",
        tests=(f"{U_REDRIVING}::test_a_canary_that_fails_stops_it_and_says_which_and_why",),
    ),
    SafetyLine(
        name="redrive: a canary is waited for",
        file=CANARY,
        line="""\
    if job.status == COMPLETED:
        return Good()
""",
        without="""\
    if True:
        return Good()
""",
        guards="G28: the rest goes only when the canary has completed",
        tests=(f"{U_REDRIVING}::test_a_canary_is_waited_for_over_rounds_and_for_an_hour",),
    ),
    SafetyLine(
        name="redrive: it goes on in another invocation",
        file=HANDLER,
        line='        own.functions.start(context.function_name, {"redrive_id": run.id, "round": run.round + 1})\n',
        without="        pass\n",
        guards="G28: a large redrive goes on when an invocation's time is over",
        tests=(f"{I_ADMIN}::test_it_goes_on_in_another_invocation_when_its_time_is_over",),
    ),
    SafetyLine(
        name="redrive: 202 means recorded and started",
        file=ADMIN,
        line="""\
    run = redrive.ask(
        order,
        now=clock.now(),
        ledger=own.ledger,
        start=lambda payload: own.functions.start(own.redrive_function, payload),
""",
        without="""\
    run = redrive.ask(
        order,
        now=clock.now(),
        ledger=own.ledger,
        start=lambda payload: None,
""",
        guards="G28: an answer to the operator is no promise that nobody keeps",
        tests=(f"{I_ADMIN}::test_a_redrive_that_cannot_be_started_is_503_and_says_so_afterwards",),
    ),
    SafetyLine(
        name="admin: 202 of a sweep means recorded and started",
        file=ADMIN,
        line="        own.functions.start(own.sweep_function, event)\n",
        without="        pass\n",
        guards="G32: an answer to the operator is no promise that nobody keeps",
        tests=(f"{I_ADMIN}::test_a_sweep_is_recorded_and_started_and_its_certificate_can_be_asked_for",),
    ),
    SafetyLine(
        name="admin: a store that cannot be reached is a 503",
        file=ADMIN,
        line='        answer = Problem(503, "unavailable", "A store cannot be reached", detail)\n',
        without='        status, answer = 202, {"detail": detail}\n',
        guards="G29: what may not have happened is not acknowledged to the operator",
        tests=(f"{I_ADMIN}::test_a_redrive_that_cannot_be_started_is_503_and_says_so_afterwards",),
    ),
    SafetyLine(
        name="redrive: what is to be sent is hidden from others",
        file=REDRIVING,
        line="                    looking.keep(letter)\n",
        without="                    pass\n",
        guards="G28: two redrives do not send one letter",
        tests=(U_REDRIVING,),
    ),
)
