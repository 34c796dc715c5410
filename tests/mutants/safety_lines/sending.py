"""Safety lines of what is sent: who must hear of a change, and what a queue or topic did not take."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

BATCHING = "adapters/batching.py"
IDS = "core/ids.py"
I_QUEUES = "tests/integration/test_adapter_queues.py"
OUTBOX = "adapters/outbox.py"
ROUTING = "core/routing.py"
SNS = "adapters/sns.py"
SQS = "adapters/sqs.py"
U_ROUTING = "tests/unit/test_routing.py"

LINES = (
    SafetyLine(
        name="routing: a failure has a letter",
        file=ROUTING,
        line="letter=letter(job, now) if job.status == FAILED else None,",
        without="letter=None,",
        guards="G9, G17: every FAILED job has a letter",
        tests=(f"{U_ROUTING}::test_every_final_state_is_published_and_only_a_failure_has_a_letter",),
    ),
    SafetyLine(
        name="routing: no message comes before its job may be claimed",
        file=ROUTING,
        line="    delay = math.ceil(wait) + 1 if wait > SKEW_S else 0 ",
        without="    delay = math.floor(wait) if wait > SKEW_S else 0 ",
        guards="N11: an early message would be received twice, and become a suspect",
        tests=(f"{U_ROUTING}::test_n11_a_delay_is_rounded_up_and_a_second_longer_but_never_above_fifteen_minutes",),
    ),
    SafetyLine(
        name="routing: the hint carries the crashes",
        file=ROUTING,
        line='{"attempt": job.attempt, "crashes": job.crashes}',
        without='{"attempt": job.attempt, "crashes": 0}',
        guards="G16, hole 11: who crashed before is known before it is claimed",
        tests=(f"{U_ROUTING}::test_the_hint_carries_the_attempt_and_the_crashes_and_is_grouped_by_tenant",),
    ),
    SafetyLine(
        name="routing: one fact has one id",
        file=IDS,
        line='    return f"{job_id}.{attempt}.{status}"\n',
        without='    return f"{job_id}.{status}"\n',
        guards="G9, hole 28: an end of another opening is another event",
        tests=("tests/unit/test_ids.py::test_a_fact_has_one_event_id_whoever_publishes_it",),
    ),
    SafetyLine(
        name="queues: SQS's own answer is looked at",
        file=SQS,
        line="""\
        return self._client.send_message_batch(QueueUrl=self._url, Entries=entries)  # type: ignore[no-any-return]
""",
        without="""\
        self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        return {}
""",
        guards="G9, G17: a 200 with entries that failed is not taken for sent",
        tests=(f"{I_QUEUES}::test_sqs_14_what_the_service_says_that_it_did_not_take_is_told",),
    ),
    SafetyLine(
        name="topic: SNS's own answer is looked at",
        file=SNS,
        line="""\
        return self._client.publish_batch(  # type: ignore[no-any-return]
            TopicArn=self._arn, PublishBatchRequestEntries=entries
        )
""",
        without="""\
        self._client.publish_batch(TopicArn=self._arn, PublishBatchRequestEntries=entries)
        return {}
""",
        guards="G9: a 200 with entries that failed is not taken for published",
        tests=(f"{I_QUEUES}::test_sqs_14_what_the_service_says_that_it_did_not_take_is_told",),
    ),
    SafetyLine(
        name="queues: what SQS did not take of a batch is told",
        file=BATCHING,
        line='        failed = {int(entry["Id"]) for entry in answer.get("Failed", [])}\n',
        without="        failed: set[int] = set()\n",
        guards="G9: a 200 with entries that failed is not taken for sent",
        tests=(f"{I_QUEUES}::test_sqs_14_what_is_refused_to_the_end_is_told_by_its_position",),
    ),
    SafetyLine(
        name="queues: a batch that could not be sent is told",
        file=BATCHING,
        line="            return set(left)  # the client has made its own attempts\n",
        without="            return set()\n",
        guards="G9, G17: nothing is marked or acknowledged whose message nobody has",
        tests=(f"{I_QUEUES}::test_a_queue_that_refuses_everything_has_taken_nothing",),
    ),
    SafetyLine(
        name="queues: what is left after all tries is told",
        file=BATCHING,
        line="""\
            break
    return set(left)
""",
        without="""\
            break
    return set()
""",
        guards="G9: what was refused to the end is not taken for sent",
        tests=(f"{I_QUEUES}::test_sqs_14_what_is_refused_to_the_end_is_told_by_its_position",),
    ),
    SafetyLine(
        name="queues: every batch tells what it refused",
        file=BATCHING,
        line="        refused |= _deliver(",
        without="        refused = _deliver(",
        guards="G9: the failures of one batch are not forgotten over those of the next",
        tests=(f"{I_QUEUES}::test_a_batch_that_cannot_be_sent_takes_no_other_with_it",),
    ),
    SafetyLine(
        name="outbox: what one queue refused is told by its position among all",
        file=OUTBOX,
        line="            refused |= {chosen[index] for index in send([messages[position] for position in chosen])}\n",
        without="            refused |= send([messages[position] for position in chosen])\n",
        guards="G9: the record that failed comes again, not its neighbour",
        tests=(f"{I_QUEUES}::test_what_one_queue_refuses_is_told_by_its_position_among_all",),
    ),
)
