"""A burst that takes a hundred minutes to drain, swept every five: the sweep adds no storm, and ends nothing's wait."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from lambdas.contracts.names import PENDING
from lambdas.core import ids, times
from lambdas.core.policy import Limits
from lambdas.core.ports import Message
from lambdas.core.protocol import Change
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import Stuck
from tests.builders import NOW, any_record, later
from tests.fakes import FakeTurn, FakeWorkers
from tests.fakes_workflows import machines

LIMITS = Limits()
ACK_COST = 0.05  # a message of a job that is done is acknowledged at the price of a twentieth of a job


class Burst:
    """So many jobs accepted at once, their queue, and workers that do `rate` a second: store, queue and outbox in one.

    `lost`: of every so many jobs the first message is lost."""

    def __init__(self, jobs: int, rate: float, *, lost: int = 0) -> None:
        self.at, self.rate = 0.0, rate
        template = any_record()
        self.records: dict[str, dict[str, Any]] = {}
        self.shards: dict[str, list[tuple[str, str]]] = defaultdict(list)
        due = times.text(later(LIMITS.grace_s))
        for number in range(jobs):
            job_id = ids.object_job_id("burst", str(number), "")
            self.records[job_id] = {**template, "pk": job_id, "due_at": due}
            self.shards[ids.due_shard(job_id)].append((due, job_id))
        for shard in self.shards.values():
            shard.sort()
        self.queue = deque(job_id for number, job_id in enumerate(self.records) if not lost or number % lost)
        self.messages = len(self.queue)
        self.waited: dict[str, float] = {}

    def now(self) -> datetime:
        return later(self.at)

    def work(self, seconds: int) -> None:
        """So much time goes by, in which workers take from the queue what they can."""
        for _ in range(seconds):
            self.at += 1
            budget = self.rate
            while budget > 0 and self.queue:
                job_id = self.queue.popleft()
                budget -= ACK_COST if job_id in self.waited else 1
                self.waited.setdefault(job_id, self.at)

    def sweep(self) -> Report:
        report = Report("sweep", "stuck")
        part = Stuck(
            store=self, outbox=self, queue=self, limits=LIMITS, now=self.now,  # type: ignore[arg-type]
            max_tries=lambda job: 5, notice=lambda *a, **k: None, workers=FakeWorkers(), machines=machines(),
        )  # fmt: skip
        assert part.run(report, FakeTurn())
        return report

    # --- as the part sees it ---------------------------------------------------------------------------
    def due(self, shard: str, before: datetime, after: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        at = times.text(before)
        self.shards[shard] = [row for row in self.shards[shard] if row[1] not in self.waited]
        return [row for row in self.shards[shard] if row[0] < at and (after is None or row > after)][:limit]

    def read(self, job_id: str) -> Mapping[str, Any]:
        return self.records[job_id]

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        for job_id, change in changes:
            record, shard = self.records[job_id], self.shards[ids.due_shard(job_id)]
            assert change.rule.name == "push_due"
            assert change.may(record)
            shard.remove((record["due_at"], job_id))
            record["due_at"] = change.sets["due_at"]
            insort(shard, (record["due_at"], job_id))
        return {}

    def depth(self) -> int:
        return len(self.queue)

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        self.messages += len(messages)
        self.queue.extend(message.attributes["job_id"] for message in messages)
        return set()

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        raise AssertionError("nobody failed")

    publish = send_letters


def drained(burst: Burst, within_s: int) -> list[Report]:
    """Sweep every five minutes until all is done."""
    reports = []
    while len(burst.waited) < len(burst.records) and burst.at < within_s:
        burst.work(LIMITS.sweep_period_s)
        reports.append(burst.sweep())
    return reports


def test_the_model_starts_as_a_burst_does() -> None:
    burst = Burst(1_000, 10)
    assert {record["status"] for record in burst.records.values()} == {PENDING}
    assert burst.now() == NOW
    assert sum(map(len, burst.shards.values())) == burst.depth() == 1_000


@pytest.mark.slow
def test_sixty_thousand_jobs_at_ten_a_second_cost_at_most_two_messages_each_and_no_time() -> None:
    burst = Burst(60_000, 10)
    reports = drained(burst, 3 * 3_600)
    assert len(burst.waited) == 60_000
    assert burst.messages <= 2 * 60_000
    assert max(burst.waited.values()) <= 6_000 * 1.05 + 300  # a hundred minutes, and what the repeats cost
    assert sum(report.counts["held_back"] for report in reports) > 60_000  # it was the gate


@pytest.mark.slow
@pytest.mark.parametrize("lost", [2, 7, 100])
def test_those_whose_message_was_lost_are_served_in_the_end_at_the_same_price(lost: int) -> None:
    """The gate counts messages, it cannot know whose they are: nobody waits for ever behind it."""
    burst = Burst(6_000, 10, lost=lost)
    drained(burst, 3 * 3_600)
    assert len(burst.waited) == 6_000
    assert burst.messages <= 2 * 6_000
    assert max(burst.waited.values()) <= 3_600 + 600 + 2 * LIMITS.sweep_period_s
