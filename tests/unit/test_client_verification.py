"""Webhooks are taken as they were signed, or not at all."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from standardwebhooks import Webhook

from neverdrop_client import BadArgument, WebhookRefused, verify_webhook

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes, yes").decode()
OTHER = "whsec_" + base64.b64encode(b"another one, used before the first").decode()
ENVELOPE = {
    "schema": 1, "event_id": "e1", "event_type": "job.completed", "trace_id": "", "run_id": "j1", "step_index": 0,
    "idempotency_key": "k", "tenant_id": "acme", "timestamp": "2026-11-29T15:30:44.123Z",
    "payload": {"status": "COMPLETED", "sequence": 3, "price": 1.0, "who": "Grüße"},
}  # fmt: skip
BODY = json.dumps(ENVELOPE, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.fixture(autouse=True)
def _still() -> Iterator[None]:
    """What is signed is as old as it says, and two signatures are of one second."""
    with time_machine.travel(datetime.now(UTC).replace(microsecond=0), tick=False):
        yield


def signed(body: bytes = BODY, secret: str = SECRET, age_s: int = 0, event_id: str = "e1") -> dict[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=age_s)
    signature = Webhook(secret).sign(event_id, at, body.decode())
    return {"Webhook-Id": event_id, "Webhook-Timestamp": str(int(at.timestamp())), "Webhook-Signature": signature}


def test_an_event_is_what_its_sender_signed() -> None:
    event = verify_webhook(BODY, signed(), SECRET)
    assert (event.id, event.type, event.job_id, event.sequence) == ("e1", "job.completed", "j1", 3)
    assert event.timestamp == "2026-11-29T15:30:44.123Z"
    assert (event.payload["who"], event.envelope) == ("Grüße", ENVELOPE)


def test_while_a_secret_is_changed_either_counts() -> None:
    assert verify_webhook(BODY, signed(), [OTHER, SECRET]).id == "e1"
    headers = signed()
    headers["Webhook-Signature"] = f"{signed(secret=OTHER)['Webhook-Signature']} {headers['Webhook-Signature']}"
    assert verify_webhook(BODY, headers, SECRET).id == "e1"
    assert verify_webhook(BODY, headers, OTHER).id == "e1"


@pytest.mark.parametrize(
    ("body", "changed", "secret"),
    [
        (BODY + b" ", {}, SECRET),
        (json.dumps(ENVELOPE).encode(), {}, SECRET),  # the same JSON, written otherwise
        (BODY.replace(b"1.0", b"1"), {}, SECRET),
        (b"\xff\xfe", {}, SECRET),
        (BODY, {}, OTHER),
        (BODY, {"Webhook-Id": "e2"}, SECRET),
        (BODY, {"Webhook-Id": ""}, SECRET),
        (BODY, {"Webhook-Signature": ""}, SECRET),
        (BODY, {"Webhook-Signature": "v1"}, SECRET),
        (BODY, {"Webhook-Signature": "v1,%%%"}, SECRET),
        (BODY, {"Webhook-Signature": "v1a,AAAA"}, SECRET),
        (BODY, {"Webhook-Timestamp": ""}, SECRET),
        (BODY, {"Webhook-Timestamp": "nan"}, SECRET),
        (BODY, {"Webhook-Timestamp": "1.5"}, SECRET),
        (BODY, {"Webhook-Timestamp": "999999999999"}, SECRET),
    ],
)
def test_what_was_changed_or_is_not_signed_is_refused(body: bytes, changed: dict[str, str], secret: str) -> None:
    with pytest.raises(WebhookRefused):
        verify_webhook(body, signed() | changed, secret)


@pytest.mark.parametrize("age_s", [301, -301])
def test_what_is_not_of_now_is_refused(age_s: int) -> None:
    with pytest.raises(WebhookRefused, match="timestamp too"):
        verify_webhook(BODY, signed(age_s=age_s), [SECRET])
    verify_webhook(BODY, signed(age_s=int(age_s * 0.9)), [SECRET])


@pytest.mark.parametrize("body", [b"[]", b"no JSON", b"{}", b'{"payload": []}', b'{"payload": {"sequence": "x"}}'])
def test_what_is_signed_and_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookRefused, match="no event"):
        verify_webhook(body, signed(body), SECRET)


@pytest.mark.parametrize("secrets", [[], "", "whsec_", ["whsec_x%"], [SECRET, ""]])
def test_a_secret_that_is_none_is_a_mistake_of_the_receiver(secrets: Any) -> None:
    with pytest.raises(BadArgument):
        verify_webhook(BODY, signed(), secrets)
