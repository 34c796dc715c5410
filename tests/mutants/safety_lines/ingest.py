"""Safety lines of the inbox: what comes in is a job or a letter before it is acknowledged."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

HANDLER = "handlers/ingest.py"
INGEST = "core/inbox/ingest.py"
I_INGEST = "tests/integration/test_handler_ingest.py"
MESSAGE = "core/inbox/message.py"
U_INBOX = "tests/unit/test_inbox.py"
U_UPLOADS = "tests/unit/test_uploads.py"
U_WEBHOOKS = "tests/unit/test_webhooks.py"
WEBHOOKS = "core/inbox/webhooks.py"

LINES = (
    SafetyLine(
        name="ingest: a letter is sent before its message is acknowledged",
        file=INGEST,
        line='        raise Unavailable("a letter could not be sent")\n',
        without="        pass\n",
        guards="G23: what cannot become a job is not acknowledged before its letter lies there",
        tests=(f"{U_WEBHOOKS}::test_a_letter_that_cannot_be_sent_leaves_the_message",),
    ),
    SafetyLine(
        name="ingest: what cannot become a job gets a letter",
        file=INGEST,
        line="    if buried and using.letters.send([letter(about, why, now) for about, why in buried]):\n",
        without="    if buried and not now:\n",
        guards="G23: what comes in from outside is a job or a letter",
        tests=(f"{U_WEBHOOKS}::test_a_wrong_signature_is_a_letter_and_no_job",),
    ),
    SafetyLine(
        name="ingest: what is no JSON gets a letter",
        file=INGEST,
        line="""\
    except Malformed as error:
        return Buried("MALFORMED_MESSAGE", f"{error.pointer or '/'}: {error.detail}")
""",
        without="""\
    except Malformed as error:
        return Ignored(error.detail)
""",
        guards="G23: what cannot be read is not only acknowledged",
        tests=(f"{U_INBOX}::test_what_is_nothing_of_ours_is_a_letter",),
    ),
    SafetyLine(
        name="ingest: what is nothing of ours gets a letter",
        file=INGEST,
        line="""\
        return Buried("MALFORMED_MESSAGE", "neither an event of a declared source nor a notification of S3")
""",
        without="""\
        return Ignored("neither an event of a declared source nor a notification of S3")
""",
        guards="G23: what cannot be read is not only acknowledged",
        tests=(f"{U_INBOX}::test_what_is_nothing_of_ours_is_a_letter",),
    ),
    SafetyLine(
        name="ingest: a refused event gets a letter",
        file=MESSAGE,
        line="        return Buried(refused.reason, refused.detail, tenant, type_)\n",
        without="        return Ignored(refused.reason)\n",
        guards="G23: what cannot become a job lies among the dead letters, with its reason",
        tests=(f"{U_WEBHOOKS}::test_a_signed_event_that_cannot_be_a_job_is_a_letter",),
    ),
    SafetyLine(
        name="ingest: an event of a source that is gone gets a letter",
        file=WEBHOOKS,
        line="""\
    return Buried("UNKNOWN_SOURCE",""",
        without="""\
    from lambdas.core.inbox.message import Ignored

    return Ignored(""",
        guards="G23: a source that a deploy removed loses no event",
        tests=(f"{U_WEBHOOKS}::test_an_event_of_a_source_that_a_deploy_removed_is_a_letter",),
    ),
    SafetyLine(
        name="ingest: a message is settled as a whole",
        file=INGEST,
        line="    settled = list(_settle(incoming, using))\n",
        without="    settled = list(_settle(incoming, using))[:1]\n",
        guards="G23: of a message with several records none is dropped",
        tests=(f"{U_UPLOADS}::test_one_message_with_several_records_is_settled_as_a_whole",),
    ),
    SafetyLine(
        name="ingest: a message that cannot be settled stays",
        file=HANDLER,
        line="""\
    except Unavailable as trouble:
        own.log.trouble("left_on_the_queue", detail=str(trouble))
        return False
""",
        without="""\
    except Unavailable as trouble:
        own.log.trouble("left_on_the_queue", detail=str(trouble))
        return True
""",
        guards="G23: what nobody could record is not acknowledged",
        tests=(f"{I_INGEST}::test_a_letter_that_sqs_does_not_take_leaves_the_message",),
    ),
    SafetyLine(
        name="ingest: an error of ours leaves its message",
        file=HANDLER,
        line="""\
        own.log.crashed("ingest_error")
        return False
""",
        without="""\
        own.log.crashed("ingest_error")
        return True
""",
        guards="G23: what nobody foresaw is not acknowledged",
        tests=(f"{I_INGEST}::test_a_crash_of_ours_leaves_its_message_alone",),
    ),
    SafetyLine(
        name="ingest: a message is not begun without time to end it",
        file=HANDLER,
        line="    if context.get_remaining_time_in_millis() < ENOUGH_MS:\n",
        without="    if False:\n",
        guards="G23: a message is not half settled",
        tests=(f"{I_INGEST}::test_a_message_is_not_begun_when_its_end_would_not_be_seen",),
    ),
    SafetyLine(
        name="ingest: what was left for lack of time stays",
        file=HANDLER,
        line="""\
        own.log.trouble("left_on_the_queue", detail="no time left")
        return False
""",
        without="""\
        own.log.trouble("left_on_the_queue", detail="no time left")
        return True
""",
        guards="G23: what was not begun is not acknowledged",
        tests=(f"{I_INGEST}::test_a_message_is_not_begun_when_its_end_would_not_be_seen",),
    ),
    SafetyLine(
        name="ingest: each message is reported by itself",
        file=HANDLER,
        line='failed = [record["messageId"] for record in records_of(event) if not _is_settled(record, own, context)]',
        without="""\
failed = [record["messageId"] for record in records_of(event) if _is_settled(record, own, context) is None]""",
        guards="G23: a partial failure names what SQS shall keep",
        tests=(f"{I_INGEST}::test_each_message_of_a_batch_is_settled_by_itself",),
    ),
    SafetyLine(
        name="ingest: only what failed is reported",
        file=HANDLER,
        line='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}\n',
        without="""\
    kept = [record["messageId"] for record in records_of(event) if failed]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}
""",
        guards="G23: what was settled does not come again because of a batch-mate",
        tests=(f"{I_INGEST}::test_each_message_of_a_batch_is_settled_by_itself",),
    ),
    SafetyLine(
        name="inbox: a problem of ours is no end of an event",
        file=MESSAGE,
        line="    raise Unavailable(found.cause or found.detail)\n",
        without='    return Ignored(found.cause or found.detail, found.job_id or "")\n',
        guards="G23: an event that could not be recorded stays in its queue",
        tests=(f"{U_WEBHOOKS}::test_an_event_that_cannot_be_recorded_stays",),
    ),
    SafetyLine(
        name="inbox: an event is an event whatever its body says",
        file=MESSAGE,
        line="""\
    if incoming.source:
        return incoming
    try:
""",
        without="    try:\n",
        guards="G22: a stranger's body that looks like a letter or a notification is not read as one",
        tests=(f"{U_INBOX}::test_an_event_that_looks_like_a_letter_or_a_notification_is_an_event",),
    ),
    SafetyLine(
        name="inbox: a time at the door that cannot be is not believed",
        file=MESSAGE,
        line="        return received if believable else self.sent_at\n",
        without="        return received\n",
        guards="G22: a forged header makes no old event young",
        tests=(f"{U_WEBHOOKS}::test_a_time_at_the_door_that_cannot_be_is_not_believed",),
    ),
    SafetyLine(
        name="ingest: an event as large as SQS takes gets a letter",
        file=MESSAGE,
        line="        if told.size <= MESSAGE_BYTES:\n",
        without='        if told.size <= MESSAGE_BYTES or names == ("reason",):\n',
        guards="G23: what SQS would refuse is no letter, and its message would come back until it is dead",
        tests=(f"{U_INBOX}::test_an_event_as_large_as_sqs_takes_has_as_much_beside_it_as_there_is_room_for",),
    ),
)
