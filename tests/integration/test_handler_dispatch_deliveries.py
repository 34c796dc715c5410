"""Deliveries in the stream: each that is to be tried is sent to deliver, and none goes without a trace."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.attributes import from_item
from lambdas.contracts import names
from lambdas.core import times
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import messages
from lambdas.core.webhooks.messages import Event, Hint
from local.metrics.emf import values
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import failures, sequence, stream, stream_record
from tests.integration.records import DELIVERIES, claimed, completed, pending, planned


@pytest.fixture
def dispatch(load_handler: Load, pauses: list[float]) -> ModuleType:
    return load_handler("dispatch")


def run(dispatch: ModuleType, *records: dict[str, Any]) -> list[str]:
    return failures(dispatch.handler(stream(*records), Context(30)))


def hints(cloud: Cloud) -> list[dict[str, Any]]:
    return cloud.receive(cloud.stack.outputs["DeliveriesQueueUrl"])


def lost(told: str) -> list[float]:
    found = [one for line in told.splitlines() for one in values(line)]
    return [one.value for one in found if one.about.name == names.RECORDS_LOST]


# --- what is sent ------------------------------------------------------------------------------------
def test_a_new_delivery_is_sent_to_deliver_and_to_nobody_else(cloud: Cloud, dispatch: ModuleType):
    record = planned()
    assert run(dispatch, stream_record(record)) == []
    (message,) = hints(cloud)
    assert messages.read(message["Body"]) == Hint((record["pk"], record["sk"]), 0, 0)
    assert message["Attributes"]["MessageGroupId"] == "acme"
    assert (cloud.receive(cloud.work_url), cloud.heard()) == ([], [])


@pytest.mark.usefixtures("still")
def test_a_retry_is_held_back_for_its_wait_and_a_longer_one_is_left_to_the_sweep(cloud: Cloud, dispatch: ModuleType):
    for wait_s in (300, 1_000):
        before = claimed(planned())
        at = times.after(clock.now(), wait_s)
        why = {"code": "HTTP_500", "message": ""}
        own = deliveries.read(before)
        change = changes.retry(own, now=clock.now(), at=at, why=why, refused=False, limits=DELIVERIES, receipt={})
        assert run(dispatch, stream_record(change.applied_to(before), before)) == []
    (batch,) = [one for one in cloud.wire.sent if one.operation == "SendMessageBatch"]
    (entry,) = json.loads(batch.body)["Entries"]
    assert entry["DelaySeconds"] == 301  # a second more, for clocks that differ


def test_jobs_and_deliveries_of_a_batch_each_get_what_is_theirs(cloud: Cloud, dispatch: ModuleType):
    records = [stream_record(cloud.put(pending())), stream_record(planned()), stream_record(cloud.put(completed()))]
    assert run(dispatch, *records) == []
    kinds = [type(messages.read(one["Body"])) for one in hints(cloud)]
    assert sorted(kinds, key=str) == [Event, Hint]  # the queue is subscribed to what is published
    assert (len(cloud.receive(cloud.work_url)), len(cloud.heard())) == (1, 1)


def test_a_write_that_is_nothing_to_hear_of_sends_nothing(cloud: Cloud, dispatch: ModuleType):
    """What the sweep pushes is found by the sweep."""
    before = planned()
    pushed = changes.push_due(deliveries.read(before), times.after(clock.now(), 900)).applied_to(before)
    assert run(dispatch, stream_record(pushed, before)) == []
    taken = changes.complete(deliveries.read(claimed(before)), now=clock.now(), receipt={}, limits=DELIVERIES)
    assert run(dispatch, stream_record(taken.applied_to(claimed(before)), claimed(before))) == []
    assert run(dispatch, stream_record(claimed(before), before)) == []
    assert hints(cloud) == []


# --- what fails --------------------------------------------------------------------------------------
def test_what_could_not_be_sent_fails_its_item_and_no_other(cloud: Cloud, dispatch: ModuleType):
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403, part="Deliveries")
    job, delivery = stream_record(cloud.put(pending())), stream_record(planned())
    assert run(dispatch, delivery, job) == [sequence(delivery)]
    assert len(cloud.receive(cloud.work_url)) == 1


def test_a_delivery_that_cannot_be_read_is_buried_and_holds_up_nobody(cloud: Cloud, dispatch: ModuleType):
    broken = planned(attempt="one")
    assert run(dispatch, stream_record(broken), stream_record(planned("b" * 32))) == []
    (letter,) = cloud.bodies(cloud.dispatch_letters_url)
    assert letter["payload"]["reason"] == "UNREADABLE_RECORD"
    assert from_item(json.loads(letter["payload"]["body"])["dynamodb"]["NewImage"]) == broken
    assert len(hints(cloud)) == 1


# --- what is gone ------------------------------------------------------------------------------------
@pytest.mark.parametrize("held", [False, True])
def test_a_delivery_that_is_removed_while_it_is_due_is_kept_in_a_letter_and_counted(
    cloud: Cloud, dispatch: ModuleType, capsys: pytest.CaptureFixture[str], held: bool
):
    record = cloud.put(completed())
    removed = claimed(planned(record["pk"])) if held else planned(record["pk"])
    assert run(dispatch, stream_record(None, removed)) == []
    (letter,) = cloud.bodies(cloud.dispatch_letters_url)
    assert (letter["payload"]["reason"], "of a delivery" in letter["payload"]["detail"]) == ("RECORD_LOST", True)
    assert from_item(json.loads(letter["payload"]["body"])["dynamodb"]["OldImage"]) == removed
    assert lost(capsys.readouterr().out) == [1]


def test_one_whose_job_cannot_be_read_is_lost_and_the_rest_of_its_batch_is_told(cloud: Cloud, dispatch: ModuleType):
    record, good = cloud.put(completed()), cloud.put(completed())
    cloud.client("dynamodb").update_item(
        TableName=cloud.jobs_table,
        Key={"pk": {"S": record["pk"]}, "sk": {"S": "job"}},
        UpdateExpression="SET odd = :null",
        ExpressionAttributeValues={":null": {"NULL": True}},
    )
    removed, there = planned(record["pk"]), planned(good["pk"])
    assert run(dispatch, stream_record(None, removed), stream_record(there)) == []
    (letter,) = cloud.bodies(cloud.dispatch_letters_url)
    assert (letter["payload"]["reason"], len(hints(cloud))) == ("RECORD_LOST", 1)


def test_one_that_was_deleted_with_its_job_is_nobodys_loss(
    cloud: Cloud, dispatch: ModuleType, capsys: pytest.CaptureFixture[str]
):
    told = completed()
    cloud.put({**told, "status": names.DELETED})
    assert run(dispatch, stream_record(None, planned(told["pk"]))) == []
    assert (cloud.bodies(cloud.dispatch_letters_url), lost(capsys.readouterr().out)) == ([], [])


def test_one_whose_time_was_over_is_nobodys_loss(cloud: Cloud, dispatch: ModuleType):
    before = claimed(planned())
    taken = changes.complete(deliveries.read(before), now=clock.now(), receipt={}, limits=DELIVERIES).applied_to(before)
    assert run(dispatch, stream_record(None, taken)) == []
    assert cloud.bodies(cloud.dispatch_letters_url) == []


def test_while_nobody_can_say_whether_its_job_was_deleted_its_item_fails(
    cloud: Cloud, dispatch: ModuleType, lines: Lines
):
    cloud.wire.refuse("GetItem", "ProvisionedThroughputExceededException")
    gone, job = stream_record(None, planned()), stream_record(cloud.put(pending()))
    assert run(dispatch, gone, job) == [sequence(gone)]
    assert (len(cloud.receive(cloud.work_url)), cloud.bodies(cloud.dispatch_letters_url)) == (1, [])
    assert "store_unavailable" in lines.steps()
