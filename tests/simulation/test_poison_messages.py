"""What nobody can read is buried with its reason, at once and unpaid; what is only not for now is left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.contracts.names import COMPLETED, FAILED
from tests.builders import any_envelope, any_hint_body, any_letter_body
from tests.e2e.target import eventually
from tests.simulation.own_tasks import LiveStack, Record

VISIBILITY_S = 720

UNREADABLE = {
    "not JSON": ("Hello, is anybody there?", "MALFORMED_MESSAGE"),
    "a space": (" ", "MALFORMED_MESSAGE"),
    "cut": (any_hint_body()[:-1], "MALFORMED_MESSAGE"),
    "two documents": ("{}{}", "MALFORMED_MESSAGE"),
    "a name twice": ('{"schema": 1, "schema": 2}', "MALFORMED_MESSAGE"),
    "nan": ('{"schema": NaN}', "MALFORMED_MESSAGE"),
    "half a surrogate": ('{"run_id": "\\ud800"}', "MALFORMED_MESSAGE"),
    "a tower": ("[" * 100_000, "MALFORMED_MESSAGE"),
    "a huge number": ('{"schema": ' + "9" * 5_000 + "}", "MALFORMED_MESSAGE"),
    "binary-looking": ("".join(chr(code) for code in range(0x80, 0x100)) * 50, "MALFORMED_MESSAGE"),
    "oversize": ("\N{GRINNING FACE}" * 200_000, "MALFORMED_MESSAGE"),
    "null": ("null", "INVALID_ENVELOPE"),
    "an empty object": ("{}", "INVALID_ENVELOPE"),
    "an empty list": ("[]", "INVALID_ENVELOPE"),
    "an empty text": ('""', "INVALID_ENVELOPE"),
    "another schema": (json.dumps({"job": "1", "tenant": "acme"}), "INVALID_ENVELOPE"),
    "an S3 event": (json.dumps({"Records": [{"eventSource": "aws:s3", "s3": {}}]}), "INVALID_ENVELOPE"),
    "a version in words": (json.dumps(any_envelope(schema="1")), "INVALID_ENVELOPE"),
    "an attempt in words": (any_hint_body(attempt="one"), "INVALID_ENVELOPE"),  # type: ignore[arg-type]
    "an unknown field": (json.dumps(any_envelope(priority="high")), "INVALID_ENVELOPE"),
    "an old version": (json.dumps(any_envelope(schema=0)), "UNSUPPORTED_SCHEMA"),
    "a foreign event": (json.dumps(any_envelope(event_type="job.completed")), "FOREIGN_EVENT"),
    "an unknown job": (any_hint_body("f" * 32), "UNKNOWN_JOB"),
    "a letter of an unknown job": (any_letter_body("e" * 32), "UNKNOWN_JOB"),
}


def put(live: LiveStack, *bodies: str) -> None:
    """On the work queue, as anybody might who has the permission."""
    for body in bodies:
        live.sqs.send_message(QueueUrl=live.outputs["WorkQueueUrl"], MessageBody=body, MessageGroupId="anybody")


def letters(live: LiveStack, queue: str = "WorkDlqUrl") -> list[dict[str, Any]]:
    """All that lies there; it is empty afterwards."""
    return [json.loads(message["Body"]) for message in live.empty(queue)]


def worked_off(live: LiveStack) -> None:
    eventually(live.depth, lambda depth: depth["visible"] + depth["in_flight"] == 0)


@pytest.fixture
def failed_job(live: LiveStack) -> Record:
    """A FAILED job, and the letter about it alone in the dead-letter queue."""
    live.empty("WorkDlqUrl")
    (job,) = live.settle(live.submit("misbehave", {"how": "set"}))
    assert job["status"] == FAILED
    return job


# --- on the work queue -------------------------------------------------------------------------------------------
def test_what_nobody_can_read_is_buried_at_once_with_its_reason_and_harms_nobody(live: LiveStack, nonce: str) -> None:
    live.empty("WorkDlqUrl")
    calls = len(live.model_calls())
    live.control("POST", "pause", {"function": "worker"})
    innocents = []
    for number, (body, _) in enumerate(UNREADABLE.values()):
        put(live, body)
        if number % 8 == 0:
            innocents.append(live.submit("ask", {"prompt": f"{nonce} {number}"}))
    eventually(live.depth, lambda depth: depth["visible"] == len(UNREADABLE) + len(innocents))
    live.control("DELETE", "invocations")
    live.control("POST", "resume", {"function": "worker"})
    worked_off(live)
    found = {letter["payload"]["body"]: letter["payload"]["reason"] for letter in letters(live)}
    told = {name: body[:10_000] if name == "oversize" else body for name, (body, _) in UNREADABLE.items()}
    assert found == {told[name]: reason for name, (_, reason) in UNREADABLE.items()}
    jobs = live.settle(*innocents)
    assert {(job["status"], job["tries"]) for job in jobs} == {(COMPLETED, 1)}
    assert len(live.model_calls()) - calls == len(innocents)
    worked = [one for one in live.control("GET", "invocations")["invocations"] if one["function"] == "worker"]
    assert all(one["ok"] and not one["result"]["batchItemFailures"] for one in worked)


def test_one_message_sent_twice_is_two_letters_under_one_id(live: LiveStack) -> None:
    live.empty("WorkDlqUrl")
    put(live, "twice", "twice")
    worked_off(live)
    one, other = letters(live)
    assert one["event_id"] == other["event_id"]


def test_a_message_of_a_newer_version_is_left_for_code_that_can_read_it(live: LiveStack, nonce: str) -> None:
    live.empty("WorkDlqUrl")
    put(live, json.dumps(any_envelope(schema=2, something="new")))
    (job,) = live.settle(live.submit("ask", {"prompt": nonce}))
    assert job["status"] == COMPLETED
    eventually(live.depth, lambda depth: depth == {"visible": 0, "in_flight": 1, "delayed": 0})
    assert letters(live) == []
    for _ in range(5):  # nobody came: SQS itself puts it aside, as it is
        live.leap(VISIBILITY_S + 1)
        eventually(lambda: (live.depth()["visible"], live.busy("worker")), lambda found: found == (0, False))
    worked_off(live)
    (letter,) = letters(live)
    assert (letter["schema"], letter["something"]) == (2, "new")


# --- dead letters that come back ---------------------------------------------------------------------------------
def test_a_letter_without_a_source_needs_a_destination(live: LiveStack, failed_job: Record) -> None:
    source = live.arn("WorkDlqUrl")
    live.sqs.start_message_move_task(SourceArn=source)
    (task,) = live.sqs.list_message_move_tasks(SourceArn=source)["Results"]
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert live.found(failed_job["pk"]) == failed_job
    live.sqs.start_message_move_task(SourceArn=source, DestinationArn=live.arn("WorkQueueUrl"))
    (job,) = live.pass_time([failed_job["pk"]], lambda record: record["run"] == 1 and "handed_over_at" in record)
    assert (job["status"], job["tries"], job["attempt"]) == (FAILED, 1, failed_job["attempt"] + 2)


def test_a_letter_that_comes_back_three_times_reopens_its_job_once(live: LiveStack, failed_job: Record) -> None:
    (letter,) = live.empty("WorkDlqUrl")
    live.control("POST", "pause", {"function": "worker"})
    put(live, *[letter["Body"]] * 3)
    live.control("POST", "resume", {"function": "worker"})
    (job,) = live.pass_time([failed_job["pk"]], lambda record: record["run"] == 1 and "handed_over_at" in record)
    worked_off(live)
    assert (job["run"], job["tries"]) == (1, 1)
    assert live.found(job["pk"]) == job
    (again,) = letters(live)
    assert again["payload"]["attempt"] == job["attempt"]


def test_a_stale_letter_changes_nothing(live: LiveStack, failed_job: Record) -> None:
    (letter,) = live.empty("WorkDlqUrl")
    put(live, letter["Body"])
    live.pass_time([failed_job["pk"]], lambda record: record["run"] == 1 and "handed_over_at" in record)
    worked_off(live)
    before = live.found(failed_job["pk"])
    put(live, letter["Body"], any_letter_body(failed_job["pk"], attempt=0))
    worked_off(live)
    assert live.found(failed_job["pk"]) == before


def test_a_letter_of_a_job_that_is_not_dead_changes_nothing(live: LiveStack, nonce: str) -> None:
    done = live.submit("ask", {"prompt": nonce})
    (job,) = live.settle(done)
    waiting = live.submit("poll", {"polls": 2, "retry_after": 800})
    live.pass_time([waiting], lambda record: record.get("waits", 0) == 1)
    before = live.found(waiting)
    put(live, any_letter_body(done, attempt=job["attempt"]), any_letter_body(waiting, attempt=before["attempt"]))
    worked_off(live)
    assert live.found(done) == job
    assert live.found(waiting) == before
    (ended,) = live.settle(waiting)
    assert (ended["status"], ended["run"]) == (COMPLETED, 0)


def test_an_ordinary_message_reopens_nothing(live: LiveStack, failed_job: Record) -> None:
    put(live, *[any_hint_body(failed_job["pk"], attempt=attempt) for attempt in range(4)])
    worked_off(live)
    assert live.found(failed_job["pk"]) == failed_job


# --- on the stream, and in the index -----------------------------------------------------------------------------
def edit(live: LiveStack, job_id: str, **values: Any) -> None:
    """As somebody does by hand in the console."""
    names = {f"#{name}": name for name in values}
    live.client("dynamodb").update_item(
        TableName=live.outputs["JobsTableName"],
        Key={"pk": {"S": job_id}, "sk": {"S": "job"}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
    )


def delete(live: LiveStack, *job_ids: str) -> None:
    for job_id in job_ids:
        live.client("dynamodb").delete_item(
            TableName=live.outputs["JobsTableName"], Key={"pk": {"S": job_id}, "sk": {"S": "job"}}
        )


HEARD: Sequence[dict[str, Any]] = (
    {"attempt": {"S": "one"}},
    {"attempt": {"N": "1.5"}},
    {"not_before": {"S": "tomorrow"}},
    {"deadline_at": {"NULL": True}},
    {"attempt": {"N": "7"}, "tenant": {"M": {}}},
    {"attempt": {"N": "8"}, "error": {"S": "it broke"}},
)
UNHEARD: Sequence[dict[str, Any]] = (
    {"status": {"S": "DONE"}},
    {"status": {"N": "1"}},
    {"tries": {"S": "many"}},
)


@pytest.mark.parametrize("values", [*HEARD, *UNHEARD], ids=str)
def test_a_record_that_was_spoilt_by_hand_holds_up_neither_the_stream_nor_the_sweep(
    live: LiveStack, nonce: str, values: dict[str, Any]
) -> None:
    live.empty("DispatchDlqUrl")
    later = live.now + timedelta(minutes=30)
    spoilt = live.submit("ask", {"prompt": f"{nonce} spoilt"}, not_before=later.isoformat())
    try:
        edit(live, spoilt, **values)
        waiting = live.submit("poll", {"polls": 1, "retry_after": 2_000})
        live.pass_time([waiting], lambda record: record.get("waits", 0) == 1)  # behind it in the stream
        reasons = [letter["payload"]["reason"] for letter in letters(live, "DispatchDlqUrl")]
        buried = [reason for reason in reasons if reason != "RECORD_LOST"]  # what is deleted by hand below
        assert buried == ["UNREADABLE_RECORD"] * (values in HEARD)
        live.leap(2_100)  # both are due
        swept = live.sweep()
        assert (swept["unreadable"], swept["complete"]) == (1, True)
        (found,) = live.settle(waiting)
        assert found["status"] == COMPLETED
        assert not live.model_calls(f"{nonce} spoilt")
    finally:
        delete(live, spoilt)


@pytest.mark.parametrize(
    "values", [{"attempt": {"S": "one"}}, {"tries": {"S": "many"}}, {"status": {"S": "DONE"}}], ids=str
)
def test_a_message_about_a_spoilt_record_harms_nobody_beside_it(
    live: LiveStack, nonce: str, values: dict[str, Any]
) -> None:
    live.control("POST", "pause", {"function": "worker"})
    spoilt, sound = live.submit("ask", {"prompt": f"{nonce} spoilt"}), live.submit("ask", {"prompt": nonce})
    try:
        eventually(live.depth, lambda depth: depth["visible"] == 2)
        edit(live, spoilt, **values)
        before = live.found(spoilt)
        live.control("POST", "resume", {"function": "worker"})
        (job,) = live.settle(sound)
        assert (job["status"], job["tries"]) == (COMPLETED, 1)
        assert live.found(spoilt) == before
        assert not live.model_calls(f"{nonce} spoilt")
    finally:
        delete(live, spoilt)
        live.leap(VISIBILITY_S + 1)
        worked_off(live)


def test_sqs_refuses_what_is_empty_or_no_character(live: LiveStack) -> None:
    for body in ("", "a\x0bb", "\x00", "\uffff"):
        with pytest.raises(ClientError):
            put(live, body)
