"""Many jobs at once, at several widths: nothing twice, nothing lost, every one told."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.target import Target, eventually

pytestmark = [pytest.mark.local_only, pytest.mark.slow]

JOBS = 300


@pytest.mark.parametrize("width", [1, 5, 50])
def test_three_hundred_jobs_are_each_processed_once_and_told(target: Target, nonce: str, width: int) -> None:
    target.control("POST", "concurrency", {"function": "worker", "maximum": width})
    with target.subscribed as subscription:
        jobs = [target.submit("summarize", {"text": f"ANN: {width} {n} {nonce}"}) for n in range(JOBS)]
        events = subscription.events(lambda found: {e["run_id"] for e in found} >= set(jobs), patience_s=900)
        mine = [event for event in events if event["run_id"] in set(jobs)]
        assert {event["event_id"] for event in mine} == {f"{job_id}.1.COMPLETED" for job_id in jobs}
    finals = target.finals(jobs)
    assert Counter((job["status"], job["tries"], job["attempt"]) for job in finals) == {("COMPLETED", 1, 1): JOBS}
    assert len(target.model_calls(nonce)) == JOBS


def test_a_batch_of_ten_jobs_stays_within_the_budget_of_calls_and_write_units(target: Target, nonce: str) -> None:
    """At most 7 AWS calls besides S3 and the model, and 10 write units, for a job's whole life at batch size 10."""
    target.control("POST", "pause", {"function": "dispatch"})
    target.control("POST", "pause", {"function": "worker"})
    target.control("DELETE", "calls")
    jobs = [target.submit("summarize", {"text": f"ANN: budget {n} {nonce}"}) for n in range(10)]
    target.control("POST", "resume", {"function": "dispatch"})
    eventually(lambda: waiting(target), lambda number: number == len(jobs))
    target.control("POST", "pause", {"function": "dispatch"})  # else their ends come one by one, on a slow machine
    target.control("POST", "resume", {"function": "worker"})
    eventually(lambda: {target.job(job_id)["status"] for job_id in jobs}, lambda found: found == {"COMPLETED"})
    target.control("POST", "resume", {"function": "dispatch"})
    target.finals(jobs)
    calls = [call for call in target.control("GET", "calls")["calls"] if call["function"] in _OF_A_JOB]
    stores = [call for call in calls if call["service"] not in ("s3", "bedrock", "bedrock-runtime")]
    told = Counter((call["function"], call["service"], call["operation"]) for call in stores)
    assert len(stores) / 10 <= 7, told
    assert sum(call["write_units"] for call in stores) / 10 <= 10, told
    for job_id in jobs:
        assert size_of(target.record(job_id)) <= 1_024


def waiting(target: Target) -> int:
    name = "ApproximateNumberOfMessages"
    told = target.sqs.get_queue_attributes(QueueUrl=target.outputs["WorkQueueUrl"], AttributeNames=[name])
    return int(told["Attributes"][name])


_OF_A_JOB = ("accept", "dispatch", "worker")


def size_of(item: dict[str, dict[str, object]]) -> int:
    """Bytes of an item as DynamoDB counts them: names, and values by their kind."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(attribute: dict[str, object]) -> int:
    ((kind, value),) = attribute.items()
    match kind, value:
        case "S", str():
            return len(value.encode())
        case "N", str():
            return 1 + (len(value.strip("-").replace(".", "")) + 1) // 2
        case "L", list():
            return 3 + sum(1 + _size(part) for part in value)
        case "M", dict():
            return 3 + sum(1 + len(name.encode()) + _size(part) for name, part in value.items())
        case _:
            return 1
