"""The sweep among deliveries, and among the letters of what was to be delivered."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.contracts import names
from lambdas.core.webhooks import messages
from lambdas.core.webhooks.messages import Hint
from lambdas.core.webhooks.schedule import TRIES_MAX
from local.metrics.emf import values
from tests.builders import any_event_body, unreadable_found
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.records import claimed, planned


@pytest.fixture
def sweep(load_handler: Load, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr("lambdas.core.letters.dead_letters.PATIENCE_S", 0)
    return load_handler("sweep")


def swept(sweep: ModuleType, part: str) -> dict[str, Any]:
    answer: dict[str, Any] = sweep.handler({"parts": [part]}, Context(120))
    assert answer["complete"]
    return dict(answer["parts"][part])


def numbers(told: str) -> dict[str, float]:
    found = [one for line in told.splitlines() for one in values(line)]
    return {one.about.name: one.value for one in found}


def test_what_crashed_lost_its_hint_or_is_used_up_gets_what_it_needs_and_is_told(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]
):
    lost, struck = cloud.put(planned(ago_s=200)), cloud.put(claimed(planned(ago_s=200), lease_s=-20))
    done = cloud.put(planned(ago_s=200, tries=TRIES_MAX))
    cloud.put(planned())  # not due yet
    found = swept(sweep, "deliveries")
    assert {name: found[name] for name in ("due", "reaped", "sent", "expired", "given_up", "repaired", "troubles")} == {
        "due": 3, "reaped": 1, "sent": 1, "expired": 1, "given_up": 1, "repaired": 2, "troubles": 0,
    }  # fmt: skip
    hints = [messages.read(one["Body"]) for one in cloud.receive(cloud.stack.outputs["DeliveriesQueueUrl"])]
    assert {one.key[0] for one in hints if isinstance(one, Hint)} == {lost["pk"], struck["pk"]}
    after = DynamoDeliveries(cloud.client("dynamodb"), cloud.jobs_table).read((done["pk"], done["sk"]))
    assert after is not None
    assert (after["status"], "due_at" in after) == (names.FAILED, False)
    told = numbers(capsys.readouterr().out)
    assert (told[names.DELIVERIES_FAILED], told[names.SWEEP_REPAIRED], told[names.SWEEP_TROUBLES]) == (1, 2, 0)


def test_where_nothing_is_due_it_says_nothing_that_other_parts_say(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]
):
    """Its number would be taken for a comparison with a source that has got to its end."""
    assert swept(sweep, "deliveries")["due"] == 0
    assert numbers(capsys.readouterr().out).keys() == {names.SWEEP_REPAIRED, names.SWEEP_TROUBLES}


def test_the_schedule_that_names_no_parts_sweeps_deliveries_too(cloud: Cloud, sweep: ModuleType):
    cloud.put(planned(ago_s=200))
    answer = sweep.handler({}, Context(120))
    assert answer["parts"]["deliveries"]["sent"] == 1
    stored = cloud.objects(cloud.results_bucket)[f"{names.CERTIFICATES_PREFIX}{answer['sweep_id']}.json"]
    assert json.loads(stored)["parts"]["deliveries"]["sent"] == 1


def test_an_event_that_could_not_be_delivered_goes_back_and_what_nobody_can_read_stays(cloud: Cloud, sweep: ModuleType):
    queue, dead = (cloud.stack.outputs[name] for name in ("DeliveriesQueueUrl", "DeliveriesDlqUrl"))
    for body in (any_event_body(), unreadable_found("no event of ours").body):
        cloud.client("sqs").send_message(QueueUrl=dead, MessageBody=body)
    assert (swept(sweep, "letters")["put_back"], swept(sweep, "letters")["put_back"]) == (1, 0)
    assert [one["Body"] for one in cloud.receive(queue)] == [any_event_body()]
    assert [one["payload"]["reason"] for one in cloud.bodies(dead)] == ["MALFORMED_MESSAGE"]
