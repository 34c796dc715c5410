"""The sweep on its schedule: what fell out of the way is put back, from the table alone."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
import time_machine
from moto.sns.models import sns_backends

from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.contracts import names
from lambdas.core import ids
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.records import completed, failed, pending, processing
from tests.integration.worker_bench import soon


@pytest.fixture
def sweep(load_handler: Load, pauses: list[float], still: time_machine.Traveller) -> ModuleType:
    """No time goes by."""
    return load_handler("sweep")


def run(sweep: ModuleType, remaining_s: float = 240) -> dict[str, Any]:
    """What the sweep of what is stuck did, and whether it got to its end."""
    answer = invoke(sweep, {"parts": ["stuck"]}, remaining_s)
    return {"complete": answer["complete"], **answer["parts"].get("stuck", {})}


def invoke(sweep: ModuleType, event: dict[str, Any], remaining_s: float = 240) -> dict[str, Any]:
    answer: dict[str, Any] = sweep.handler(event, Context(remaining_s))
    json.dumps(answer)  # Lambda must be able to write it
    return answer


def due(record: dict[str, Any], ago_s: float = 60) -> dict[str, Any]:
    """With its look behind it; in the shard that its id has."""
    return {**record, "due_at": soon(-ago_s), "due_shard": ids.due_shard(record["pk"])}


def work(cloud: Cloud) -> list[tuple[str, int, int]]:
    """(job, attempt, crashes) of what was sent to work."""
    bodies = cloud.bodies(cloud.work_url)
    return [(body["run_id"], body["payload"]["attempt"], body["payload"]["crashes"]) for body in bodies]


def test_a_table_where_nothing_is_due_is_left_alone(cloud: Cloud, sweep: ModuleType):
    cloud.put(pending())
    done = run(sweep)
    assert (done["due"], done["complete"]) == (0, True)
    assert cloud.wire.count("GetItem") == 1  # of the sweep's own item
    assert cloud.wire.count("Query") == ids.DUE_SHARDS


def test_a_crashed_job_is_reaped_and_sent_in_the_same_sweep(cloud: Cloud, sweep: ModuleType):
    """N5, hole 25: not by way of the stream, which may be what broke."""
    record = cloud.put(due(processing(lease_s=-20)))
    assert run(sweep)["reaped"] == 1
    after = cloud.record(record["pk"])
    assert (after["status"], after["crashes"], after["tries"], after["attempt"]) == (names.PENDING, 1, 1, 1)
    assert work(cloud) == [(record["pk"], 1, 1)]
    assert soon(100) < after["due_at"] < soon(125)


def test_swp_01_a_job_that_is_still_held_is_not_touched(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(processing(lease_s=60)))
    assert run(sweep)["left"] == 1
    assert cloud.record(record["pk"]) == record
    assert work(cloud) == []


def test_a_job_held_beyond_the_next_sweep_is_looked_at_when_its_lease_ends(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(processing(lease_s=2_000)))
    assert run(sweep)["pushed"] == 1
    assert cloud.record(record["pk"])["due_at"] == record["lease_until"]


def test_a_job_without_a_message_is_sent_again_and_then_later_and_later(cloud: Cloud, sweep: ModuleType):
    young, old = cloud.put(due(pending())), cloud.put(due(pending(not_before=soon(-4_000))))
    assert run(sweep)["sent"] == 2
    assert sorted(work(cloud)) == sorted([(young["pk"], 0, 0), (old["pk"], 0, 0)])
    assert soon(290) < cloud.record(young["pk"])["due_at"] < soon(305)
    assert soon(3_980) < cloud.record(old["pk"])["due_at"] < soon(4_010)


def test_while_the_queue_holds_a_message_for_each_of_a_crowd_nothing_is_sent(
    cloud: Cloud, sweep: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    """Hole 24: a backlog is no storm."""
    monkeypatch.setattr("lambdas.core.sweeping.batches.CROWD", 2)
    jobs = [cloud.put(due(pending(not_before=soon(-200)))) for _ in range(2)]
    for _ in range(2):
        cloud.client("sqs").send_message(QueueUrl=cloud.work_url, MessageBody="{}")
    done = run(sweep)
    assert (done["sent"], done["held_back"]) == (0, 2)
    assert len(cloud.receive(cloud.work_url)) == 2
    assert all(cloud.record(job["pk"])["due_at"] > soon(280) for job in jobs)


def test_a_job_whose_message_the_queue_refused_stays_due(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(pending()))
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert run(sweep)["failed"] == 1
    assert cloud.record(record["pk"])["due_at"] == record["due_at"]


def test_a_wait_of_hours_is_sent_when_it_is_over(cloud: Cloud, sweep: ModuleType):
    over = cloud.put(due(pending(not_before=soon(-3)), ago_s=3))
    assert run(sweep)["sent"] == 1
    assert work(cloud) == [(over["pk"], 0, 0)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (lambda: pending(deadline_at=soon(-1)), "DEADLINE_EXCEEDED"),
        (lambda: processing(pending(deadline_at=soon(-1)), lease_s=-20), "DEADLINE_EXCEEDED"),
        (lambda: pending(tries=5, attempt=5), "ATTEMPTS_EXHAUSTED"),
        (lambda: processing(lease_s=-20, tries=5, attempt=5), "ATTEMPTS_EXHAUSTED"),
    ],
)
def test_swp_03_a_job_that_is_used_up_fails_and_is_not_sent(cloud: Cloud, sweep: ModuleType, record: Any, reason: str):
    job = cloud.put(due(record()))
    assert run(sweep)["expired"] == 1
    after = cloud.record(job["pk"])
    assert (after["status"], after["error"]["code"]) == (names.FAILED, reason)
    assert after["expires_at"] > 0
    assert work(cloud) == []


def test_a_job_that_is_held_is_not_failed_at_its_deadline(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(processing(pending(deadline_at=soon(-1)), lease_s=60)))
    run(sweep)
    assert cloud.record(record["pk"]) == record


def test_a_final_job_that_nobody_was_told_of_is_handed_over(cloud: Cloud, sweep: ModuleType):
    dead, done = cloud.put(due(failed(ago_s=200))), cloud.put(due(completed(ago_s=200)))
    assert run(sweep)["handed_over"] == 2
    assert [letter["run_id"] for letter in cloud.bodies(cloud.letters_url)] == [dead["pk"]]
    assert {fact.body["event_id"] for fact in cloud.heard()} == {f"{dead['pk']}.1.FAILED", f"{done['pk']}.1.COMPLETED"}
    assert all("due_shard" not in cloud.record(job["pk"]) for job in (dead, done))


def test_a_final_job_is_left_to_the_dispatcher_for_two_minutes(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(failed(ago_s=60)))
    assert run(sweep)["left"] == 1
    assert cloud.record(record["pk"]) == record
    assert cloud.heard() == []


def test_swp_05_the_record_decides_and_not_the_index(cloud: Cloud, sweep: ModuleType, monkeypatch: pytest.MonkeyPatch):
    """The index may be behind: what it says is due may be done long since."""
    record = due(completed(ago_s=300))
    gone = {name: value for name, value in record.items() if name not in ("due_at", "due_shard")}
    cloud.put(gone)
    found = [(record["due_at"], record["pk"])]
    monkeypatch.setattr(DynamoJobStore, "due", lambda self, shard, before, after, limit: found)
    done = run(sweep)
    assert done["left"] == ids.DUE_SHARDS
    assert cloud.record(record["pk"]) == gone


def test_a_job_that_cannot_be_written_stops_no_other(cloud: Cloud, sweep: ModuleType):
    jobs = [cloud.put(due(processing(lease_s=-20))) for _ in range(4)]
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=f'"pk": {{"S": "{jobs[1]["pk"]}"')
    run(sweep)
    assert sorted(job for job, _, _ in work(cloud)) == sorted(jobs[at]["pk"] for at in (0, 2, 3))
    assert cloud.record(jobs[1]["pk"]) == jobs[1]


def test_an_unreadable_record_is_counted_and_stops_no_other(cloud: Cloud, sweep: ModuleType, lines: Lines):
    broken = due(pending())
    del broken["tenant"]
    cloud.put(broken)
    good = cloud.put(due(pending()))
    done = run(sweep)
    assert (done["unreadable"], done["sent"]) == (1, 1)
    assert work(cloud) == [(good["pk"], 0, 0)]
    assert lines.of("unreadable_record")


def test_a_sweep_without_time_stops_and_says_that_it_is_not_complete(cloud: Cloud, sweep: ModuleType):
    record = cloud.put(due(processing(lease_s=-20)))
    assert run(sweep, remaining_s=5)["complete"] is False
    assert cloud.record(record["pk"]) == record


def test_the_sweep_counts_tries_by_the_deployments_own_setting(cloud: Cloud, sweep: ModuleType):
    """A bound that the worker keeps and the sweep does not know fails jobs that have tries left."""
    worker = cloud.environment("worker")
    swept = cloud.environment("sweep")
    assert swept[names.MAX_ATTEMPTS] == worker[names.MAX_ATTEMPTS]


def test_the_bound_of_the_environment_is_kept(cloud: Cloud, load_handler: Load, pauses: list[float]):
    sweep = load_handler("sweep", MAX_ATTEMPTS=8)
    record = cloud.put(due(processing(lease_s=-20, tries=6, attempt=6)))
    assert run(sweep)["reaped"] == 1
    assert cloud.record(record["pk"])["status"] == names.PENDING


def metrics(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if "_aws" in line]


@pytest.mark.parametrize(("ages", "oldest"), [([], 0), ([700, 90], 700)])
def test_each_sweep_tells_the_age_of_the_oldest_open_job(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str], ages: list[int], oldest: int
):
    for age in ages:
        cloud.put(due(pending(not_before=soon(-age))))
    run(sweep)
    counted, told, listened = metrics(capsys.readouterr().out)
    assert number(counted, names.SWEEP_TROUBLES) == 0
    assert number(listened, names.LISTENERS_LOST) == 0
    assert number(counted, names.DUE_JOBS) == len(ages)
    assert number(told, names.OLDEST_OPEN_JOB) == oldest
    assert told["_aws"]["CloudWatchMetrics"][0]["Namespace"] == names.METRIC_NAMESPACE


def test_a_topic_that_cannot_be_asked_who_listens_is_a_trouble_and_ends_no_sweep(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str], lines: Lines
):
    cloud.wire.refuse("GetTopicAttributes", "AuthorizationError", 403)
    assert run(sweep)["state"] == "DONE"
    *_, told = metrics(capsys.readouterr().out)
    assert number(told, names.SWEEP_TROUBLES) == 1
    assert lines.of("listeners_unknown")
    assert cloud.wire.count("GetTopicAttributes") == 1  # nobody waits for it: no second attempt
    operations = [one.operation for one in cloud.wire.sent]
    assert operations.index("GetTopicAttributes") > operations.index("PutObject")  # the certificate is there


def test_a_listener_that_is_gone_is_told_by_every_sweep_until_it_is_back(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]
):
    _, _, _, region, account, _ = cloud.topic_arn.split(":")
    topic = sns_backends[account][region].topics[cloud.topic_arn]
    topic.subscriptions_confimed = 2  # moto's spelling; it does not count them
    told = [lost(sweep, capsys)]
    topic.subscriptions_confimed = 1
    cloud.wire.refuse("GetTopicAttributes", "InternalError", 500)
    assert lost(sweep, capsys) is None  # a report that is left out
    cloud.wire.mend()
    told += [lost(sweep, capsys), lost(sweep, capsys)]
    topic.subscriptions_confimed = 2
    assert [*told, lost(sweep, capsys)] == [0, 1, 1, 0]


def test_listeners_are_counted_by_a_sweep_that_failed_and_not_by_one_that_has_no_time_or_is_about_something_else(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]
):
    cloud.wire.refuse("Query", "InternalServerError", 500)
    assert lost(sweep, capsys) == 0
    cloud.wire.mend()
    before = cloud.wire.count("GetTopicAttributes")
    assert lost(sweep, capsys, remaining_s=14) is None
    invoke(sweep, {"parts": ["letters"]})
    invoke(sweep, {"parts": ["stuck"], "dry_run": True})
    assert cloud.wire.count("GetTopicAttributes") == before


def lost(sweep: ModuleType, capsys: pytest.CaptureFixture[str], remaining_s: float = 240) -> float | None:
    """How many listeners this sweep says are missing."""
    capsys.readouterr()
    run(sweep, remaining_s)
    found = [one for one in metrics(capsys.readouterr().out) if names.LISTENERS_LOST in one]
    return number(found[0], names.LISTENERS_LOST) if found else None


def number(told: dict[str, Any], metric: str) -> float:
    value = told[metric]
    return float(value[0] if isinstance(value, list) else value)


def test_a_sweep_ends_with_one_line_of_what_it_did(cloud: Cloud, sweep: ModuleType, lines: Lines):
    cloud.put(due(processing(lease_s=-20)))
    run(sweep)
    (line,) = lines.of("part_over")
    assert (line["part"], line["due"], line["reaped"], line["state"]) == ("stuck", 1, 1, "DONE")
    assert lines.of("swept")[0]["complete"] is True
    (reaped,) = lines.of("reaped")
    assert reaped["tenant"] == "acme"
