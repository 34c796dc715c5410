"""What ministack does otherwise than AWS, as data. All of it is strict: a gap that has closed turns the run red, so
that this list stays true. What is cut from the template, or added to it, is proved by a failure of its own."""

from __future__ import annotations

from collections.abc import Mapping

# Resource types that it refuses; nothing here depends on them.
UNKNOWN_TYPES: Mapping[str, str] = {
    "AWS::Logs::QueryDefinition": "saved queries of Logs Insights, for people at the console",
}

# Properties for which it fails a resource, by type. Alarms are proved elsewhere (tests/simulation).
UNKNOWN_PROPERTIES: Mapping[str, str] = {"AWS::CloudWatch::Alarm": "Metrics"}

# IAM actions that it asks for instead of AWS's. "Actions, resources, and condition keys for Amazon SQS" (and SNS) has
# none for batches: who may send may send ten at once. Of several versions to delete it takes the first for an object.
ASKED_INSTEAD: Mapping[str, str] = {
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "sqs:DeleteMessage": "sqs:DeleteMessageBatch",
    "sqs:ChangeMessageVisibility": "sqs:ChangeMessageVisibilityBatch",
    "sns:Publish": "sns:PublishBatch",
    "s3:DeleteObjectVersion": "s3:DeleteObject",
}

_PROBES = "tests/ministack/probes.py::test_"
_E2E = "tests/e2e/test_"
_DIRECT = "an HTTP API's way into SQS without a function answers 502"
_SOCKET = "the address of a WebSocket API leads nowhere on this machine"

# The tests that must fail there. A name stands for all of its parameters, unless they are in it.
EXPECTED_FAILURES: Mapping[str, str] = {
    f"{_PROBES}cloudformation_takes_every_type_of_the_stack": "it refuses templates that have them",
    f"{_PROBES}cloudformation_makes_an_alarm_on_metric_math": "the alarm fails, and the stack with it",
    f"{_PROBES}who_may_do_one_may_do_a_batch": "its IAM asks for another action of a batch",
    f"{_PROBES}a_stream_brings_back_what_its_function_reports_as_failed": "partial failures of streams are ignored",
    f"{_PROBES}a_stream_parts_a_batch_that_fails": "bisecting is ignored",
    f"{_PROBES}a_stream_gives_up_after_its_retries_and_leaves_a_letter": "it retries until the record is too old",
    f"{_PROBES}an_error_of_a_function_says_its_type": "every error is Runtime.HandlerError",
    f"{_PROBES}dead_letters_are_moved_back_by_sqs": "StartMessageMoveTask is missing",
    f"{_PROBES}a_queue_has_metrics": "SQS has no metrics",
    f"{_E2E}deployment.py::test_a_table_forgets_by_itself": "CloudFormation drops a table's TTL",
    f"{_E2E}streaming.py::test_a_finished_job_answers_at_once_and_from_any_chunk": _SOCKET,
    f"{_E2E}streaming.py::test_a_job_is_watched_from_its_first_word_to_its_result": _SOCKET,
    f"{_E2E}streaming.py::test_a_job_that_the_ticket_does_not_name_is_not_there": _SOCKET,
    f"{_E2E}streaming.py::test_a_ticket_is_good_once_and_no_other_word_is": _SOCKET,
    f"{_E2E}streaming.py::test_what_makes_no_sense_is_answered_and_does_no_harm": _SOCKET,
    f"{_E2E}streaming.py::test_several_jobs_over_one_connection_and_one_of_them_no_more": _SOCKET,
    f"{_E2E}workflows.py::test_who_watches_is_told_how_far_it_is": _SOCKET,
    f"{_E2E}events.py::test_an_event_becomes_one_job_however_often_it_is_sent[e2e]": _DIRECT,
    f"{_E2E}events.py::test_an_event_that_nobody_signed_is_a_dead_letter_and_no_job[e2e]": _DIRECT,
}
