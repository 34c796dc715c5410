"""Safety lines of deliveries: planned once, tried by one holder, sent where they may go, and never given up early."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CHANGES = "core/webhooks/delivery_changes.py"
RECORD = "core/webhooks/delivery.py"
PLANNING = "core/webhooks/planning.py"
ATTEMPTING = "core/webhooks/attempting.py"
EXPIRING = "core/webhooks/expiring.py"
CALLING = "core/webhooks/calling.py"
JUDGING = "core/webhooks/judging.py"
BATCH = "core/webhooks/batch.py"
SCHEDULE = "core/webhooks/schedule.py"
U_FENCES = "tests/unit/test_webhook_fences.py"
U_ATTEMPTING = "tests/unit/test_webhook_attempting.py"
U_PLANNING = "tests/unit/test_webhook_planning.py"
U_SCHEDULE = "tests/unit/test_webhook_schedule.py"
LEFT_OVER = "test_what_an_earlier_job_of_the_same_key_has_left_makes_room_for_the_delivery_of_this_one"
TOO_LATE = f"{U_FENCES}::test_a_write_that_comes_too_late_changes_nothing"
OVER = f"{U_FENCES}::test_nobody_need_look_again_at_one_that_has_ended"

LINES = (
    # --- what a write does -------------------------------------------------------------------------
    SafetyLine(
        name="deliveries: the lease is over only when the platform has killed its holder",
        file=CHANGES,
        line='"lease_until": times.text(after(invocation_ends, LEASE_MARGIN_S)),',
        without='"lease_until": times.text(invocation_ends),',
        guards="hole 10: nobody is replaced who may still be calling the endpoint",
        tests=(f"{U_FENCES}::test_a_claim_holds_it_until_the_platform_has_surely_ended_its_invocation",),
    ),
    SafetyLine(
        name="deliveries: a claim charges a try and raises the attempt",
        file=CHANGES,
        line='adds={"attempt": 1, "tries": 1},',
        without="adds={},",
        guards="hole 8: one that kills its holder each time ends, and every holder has its own attempt",
        tests=(f"{U_FENCES}::test_a_claim_holds_it_until_the_platform_has_surely_ended_its_invocation",),
    ),
    SafetyLine(
        name="deliveries: a crash does not hide behind a look far ahead",
        file=CHANGES,
        line='RULES["pull_due"], _mine(delivery), sets={"due_at": times.text(delivery.lease_until)}',
        without='RULES["pull_due"], _mine(delivery), sets={"due_at": times.text(delivery.deadline_at)}',
        guards="row 3: whoever is killed is looked for when its lease is over",
        tests=(f"{U_ATTEMPTING}::test_a_look_that_lies_far_ahead_is_pulled_in",),
    ),
    SafetyLine(
        name="deliveries: what was taken is due no more",
        file=CHANGES,
        line='removes=("error", *_DUE),',
        without='removes=("error",),',
        guards="hole 34: a final record is left alone for ever, by the sweep too",
        tests=(OVER,),
    ),
    SafetyLine(
        name="deliveries: a retry counts who does not want it",
        file=CHANGES,
        line='sets, {"refusals": 1} if refused else {})',
        without="sets)",
        guards="WH-09: an endpoint that does not want it is not asked for three days",
        tests=(f"{U_FENCES}::test_a_retry_waits_and_counts_what_was_not_wanted",),
    ),
    SafetyLine(
        name="deliveries: a wait burns no try",
        file=CHANGES,
        line='sets, {"waits": 1, "tries": -1})',
        without='sets, {"waits": 1})',
        guards="G13: a busy endpoint, or a circuit that is open, costs a delivery nothing",
        tests=(f"{U_FENCES}::test_a_park_gives_the_try_back_and_keeps_what_its_last_try_came_to",),
    ),
    SafetyLine(
        name="deliveries: no time is told by a later start",
        file=CHANGES,
        line='sets={"not_before": times.text(after(now, 1))},',
        without="sets={},",
        guards="row 5u: the stream sends a fresh hint for what was not started",
        tests=(f"{U_ATTEMPTING}::test_without_time_for_an_attempt_none_is_started",),
    ),
    SafetyLine(
        name="deliveries: what was given up is due no more",
        file=CHANGES,
        line="        removes=_DUE,\n",
        without="",
        guards="hole 34: a final record is left alone for ever",
        tests=(OVER,),
    ),
    SafetyLine(
        name="deliveries: what has expired is due no more",
        file=CHANGES,
        line='removes=("claim_id", *_DUE),',
        without='removes=("claim_id",),',
        guards="hole 34: a final record is left alone for ever",
        tests=(OVER,),
    ),
    SafetyLine(
        name="deliveries: one that is opened again is looked for",
        file=CHANGES,
        line='            "due_shard": ids.delivery_shard(*delivery.key),\n',
        without="",
        guards="row 8: a redelivery whose stream record is lost is found by the sweep",
        tests=(f"{U_FENCES}::test_reopened_is_in_the_index_again",),
    ),
    SafetyLine(
        name="deliveries: one that is opened again does not expire",
        file=CHANGES,
        line='removes=("expires_at", "claim_id", "finished_at"),',
        without='removes=("claim_id", "finished_at"),',
        guards="G1: nothing that is open is removed by its time to live",
        tests=(f"{U_FENCES}::test_reopened_it_has_all_its_tries_and_days_again_under_the_same_event_id",),
    ),
    SafetyLine(
        name="deliveries: one that is opened again has all its tries",
        file=CHANGES,
        line='**dict.fromkeys(("tries", "crashes", "waits", "refusals"), 0),',
        without="",
        guards="row 8: a human's wish is worth a whole schedule",
        tests=(f"{U_FENCES}::test_reopened_it_has_all_its_tries_and_days_again_under_the_same_event_id",),
    ),
    SafetyLine(
        name="deliveries: one that is hastened may start now",
        file=CHANGES,
        line='    sets = {\n        "not_before": times.text(now),\n',
        without="    sets = {\n",
        guards="a redelivery of what waits is sent at once",
        tests=(f"{U_FENCES}::test_hastened_one_that_waits_is_due_now",),
    ),
    SafetyLine(
        name="deliveries: a late holder does not take a reaped one for its own",
        file=CHANGES,
        line='removes=("claim_id",),  # a late',
        without="removes=(),  # a late",
        guards="G6: who was fenced out knows that nothing of it was written",
        tests=(f"{U_FENCES}::test_reaped_it_is_tried_again_at_once_and_the_crash_is_counted",),
    ),
    SafetyLine(
        name="deliveries: a crash is counted",
        file=CHANGES,
        line='adds={"crashes": 1},',
        without="adds={},",
        guards="G14: what kills its invocation runs alone",
        tests=(f"{U_FENCES}::test_reaped_it_is_tried_again_at_once_and_the_crash_is_counted",),
    ),
    SafetyLine(
        name="deliveries: a look is put off to no later than the deadline",
        file=CHANGES,
        line='sets={"due_at": times.text(min(due_at, delivery.deadline_at))}',
        without='sets={"due_at": times.text(due_at)}',
        guards="N4: whoever waits for ever is found by its deadline",
        tests=(f"{U_FENCES}::test_no_look_is_put_off_beyond_the_deadline",),
    ),
    SafetyLine(
        name="deliveries: they are due in shards of their own",
        file=RECORD,
        line='"due_shard": ids.delivery_shard(*key),',
        without='"due_shard": ids.due_shard(pk),',
        guards="who looks for due jobs never meets a delivery, and the other way round",
        tests=(f"{U_FENCES}::test_a_new_one_waits_for_its_first_try_in_a_shard_of_its_own",),
    ),
    # --- planning ----------------------------------------------------------------------------------
    SafetyLine(
        name="planning: the record's tenant is the event's",
        file=PLANNING,
        line='    if job and job.get("tenant") != told["tenant_id"]:\n',
        without="    if False:\n",
        guards="G26: nothing of a tenant is told under another's name",
        tests=(f"{U_PLANNING}::test_an_event_of_another_tenant_than_its_jobs_is_buried_and_tells_nobody",),
    ),
    SafetyLine(
        name="planning: of a deleted job nobody is told",
        file=PLANNING,
        line='    if job.get("status") == DELETED:\n',
        without="    if False:\n",
        guards="row 9d: nothing is left of a deleted job but its tombstone",
        tests=(
            f"{U_PLANNING}::test_of_a_job_that_was_deleted_meanwhile_nobody_is_told_and_nothing_is_left_beside_it",
        ),
    ),
    SafetyLine(
        name="planning: only who wants it and may be told is told",
        file=PLANNING,
        line='if one.wants(event.envelope["event_type"]):',
        without="if True:",
        guards="a disabled endpoint hears nothing, and each hears what it asked for",
        tests=(f"{U_PLANNING}::test_an_endpoint_hears_of_what_it_wants_to",),
    ),
    SafetyLine(
        name="planning: the sequence rises with the job's attempt",
        file=PLANNING,
        line='"sequence": envelope["step_index"]',
        without='"sequence": 0',
        guards="WH-12: a receiver can put events in order that came in another one",
        tests=(f"{U_PLANNING}::test_what_is_sent_is_the_event_with_the_number_of_its_jobs_attempt",),
    ),
    SafetyLine(
        name="planning: what an earlier job of the same id has left makes room",
        file=PLANNING,
        line='    return isinstance(planner.deliveries.apply((record["pk"], record["sk"]), change), Applied)\n',
        without="    return isinstance(change, Applied)\n",
        guards="an accepted event is delivered, or fails visibly: also that of a second job under a key",
        tests=(f"{U_PLANNING}::{LEFT_OVER}",),
    ),
    SafetyLine(
        name="planning: one of this very job makes no room",
        file=CHANGES,
        line="made < after(began, -DAY_S)",
        without="True",
        guards="what was delivered is not delivered again because its event comes twice",
        tests=(f"{U_PLANNING}::test_a_delivery_of_this_very_job_stays_as_it_is",),
    ),
    SafetyLine(
        name="planning: one that is still to be delivered makes no room",
        file=CHANGES,
        line='    return "due_shard" not in record and',
        without="    return",
        guards="G37: nothing takes a delivery out of its holder's hands",
        tests=(f"{U_PLANNING}::test_one_that_is_still_to_be_delivered_makes_no_room",),
    ),
    SafetyLine(
        name="planning: what makes room does not expire in the other's time",
        file=CHANGES,
        line='        removes=("error", "history_left_out", "expires_at", "claim_id", "finished_at"),\n',
        without='        removes=("error", "history_left_out", "claim_id", "finished_at"),\n',
        guards="G1: nothing that is open is removed by its time to live",
        tests=(f"{U_PLANNING}::{LEFT_OVER}",),
    ),
    # --- attempting --------------------------------------------------------------------------------
    SafetyLine(
        name="attempting: nothing is started without time for it",
        file=ATTEMPTING,
        line="if seconds_between(now, ends) < courier.limits.start_s:",
        without="if False:",
        guards="row 5u: no endpoint is called by who cannot write what came of it",
        tests=(f"{U_ATTEMPTING}::test_without_time_for_an_attempt_none_is_started",),
    ),
    SafetyLine(
        name="attempting: what could not be put off and is early is hidden",
        file=ATTEMPTING,
        line="""\
            return Early(seconds_between(now, read(record).not_before))
        case _:""",
        without="""\
            return Done("early")
        case _:""",
        guards="row 3a: the current hint of what waits is not thrown away",
        tests=(f"{U_ATTEMPTING}::test_without_time_and_before_its_time_it_is_hidden",),
    ),
    SafetyLine(
        name="attempting: what has ended is not sent again",
        file=ATTEMPTING,
        line="    if found.is_final:\n        return Done(",
        without="    if found.is_final:\n        return Early(1.0) or Done(",
        guards="row 3a: a hint of what has ended is acknowledged",
        tests=(f"{U_ATTEMPTING}::test_what_has_ended_or_is_held_is_not_sent_again",),
    ),
    SafetyLine(
        name="attempting: the current hint of what waits is kept",
        file=ATTEMPTING,
        line="        if hint.attempt == found.attempt:\n",
        without="        if False:\n",
        guards="row 3a: an early hint is hidden, not lost",
        tests=(
            f"{U_ATTEMPTING}::test_a_hint_before_its_time_is_hidden_and_one_of_an_older_attempt_is_not_needed",
        ),
    ),
    SafetyLine(
        name="attempting: an older hint of what waits is thrown away",
        file=ATTEMPTING,
        line="        if hint.attempt == found.attempt:\n",
        without="        if True:\n",
        guards="row 3a: old hints do not pile up beside the current one",
        tests=(
            f"{U_ATTEMPTING}::test_a_hint_before_its_time_is_hidden_and_one_of_an_older_attempt_is_not_needed",
        ),
    ),
    SafetyLine(
        name="attempting: what is used up is given up",
        file=ATTEMPTING,
        line="if found.tries >= schedule.TRIES_MAX or found.deadline_at <= now:",
        without="if False:",
        guards="row 7: nothing is hinted at for ever that nobody may claim",
        tests=(f"{U_ATTEMPTING}::test_one_that_is_used_up_is_given_up",),
    ),
    SafetyLine(
        name="attempting: what somebody else has ended is not counted as given up",
        file=EXPIRING,
        line="""\
    if isinstance(store.apply(found.key, changes.expire(found, now=now, limits=limits)), Refused):
        return OUTLIVED
""",
        without="""\
    store.apply(found.key, changes.expire(found, now=now, limits=limits))
""",
        guards="an alarm for what was given up is one for that",
        tests=(f"{U_ATTEMPTING}::test_what_was_delivered_meanwhile_is_not_told_as_given_up",),
    ),
    SafetyLine(
        name="attempting: a look that lies far ahead is pulled in",
        file=ATTEMPTING,
        line="courier.store.apply(held.key, changes.pull_due(held))",
        without="pass",
        guards="row 3: a crash is found when its lease is over, whatever the backlog had put off",
        tests=(f"{U_ATTEMPTING}::test_a_look_that_lies_far_ahead_is_pulled_in",),
    ),
    SafetyLine(
        name="attempting: what came of it is in the record before it is acknowledged",
        file=CALLING,
        line="        match self.courier.store.apply(self.delivery.key, change):\n            case Applied():",
        without="        match Applied({}):\n            case Applied():",
        guards="G9: an attempt whose outcome is nowhere is made again",
        tests=(f"{U_ATTEMPTING}::test_a_delivery_is_claimed_sent_and_done",),
    ),
    SafetyLine(
        name="attempting: who was fenced out says so",
        file=CALLING,
        line="""\
                self.notice(OUTLIVED, **correlation(self.delivery), **fields)
                return OUTLIVED""",
        without="""\
                self.notice(how, **correlation(self.delivery), **fields)
                return how""",
        guards="G6: what was not written is not counted",
        tests=(f"{U_ATTEMPTING}::test_who_outlived_its_lease_writes_nothing",),
    ),
    SafetyLine(
        name="attempting: a disabled endpoint is not called",
        file=CALLING,
        line="    if not found.enabled:\n",
        without="    if False:\n",
        guards="a tenant that has switched an endpoint off is obeyed",
        tests=(f"{U_ATTEMPTING}::test_an_endpoint_that_was_removed_or_disabled_meanwhile_ends_its_deliveries",),
    ),
    SafetyLine(
        name="attempting: an endpoint that was registered anew is not called for the one before it",
        file=CALLING,
        line='        if delivery.registration not in ("", found.registration):\n',
        without="        if False:\n",
        guards="what was on its way is gone with the endpoint that it was for",
        tests=(f"{U_ATTEMPTING}::test_what_was_for_an_endpoint_that_was_removed_is_not_for_the_one_registered_anew",),
    ),
    SafetyLine(
        name="attempting: an open circuit is respected",
        file=CALLING,
        line="case Open(until) if not delivery.is_ping:",
        without="case Open(until) if False:",
        guards="WH-11: who has failed so often is left alone",
        tests=(f"{U_ATTEMPTING}::test_five_failures_in_a_row_open_the_circuit_and_the_others_wait_without_a_call",),
    ),
    SafetyLine(
        name="attempting: gone ends it",
        file=JUDGING,
        line="or kind is Kind.GONE or delivery.is_ping",
        without="or delivery.is_ping",
        guards="WH-09: 410 is not tried again",
        tests=(f"{U_ATTEMPTING}::test_wh_09_gone_disables_the_endpoint_and_ends_the_delivery",),
    ),
    SafetyLine(
        name="attempting: gone disables the endpoint that said so",
        file=CALLING,
        line='{"enabled": True, "created_at": found.registration}',
        without='{"enabled": True}',
        guards="WH-09: an endpoint that was registered anew meanwhile stays enabled",
        tests=(f"{U_ATTEMPTING}::test_gone_does_not_disable_an_endpoint_that_was_registered_anew_meanwhile",),
    ),
    SafetyLine(
        name="attempting: who does not want it is asked a few times only",
        file=JUDGING,
        line="delivery.refusals + 1 >= schedule.REFUSALS_MAX",
        without="delivery.refusals + 1 >= 99",
        guards="WH-09: other 4xx are bounded",
        tests=(f"{U_ATTEMPTING}::test_wh_09_what_is_not_wanted_is_tried_a_few_times_and_then_given_up",),
    ),
    SafetyLine(
        name="attempting: what an endpoint asks for is heard",
        file=JUDGING,
        line='retry_after = came.retry_after if isinstance(came, Answer) else ""',
        without='retry_after = ""',
        guards="Retry-After is honoured",
        tests=(f"{U_ATTEMPTING}::test_retry_after_is_honoured_in_both_forms",),
    ),
    SafetyLine(
        name="schedule: what may pass is tried by the whole schedule",
        file=SCHEDULE,
        line="if status in _AGAIN or 500 <= status < 600:",
        without="if status in _AGAIN:",
        guards="WH-09: an outage loses nothing",
        tests=(f"{U_SCHEDULE}::test_wh_09_what_a_status_means",),
    ),
    SafetyLine(
        name="schedule: Retry-After is capped",
        file=SCHEDULE,
        line="return min(max(wait, 0.0), float(RETRY_AFTER_MAX_S))",
        without="return max(wait, 0.0)",
        guards="a receiver cannot put a delivery off for years",
        tests=(f"{U_SCHEDULE}::test_a_date_far_ahead_is_capped",),
    ),
    SafetyLine(
        name="schedule: there is a last try before the deadline",
        file=SCHEDULE,
        line="    at = min(at, last)\n",
        without="",
        guards="no wait leads beyond the deadline, unseen",
        tests=(f"{U_SCHEDULE}::test_there_is_a_last_try_before_the_deadline_and_none_after_it",),
    ),
    # --- the message -------------------------------------------------------------------------------
    SafetyLine(
        name="deliveries' queue: a store that is away leaves the message",
        file=BATCH,
        line="        return Failed(str(trouble))\n",
        without='        return Done("away")\n',
        guards="G9: what was not planned or tried stays on the queue",
        tests=(f"{U_PLANNING}::test_a_store_that_is_away_leaves_the_message_and_a_repeat_makes_what_is_missing",),
    ),
    SafetyLine(
        name="deliveries' queue: what cannot be buried stays",
        file=BATCH,
        line='        return Failed(f"its letter could not be sent: {why.reason}")\n',
        without="        pass\n",
        guards="G9: a letter is sent first, its message acknowledged then",
        tests=(f"{U_PLANNING}::test_what_cannot_be_buried_stays_on_the_queue",),
    ),
)  # fmt: skip
