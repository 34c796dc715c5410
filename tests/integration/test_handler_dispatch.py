"""The stream of the Jobs table: what changed is sent to who must hear of it, and stays due until it is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.attributes import from_item
from lambdas.contracts import names
from lambdas.core import changes, times
from lambdas.core.job import from_record
from local.metrics.emf import values
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import failures, sequence, sqs, sqs_record, stream, stream_record
from tests.integration.records import LIMITS, cancelled, completed, every_change, failed, pending, processing


@pytest.fixture
def dispatch(load_handler: Load, pauses: list[float]) -> ModuleType:
    return load_handler("dispatch")


def run(dispatch: ModuleType, *records: dict[str, Any]) -> list[str]:
    return failures(dispatch.handler(stream(*records), Context(30)))


def sent(cloud: Cloud) -> int:
    """Messages of any kind."""
    urls = (cloud.work_url, cloud.letters_url, cloud.dispatch_letters_url)
    return sum(len(cloud.receive(url)) for url in urls) + len(cloud.heard())


# --- what is sent --------------------------------------------------------------------------------
def test_a_new_job_is_sent_to_work(cloud: Cloud, dispatch: ModuleType):
    record = cloud.put(pending())
    assert run(dispatch, stream_record(record)) == []
    (message,) = cloud.receive(cloud.work_url)
    body = json.loads(message["Body"])
    assert (body["event_type"], body["run_id"], body["payload"]) == (
        "job.dispatched", record["pk"], {"attempt": 0, "crashes": 0},
    )  # fmt: skip
    assert message["Attributes"]["MessageGroupId"] == "acme"
    assert message["MessageAttributes"]["job_id"]["StringValue"] == record["pk"]
    assert sent(cloud) == 0


def test_a_message_holds_nothing_of_the_input(cloud: Cloud, dispatch: ModuleType):
    run(dispatch, stream_record(cloud.put(pending())))
    assert "pump" not in cloud.receive(cloud.work_url)[0]["Body"]


@pytest.mark.usefixtures("still")
def test_a_job_that_waits_is_sent_with_its_delay(cloud: Cloud, dispatch: ModuleType):
    later = cloud.put(pending(not_before=times.text(times.after(clock.now(), 300)), attempt=1))
    run(dispatch, stream_record(later, {**later, "status": "PROCESSING"}))
    assert cloud.receive(cloud.work_url) == []
    (batch,) = [one for one in cloud.wire.sent if one.operation == "SendMessageBatch"]
    (entry,) = json.loads(batch.body)["Entries"]
    assert entry["DelaySeconds"] == 301  # a second more, for clocks that differ


def test_a_job_that_waits_longer_than_sqs_can_is_left_to_the_sweep(cloud: Cloud, dispatch: ModuleType):
    far = cloud.put(pending(not_before=times.text(times.after(clock.now(), 1_000))))
    assert run(dispatch, stream_record(far)) == []
    assert sent(cloud) == 0


def test_a_completed_job_is_published_and_then_marked(cloud: Cloud, dispatch: ModuleType):
    record = cloud.put(completed())
    assert run(dispatch, stream_record(record, processing())) == []
    (fact,) = cloud.heard()
    assert fact.body["event_id"] == f"{record['pk']}.1.COMPLETED"
    assert fact.attributes == {
        "event_type": "job.completed", "tenant": "acme", "type": "summarize", "status": "COMPLETED",
    }  # fmt: skip
    after = cloud.record(record["pk"])
    assert not {"due_at", "due_shard"} & after.keys()
    assert after["status"] == "COMPLETED"


def test_a_failed_job_is_a_letter_and_a_fact(cloud: Cloud, dispatch: ModuleType):
    record = cloud.put(failed())
    run(dispatch, stream_record(record, processing()))
    (letter,) = cloud.receive(cloud.letters_url)
    attributes = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    assert attributes == {
        "event_type": "job.dead_lettered", "job_id": record["pk"], "tenant": "acme", "type": "summarize",
        "attempt": "1", "reason": "MODEL_PERMANENT", "tries": "1", "cost_micros": "3",
    }  # fmt: skip
    assert json.loads(letter["Body"])["payload"]["reason"] == "MODEL_PERMANENT"
    assert [fact.body["event_type"] for fact in cloud.heard()] == ["job.failed"]
    assert "due_shard" not in cloud.record(record["pk"])


def test_a_cancelled_job_is_a_fact_and_no_letter(cloud: Cloud, dispatch: ModuleType):
    run(dispatch, stream_record(cloud.put(cancelled()), processing()))
    assert [fact.body["event_type"] for fact in cloud.heard()] == ["job.cancelled"]
    assert cloud.receive(cloud.letters_url) == []


def test_a_whole_batch_goes_in_few_calls(cloud: Cloud, dispatch: ModuleType):
    records = [stream_record(cloud.put(pending())) for _ in range(23)]
    cloud.wire.clear()
    assert run(dispatch, *records) == []
    assert cloud.wire.count("SendMessageBatch") == 3
    assert cloud.wire.count() == 3
    assert len(cloud.receive(cloud.work_url)) == 23


# --- what is not ---------------------------------------------------------------------------------
def test_str_03_a_removal_without_a_new_image_is_ignored(cloud: Cloud, dispatch: ModuleType):
    """Its time to live is over, long after everybody was told."""
    told = completed()
    over = changes.hand_over(from_record(told), now=clock.now()).applied_to(told)
    assert run(dispatch, stream_record(None, over)) == []
    assert sent(cloud) == 0


SILENT = ["claim", "pull_due", "book_late", "note", "hand_over", "push_due"]


@pytest.mark.parametrize("name", SILENT)
def test_str_10_a_write_that_nobody_need_hear_of_sends_nothing(cloud: Cloud, dispatch: ModuleType, name: str):
    """Filters compare nothing: claims, marks and pushes come through the stream too."""
    old, change = every_change(clock.now())[name]
    new = cloud.put(change.applied_to(old))
    assert run(dispatch, stream_record(new, old)) == []
    assert sent(cloud) == 0


@pytest.mark.parametrize("name", ["retry", "park", "leave", "reopen", "reap"])
def test_a_write_that_makes_a_job_claimable_again_sends_one_message(cloud: Cloud, dispatch: ModuleType, name: str):
    old, change = every_change(clock.now())[name]
    new = cloud.put(change.applied_to(old))
    assert run(dispatch, stream_record(new, old)) == []
    assert cloud.wire.count("SendMessageBatch") == 1
    assert cloud.heard() == []


def test_a_final_image_that_was_handed_over_already_sends_nothing(cloud: Cloud, dispatch: ModuleType):
    done = completed()
    handed = changes.hand_over(from_record(done), now=clock.now()).applied_to(done)
    assert run(dispatch, stream_record(cloud.put(handed), processing())) == []
    assert sent(cloud) == 0


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"foo": 1},
        {"Records": "x"},
        {"Records": None},
        {"Records": []},
        {"Records": [{"s3": {}}]},
        {"Records": ["dynamodb"]},
    ],
    ids=str,
)
def test_batch_02_what_is_no_stream_event_raises(dispatch: ModuleType, event: dict[str, Any]):
    """Answering "no failures" would mark it as handled."""
    with pytest.raises(ValueError, match="stream"):
        dispatch.handler(event, Context(30))


def test_batch_02_a_batch_of_sqs_raises(dispatch: ModuleType):
    with pytest.raises(ValueError, match="stream"):
        dispatch.handler(sqs(sqs_record("{}")), Context(30))


# --- again, and in trouble -----------------------------------------------------------------------
def test_str_05_a_record_delivered_twice_publishes_one_event_id_and_changes_the_record_once(
    cloud: Cloud, dispatch: ModuleType
):
    record = cloud.put(completed())
    once = stream_record(record, processing())
    run(dispatch, once)
    after = cloud.record(record["pk"])
    run(dispatch, copy.deepcopy(once))
    assert {fact.body["event_id"] for fact in cloud.heard()} == {f"{record['pk']}.1.COMPLETED"}
    now = cloud.record(record["pk"])
    assert {**now, "handed_over_at": None} == {**after, "handed_over_at": None}


@pytest.mark.parametrize("operation", ["SendMessageBatch", "PublishBatch"])
def test_str_07_what_could_not_be_sent_stays_due_and_fails_its_item(cloud: Cloud, dispatch: ModuleType, operation: str):
    record = cloud.put(failed())
    item = stream_record(record, processing())
    cloud.wire.refuse(operation, "AccessDenied", 403)
    assert run(dispatch, item) == [sequence(item)]
    assert cloud.record(record["pk"]) == record


def test_a_letter_that_could_not_be_sent_is_followed_by_no_fact(cloud: Cloud, dispatch: ModuleType):
    """Hole 29: letter, fact, mark, in that order."""
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    run(dispatch, stream_record(cloud.put(failed()), processing()))
    cloud.wire.mend()
    assert cloud.heard() == []


def test_a_mark_that_could_not_be_written_fails_its_item(cloud: Cloud, dispatch: ModuleType):
    record = cloud.put(completed())
    item = stream_record(record, processing())
    cloud.wire.refuse("UpdateItem", "AccessDeniedException")
    assert run(dispatch, item) == [sequence(item)]
    assert "due_shard" in cloud.record(record["pk"])


def test_batch_09_only_the_items_that_failed_are_told(cloud: Cloud, dispatch: ModuleType):
    done = [stream_record(cloud.put(completed()), processing()) for _ in range(3)]
    job = done[1]["dynamodb"]["Keys"]["pk"]["S"]
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=job)
    assert run(dispatch, *done) == [sequence(done[1])]
    assert len(cloud.heard()) == 3


def test_a_job_that_was_reopened_meanwhile_is_published_and_not_marked(cloud: Cloud, dispatch: ModuleType):
    record = failed()
    reopened = changes.reopen(from_record(record), now=clock.now(), limits=LIMITS).applied_to(record)
    cloud.put(reopened)
    assert run(dispatch, stream_record(record, processing())) == []
    assert cloud.record(record["pk"]) == reopened


# --- records that nobody can read ----------------------------------------------------------------
def broken() -> dict[str, dict[str, Any]]:
    base = stream_record(pending())
    found = {}
    damages: dict[str, Callable[[dict[str, Any]], Any]] = {
        "no tenant": lambda image: image.pop("tenant"),
        "a time that is none": lambda image: image.update(not_before={"S": "yesterday"}),
        "a set": lambda image: image.update(tags={"SS": ["a"]}),
        "a null": lambda image: image.update(error={"NULL": True}),
        "a fraction": lambda image: image.update(attempt={"N": "1.5"}),
        "an attempt in words": lambda image: image.update(attempt={"S": "one"}),
        "a status unheard of": lambda image: image.update(status={"N": "5"}),
    }
    for name, damage in damages.items():
        record = copy.deepcopy(base)
        damage(record["dynamodb"]["NewImage"])
        found[name] = record
    return found


@pytest.mark.parametrize("name", sorted(broken()))
def test_an_unreadable_record_is_buried_and_holds_up_nobody(
    cloud: Cloud, dispatch: ModuleType, lines: Lines, name: str
):
    bad, good = broken()[name], cloud.put(pending())
    assert run(dispatch, bad, stream_record(good)) == []
    assert [json.loads(one["Body"])["run_id"] for one in cloud.receive(cloud.work_url)] == [good["pk"]]
    (letter,) = cloud.bodies(cloud.dispatch_letters_url)
    assert letter["payload"]["reason"] == "UNREADABLE_RECORD"
    assert lines.of("unreadable_record")


def test_an_unreadable_record_whose_letter_cannot_be_sent_fails_its_item(cloud: Cloud, dispatch: ModuleType):
    bad = broken()["no tenant"]
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert run(dispatch, bad) == [sequence(bad)]


@pytest.mark.parametrize("removed", [pending(), processing(), completed(), failed()], ids=lambda one: one["status"])
def test_a_record_that_is_removed_while_something_is_due_is_kept_in_a_letter_and_counted(
    cloud: Cloud, dispatch: ModuleType, capsys: pytest.CaptureFixture[str], removed: dict[str, Any]
):
    good = cloud.put(pending())
    assert run(dispatch, stream_record(None, removed), stream_record(good)) == []
    (letter,) = cloud.bodies(cloud.dispatch_letters_url)
    assert letter["payload"]["reason"] == "RECORD_LOST"
    kept = json.loads(letter["payload"]["body"])["dynamodb"]["OldImage"]
    assert from_item(kept) == removed
    (told,) = (value for line in capsys.readouterr().out.splitlines() for value in values(line))
    assert (told.about.name, told.value) == (names.RECORDS_LOST, 1)


def test_a_lost_record_whose_letter_cannot_be_sent_fails_its_item(cloud: Cloud, dispatch: ModuleType):
    lost = stream_record(None, pending())
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert run(dispatch, lost) == [sequence(lost)]


def test_every_line_about_a_job_has_its_ids(cloud: Cloud, dispatch: ModuleType, lines: Lines):
    record = cloud.put(completed())
    run(dispatch, stream_record(record, processing()))
    (line,) = lines.of("handed_over")
    assert (line["job_id"], line["tenant"], line["attempt"]) == (record["pk"], "acme", 1)
    assert "pump" not in lines.raw
