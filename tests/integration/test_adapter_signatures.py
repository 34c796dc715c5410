"""The Signer port, seen by a receiver: verified with the library that Standard Webhooks gives to it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from lambdas.adapters import clock
from lambdas.adapters.signatures import StandardSigner
from lambdas.core.times import after
from lambdas.core.webhooks import secrets
from tests.fakes_webhooks import any_endpoint

SECRET, OTHER = secrets.secret("m", "acme", "e1", 1), secrets.secret("m", "acme", "e1", 2)
ID = "0123456789abcdef0123456789abcdef.1.COMPLETED"
BODIES = (
    "{}",
    '{"b":1.0,"a":2}',  # what a JSON library would write otherwise
    '{"text":"Gr\\u00fc\\u00dfe \\ud83d\\ude80"}',
    '{"text":"Grüße 🚀"}',
    '{ "z" : [ 1 , 2 ] ,\n "a" : "\\/" }',
    '{"id":"a.b.c","n":1e3}',
)


def headers(signature: str, at: datetime, message_id: str = ID) -> dict[str, str]:
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signature,
    }


def verified(secret: str, body: bytes, told: dict[str, str]) -> Any:
    return Webhook(secret).verify(body, told)


def signed(body: str, *use: str, at: datetime | None = None) -> tuple[bytes, dict[str, str]]:
    now = at or clock.now()
    return body.encode(), headers(StandardSigner().sign(use or (SECRET,), ID, now, body), now)


@pytest.mark.parametrize("body", BODIES)
def test_wh_06_what_was_sent_is_verified_as_it_came(body: str) -> None:
    assert verified(SECRET, *signed(body)) == json.loads(body)


@pytest.mark.parametrize("body", BODIES[1:])
def test_wh_06_what_was_written_anew_is_not(body: str) -> None:
    sent, told = signed(body)
    anew = json.dumps(json.loads(body), separators=(",", ":"), sort_keys=True, ensure_ascii=True).encode()
    if anew == sent:
        anew = json.dumps(json.loads(body)).encode()
    with pytest.raises(WebhookVerificationError):
        verified(SECRET, anew, told)


@pytest.mark.parametrize("change", [
    lambda body, told: (body + b" ", told),
    lambda body, told: (body.replace(b"1", b"2"), told),
    lambda body, told: (body, {**told, "webhook-id": told["webhook-id"].replace(".1.", ".2.")}),
    lambda body, told: (body, {**told, "webhook-timestamp": str(int(told["webhook-timestamp"]) + 1)}),
    lambda body, told: (body, {**told, "webhook-signature": "v1,AAAA"}),
    lambda body, told: (body, {**told, "webhook-signature": told["webhook-signature"].replace("v1,", "v2,")}),
    lambda body, told: (body, {name: value for name, value in told.items() if name != "webhook-id"}),
])  # fmt: skip
def test_whatever_is_altered_is_refused(change: Any) -> None:
    with pytest.raises(WebhookVerificationError):
        verified(SECRET, *change(*signed('{"attempt":1}')))


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_timestamp_and_one_from_the_future_are_refused(minutes: int) -> None:
    at = after(clock.now(), minutes * 60)
    with pytest.raises(WebhookVerificationError):
        verified(SECRET, *signed("{}", at=at))


def test_a_wrong_secret_is_refused() -> None:
    with pytest.raises(WebhookVerificationError):
        verified(OTHER, *signed("{}"))


@pytest.mark.parametrize("known", [SECRET, OTHER])
def test_while_a_secret_is_rotated_both_verify(known: str) -> None:
    now = clock.now()
    rotated = any_endpoint(id="e1", secret_version=2, previous_until=after(now, 60))
    use = secrets.signing(("m",), rotated, now)
    assert set(use) == {SECRET, OTHER}
    assert verified(known, *signed("{}", *use)) == {}


def test_when_its_time_is_over_the_one_before_does_not() -> None:
    now = clock.now()
    rotated = any_endpoint(id="e1", secret_version=2, previous_until=now)
    sent = signed("{}", *secrets.signing(("m",), rotated, now))
    assert verified(OTHER, *sent) == {}
    with pytest.raises(WebhookVerificationError):
        verified(SECRET, *sent)


def test_an_instant_of_another_zone_is_the_same_instant() -> None:
    at = datetime(2026, 11, 29, 15, 30, 44, 999_999, tzinfo=UTC)
    elsewhere = at.astimezone(timezone(timedelta(hours=-9)))
    assert StandardSigner().sign((SECRET,), ID, at, "{}") == StandardSigner().sign((SECRET,), ID, elsewhere, "{}")


def test_the_fixed_vector() -> None:
    """Of the body's bytes, by hand: a change of the library, or of ours, that receivers would feel is seen here."""
    at = datetime(2026, 11, 29, 15, 30, 44, tzinfo=UTC)
    body, secret = BODIES[3], "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    by_hand = hmac.new(key, b"msg_1.1795966244." + body.encode(), hashlib.sha256).digest()
    found = StandardSigner().sign((secret,), "msg_1", at, body)
    assert found == f"v1,{base64.b64encode(by_hand).decode()}" == "v1,FMYKdYiYfDMuV8k/mlkuhUoX5zU3eCuLD3FxTNbIFiQ="


def test_without_a_secret_nothing_is_signed() -> None:
    with pytest.raises(ValueError, match="nothing"):
        StandardSigner().sign((), ID, clock.now(), "{}")
