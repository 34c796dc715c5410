"""What a message on the deliveries queue asks for, and the hint that says that a delivery may be tried."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PROCESSING
from lambdas.core import times
from lambdas.core.envelope import Newer, Unreadable, letter_about_message, written
from lambdas.core.routing import event
from lambdas.core.webhooks import messages, routing
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, new_record, read
from lambdas.core.webhooks.messages import Event, Hint
from tests.builders import (
    JOB_ID,
    NOW,
    TENANT,
    any_delivery_hint_body,
    any_event_body,
    any_hint_body,
    any_letter_body,
    final_job,
    later,
)  # fmt: skip
from tests.fakes import FakeSender, Notices

EVENT_ID = f"{JOB_ID}.1.COMPLETED"


def delivery(**over: Any) -> Delivery:
    record = new_record(
        pk=JOB_ID, tenant=TENANT, endpoint="e1", event_type="job.completed", event_id=EVENT_ID, sequence=1, body="{}",
        now=NOW, limits=DeliveryLimits(),
    )  # fmt: skip
    return read({**record, **over})


# --- what is read ------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [COMPLETED, FAILED, CANCELLED])
def test_what_is_published_of_a_final_job_is_an_event(status: str) -> None:
    message = event(final_job(status), NOW)
    found = messages.read(message.body)
    assert isinstance(found, Event)
    assert (found.job_id, found.envelope) == (JOB_ID, json.loads(message.body))


def test_a_hint_names_its_delivery() -> None:
    message = routing.hint(delivery(attempt=3, crashes=1), NOW)
    assert message is not None
    assert messages.read(message.body) == Hint((JOB_ID, f"delivery#e1#{EVENT_ID}"), 3, 1)


@pytest.mark.parametrize("body", [any_event_body(), any_delivery_hint_body()])
def test_a_letter_about_a_message_stands_for_it(body: str) -> None:
    letter = written(letter_about_message(body, Unreadable("UNSUPPORTED_SCHEMA", "schema 0"), NOW))
    assert messages.read(letter) == messages.read(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "MALFORMED_MESSAGE"),
        ("[]", "INVALID_ENVELOPE"),
        (any_event_body(schema=0), "UNSUPPORTED_SCHEMA"),
        (any_event_body(step_index=1.0), "INVALID_ENVELOPE"),
        (any_event_body(event_type="delivery.completed"), "FOREIGN_EVENT"),
        (any_event_body(event_type="job.started"), "FOREIGN_EVENT"),
        (any_hint_body(), "FOREIGN_EVENT"),
        (any_letter_body(), "FOREIGN_EVENT"),
        (any_delivery_hint_body(attempt=-1), "INVALID_ENVELOPE"),
        (any_delivery_hint_body(endpoint=""), "INVALID_ENVELOPE"),
        (any_event_body(event_type="delivery.dispatched"), "INVALID_ENVELOPE"),
    ],
)
def test_what_is_for_somebody_else_or_for_nobody_is_unreadable(body: str, reason: str) -> None:
    found = messages.read(body)
    assert isinstance(found, Unreadable)
    assert found.reason == reason


def test_a_newer_version_is_left_for_newer_code() -> None:
    assert messages.read(any_event_body(schema=2)) == Newer(2)


# --- what is published -------------------------------------------------------------------------------
def test_an_event_says_whether_its_job_wants_to_be_called_back_and_not_where() -> None:
    """So that the record is read only when there is something to find."""
    called = event(final_job(callback_url="https://example.com/hook?key=secret"), NOW)
    assert json.loads(called.body)["payload"]["callback"] is True
    assert "example.com" not in called.body
    plain = event(final_job(), NOW)
    assert "callback" not in json.loads(plain.body)["payload"]
    assert called.attributes == plain.attributes


# --- what is sent ------------------------------------------------------------------------------------
def test_a_hint_is_grouped_by_tenant_and_says_nothing_of_what_is_delivered() -> None:
    message = routing.hint(delivery(body='{"secret":1}', url="https://example.com/?secret"), NOW)
    assert message is not None
    assert (message.group, message.delay_s, message.urgent) == (TENANT, 0, False)
    assert message.attributes == {
        "event_type": "delivery.dispatched", "job_id": JOB_ID, "tenant": TENANT, "endpoint": "e1", "attempt": "0",
    }  # fmt: skip
    assert "secret" not in message.body


@pytest.mark.parametrize(("wait_s", "delay_s"), [(-5, 0), (5, 6), (299.5, 301), (900, 900), (901, None)])
def test_it_is_held_back_as_long_as_sqs_can_and_longer_waits_are_the_sweeps(wait_s: float, delay_s: int | None) -> None:
    message = routing.hint(delivery(not_before=times.text(later(wait_s))), NOW)
    assert (message.delay_s if message else None) == delay_s


@pytest.mark.parametrize("status", [PROCESSING, COMPLETED, FAILED])
def test_nobody_hears_of_one_that_is_not_to_be_tried(status: str) -> None:
    assert routing.hint(delivery(status=status, lease_until=times.text(later(60))), NOW) is None


def test_what_the_queue_refuses_is_told_by_its_position() -> None:
    found = [delivery(not_before=times.text(later(1_000))), delivery(attempt=1), delivery(attempt=2)]
    notices = Notices()
    queue = FakeSender(lambda message: message.attributes["attempt"] == "2")
    assert routing.send(found, now=NOW, queue=queue, notice=notices) == {2}
    assert [(step, told["attempt"]) for step, told in notices.told] == [("dispatched", 1), ("not_sent", 2)]
    assert [message.attributes["attempt"] for message in queue.sent] == ["1"]
