"""In which order a worker runs a batch: fresh messages at once, suspects one by one after them, none without time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from lambdas.contracts import names
from local.model.server import ModelServer
from tests.integration.cloud import Cloud, Context
from tests.integration.records import pending, processing
from tests.integration.worker_bench import ANSWER, Bench, doing, message, soon


class Watched:
    """A task that says when each of its jobs began and ended."""

    def __init__(self, lasts_s: float = 0.05) -> None:
        self.told: list[tuple[str, str]] = []
        self.lasts_s, self._lock = lasts_s, threading.Lock()

    def __call__(self, task_input: Any, ctx: Any) -> dict[str, Any]:
        self._say("began", ctx.job_id)
        time.sleep(self.lasts_s)
        self._say("ended", ctx.job_id)
        return {}

    def _say(self, what: str, job_id: str) -> None:
        with self._lock:
            self.told.append((what, job_id))

    def at(self, what: str, job: dict[str, Any]) -> int:
        return self.told.index((what, job["pk"]))


@pytest.fixture
def watched(bench: Bench) -> Watched:
    task = Watched()
    bench.task("watched", task)
    return task


def test_fresh_messages_run_at_the_same_time(bench: Bench):
    """All ten meet in the middle of their tasks, or none gets through."""
    together = threading.Barrier(10, timeout=60)

    def meet(task_input: Any, ctx: Any) -> dict[str, Any]:
        together.wait()
        return {}

    bench.task("meet", meet)
    jobs = [bench.job("meet") for _ in range(10)]
    assert bench.run(*map(message, jobs)) == []
    assert [bench.status(job) for job in jobs] == [names.COMPLETED] * 10


class Held:
    """A model's clock: its answers wait until it is let go, and then for nothing."""

    def __init__(self) -> None:
        self.at, self.is_let_go = datetime(2026, 11, 29, tzinfo=UTC), False

    def now(self) -> datetime:
        if self.is_let_go:
            self.at += timedelta(seconds=10)
        return self.at


def test_model_calls_of_a_batch_are_under_way_together(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """While none is answered, all are seen by the provider."""
    jobs, held, under_way = [bench.job(text=f"call {number}") for number in range(8)], Held(), list[int]()

    def watch(model: ModelServer) -> None:
        until = time.monotonic() + 45  # then those that are alone get their answers too
        while max(under_way, default=0) < 8 and time.monotonic() < until:
            under_way.append(sum(call["status"] is None for call in model.calls.listed()))
            time.sleep(0.05)
        model.script.replace([{"answer": ANSWER}])
        held.is_let_go = True

    with ModelServer(clock=held) as model:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", model.url)
        model.script.replace([{"answer": ANSWER, "delay_s": 1}])
        watcher = threading.Thread(target=watch, args=(model,))
        watcher.start()
        assert bench.run(*map(message, jobs)) == []
        watcher.join()
    assert max(under_way) == 8
    assert [bench.status(job) for job in jobs] == [names.COMPLETED] * 8


def test_suspects_run_one_by_one_after_the_fresh_ones(bench: Bench, watched: Watched):
    """Hole 11: a poison kills only itself."""
    again, crashed = bench.job("watched"), bench.job("watched", crashes=1)
    fresh = [bench.job("watched") for _ in range(3)]
    batch = [message(again, receives=2), message(fresh[0]), message(crashed), message(fresh[1]), message(fresh[2])]
    assert bench.run(*batch) == []
    last_fresh = max(watched.at("ended", job) for job in fresh)
    assert last_fresh < watched.at("began", again) < watched.at("ended", again) < watched.at("began", crashed)


def test_a_crash_counted_in_the_message_makes_a_suspect(bench: Bench, watched: Watched):
    job, fresh = bench.job("watched"), bench.job("watched")
    counted = message(job, payload={"attempt": 0, "crashes": 2})
    assert bench.run(counted, message(fresh)) == []
    assert watched.at("ended", fresh) < watched.at("began", job)


def test_the_outcome_of_the_fresh_ones_is_written_before_a_suspect_begins(bench: Bench, cloud: Cloud):
    seen: list[str] = []
    fresh = bench.job()
    bench.task("poison", doing(lambda ctx: seen.append(cloud.record(fresh["pk"])["status"])))
    bench.run(message(bench.job("poison"), receives=3), message(fresh))
    assert seen == [names.COMPLETED]


def test_a_job_is_claimed_only_just_before_it_starts(bench: Bench, cloud: Cloud):
    """Hole 11: what waits for its turn holds no lease and is charged no try when the invocation dies."""
    seen: list[str] = []
    second = bench.job()
    bench.task("first", doing(lambda ctx: seen.append(cloud.record(second["pk"])["status"])))
    bench.run(message(bench.job("first"), receives=2), message(second, receives=2))
    assert seen == [names.PENDING]
    assert bench.status(second) == names.COMPLETED


def test_batch_13_without_time_a_job_goes_back_at_once_and_is_not_charged(bench: Bench, cloud: Cloud):
    job = bench.job()
    assert bench.run(message(job), context=Context(60)) == []  # a call may take 60 s, and 10 s are kept free
    record = cloud.record(job["pk"])
    assert (record["status"], record["attempt"], record["tries"], bench.calls) == (names.PENDING, 0, 0, 0)
    assert soon(0) < record["not_before"] < soon(3)
    assert record["due_at"] == job["due_at"]


def test_batch_13_a_suspect_that_comes_too_late_in_its_batch_goes_back(
    bench: Bench, cloud: Cloud, still: time_machine.Traveller
):
    bench.task("long", doing(lambda ctx: still.shift(80)))
    long, suspect = bench.job("long"), bench.job()
    assert bench.run(message(suspect, receives=2), message(long), context=Context(120)) == []
    assert (bench.status(long), bench.status(suspect), bench.calls) == (names.COMPLETED, names.PENDING, 0)
    assert cloud.record(suspect["pk"])["attempt"] == 0


def test_batch_13_a_second_call_that_could_not_end_in_time_is_not_started(
    bench: Bench, cloud: Cloud, still: time_machine.Traveller
):
    def twice(task_input: Any, ctx: Any) -> dict[str, Any]:
        ctx.model.ask("one")
        still.shift(80)
        ctx.model.ask("two")
        return {}

    bench.task("twice", twice)
    job = bench.job("twice")
    assert bench.run(message(job), context=Context(120)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["tries"], record["error"]["code"]) == (names.PENDING, 0, "OUT_OF_TIME")
    assert bench.calls == 1


def test_n10_a_lapsed_job_without_time_is_left_to_the_sweep(bench: Bench, cloud: Cloud):
    record = cloud.put(processing(lease_s=-5))
    assert bench.run(message(record, receives=2), context=Context(30)) == []
    assert cloud.record(record["pk"]) == record


def test_an_unknown_job_without_time_is_buried_all_the_same(bench: Bench):
    assert bench.run(message(pending()), context=Context(30)) == []
    assert [letter["payload"]["reason"] for letter in bench.letters()] == ["UNKNOWN_JOB"]
