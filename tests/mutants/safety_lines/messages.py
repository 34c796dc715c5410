"""Safety lines of the worker's messages: buried, hidden, left lying or acknowledged, each by itself."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

BATCH = "core/batch.py"
ENVELOPE = "core/envelope.py"
EVENTS = "adapters/queue_events.py"
I_ORDER = "tests/integration/test_handler_worker_order.py"
I_WORKER = "tests/integration/test_handler_worker.py"
U_BATCH = "tests/unit/test_batch.py"
WORKER = "handlers/worker.py"

LINES = (
    SafetyLine(
        name="message: no job is begun without time to end it",
        file=BATCH,
        line="    if desk.remaining_s() < worker.limits.start_s:\n",
        without="    if False:\n",
        guards="G13, row 5u: a job that cannot end here goes back at once and is not charged",
        tests=(f"{U_BATCH}::test_5u_a_job_for_which_no_time_is_left_is_put_off_and_never_claimed",),
    ),
    SafetyLine(
        name="message: a store that cannot be reached leaves the message",
        file=BATCH,
        line="""\
    except Unavailable as trouble:
        return Failed(str(trouble))
""",
        without="""\
    except Unavailable as trouble:
        return Done("trouble")
""",
        guards="row 3a: what nobody could look at is not acknowledged",
        tests=(f"{U_BATCH}::test_a_store_that_cannot_be_reached_leaves_the_message_on_the_queue",),
    ),
    SafetyLine(
        name="message: a newer version is left for the newer code",
        file=BATCH,
        line='                return Failed(f"schema {schema} is newer than this code: a deploy is under way")\n',
        without='                return Done("newer")\n',
        guards="G17, N15: a message of a later version is not acknowledged by code that cannot read it",
        tests=(f"{U_BATCH}::test_a_newer_message_is_left_for_the_newer_code",),
    ),
    SafetyLine(
        name="message: a newer version is not buried",
        file=ENVELOPE,
        line="""\
    if type(schema) is int and schema > SCHEMA:
        return Newer(schema)
""",
        without="",
        guards="G17: during a deploy no message becomes a letter because of its version",
        tests=("tests/unit/test_envelope.py::test_a_newer_schema_is_left_for_the_newer_code_whatever_else_it_holds",),
    ),
    SafetyLine(
        name="message: its letter is sent before it is acknowledged",
        file=BATCH,
        line="""\
        return Failed(f"its letter could not be sent: {why.reason}")
""",
        without="""\
        pass
""",
        guards="G17, hole 41: what cannot be read is not acknowledged before its letter lies there",
        tests=(f"{U_BATCH}::test_a_message_whose_letter_is_refused_stays_on_the_queue",),
    ),
    SafetyLine(
        name="message: what cannot be read gets a letter",
        file=BATCH,
        line="""\
    if desk.letters.send([Message(written(letter), attributes, "unreadable")]):
""",
        without="""\
    if not letter or not attributes:
""",
        guards="G17: what cannot be read is never only acknowledged",
        tests=(f"{U_BATCH}::test_env_09_what_is_no_message_of_ours_is_buried_at_once_without_a_model_call",),
    ),
    SafetyLine(
        name="message: a record that cannot be read buries its message",
        file=BATCH,
        line="""\
    except UnreadableRecord as broken:
        return _bury(delivery, Unreadable("UNREADABLE_RECORD", str(broken)), desk, notice)
""",
        without="""\
    except UnreadableRecord as broken:
        return Done(str(broken))
""",
        guards="G17: a spoilt record is told to an operator by a letter",
        tests=(f"{U_BATCH}::test_a_record_that_nobody_can_read_buries_its_message_with_the_reason",),
    ),
    SafetyLine(
        name="message: an early one is hidden and reported",
        file=BATCH,
        line="""\
        case claiming.Early(wait_s):
            return Early(wait_s)
""",
        without="""\
        case claiming.Early(wait_s):
            return Done("early")
""",
        guards="row 3a: the only message of a job that waits is not acknowledged",
        tests=(f"{U_BATCH}::test_an_early_message_is_hidden_for_the_rest_of_the_wait",),
    ),
    SafetyLine(
        name="message: a job that is not there makes a letter",
        file=BATCH,
        line='_bury(delivery, Unreadable("UNKNOWN_JOB", "there is no record of this job"), desk, notice)',
        without='Done("there is no record of this job")',
        guards="G17, row 3a: a message for a job that is not there becomes a letter",
        tests=(f"{U_BATCH}::test_an_unknown_job_gets_its_letter_though_no_time_is_left",),
    ),
    SafetyLine(
        name="message: who claims is one invocation and one message",
        file=BATCH,
        line="claim_id=ids.claim_id(delivery.request_id, delivery.message_id),",
        without="claim_id=ids.claim_id(delivery.request_id, hint.job_id),",
        guards="G12, row 3: two messages of one job in one batch do not both believe to hold it",
        tests=(f"{U_BATCH}::test_the_claim_is_named_by_the_invocation_and_the_message",),
    ),
    SafetyLine(
        name="suspects: what was received before runs alone",
        file=BATCH,
        line="    return delivery.receives > 1 or (isinstance(meaning, Hint) and meaning.crashes > 0)\n",
        without="    return isinstance(meaning, Hint) and meaning.crashes > 0\n",
        guards="G16, hole 11: a job that kills its process kills no batch-mates",
        tests=(f"{U_BATCH}::test_what_was_received_before_or_crashed_before_is_a_suspect",),
    ),
    SafetyLine(
        name="suspects: whose job crashed before runs alone",
        file=BATCH,
        line="    return delivery.receives > 1 or (isinstance(meaning, Hint) and meaning.crashes > 0)\n",
        without="    return delivery.receives > 1\n",
        guards="G16, hole 11: a job that the sweep put back after a crash kills no batch-mates",
        tests=(f"{U_BATCH}::test_what_was_received_before_or_crashed_before_is_a_suspect",),
    ),
    SafetyLine(
        name="worker: suspects come after the fresh ones",
        file=WORKER,
        line="""\
    failed = [*at_once(run, fresh), *(delivery.message_id for delivery in suspects if not run(delivery))]
""",
        without="    failed = [*(d.message_id for d in suspects if not run(d)), *at_once(run, fresh)]\n",
        guards="G16, hole 11: the fresh ones have written their outcome before a suspect can kill the process",
        tests=(f"{I_ORDER}::test_the_outcome_of_the_fresh_ones_is_written_before_a_suspect_begins",),
    ),
    SafetyLine(
        name="worker: a fresh message that was not handled is reported",
        file=EVENTS,
        line="zip(deliveries, running, strict=True) if not one.result()]",
        without="zip(deliveries, running, strict=True) if one.result() is None]",
        guards="row 3a: what was not handled is not acknowledged",
        tests=(f"{I_WORKER}::test_batch_12_one_that_cannot_be_claimed_is_reported_and_the_others_are_done",),
    ),
    SafetyLine(
        name="worker: a suspect that was not handled is reported",
        file=WORKER,
        line="*(delivery.message_id for delivery in suspects if not run(delivery))]",
        without="*(delivery.message_id for delivery in suspects if run(delivery) is None)]",
        guards="row 3a: what was not handled is not acknowledged",
        tests=(f"{I_WORKER}::test_batch_12_a_suspect_that_cannot_be_claimed_is_reported_like_a_fresh_one",),
    ),
    SafetyLine(
        name="worker: only what was not handled is reported",
        file=WORKER,
        line='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}',
        without="""\
    return {"batchItemFailures": [{"itemIdentifier": one.message_id} for one in deliveries if failed]}""",
        guards="G16: the messages of batch-mates that were done do not come again",
        tests=(f"{I_WORKER}::test_batch_12_one_that_cannot_be_claimed_is_reported_and_the_others_are_done",),
    ),
    SafetyLine(
        name="worker: every failure is in the report",
        file=WORKER,
        line='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}',
        without='    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed[:1]]}',
        guards="row 3a: a partial failure names all that SQS shall keep",
        tests=(f"{I_WORKER}::test_batch_04_when_all_fail_all_are_reported_and_nothing_is_raised",),
    ),
    SafetyLine(
        name="worker: an error of ours leaves its message",
        file=WORKER,
        line="""\
            own.log.crashed("worker_error")
            return False
""",
        without="""\
            own.log.crashed("worker_error")
            return True
""",
        guards="G16: what nobody foresaw is not acknowledged, and takes no batch-mate with it",
        tests=(f"{I_WORKER}::test_an_error_of_ours_costs_its_own_message_only",),
    ),
    SafetyLine(
        name="worker: an early message is reported",
        file=WORKER,
        line="""\
            lane.queue.hide(delivery.receipt_handle, math.ceil(wait_s) + 1)
            return False
""",
        without="""\
            lane.queue.hide(delivery.receipt_handle, math.ceil(wait_s) + 1)
            return True
""",
        guards="row 3a: the only message of a job that waits is not acknowledged",
        tests=(f"{I_WORKER}::test_an_early_message_is_hidden_until_its_time_and_reported",),
    ),
    SafetyLine(
        name="worker: what was left on the queue is reported",
        file=WORKER,
        line="""\
            own.log.trouble("left_on_the_queue", detail=why)
            return False
""",
        without="""\
            own.log.trouble("left_on_the_queue", detail=why)
            return True
""",
        guards="row 3a: what nobody could look at, or bury, is not acknowledged",
        tests=(f"{I_WORKER}::test_a_message_whose_letter_cannot_be_sent_stays_on_the_queue",),
    ),
    SafetyLine(
        name="worker: no thread outlives its invocation",
        file=EVENTS,
        line="    with ThreadPoolExecutor(max_workers=len(deliveries)) as threads:\n",
        without="""\
    threads = ThreadPoolExecutor(max_workers=len(deliveries))
    if True:
""",
        guards="hole 10: no thread of a frozen environment goes on with a job that it does not hold any more",
        tests=(f"{I_WORKER}::test_no_thread_is_left_when_the_handler_returns",),
    ),
    SafetyLine(
        name="queues: what is no batch of SQS is not answered as handled",
        file=EVENTS,
        line="""\
        raise NoQueueEvent("expected the Records of an SQS queue")
""",
        without="""\
        return []
""",
        guards="row 3a: an answer to what was not understood would delete it",
        tests=(f"{I_WORKER}::test_batch_02_what_is_no_sqs_event_raises",),
    ),
    SafetyLine(
        name="queues: records of another service are not taken for messages",
        file=EVENTS,
        line='isinstance(record, dict) and record.get("eventSource") == "aws:sqs"',
        without="isinstance(record, dict)",
        guards="row 3a: an answer to what was not understood would delete it",
        tests=(f"{I_WORKER}::test_batch_02_a_batch_of_another_source_raises",),
    ),
    SafetyLine(
        name="message: the letter about a message has one id",
        file=ENVELOPE,
        line="    digest = (sha256_of([clean, about]) if about else sha256(clean))[:32]\n",
        without="    digest = sha256_of([clean, times.text(now)])[:32]\n",
        guards="hole 41: a crash between letter and acknowledgement shows as one letter",
        tests=(
            "tests/unit/test_envelope.py::test_repeats_of_an_unreadable_message_have_one_letter_id_and_others_have_another",
        ),
    ),
)
