"""The worker serves two queues: it hides and buries where a message came from. Either may hold any job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts import names
from tests.integration.cloud import Cloud
from tests.integration.events import sqs_record
from tests.integration.records import failed
from tests.integration.worker_bench import Bench, message, returned_letter, soon

QUEUES = {"work": ("work_url", "letters_url"), "urgent": ("urgent_url", "urgent_letters_url")}


def coming_from(url: str, record: dict[str, Any]) -> dict[str, Any]:
    name = url.rpartition("/")[2]
    return {**record, "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{name}"}


@pytest.mark.parametrize("lane", QUEUES)
def test_what_nobody_can_read_is_buried_beside_the_queue_it_came_from(bench: Bench, cloud: Cloud, lane: str):
    queue, letters = (getattr(cloud, name) for name in QUEUES[lane])
    assert bench.run(coming_from(queue, sqs_record("{"))) == []
    assert [one["payload"]["reason"] for one in cloud.bodies(letters)] == ["MALFORMED_MESSAGE"]
    others = [cloud.letters_url, cloud.urgent_letters_url]
    assert [body for other in others if other != letters for body in cloud.bodies(other)] == []


@pytest.mark.parametrize("lane", QUEUES)
def test_an_early_message_is_hidden_in_the_queue_it_came_from(bench: Bench, cloud: Cloud, lane: str):
    queue = getattr(cloud, QUEUES[lane][0])
    cloud.client("sqs").send_message(QueueUrl=queue, MessageBody="{}")
    (received,) = cloud.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    job = bench.job(not_before=soon(60))
    record = {**message(job), "receiptHandle": received["ReceiptHandle"]}
    assert bench.run(coming_from(queue, record)) == [record["messageId"]]
    (hiding,) = [one for one in cloud.wire.sent if one.operation == "ChangeMessageVisibility"]
    assert json.loads(hiding.body)["QueueUrl"] == queue


@pytest.mark.parametrize("lane", QUEUES)
@pytest.mark.parametrize("urgent", [True, False])
def test_either_queue_may_claim_any_job_and_reopen_it(bench: Bench, cloud: Cloud, lane: str, urgent: bool):
    queue = getattr(cloud, QUEUES[lane][0])
    over: dict[str, Any] = {"urgent": True} if urgent else {}
    job, dead = bench.job(**over), cloud.put(failed(**over))
    assert bench.run(coming_from(queue, message(job)), coming_from(queue, returned_letter(dead))) == []
    assert bench.status(job) == names.COMPLETED
    reopened = cloud.record(dead["pk"])
    assert (reopened["status"], reopened.get("urgent", False)) == (names.PENDING, urgent)
