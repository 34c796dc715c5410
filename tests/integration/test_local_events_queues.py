"""Queue mappings, schedules and asynchronous invocations against the real queue server, with toy functions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.events.queues import QueueMapping
from local.events.sources import client
from local.runtime import Runtime
from tests.integration.local_toys import Toy, eventually

# Notes what it gets; a body says what becomes of its message.
NOTE = """
import json, os, time

def handler(event, context):
    with open(os.environ["NOTES"], "ab", buffering=0) as notes:
        notes.write(json.dumps(event).encode() + b"\\n")
    bodies = [record.get("body", "") for record in event.get("Records", [])]
    if any(body == "raise" for body in bodies) or event.get("fail"):
        raise ValueError
    if "hang" in bodies:
        time.sleep(3600)
    if "malformed" in bodies:
        return {"batchItemFailures": [{"itemIdentifier": ""}]}
    return {"batchItemFailures": [
        {"itemIdentifier": record["messageId"]} for record in event.get("Records", []) if record["body"] == "fail"
    ]}
"""
LOOP = """
import boto3, os
sqs = boto3.client("sqs")

def handler(event, context):
    for record in event["Records"]:
        sqs.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=str(int(record["body"]) + 1))
"""
# In virtual time, which a test skips; far more than a slow machine needs in real time.
TIMEOUT_S, HIDDEN_S, WINDOW_S = 100, 300, 300
PARTIAL = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}


def redrive(receives: int) -> dict[str, Any]:
    return {"RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Letters", "Arn"]}, "maxReceiveCount": receives}}


class Stage:
    """The runtime with its toys, and what the tests do with it."""

    def __init__(self, runtime: Runtime, notes: Path) -> None:
        self.runtime = runtime
        self.notes = notes
        self.sqs = client("sqs", runtime.aws, "us-east-1")

    def send(self, queue: str, *bodies: str, **more: Any) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.runtime.outputs[queue], MessageBody=body, **more)

    def depth(self, queue: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        got = self.sqs.get_queue_attributes(QueueUrl=self.runtime.outputs[queue], AttributeNames=names)
        return sum(int(value) for value in got["Attributes"].values())

    def seen(self, queue: str) -> list[list[dict[str, Any]]]:
        """The batches that came from a queue, so far."""
        name = self.runtime.outputs[queue].rsplit("/", 1)[-1]
        batches = [event.get("Records", []) for event in self._noted()]
        return [batch for batch in batches if batch and batch[0]["eventSourceARN"].endswith(name)]

    def events(self) -> list[dict[str, Any]]:
        """The events that came from no queue."""
        return [event for event in self._noted() if "Records" not in event]

    def _noted(self) -> list[dict[str, Any]]:
        whole, _, _ = (self.notes.read_text() if self.notes.exists() else "").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def until_done(self, role: str) -> None:
        """With what its queue has handed out: no invocation is under way, and what succeeded has been deleted."""
        (mapping,) = [one for one in self.runtime.sources.mappings if one.role == role]
        assert isinstance(mapping, QueueMapping)
        eventually(lambda: not self.runtime.functions.running(role) and not mapping._invoking)

    def leap(self, seconds: float) -> None:
        """Where no invocation is under way."""
        with self.runtime.functions.at_rest(60):
            self.runtime.clock.advance(seconds)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("queues")
    toy, notes = Toy(folder), folder / "notes"
    queues: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "partial": (PARTIAL, redrive(3)),
        "whole": ({}, redrive(3)),
        "filtered": ({"FilterCriteria": {"Filters": [{"Pattern": '{"body": {"kind": ["wanted"]}}'}]}}, {}),
        "windowed": ({"MaximumBatchingWindowInSeconds": WINDOW_S, "BatchSize": 25}, {"VisibilityTimeout": 3_600}),
    }
    toy.queue("Letters", VisibilityTimeout=0)
    for role, (mapping, queue) in queues.items():
        toy.function(role, NOTE, environment={"NOTES": str(notes)}, Timeout=TIMEOUT_S)
        toy.queue(f"{role.title()}Queue", **{"VisibilityTimeout": HIDDEN_S, **queue})
        toy.mapping(role, f"{role.title()}Queue", **mapping)
    toy.queue("LoopQueue", VisibilityTimeout=HIDDEN_S)
    toy.function("loop", LOOP, environment={"QUEUE": {"Ref": "LoopQueue"}}, Timeout=TIMEOUT_S)
    toy.mapping("loop", "LoopQueue")
    toy.function("timed", NOTE, environment={"NOTES": str(notes)}, Timeout=TIMEOUT_S)
    toy.schedule("timed", "rate(10 days)", {"when": "<aws.scheduler.scheduled-time>"})
    toy.function("failing", NOTE, environment={"NOTES": str(notes)}, Timeout=TIMEOUT_S)
    toy.schedule("failing", "rate(100 days)", {"fail": True})
    toy.resources["FailingConfig"] = {
        "Type": "AWS::Lambda::EventInvokeConfig",
        "Properties": {
            "FunctionName": {"Ref": "Failing"},
            "Qualifier": "$LATEST",
            "MaximumRetryAttempts": 1,
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Letters", "Arn"]}}},
        },
    }
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        stage = Stage(runtime, notes)
        yield stage
        stage.sqs.close()


@pytest.fixture(autouse=True)
def clean(stage: Stage) -> None:
    """Every test begins with empty queues and notes."""
    functions = stage.runtime.functions
    for role in functions.roles:
        functions.pause(role)
    eventually(lambda: not functions.running())
    for mapping in stage.runtime.sources.mappings:
        stage.until_done(mapping.role)
    stage.runtime.clock.advance(61)  # SQS allows one purge a minute
    for name in stage.runtime.outputs:
        stage.sqs.purge_queue(QueueUrl=stage.runtime.outputs[name])
    for role in functions.roles:
        functions.resume(role)
    stage.notes.unlink(missing_ok=True)


def more_batches(stage: Stage, than: int, queue: str = "PartialQueue") -> None:
    eventually(lambda: len(stage.seen(queue)) > than)


def test_message_that_succeeded_is_deleted(stage):
    stage.send("PartialQueue", "one")
    eventually(lambda: stage.seen("PartialQueue") and stage.depth("PartialQueue") == 0)


def test_moto_01_only_the_reported_message_stays_in_the_queue(stage):
    stage.runtime.functions.pause("partial")
    stage.send("PartialQueue", "good", "fail", "good")
    stage.runtime.functions.resume("partial")
    eventually(lambda: stage.depth("PartialQueue") == 1)
    stage.leap(HIDDEN_S + 1)
    retried = eventually(lambda: [b for b in stage.seen("PartialQueue") if len(b) == 1])
    assert retried[0][0]["body"] == "fail"


def test_batch_is_assembled_from_what_is_there(stage):
    stage.runtime.functions.pause("partial")
    stage.send("PartialQueue", *map(str, range(23)))
    stage.runtime.functions.resume("partial")
    eventually(lambda: sum(map(len, stage.seen("PartialQueue"))) == 23)
    assert sorted(map(len, stage.seen("PartialQueue"))) == [3, 10, 10]


def test_moto_02_receive_count_and_attributes_are_the_messages_own(stage):
    attributes = {
        "traceparent": {"DataType": "String", "StringValue": "00-ab-cd-01"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    }
    stage.send("PartialQueue", "fail", MessageAttributes=attributes, MessageGroupId="acme")
    for number in range(2):
        more_batches(stage, number)
        stage.until_done("partial")
        stage.leap(HIDDEN_S + 1)
    more_batches(stage, 2)
    record = stage.seen("PartialQueue")[2][0]
    assert record["attributes"]["ApproximateReceiveCount"] == "3"
    assert record["attributes"]["MessageGroupId"] == "acme"
    assert int(record["attributes"]["SentTimestamp"]) <= int(record["attributes"]["ApproximateFirstReceiveTimestamp"])
    assert record["messageAttributes"]["traceparent"] == {
        "stringValue": "00-ab-cd-01",
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": "String",
    }
    assert record["messageAttributes"]["blob"]["binaryValue"] == "AAE="
    assert (record["eventSource"], record["awsRegion"]) == ("aws:sqs", "us-east-1")
    assert record["eventSourceARN"].startswith("arn:aws:sqs:us-east-1:123456789012:")
    assert len(record["md5OfBody"]) == 32


@pytest.mark.parametrize("body", ["raise", "malformed", "hang"])
def test_error_malformed_answer_or_timeout_leaves_the_whole_batch(stage, body):
    stage.runtime.functions.pause("partial")
    stage.send("PartialQueue", "good", body)
    stage.runtime.functions.resume("partial")
    eventually(lambda: stage.seen("PartialQueue"))
    stage.runtime.clock.advance(TIMEOUT_S + 1 if body == "hang" else 0)
    stage.until_done("partial")
    assert stage.depth("PartialQueue") == 2


def test_batch_11_without_the_response_type_a_reported_failure_is_deleted(stage):
    stage.send("WholeQueue", "fail")
    eventually(lambda: stage.seen("WholeQueue") and stage.depth("WholeQueue") == 0)


def test_message_that_was_received_too_often_goes_to_the_dead_letters(stage):
    stage.send("WholeQueue", "raise")
    for count in range(1, 4):
        more_batches(stage, count - 1, "WholeQueue")
        stage.until_done("whole")
        stage.leap(HIDDEN_S + 1)
    eventually(lambda: stage.depth("Letters") == 1)
    assert len(stage.seen("WholeQueue")) == 3


def test_messages_that_no_filter_wants_are_deleted_unseen(stage):
    stage.send("FilteredQueue", '{"kind": "other"}', "no json", '{"kind": "wanted"}')
    eventually(lambda: stage.depth("FilteredQueue") == 0)
    bodies = [record["body"] for batch in stage.seen("FilteredQueue") for record in batch]
    assert bodies == ['{"kind": "wanted"}']


def test_window_gathers_more_than_one_receive_and_closes_in_virtual_time(stage):
    stage.send("WindowedQueue", *map(str, range(12)))
    eventually(lambda: stage.depth("WindowedQueue") == 12)
    assert stage.seen("WindowedQueue") == []
    eventually(lambda: stage.sqs.get_queue_attributes(
        QueueUrl=stage.runtime.outputs["WindowedQueue"], AttributeNames=["ApproximateNumberOfMessagesNotVisible"]
    )["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "12")  # fmt: skip
    stage.runtime.clock.advance(WINDOW_S)
    eventually(lambda: [len(batch) for batch in stage.seen("WindowedQueue")] == [12])


def test_paused_function_receives_nothing(stage):
    stage.runtime.functions.pause("partial")
    stage.send("PartialQueue", "waits")
    attributes = stage.sqs.receive_message(
        QueueUrl=stage.runtime.outputs["PartialQueue"], AttributeNames=["All"], VisibilityTimeout=0, WaitTimeSeconds=1
    )["Messages"][0]["Attributes"]
    assert attributes["ApproximateReceiveCount"] == "1"
    stage.runtime.functions.resume("partial")
    eventually(lambda: stage.seen("PartialQueue"))


def test_disabled_mapping_receives_nothing_until_enabled(stage):
    mapping = next(item for item in stage.runtime.sources.mappings if item.role == "partial")
    mapping.disable()
    stage.send("PartialQueue", "waits")
    time.sleep(0.4)  # longer than a mapping waits between two looks
    assert stage.depth("PartialQueue") == 1
    assert stage.seen("PartialQueue") == []
    mapping.enable()
    eventually(lambda: stage.seen("PartialQueue"))


def test_sqs_20_function_that_calls_itself_through_its_queue_is_cut_after_16_rounds(stage):
    stage.runtime.functions.history.clear()
    stage.send("LoopQueue", "1")
    eventually(lambda: stage.depth("LoopQueue") == 0 and not stage.runtime.functions.running("loop"), 240)
    rounds = [outcome for outcome in list(stage.runtime.functions.history) if outcome.function == "loop"]
    assert len(rounds) == 16


# --- schedules and asynchronous invocations --------------------------------------------------------------


def test_schedule_fires_once_after_a_skip_however_long(stage):
    stage.runtime.clock.advance(35 * 24 * 3600)
    eventually(lambda: [event for event in stage.events() if "when" in event])
    time.sleep(0.3)
    assert len([event for event in stage.events() if "when" in event]) == 1
    stage.leap(10 * 24 * 3600)
    eventually(lambda: len([event for event in stage.events() if "when" in event]) == 2)
    when = next(event for event in stage.events() if "when" in event)["when"]
    assert when.endswith("Z")


def test_schedule_can_be_run_at_once(stage):
    outcome = stage.runtime.sources.schedules.run("timed")
    assert outcome.ok
    assert [list(event) for event in stage.events()] == [["when"]]


def test_failed_asynchronous_invocation_is_retried_as_configured_then_reported(stage):
    stage.runtime.sources.invoker.submit("failing", {"fail": True, "number": 1})
    eventually(lambda: len(stage.events()) == 1)
    stage.leap(61)
    eventually(lambda: len([event for event in stage.events() if event.get("number") == 1]) == 2)
    eventually(lambda: stage.depth("Letters") == 1)
    url = stage.runtime.outputs["Letters"]
    letter = json.loads(stage.sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"])
    assert letter["requestContext"]["condition"] == "RetriesExhausted"
    assert letter["requestContext"]["approximateInvokeCount"] == 2
    assert letter["requestPayload"] == {"fail": True, "number": 1}
