"""What lies in the inbox: who may say what it is, and letters from which a message comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.adapters.batching import size_of
from lambdas.contracts.validation import envelope_check
from lambdas.core import times
from lambdas.core.inbox.message import Buried, Incoming, letter, unwrapped
from lambdas.core.letters import letter as letters
from lambdas.core.ports import MESSAGE_BYTES, Message
from tests.builders import NOW, any_found, later
from tests.signing import KEY, NOW_S, hmac_sha256, standard_webhooks
from tests.unit.mailroom import BODY, Mailroom, a_record, an_event, notification

FORGED = an_event(headers=standard_webhooks(b"another body"))
WHY = Buried("BAD_SIGNATURE", "no signature is one", "acme", "summarize")


def back(message: Message, seconds: float = 3_600) -> Incoming:
    """The letter, moved to the inbox as SQS would."""
    return Incoming(message.body, message.attributes, later(seconds))


def test_a_letter_holds_the_message_and_why_it_was_buried() -> None:
    message = letter(FORGED, WHY, NOW)
    envelope = json.loads(message.body)
    assert envelope_check()(envelope) is None
    assert (envelope["event_type"], envelope["tenant_id"]) == ("job.unreadable", "acme")
    assert envelope["payload"] == {
        "queue": "inbox",
        "reason": "BAD_SIGNATURE",
        "detail": "no signature is one",
        "body": BODY.decode(),
        "attributes": FORGED.attributes,
    }
    assert message.attributes == {
        "event_type": "job.unreadable", "reason": "BAD_SIGNATURE", "tenant": "acme", "type": "summarize",
        "origin": "crm",
    }  # fmt: skip


def test_a_repeated_letter_shows_as_one_and_two_events_of_one_body_as_two() -> None:
    def id_of(incoming: Incoming, why: Buried = WHY) -> str:
        return str(json.loads(letter(incoming, why, later(5)).body)["event_id"])

    assert id_of(FORGED) == id_of(FORGED)
    assert id_of(FORGED) != id_of(an_event(headers=standard_webhooks(b"another body"), request_id="request-2"))


def test_a_letter_that_is_moved_back_is_the_message_that_it_is_about() -> None:
    returned = unwrapped(back(letter(FORGED, WHY, NOW)))
    assert (returned.body, returned.attributes) == (FORGED.body, FORGED.attributes)
    assert returned.received_at == FORGED.received_at


def test_it_keeps_the_time_at_the_door_even_where_only_sqs_had_told_it() -> None:
    unsaid = Incoming(BODY.decode(), {"source": "crm"}, NOW)
    returned = unwrapped(back(letter(unsaid, WHY, NOW)))
    assert returned.received_at == times.of_milliseconds(times.milliseconds(NOW))


def test_after_a_fix_a_redriven_letter_becomes_its_job() -> None:
    """Redrive as the console does it: the letter itself goes back."""
    room = Mailroom()
    right = room.secrets.current.pop("neverdrop/crm")
    room.secrets.current["neverdrop/crm"] = ("whsec_bm90IHRoZSBzZWNyZXQ=",)
    room.take(an_event())
    (message,) = room.letters.sent
    room.letters.sent.clear()
    room.secrets.current["neverdrop/crm"] = right
    room.clock.advance(86_400)
    room.take(back(message, 86_400))
    assert json.loads(room.job["input"]) == json.loads(BODY)
    assert room.job["history"][0]["at"] == times.text(times.of_milliseconds(NOW_S * 1000))


def test_an_event_that_looks_like_a_letter_or_a_notification_is_an_event() -> None:
    """What a stranger writes must not choose what it is: the attribute does, which the gateway always writes."""
    room = Mailroom()
    stored = room.uploaded.put("uploads/acme/summarize/call.txt", b"x", "text/plain")
    forged = notification(a_record(stored))
    letter_of_it = letter(forged, Buried("INVALID_KEY", ""), NOW).body.encode()
    for body in (forged.body.encode(), letter_of_it):
        room.take(an_event(body, headers=standard_webhooks(body, key=b"a stranger")))
        assert room.reason == "BAD_SIGNATURE"
        room.letters.sent.clear()
    for body in (forged.body.encode(), letter_of_it):
        room.take(an_event(body, headers=standard_webhooks(body, key=KEY)))  # not even the source itself
        assert room.reason == "INVALID_INPUT"
        room.letters.sent.clear()


def test_a_letter_about_such_an_event_comes_back_as_an_event() -> None:
    room = Mailroom()
    stored = room.uploaded.put("uploads/acme/summarize/call.txt", b"x", "text/plain")
    inner = letter(notification(a_record(stored)), Buried("INVALID_KEY", ""), NOW).body.encode()
    room.take(an_event(inner, headers=standard_webhooks(inner)))
    (message,) = room.letters.sent
    room.letters.sent.clear()
    room.take(back(message))
    assert room.reason == "INVALID_INPUT"


def test_an_event_too_large_for_a_letter_goes_as_it_is_with_its_reason_beside() -> None:
    text = json.dumps({"text": '"' * 500_000})  # each of its 1,000,000 characters is escaped once more
    body = text.encode()
    incoming = an_event(body, "forge", hmac_sha256(b"another"))
    message = letter(incoming, Buried("BAD_SIGNATURE", "x" * 500), NOW)
    assert message.body == text
    assert message.attributes == {**incoming.attributes, "reason": "BAD_SIGNATURE", "detail": "x" * 200}
    assert len(message.attributes) <= 10
    again = letter(back(message), WHY, NOW)
    assert (again.body, again.attributes["reason"]) == (text, "BAD_SIGNATURE")


@pytest.mark.parametrize(
    ("room", "beside"),
    [(300, {"reason", "detail"}), (200, {"reason"}), (25, {"reason"}), (24, set()), (0, set())],
)
def test_an_event_as_large_as_sqs_takes_has_as_much_beside_it_as_there_is_room_for(room: int, beside: set[str]) -> None:
    shape = an_event(b"")
    own = Message("", shape.attributes, "").size
    incoming = replace(shape, body="x" * (MESSAGE_BYTES - own - room))
    message = letter(incoming, Buried("BAD_SIGNATURE", "x" * 500), NOW)
    assert message.attributes.keys() - incoming.attributes.keys() == beside
    assert message.size <= MESSAGE_BYTES
    assert message.body == incoming.body


def test_what_is_beside_an_event_too_large_for_a_letter_is_what_sqs_takes() -> None:
    room = Mailroom()
    body = json.dumps({"a\x01": '"' * 500_000}).encode()
    room.take(an_event(body, headers=standard_webhooks(body)))
    strict = Buried("INVALID_INPUT", "/a\x01\ufffe: `a\x01é` is not a known field", "acme", "summarize")
    assert letter(an_event(body), strict, NOW).attributes["detail"] == "/a??: `a?é` is not a known field"


def test_a_letter_is_no_larger_than_sqs_takes_whatever_was_wrong() -> None:
    """What is wrong may name a part of the body, and headers may be all that the gateway lets through."""
    room = Mailroom()
    for body in ({"k" * 900_000: 1, "text": 5}, {"k" * 900_000: ["\ud800"]}, {"k" * 900_000: {"\ud800": 1}}):
        raw = json.dumps(body).encode()
        room.take(an_event(raw, headers={**standard_webhooks(raw), "webhook-id": "é" * 4_900}))
        room.take(an_event(raw, headers=standard_webhooks(raw)))
        for message in room.letters.sent:
            assert size_of(message) <= 1_048_576
            assert json.loads(message.body)["payload"]["body"] == raw.decode()
        assert all(len(fields.get("detail", "")) <= 1_000 for _, fields in room.notices.told)
        room.letters.sent.clear()


@pytest.mark.parametrize(
    "body",
    ["", "{}", "[]", "null", '{"event_type":"job.unreadable"}', '{"event_type":"job.unreadable","payload":[]}',
     '{"event_type":"job.unreadable","payload":{"body":1}}', '{"Records":[]}', '{"Records":{}}', "\ud800"],
)  # fmt: skip
def test_what_is_nothing_of_ours_is_a_letter(body: str) -> None:
    room = Mailroom()
    room.take(Incoming(body, {}, NOW))
    assert room.reason == "MALFORMED_MESSAGE"


def test_a_letter_whose_attributes_somebody_spoilt_is_read_as_far_as_it_goes() -> None:
    spoilt: tuple[Any, ...] = ([], None, "source", 5)
    for attributes in spoilt:
        body = json.dumps({"event_type": "job.unreadable", "payload": {"body": "x", "attributes": attributes}})
        assert unwrapped(Incoming(body, {}, NOW)) == Incoming("x", {}, NOW)


def test_s3s_test_event_is_ignored() -> None:
    """S3-02."""
    room = Mailroom()
    room.take(Incoming('{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}', {}, NOW))
    assert (room.letters.sent, room.jobs) == ([], [])
    assert room.notices.of("ignored")["reason"] == "S3's test event"


attributes_ = st.dictionaries(st.sampled_from(["source", "signature", "request_id", "x"]), st.text(min_size=1))


@given(body=st.text(), attributes=attributes_)
def test_whatever_was_buried_comes_back_as_it_was(body: str, attributes: dict[str, str]) -> None:
    body = body.encode("utf-8", "replace").decode()
    incoming = Incoming(body, attributes, NOW)
    message = letter(incoming, WHY, NOW)
    returned = unwrapped(Incoming(message.body, message.attributes, later(60)))
    told = {"received_ms": str(NOW_S * 1000 + 123)} if "source" in attributes else {}
    assert (returned.body, returned.attributes) == (body, {**attributes, **told})


@given(
    value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)
    | st.dictionaries(st.text(), st.text())
)
def test_no_body_makes_ingest_raise(value: Any) -> None:
    room = Mailroom()
    for body in (json.dumps(value), json.dumps({"Records": [value]}), json.dumps({"Records": value})):
        room.take(Incoming(body, {}, NOW), an_event(body.encode(), headers=standard_webhooks(body.encode())))
    assert room.jobs == []


def test_the_dead_letters_know_our_letters() -> None:
    """The module that operators' requests go through reads what ingest has written."""
    message = letter(FORGED, WHY, NOW)
    found = letters.read("inbox", any_found(message.body, attributes=message.attributes))
    assert (found.kind, found.reason, found.task) == ("unreadable", "BAD_SIGNATURE", "summarize")
    assert (found.body, found.attributes) == (FORGED.body, FORGED.attributes)
