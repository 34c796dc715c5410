"""A sweep that is killed at any of its calls to AWS: the next one finishes the work, and nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from moto.sqs.models import sqs_backends

from lambdas.adapters import clock
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.contracts import names
from lambdas.core import times
from lambdas.core.sweeping import listeners
from lambdas.core.webhooks.schedule import TRIES_MAX
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.records import claimed, completed, failed, pending, planned, processing
from tests.integration.test_handler_sweep import due
from tests.integration.wire import Wire
from tests.integration.worker_bench import soon

PARTS = ["stuck", "letters", "uploads", "drift"]
UPLOADS = 3
INVOCATION_S = 120


class Killed(BaseException):
    """The platform ended the invocation here."""


class Knife:
    """Kills whoever makes the nth call from now on, after it was served; then it is blunt."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.nth = 0, 0
        serve = Wire._serve

        def counted(wire: Wire, moto: Callable[[], Any], *more: Any) -> Any:
            self.calls += 1
            mine = self.calls == self.nth
            answer = serve(wire, moto, *more)
            if mine:
                raise Killed
            return answer

        monkeypatch.setattr(Wire, "_serve", counted)

    def at(self, nth: int) -> None:
        self.calls, self.nth = 0, nth


@pytest.fixture
def sweep(load_handler: Load, pauses: list[float], later: list[float], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr("lambdas.core.letters.dead_letters.PATIENCE_S", 0)
    return load_handler("sweep", SOURCE_GRACE_S=-5, SWEEP_RATE=5_000, SWEEP_WIDTH=1, SWEEP_PAGE=10)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How far the functions' clock is ahead."""
    ahead, now = [0.0], clock.now
    monkeypatch.setattr(clock, "now", lambda: times.after(now(), ahead[0]))
    return ahead


def bring_about(cloud: Cloud) -> dict[str, dict[str, Any]]:
    """One of each that a sweep is to put back, and uploads that nobody was told of."""
    result = completed(ago_s=3_600)
    cloud.client("s3").put_object(Bucket=cloud.results_bucket, Key=result["result_key"], Body=b"{}")
    for number in range(UPLOADS):
        cloud.client("s3").put_object(Bucket=cloud.uploads_bucket, Key=f"uploads/acme/summarize/{number}", Body=b"{}")
    return {
        "lost": cloud.put(due(pending(not_before=soon(-200)))),
        "crashed": cloud.put(due(processing(lease_s=-20))),
        "late": cloud.put(due(pending(tries=5, attempt=5))),
        "failed": cloud.put(due(failed(ago_s=200))),
        "done": cloud.put(due(result)),
    }


def invoke(sweep: ModuleType) -> dict[str, Any]:
    answer: dict[str, Any] = sweep.handler({"parts": PARTS}, Context(INVOCATION_S))
    return answer


def show_all(cloud: Cloud) -> None:
    """What a killed look through the dead letters has hidden comes back after a minute, which does not pass here."""
    for queue in sqs_backends[cloud.stack.account][cloud.stack.region].queues.values():
        for message in queue._messages:
            message.change_visibility(0)


def assert_repaired(cloud: Cloud, jobs: dict[str, dict[str, Any]]) -> None:
    """Hints, letters and facts may be repeated under the same id; records change once."""
    after = {name: cloud.record(job["pk"]) for name, job in jobs.items()}
    assert (after["crashed"]["status"], after["crashed"]["crashes"]) == (names.PENDING, 1)
    assert after["late"]["status"] == names.FAILED
    assert after["lost"]["due_at"] > jobs["lost"]["due_at"]
    assert all("due_shard" not in after[name] for name in ("failed", "done"))
    table = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    uploaded = {item["pk"]["S"]: item for item in table if "upload" in item}
    assert len(uploaded) == UPLOADS
    assert {item["attempt"]["N"] for item in uploaded.values()} == {"0"}
    sent = Counter(body["run_id"] for body in cloud.bodies(cloud.work_url))
    assert sent.keys() - uploaded.keys() == {jobs["lost"]["pk"], jobs["crashed"]["pk"]}
    assert max(sent.values()) <= 2
    show_all(cloud)
    late = after["late"]["pk"]  # given up by the first sweep; the second one may hand it over
    assert {letter["run_id"] for letter in cloud.bodies(cloud.letters_url)} - {late} == {jobs["failed"]["pk"]}
    facts = {fact.body["event_id"] for fact in cloud.heard()} - {f"{late}.5.FAILED"}
    assert facts == {f"{jobs['failed']['pk']}.1.FAILED", f"{jobs['done']['pk']}.1.COMPLETED"}
    leases = [item for item in table if item["sk"]["S"] == names.LEASE_SK]
    assert not any("lease_until" in lease for lease in leases)
    left = {lease["pk"]["S"] for lease in leases if lease["state"]["M"]}
    assert left <= {f"lease#{listeners.NAME}"}  # what the next sweep is to know; of the parts nothing is left


def assert_deliveries_repaired(cloud: Cloud, before: dict[str, dict[str, Any]]) -> None:
    store = DynamoDeliveries(cloud.client("dynamodb"), cloud.jobs_table)
    after = {name: dict(store.read((one["pk"], one["sk"])) or {}) for name, one in before.items()}
    assert (after["struck"]["status"], after["struck"]["crashes"]) == (names.PENDING, 1)
    assert after["unheard"]["due_at"] > before["unheard"]["due_at"]
    assert (after["hopeless"]["status"], "due_shard" in after["hopeless"]) == (names.FAILED, False)
    told = [body for body in cloud.bodies(cloud.stack.outputs["DeliveriesQueueUrl"]) if "endpoint" in body["payload"]]
    hinted = Counter(body["run_id"] for body in told)
    assert hinted.keys() == {before["unheard"]["pk"], before["struck"]["pk"]}
    assert max(hinted.values()) <= 2


def test_without_a_knife_there_is_one_of_each(cloud: Cloud, sweep: ModuleType, monkeypatch: pytest.MonkeyPatch):
    jobs = bring_about(cloud)
    answer = invoke(sweep)
    found = {part: shown["repaired"] for part, shown in answer["parts"].items()}
    assert found == {"stuck": 4, "letters": 0, "uploads": UPLOADS, "drift": 0}
    assert_repaired(cloud, jobs)


@pytest.mark.slow
def test_a_sweep_that_is_killed_after_any_of_its_calls_is_finished_by_the_next(
    cloud: Cloud, sweep: ModuleType, monkeypatch: pytest.MonkeyPatch, later: list[float]
):
    knife, nth = Knife(monkeypatch), 0
    while True:
        nth += 1
        jobs = bring_about(cloud)
        knife.at(nth)
        try:
            invoke(sweep)
            break
        except Killed:
            knife.at(0)
        later[0] += INVOCATION_S + 11
        invoke(sweep)
        assert_repaired(cloud, jobs)
        cloud.wipe()
        later[0] = 0.0
    knife.at(0)
    assert nth > 60


# --- deliveries --------------------------------------------------------------------------------------
def bring_about_deliveries(cloud: Cloud) -> dict[str, dict[str, Any]]:
    return {
        "unheard": cloud.put(planned(ago_s=200)),
        "struck": cloud.put(claimed(planned(ago_s=200), lease_s=-20)),
        "hopeless": cloud.put(planned(ago_s=200, tries=TRIES_MAX, attempt=TRIES_MAX)),
    }


@pytest.mark.slow
def test_a_sweep_of_deliveries_that_is_killed_after_any_of_its_calls_is_finished_by_the_next(
    cloud: Cloud, sweep: ModuleType, monkeypatch: pytest.MonkeyPatch, later: list[float]
):
    knife, nth, died = Knife(monkeypatch), 0, True
    while died:
        nth += 1
        before = bring_about_deliveries(cloud)
        knife.at(nth)
        try:
            answer = sweep.handler({"parts": ["deliveries"]}, Context(INVOCATION_S))
            knife.at(0)
            assert answer["parts"]["deliveries"]["repaired"] == 2
            died = False
        except Killed:
            knife.at(0)
            later[0] += INVOCATION_S + 11
            sweep.handler({"parts": ["deliveries"]}, Context(INVOCATION_S))
        assert_deliveries_repaired(cloud, before)
        cloud.wipe()
        later[0] = 0.0
    assert nth > 15
