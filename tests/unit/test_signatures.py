"""Whose event it is: the schemes' published vectors, and everything that one changed byte must undo."""

from __future__ import annotations

import base64

import pytest

from lambdas.core.inbox.signatures import UnusableSecret, is_signed, time_in
from tests.signing import KEY, TEXT_SECRET, WHSEC, any_source, hmac_sha256, standard_webhooks, timestamped

BODY = b'{"text":"caf\xc3\xa9, 1.0"}'
SIGNED = {
    "crm": {"event_id": "msg_1", "timestamp": "1", "signature": standard_webhooks(BODY, at_s=1)["webhook-signature"]},
    "pay": {"signature": timestamped(BODY, at_s=1)["stripe-signature"]},
    "forge": {"signature": hmac_sha256(BODY)["x-hub-signature-256"]},
}
SECRET = {"crm": WHSEC, "pay": TEXT_SECRET, "forge": TEXT_SECRET}


def signed(name: str, body: bytes = BODY, secrets: tuple[str, ...] | None = None, **over: str) -> bool:
    return is_signed(any_source(name), secrets or (SECRET[name],), {**SIGNED[name], **over}, body)


def test_the_vector_of_standard_webhooks() -> None:
    headers = {
        "event_id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "timestamp": "1614265330",
        "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",)
    assert is_signed(any_source("crm"), secret, headers, b'{"test": 2432232314}')
    assert is_signed(any_source("crm"), ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",), headers, b'{"test": 2432232314}')
    assert not is_signed(any_source("crm"), secret, headers, b'{"test":2432232314}')


def test_the_vector_of_github() -> None:
    headers = {"signature": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert is_signed(any_source("forge"), ("It's a Secret to Everybody",), headers, b"Hello, World!")
    bare = {"signature": headers["signature"].removeprefix("sha256=").upper()}
    assert is_signed(any_source("forge"), ("It's a Secret to Everybody",), bare, b"Hello, World!")


@pytest.mark.parametrize("name", SIGNED)
def test_a_right_signature_is_one(name: str) -> None:
    assert signed(name)


@pytest.mark.parametrize("name", SIGNED)
def test_any_changed_byte_of_the_body_undoes_it(name: str) -> None:
    """WH-06: the exact bytes count, not what they mean."""
    for position in range(len(BODY)):
        changed = bytes([*BODY[:position], BODY[position] ^ 1, *BODY[position + 1 :]])
        assert not signed(name, changed)
    assert not signed(name, BODY + b"\n")
    assert not signed(name, b'{"text": "caf\xc3\xa9, 1.0"}')
    assert not signed(name, b"")


@pytest.mark.parametrize("name", SIGNED)
def test_another_secret_undoes_it(name: str) -> None:
    other = base64.b64encode(b"another key").decode()
    assert not signed(name, secrets=(other,))
    assert signed(name, secrets=(other, SECRET[name]))
    assert signed(name, secrets=(SECRET[name], other))


@pytest.mark.parametrize("field", ["event_id", "timestamp"])
def test_what_standard_webhooks_signs_beside_the_body_cannot_be_changed(field: str) -> None:
    assert not is_signed(any_source("crm"), (WHSEC,), {**SIGNED["crm"], field: "2"}, BODY)
    assert not is_signed(any_source("crm"), (WHSEC,), {k: v for k, v in SIGNED["crm"].items() if k != field}, BODY)


def test_the_time_in_a_signature_cannot_be_changed() -> None:
    written = SIGNED["pay"]["signature"]
    assert not signed("pay", signature=written.replace("t=1,", "t=2,"))
    assert not signed("pay", signature=f"t=2,{written}")


def test_one_of_several_signatures_is_enough() -> None:
    """A sender signs with the old and the new secret while it rotates."""
    wrong = base64.b64encode(b"x" * 32).decode()
    right = SIGNED["crm"]["signature"]
    assert signed("crm", signature=f"v1,{wrong} v1a,ed25519 {right}")
    assert not signed("crm", signature=f"v1,{wrong} v2,{right.removeprefix('v1,')}")
    assert signed("pay", signature=f"{SIGNED['pay']['signature']},v1={'0' * 64},v0={'1' * 64}")


@pytest.mark.parametrize(
    "signature",
    [
        "",
        " ",
        "v1,",
        "v1",
        "v1,not base64!",
        "v1, " + SIGNED["crm"]["signature"][3:],
        "t=1",
        "t=1,v1=",
        "t=1,v1=zz",
        "v1=" + "0" * 64,
        "sha1=" + "0" * 40,
        "sha256=",
        "sha256=" + "0" * 63,
        "sha256=" + "é" * 64,
        "=,=,=",
        "v1,é v1,\u2028",
    ],
)
@pytest.mark.parametrize("name", SIGNED)
def test_what_is_no_signature_is_refused_and_raises_nothing(name: str, signature: str) -> None:
    assert not signed(name, signature=signature)


@pytest.mark.parametrize("name", SIGNED)
def test_without_a_signature_or_a_secret_nothing_is_signed(name: str) -> None:
    assert not is_signed(any_source(name), (SECRET[name],), {}, BODY)
    assert not is_signed(any_source(name), (), SIGNED[name], BODY)


def test_a_stranger_does_not_decide_how_much_is_compared() -> None:
    many = " ".join(f"v1,{base64.b64encode(bytes([n]) * 32).decode()}" for n in range(100))
    assert not signed("crm", signature=f"{many} {SIGNED['crm']['signature']}")
    assert signed("crm", signature=f"{SIGNED['crm']['signature']} {many}")


@pytest.mark.parametrize(
    ("name", "secret"), [("crm", "whsec_no base64!"), ("crm", "whsec_"), ("pay", ""), ("forge", "")]
)
def test_a_secret_that_can_be_no_key_is_our_mistake_and_refuses_nothing(name: str, secret: str) -> None:
    for secrets in ((secret,), (secret, base64.b64encode(b"another").decode())):
        with pytest.raises(UnusableSecret):
            signed(name, secrets=secrets)
        with pytest.raises(UnusableSecret):
            signed(name, secrets=secrets, signature="")


@pytest.mark.parametrize(("name", "secret"), [("crm", "whsec_no base64!"), ("pay", ""), ("forge", "")])
def test_a_slip_in_one_secret_does_not_stop_what_another_signed(name: str, secret: str) -> None:
    """While the new one is written wrongly, the old one goes on counting."""
    assert signed(name, secrets=(secret, SECRET[name]))
    assert signed(name, secrets=(SECRET[name], secret))


def test_the_time_that_a_signature_carries() -> None:
    assert time_in(any_source("pay"), SIGNED["pay"]) == "1"
    assert time_in(any_source("pay"), {"signature": "v1=00"}) == ""
    assert time_in(any_source("pay"), {}) == ""
    assert time_in(any_source("crm"), SIGNED["crm"]) == ""


def test_the_key_of_standard_webhooks_is_what_base64_says() -> None:
    assert base64.b64decode(WHSEC.removeprefix("whsec_")) == KEY
