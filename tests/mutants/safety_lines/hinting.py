"""Safety lines between a delivery's record and its attempt: dispatcher, deliveries queue, and the sweep that sends."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

DELIVER = "handlers/deliver.py"
DISPATCH = "handlers/dispatch.py"
ROUTING = "core/webhooks/routing.py"
SWEEP = "core/sweeping/deliveries.py"
PLAN = "core/sweeping/delivery_plan.py"
HINTS = "core/sweeping/hints.py"
I_DELIVER = "tests/integration/test_handler_deliver.py"
I_DISPATCH = "tests/integration/test_handler_dispatch_deliveries.py"
U_MESSAGES = "tests/unit/test_delivery_messages.py"
U_SWEEP = "tests/unit/test_sweep_deliveries.py"

LINES = (
    # --- the dispatcher ----------------------------------------------------------------------------
    SafetyLine(
        name="dispatch: a delivery whose hint was not taken is asked for again",
        file=DISPATCH,
        line="    return [found[position][0] for position in sorted(refused)]\n",
        without="    return [found[position][0] for position in sorted(refused) if False]\n",
        guards="row 2: what the stream has told of is sent, or told of again",
        tests=(f"{I_DISPATCH}::test_what_could_not_be_sent_fails_its_item_and_no_other",),
    ),
    SafetyLine(
        name="dispatch: a delivery that vanishes while it is due is a loss",
        file=DISPATCH,
        line="    if _is_delivery(old) and _went_with_its_job(old):\n",
        without="    if _is_delivery(old):\n",
        guards="an accepted event is delivered, or fails visibly",
        tests=(f"{I_DISPATCH}::test_a_delivery_that_is_removed_while_it_is_due_is_kept_in_a_letter_and_counted",),
    ),
    SafetyLine(
        name="dispatch: a job that cannot be read took no delivery with it",
        file=DISPATCH,
        line="""\
    except UnreadableRecord:
        return False
""",
        without="""\
    except UnreadableRecord:
        return True
""",
        guards="an accepted event is delivered, or fails visibly",
        tests=(f"{I_DISPATCH}::test_one_whose_job_cannot_be_read_is_lost_and_the_rest_of_its_batch_is_told",),
    ),
    SafetyLine(
        name="dispatch: what went with its job is no loss",
        file=DISPATCH,
        line='    return record is not None and record.get("status") == names.DELETED\n',
        without="    return False\n",
        guards="an alarm for what is lost is one for that",
        tests=(f"{I_DISPATCH}::test_one_that_was_deleted_with_its_job_is_nobodys_loss",),
    ),
    SafetyLine(
        name="hints: what the queue did not take is told",
        file=ROUTING,
        line="    refused = {hints[index][0] for index in queue.send([message for _, message in hints])}\n",
        without="    queue.send([message for _, message in hints])\n    refused: set[int] = set()\n",
        guards="row 2: a delivery is pushed ahead only when its hint was taken",
        tests=(f"{U_MESSAGES}::test_what_the_queue_refuses_is_told_by_its_position",),
    ),
    SafetyLine(
        name="hints: only of what waits for its next try",
        file=ROUTING,
        line="    if delivery.status != PENDING or delay is None:\n",
        without="    if delay is None:\n",
        guards="nobody is called about what has ended",
        tests=(f"{U_MESSAGES}::test_nobody_hears_of_one_that_is_not_to_be_tried",),
    ),
    # --- the deliveries queue ----------------------------------------------------------------------
    SafetyLine(
        name="deliver: what was not settled stays on the queue",
        file=DELIVER,
        line='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}\n',
        without='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed[:0]]}\n',
        guards="G9: what was not planned or tried stays on the queue",
        tests=(f"{I_DELIVER}::test_a_letter_that_cannot_be_sent_leaves_its_message_on_the_queue",),
    ),
    SafetyLine(
        name="deliver: an error of ours leaves its own message, and no other",
        file=DELIVER,
        line='            own.log.crashed("deliver_error")\n            return False\n',
        without='            own.log.crashed("deliver_error")\n            return True\n',
        guards="G9: what was not planned or tried stays on the queue",
        tests=(f"{I_DELIVER}::test_an_error_of_ours_leaves_its_own_message_on_the_queue_and_no_other",),
    ),
    SafetyLine(
        name="deliver: an early hint is not acknowledged",
        file=DELIVER,
        line="            own.queue.hide(message.receipt_handle, math.ceil(wait_s) + 1)\n            return False\n",
        without="            own.queue.hide(message.receipt_handle, math.ceil(wait_s) + 1)\n            return True\n",
        guards="row 3a: the only hint of what waits is hidden until its time",
        tests=(f"{I_DELIVER}::test_one_that_comes_too_early_is_hidden_until_its_time",),
    ),
    SafetyLine(
        name="deliver: what is given up is counted",
        file=DELIVER,
        line="            if outcome == Done(GIVEN_UP):\n",
        without="            if False:\n",
        guards="FAILED visibly: its alarm rings",
        tests=(f"{I_DELIVER}::test_what_is_given_up_is_counted",),
    ),
    SafetyLine(
        name="deliver: a suspect runs alone, after the others",
        file=DELIVER,
        line="    failed = [*at_once(run, fresh), *(",
        without="    failed = [*at_once(run, [*suspects, *fresh]), *(",
        guards="G14: what kills its invocation takes nobody along twice",
        tests=(f"{I_DELIVER}::test_fresh_hints_of_a_batch_are_tried_at_once_and_a_suspect_after_them",),
    ),
    # --- the sweep ---------------------------------------------------------------------------------
    SafetyLine(
        name="sweep, deliveries: the last ones are sent, too",
        file=SWEEP,
        line="            self._move(due)\n        self.hints.send()\n",
        without="            self._move(due)\n",
        guards="row 15: what is due and has no hint gets one",
        tests=(f"{U_SWEEP}::test_one_without_a_hint_is_sent_again_first_and_pushed_then",),
    ),
    SafetyLine(
        name="sweep, deliveries: the cursor passes nothing that is not sent",
        file=SWEEP,
        line="        if self.hints.empty:\n",
        without="        if True:\n",
        guards="G32: who goes on from it leaves nothing out",
        tests=(f"{U_SWEEP}::test_the_cursor_does_not_pass_what_is_not_sent",),
    ),
    SafetyLine(
        name="sweep, deliveries: what somebody else has reaped is not sent",
        file=SWEEP,
        line="after = deliveries.read(outcome.record) if isinstance(outcome, Applied) else None",
        without="after = deliveries.read(outcome.record or {})",
        guards="a crash is a repair once, whoever finds it",
        tests=(f"{U_SWEEP}::test_one_that_has_gone_on_since_it_was_read_is_no_repair",),
    ),
    SafetyLine(
        name="sweep, deliveries: who holds it is left to it",
        file=PLAN,
        line="    if not held and (delivery.deadline_at <= now or delivery.tries >= TRIES_MAX):\n",
        without="    if delivery.deadline_at <= now or delivery.tries >= TRIES_MAX:\n",
        guards="G6: a delivery that is under way is not given up",
        tests=(f"{U_SWEEP}::test_one_that_is_held_is_not_given_up_however_late_it_is",),
    ),
    SafetyLine(
        name="sweep, deliveries: a lease is a lease",
        file=PLAN,
        line="delivery.lease_until is not None and delivery.lease_until >= now\n",
        without="delivery.lease_until is None\n",
        guards="hole 10: nobody is replaced who may still be calling the endpoint",
        tests=(f"{U_SWEEP}::test_one_that_somebody_holds_is_left_until_its_lease_is_over",),
    ),
    SafetyLine(
        name="sweep, deliveries: it is sent again after twice the time",
        file=PLAN,
        line="after(now, max(SEND_AGAIN_MIN_S, age))",
        without="after(now, SEND_AGAIN_MIN_S)",
        guards="row 15: a slow queue is not filled with copies",
        tests=(f"{U_SWEEP}::test_each_time_it_is_sent_again_after_twice_the_time",),
    ),
    SafetyLine(
        name="sweep, deliveries: a wait that no message can hold back is the sweep's",
        file=PLAN,
        line="    left_to_us = delivery.due_at == delivery.not_before\n",
        without="    left_to_us = False\n",
        guards="row 15: who has no message for certain is not held back by a crowd",
        tests=(f"{U_SWEEP}::test_it_holds_back_nobody_who_has_waited_for_an_hour_or_has_no_message_for_certain",),
    ),
    SafetyLine(
        name="sweep, deliveries: what the queue did not take stays due",
        file=HINTS,
        line="        refused = routing.send(found, now=self.now(), queue=self.queue, notice=self.notice)\n",
        without="        routing.send(found, now=self.now(), queue=self.queue, notice=self.notice)\n"
        "        refused: set[int] = set()\n",
        guards="row 15: sent first, pushed then",
        tests=(f"{U_SWEEP}::test_what_the_queue_does_not_take_stays_due_and_is_a_trouble",),
    ),
    SafetyLine(
        name="sweep, deliveries: what was sent is pushed",
        file=HINTS,
        line="        self.store.apply(one.delivery.key, changes.push_due(one.delivery, one.due_at))",
        without="        pass",
        guards="row 15: it is not sent again with each sweep",
        tests=(f"{U_SWEEP}::test_one_without_a_hint_is_sent_again_first_and_pushed_then",),
    ),
    SafetyLine(
        name="sweep, deliveries: what was reaped is sent though the time is over",
        file=HINTS,
        line="        self._hint(self.reaped)\n        self.reaped = []\n        if self.waiting and self.in_time():\n",
        without="        if self.in_time():\n            self._hint(self.reaped)\n        self.reaped = []\n"
        "        if self.waiting and self.in_time():\n",
        guards="G11: what crashed is tried again, the stream alive or not",
        tests=(f"{U_SWEEP}::test_a_reaped_one_is_sent_though_the_time_is_over",),
    ),
    SafetyLine(
        name="sweep, deliveries: an urgent one is held back by nobody",
        file=HINTS,
        line="if slow and claimable >= CROWD and not one.urgent]",
        without="if slow and claimable >= CROWD]",
        guards="N3: nobody waits for more than an hour for the messages of others",
        tests=(f"{U_SWEEP}::test_it_holds_back_nobody_who_has_waited_for_an_hour_or_has_no_message_for_certain",),
    ),
)  # fmt: skip
