"""Two thousand jobs in three bursts: each processed exactly once and told, no tenant starved, no memory kept."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas.adapters.attributes import from_item
from tests.e2e.target import LocalStack, Subscription, Target, eventually

pytestmark = pytest.mark.slow

BATCH, WORKERS = 10, 10  # messages of an invocation, and invocations at once (MaximumConcurrency, raised)
BIG, SMALL = "big", "small"
BURSTS = (1_000, 500, 500)
PATIENCE_S = 1_200.0
CLIENTS = 8


@dataclass
class Burst:
    """What became of the jobs that were submitted at once."""

    submitted: list[str]
    records: dict[str, dict[str, Any]]
    calls: Counter[str]
    events: list[dict[str, Any]]
    memory: Memory


@dataclass
class Memory:
    """Resident kilobytes when the burst is over and what it stored is deleted."""

    runtime: int
    functions: dict[int, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def bursts() -> Iterator[list[Burst]]:
    """The first burst has one job of another tenant at its very end."""
    local = LocalStack("--settings", "throttle_rate=1000", "throttle_burst=2000")
    try:
        target = local.ready()
        target.control("POST", "concurrency", {"function": "worker", "maximum": WORKERS})
        target.control("POST", "schedules/disable", {"function": "sweep"})  # on a slow machine it keeps books too
        yield [burst(target, local.pid, number, size) for number, size in enumerate(BURSTS)]
    finally:
        local.end()


def burst(target: Target, pid: int, number: int, size: int) -> Burst:
    """All jobs are recorded and on the queue before the first is worked on: nothing depends on who is quicker."""
    target.control("POST", "pause", {"function": "worker"})
    with target.subscribed as subscription:
        with ThreadPoolExecutor(CLIENTS) as clients:
            jobs = list(clients.map(lambda n: submit(target, BIG, f"{number}.{n}"), range(size)))
        if number == 0:
            jobs.append(submit(target, SMALL, "the only one"))
        eventually(lambda: waiting(target), lambda depth: depth == len(jobs), patience_s=PATIENCE_S)
        target.control("POST", "resume", {"function": "worker"})
        found = finished(target, subscription, jobs)
    forget(target)
    return Burst(*found, memory_of(pid))


def submit(target: Target, tenant: str, text: str) -> str:
    return target.submit("summarize", {"text": f"ANN: this is number {text}."}, tenant=tenant)


def waiting(target: Target) -> int:
    name = "ApproximateNumberOfMessages"
    answer = target.sqs.get_queue_attributes(QueueUrl=target.outputs["WorkQueueUrl"], AttributeNames=[name])
    return int(answer["Attributes"][name])


def finished(
    target: Target, subscription: Subscription, jobs: list[str]
) -> tuple[list[str], dict[str, dict[str, Any]], Counter[str], list[dict[str, Any]]]:
    events = subscription.events(lambda seen: {one["run_id"] for one in seen} >= set(jobs), patience_s=PATIENCE_S)
    records = eventually(
        lambda: all_records(target),
        lambda found: all("handed_over_at" in one for one in found.values()),
        patience_s=PATIENCE_S,
    )
    return jobs, records, Counter(call["prompt"] for call in target.model_calls()), events


def all_records(target: Target) -> dict[str, dict[str, Any]]:
    pages = target.client("dynamodb").get_paginator("scan").paginate(TableName=target.outputs["JobsTableName"])
    return {item["pk"]["S"]: from_item(item) for page in pages for item in page["Items"]}


def forget(target: Target) -> None:
    """Delete what is kept on purpose, so that what is left is a leak."""
    for what in ("calls", "invocations"):
        target.control("DELETE", what)
    assert target.request("DELETE", f"{target.model}/_calls").status == 200
    empty_table(target, target.outputs["JobsTableName"], "pk", "sk")
    empty_table(target, target.outputs["AnswersTableName"], "id")
    s3, bucket = target.client("s3"), target.outputs["ResultsBucketName"]
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        objects = [{"Key": one["Key"]} for one in page.get("Contents", [])]
        s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})


def empty_table(target: Target, table: str, *keys: str) -> None:
    dynamodb = target.client("dynamodb")
    for page in dynamodb.get_paginator("scan").paginate(TableName=table):
        deletes = [{"DeleteRequest": {"Key": {key: item[key] for key in keys}}} for item in page["Items"]]
        for start in range(0, len(deletes), 25):
            dynamodb.batch_write_item(RequestItems={table: deletes[start : start + 25]})


def memory_of(pid: int) -> Memory:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in listed.splitlines()]
    family = {pid}
    while grown := {child for child, parent, _ in rows if parent in family} - family:
        family |= grown
    resident = {process: kilobytes for process, _, kilobytes in rows if process in family}
    return Memory(resident.pop(pid), resident)


# --- the promises ------------------------------------------------------------------------------------------------


def test_every_job_of_a_burst_is_processed_exactly_once(bursts: Sequence[Burst]) -> None:
    assert sum(len(one.submitted) for one in bursts) == sum(BURSTS) + 1
    for one in bursts:
        assert one.records.keys() == set(one.submitted)
        ends = Counter((record["status"], record["tries"], record["attempt"]) for record in one.records.values())
        assert ends == {("COMPLETED", 1, 1): len(one.submitted)}
        assert set(one.calls.values()) == {1}  # no prompt was sent twice, and each job has its own
        assert len(one.calls) == len(one.submitted)


def test_every_job_of_a_burst_is_handed_over_and_told_under_one_id(bursts: Sequence[Burst]) -> None:
    """At least once: a slow reply is repeated by the SDK. No event is of another job, attempt or end."""
    for one in bursts:
        assert all("due_shard" not in record for record in one.records.values())
        assert {event["event_id"] for event in one.events} == {f"{job_id}.1.COMPLETED" for job_id in one.submitted}


def test_a_tenants_thousand_jobs_do_not_keep_another_tenants_only_job_waiting(bursts: Sequence[Burst]) -> None:
    """Fair queues: a tenant that has none in flight goes first. So before the small tenant's job, submitted last, is
    claimed, at most those are that were received before it or with it: a batch for each worker. It is finished while
    each of them works on that batch and, at most, on one more. Without fairness it would be the last of all."""
    records = bursts[0].records.values()
    (small,) = [record for record in records if record["tenant"] == SMALL]
    earlier = {name: sum(record[name] < small[name] for record in records) for name in ("claimed_at", "finished_at")}
    assert all(record["created_at"] <= small["created_at"] for record in records)
    assert earlier["claimed_at"] <= BATCH * WORKERS
    assert earlier["finished_at"] <= 2 * BATCH * WORKERS


def test_the_third_burst_leaves_no_memory_behind(bursts: Sequence[Burst]) -> None:
    """The first burst warms up: pools, caches, environments. Twenty-five kilobytes kept for each job would show in the
    runtime, eighty in a worker, which sees a tenth of them; less is what an allocator does not give back."""
    second, third = bursts[1].memory, bursts[2].memory
    assert third.runtime < 1.05 * second.runtime
    both = second.functions.keys() & third.functions.keys()
    assert both
    assert max(third.functions[pid] - second.functions[pid] for pid in both) < 4_000
