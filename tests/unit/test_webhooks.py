"""From an event of a declared source to a job, or to a letter that says why not."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from lambdas.contracts.sources import Source
from lambdas.core import ids, times
from lambdas.core.canonical import canonical, sha256
from lambdas.core.inbox.listing import Event
from lambdas.core.inbox.message import Buried, Ignored, Incoming
from lambdas.core.inbox.webhooks import take_listed
from lambdas.core.intake import Accepted
from lambdas.core.job import from_record
from lambdas.core.ports import Unavailable
from tests.builders import NOW, TENANT, later, record_bytes
from tests.fakes import Trouble
from tests.signing import KEY, NOW_S, any_source, attributes, hmac_sha256, standard_webhooks, timestamped
from tests.unit.mailroom import BODY, Mailroom, an_event

OTHER = b'{"text":"Houston, Tranquility Base here."}'
JOB = ids.job_id_from_key(TENANT, "POST", "/events/crm", "msg_1")


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


# --- what becomes a job --------------------------------------------------------------------------
def test_a_signed_event_is_a_job_of_its_sources_tenant_and_task(room: Mailroom) -> None:
    room.take(an_event())
    job = room.job
    assert (job["pk"], job["tenant"], job["type"], job["source"]) == (JOB, TENANT, "summarize", "crm")
    assert json.loads(job["input"]) == json.loads(BODY)
    assert job["body_sha"] == sha256(canonical({"type": "summarize", "input": json.loads(BODY)}))
    assert [line["what"] for line in job["history"]] == ["received", "accepted"]
    assert from_record(job).source == "crm"
    assert record_bytes(job) <= 1_024


def test_it_says_when_it_was_at_the_door_however_long_it_lay_in_the_queue(room: Mailroom) -> None:
    room.clock.advance(3_600)
    room.take(an_event(sent_at=later(2)))
    received, accepted = room.job["history"]
    assert (received["at"], accepted["at"]) == (
        times.text(times.of_milliseconds(NOW_S * 1000)),
        times.text(later(3_600)),
    )
    assert room.job["created_at"] == accepted["at"]


def test_an_event_that_is_sent_again_is_the_same_job(room: Mailroom) -> None:
    for number in range(5):
        room.take(an_event(request_id=f"request-{number}"))
    assert room.job["pk"] == JOB
    assert [fields["new"] for step, fields in room.notices.told if step == "accepted"] == [True, *[False] * 4]


def test_an_id_with_another_body_is_the_first_job_and_the_log_has_it(room: Mailroom) -> None:
    room.take(an_event(), an_event(OTHER))
    assert json.loads(room.job["input"]) == json.loads(BODY)
    assert room.notices.of("ignored")["reason"] == "the same id as before, with another body"


def test_the_same_id_of_another_source_is_another_job() -> None:
    room = Mailroom(other=any_source("crm"))
    room.take(an_event(), an_event(name="other", source=any_source("crm")))
    assert len(room.jobs) == 2


def test_an_event_of_a_deleted_job_is_ignored(room: Mailroom) -> None:
    room.take(an_event())
    room.store.records[JOB]["status"] = "DELETED"
    room.take(an_event())
    assert room.notices.of("ignored") == {"job_id": JOB, "reason": "its job was deleted", "source": "crm"}
    assert room.letters.sent == []


def test_a_large_event_is_in_s3_before_it_is_on_record(room: Mailroom) -> None:
    text = "é" * 5_000
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    room.take(an_event(body))
    assert "input" not in room.job
    key = ids.input_key(TENANT, JOB, room.job["body_sha"])
    assert json.loads(room.entrance.inputs.objects[key])["input"] == {"text": text}
    assert room.entrance.order == ["put", "create"]


@pytest.mark.parametrize(
    ("name", "body", "headers", "found"),
    [
        ("pay", b'{"id":"evt_1","data":{"text":"x"}}', timestamped, {"text": "x"}),
        ("forge", "Zeile \u00fc\n".encode(), hmac_sha256, {"text": "Zeile ü\n"}),
    ],
)
def test_the_declaration_says_what_is_the_input(
    room: Mailroom, name: str, body: bytes, headers: Any, found: Any
) -> None:
    room.take(an_event(body, name, headers(body)))
    assert json.loads(room.job["input"]) == found


@pytest.mark.parametrize(("written", "meant"), [('"evt_1"', "evt_1"), ("4711", "4711"), ("0", "0")])
def test_an_id_in_the_body_is_a_text_or_a_whole_number(room: Mailroom, written: str, meant: str) -> None:
    body = b'{"id":%s,"data":{"text":"x"}}' % written.encode()
    room.take(an_event(body, "pay", timestamped(body)))
    assert room.job["pk"] == ids.job_id_from_key(TENANT, "POST", "/events/pay", meant)


def test_the_exact_bytes_of_a_binary_source_are_signed_and_taken() -> None:
    source = any_source("forge", binary=True)
    room = Mailroom(bin=source)
    body = "\ufeffa=1&b=%20\r\n".encode()
    attributes_ = attributes("bin", hmac_sha256(body), source, encoding="base64")
    room.take(Incoming(base64.b64encode(body).decode(), attributes_, NOW))
    assert json.loads(room.job["input"]) == {"text": body.decode()}


# --- signatures ----------------------------------------------------------------------------------
FORGED = {
    "another key": an_event(headers=standard_webhooks(BODY, key=b"another")),
    "the body of another event": an_event(OTHER, headers=standard_webhooks(BODY)),
    "another id": an_event(headers={**standard_webhooks(BODY), "webhook-id": "msg_2"}),
    "another time": an_event(headers={**standard_webhooks(BODY), "webhook-timestamp": str(NOW_S + 1)}),
    "no signature": an_event(headers={**standard_webhooks(BODY), "webhook-signature": "-"}),
    "a space": an_event(BODY + b" ", headers=standard_webhooks(BODY)),
}


@pytest.mark.parametrize("message", FORGED.values(), ids=FORGED)
def test_a_wrong_signature_is_a_letter_and_no_job(room: Mailroom, message: Incoming) -> None:
    room.take(message)
    assert room.reason == "BAD_SIGNATURE"
    assert room.entrance.order == []


def test_a_secret_is_read_once_in_five_minutes(room: Mailroom) -> None:
    for number in range(3):
        room.take(an_event(headers=standard_webhooks(BODY, id_=f"msg_{number}")))
    assert room.secrets.reads == ["neverdrop/crm"]
    room.clock.advance(301)
    room.take(an_event(headers=standard_webhooks(BODY, id_="msg_9")))
    assert room.secrets.reads == ["neverdrop/crm"] * 2


def test_a_rotated_secret_counts_at_once(room: Mailroom) -> None:
    room.take(an_event())
    new = b"the new key"
    room.secrets.current["neverdrop/crm"] = ("whsec_" + base64.b64encode(new).decode(),)
    room.clock.advance(31)
    room.take(an_event(headers=standard_webhooks(BODY, id_="msg_2", key=new)))
    assert len(room.jobs) == 2
    assert room.letters.sent == []


def test_two_secrets_count_while_one_replaces_the_other(room: Mailroom) -> None:
    new = b"the new key"
    room.secrets.current["neverdrop/crm"] += ("whsec_" + base64.b64encode(new).decode(),)
    for number, key in enumerate((KEY, new)):
        room.take(an_event(headers=standard_webhooks(BODY, id_=f"msg_{number}", key=key)))
    assert len(room.jobs) == 2


def test_forged_events_do_not_make_us_read_the_secret_each_time(room: Mailroom) -> None:
    for _ in range(10):
        room.take(FORGED["another key"])
    assert room.secrets.reads == ["neverdrop/crm"]


def test_without_its_secret_an_event_stays_and_is_no_letter(room: Mailroom) -> None:
    room.secrets.troubles.add("read", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        room.take(an_event())
    assert (room.jobs, room.letters.sent) == ([], [])
    room.take(an_event())
    assert room.job["pk"] == JOB


def test_a_secret_that_can_be_no_key_keeps_its_events(room: Mailroom) -> None:
    room.secrets.current["neverdrop/crm"] = ("whsec_no base64!",)
    with pytest.raises(Unavailable, match=r"neverdrop/crm.*base64"):
        room.take(an_event())
    assert room.letters.sent == []


# --- time ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("at_s", "reason"),
    [(NOW_S - 301, "TIMESTAMP_TOO_OLD"), (NOW_S + 301, "TIMESTAMP_IN_FUTURE"), (0, "TIMESTAMP_TOO_OLD")],
)
@pytest.mark.parametrize("name", ["crm", "pay"])
def test_an_old_event_and_one_from_the_future_are_refused(room: Mailroom, name: str, at_s: int, reason: str) -> None:
    body = BODY if name == "crm" else b'{"id":"evt_1","data":{"text":"x"}}'
    sign: Any = standard_webhooks if name == "crm" else timestamped
    room.take(an_event(body, name, sign(body, at_s=at_s)))
    assert room.reason == reason


@pytest.mark.parametrize("at_s", [NOW_S - 300, NOW_S + 300])
def test_five_minutes_are_allowed(room: Mailroom, at_s: int) -> None:
    room.take(an_event(headers=standard_webhooks(BODY, at_s=at_s)))
    assert room.job["pk"] == JOB


def test_an_event_does_not_grow_old_in_our_own_queues(room: Mailroom) -> None:
    """SQS gives a message that was moved back another time of sending."""
    room.clock.advance(13 * 86_400)
    room.take(an_event(sent_at=later(days=13)))
    assert room.job["pk"] == JOB


@pytest.mark.parametrize("received_ms", [str((NOW_S - 31 * 86_400) * 1000), str((NOW_S + 3_600) * 1000), "soon", "1"])
def test_a_time_at_the_door_that_cannot_be_is_not_believed(room: Mailroom, received_ms: str) -> None:
    """It stands where a header that breaks out of its quotes could write, too."""
    long_ago = int(received_ms) // 1000 if received_ms.isdecimal() else NOW_S - 3_600
    room.take(an_event(headers=standard_webhooks(BODY, at_s=long_ago), received_ms=received_ms))
    assert room.reason.startswith("TIMESTAMP_")


TIMES: dict[str, tuple[str, bool]] = {
    "seconds": (str(NOW_S), True),
    "a fraction": (f"{NOW_S}.5", True),
    "milliseconds": (f"{NOW_S}000", True),
    "digits": (f'"{NOW_S}"', True),
    "RFC 3339": ('"2026-11-29T16:30:44+01:00"', True),
    "a day": ('"2026-11-29"', False),
    "true": ("true", False),
    "null": ("null", False),
    "beyond the calendar": ("1" + "0" * 90, False),
    "words": ('"now"', False),
    "minus": ("-1", False),
}


@pytest.mark.parametrize(("written", "fresh"), TIMES.values(), ids=TIMES)
def test_a_time_in_the_body_is_read_in_its_usual_forms(written: str, fresh: bool) -> None:
    source = any_source("forge", input="/data", id="/id", time="/at")
    room = Mailroom(src=source)
    body = b'{"id":"1","at":%s,"data":{"text":"x"}}' % written.encode()
    room.take(an_event(body, "src", hmac_sha256(body), source=source))
    assert bool(room.jobs) is fresh
    if not fresh:
        assert room.reason in ("NO_EVENT_TIME", "TIMESTAMP_TOO_OLD")


# --- what is no event ----------------------------------------------------------------------------
def declared(**over: Any) -> Source:
    return any_source("forge", **{"input": "/data", "id": "/id", **over})


BAD: dict[str, tuple[bytes, Source, str]] = {
    "not JSON": (b"{", declared(), "MALFORMED_BODY"),
    "a name twice": (b'{"id":"1","id":"2"}', declared(), "MALFORMED_BODY"),
    "nothing": (b" ", declared(), "MALFORMED_BODY"),
    "no id": (b'{"data":{"text":"x"}}', declared(), "NO_EVENT_ID"),
    "an empty id": (b'{"id":"","data":{"text":"x"}}', declared(), "NO_EVENT_ID"),
    "an id that is true": (b'{"id":true,"data":{"text":"x"}}', declared(), "NO_EVENT_ID"),
    "an id that is a fraction": (b'{"id":1.5,"data":{"text":"x"}}', declared(), "NO_EVENT_ID"),
    "a long id": (b'{"id":"%s","data":{"text":"x"}}' % (b"x" * 513), declared(), "NO_EVENT_ID"),
    "an id in a list": (b'["1"]', declared(), "NO_EVENT_ID"),
    "no input": (b'{"id":"1"}', declared(), "INVALID_INPUT"),
    "an input that the task refuses": (b'{"id":"1","data":{"txt":"x"}}', declared(), "INVALID_INPUT"),
    "a task that is not there": (b'{"id":"1","data":{}}', declared(task="unknown"), "UNKNOWN_TYPE"),
    "an empty text": (b"", any_source("forge"), "INVALID_INPUT"),
}


@pytest.mark.parametrize(("body", "source", "reason"), BAD.values(), ids=BAD)
def test_a_signed_event_that_cannot_be_a_job_is_a_letter(body: bytes, source: Source, reason: str) -> None:
    room = Mailroom(src=source)
    room.take(an_event(body, "src", hmac_sha256(body), source=source))
    assert room.reason == reason
    assert room.letters.sent[0].attributes["tenant"] == "globex"


def test_an_input_beyond_what_a_job_may_have_is_a_letter() -> None:
    source = declared()
    room = Mailroom(src=source)
    body = b'{"id":"1","data":{"text":"%s"}}' % (b"x" * 1_000_000)
    room.take(an_event(body, "src", hmac_sha256(body), source=source))
    assert room.reason == "INPUT_TOO_LARGE"


def test_bytes_that_are_no_text_are_a_letter() -> None:
    source = any_source("forge", binary=True)
    room = Mailroom(bin=source)
    body = b"\xff\xfe"
    found = attributes("bin", hmac_sha256(body), source, encoding="base64")
    room.take(Incoming(base64.b64encode(body).decode(), found, NOW))
    assert room.reason == "INVALID_INPUT"
    room.letters.sent.clear()
    room.take(Incoming("no base64!", found, NOW))
    assert room.reason == "MALFORMED_BODY"


def test_an_event_of_a_source_that_a_deploy_removed_is_a_letter(room: Mailroom) -> None:
    room.take(an_event(source=any_source("crm"), name="gone"))
    assert room.reason == "UNKNOWN_SOURCE"
    assert "known: crm, forge, pay" in room.letter["payload"]["detail"]


def test_a_missing_header_is_a_letter(room: Mailroom) -> None:
    found = {name: value for name, value in an_event().attributes.items() if name != "event_id"}
    room.take(Incoming(BODY.decode(), found, NOW))
    assert room.reason == "BAD_SIGNATURE"


# --- repaired ------------------------------------------------------------------------------------
def reviewed(room: Mailroom, body: bytes = OTHER, **review: Any) -> Incoming:
    """What an operator sends back: another body than the one that was signed, and its review on record."""
    event = an_event(body, headers=standard_webhooks(b"what was signed"), review_id="message.1")
    origin = {name: event.attributes[name] for name in ("source", "event_id")}
    room.ledger.create(
        "review", "message.1", {"status": "repaired", "body_sha": sha256(body.decode()), **origin, **review}
    )
    return event


def test_a_repaired_event_needs_no_signature_and_says_so_in_its_history(room: Mailroom) -> None:
    room.take(reviewed(room))
    assert json.loads(room.job["input"]) == json.loads(OTHER)
    assert [(line["what"], line.get("note")) for line in room.job["history"]] == [
        ("received", None), ("repaired", "message.1"), ("accepted", None),
    ]  # fmt: skip


def test_a_repaired_event_is_still_checked_for_its_schema(room: Mailroom) -> None:
    room.take(reviewed(room, b'{"txt":"x"}'))
    assert room.reason == "INVALID_INPUT"


OTHER_REVIEWS: tuple[dict[str, str], ...] = (
    {"status": "discarded"}, {"body_sha": sha256("another body")}, {"body_sha": ""}, {"source": "another"},
    {"event_id": "another"},
)  # fmt: skip


@pytest.mark.parametrize("review", OTHER_REVIEWS)
def test_a_review_of_something_else_proves_nothing(room: Mailroom, review: dict[str, Any]) -> None:
    room.take(reviewed(room, **review))
    assert room.reason == "BAD_SIGNATURE"


def test_an_attribute_alone_proves_nothing(room: Mailroom) -> None:
    """A header that breaks out of its quotes on the way into the queue can write attributes."""
    room.take(an_event(OTHER, headers=standard_webhooks(BODY), review_id="message.1"))
    assert room.reason == "BAD_SIGNATURE"


@pytest.mark.parametrize("name", ["x" * 129, "x" * 3_000, "é" * 65])
def test_a_review_that_none_can_be_is_not_looked_for(room: Mailroom, name: str) -> None:
    """DynamoDB refuses a key that is too long, and the event would be tried until it dies."""
    room.ledger.troubles.add("read", Trouble.REFUSED)
    room.take(an_event(OTHER, headers=standard_webhooks(BODY), review_id=name))
    assert room.reason == "BAD_SIGNATURE"


# --- found by the sweep --------------------------------------------------------------------------
def test_an_event_that_its_source_lists_is_the_job_that_its_webhook_would_have_been(room: Mailroom) -> None:
    outcome = take_listed("crm", Event("msg_1", later(-600), BODY), room.reception)
    assert outcome == Accepted(JOB, True, TENANT, "summarize", JOB)
    assert [line["what"] for line in room.job["history"]] == ["listed", "accepted"]
    room.take(an_event())
    assert room.job["pk"] == JOB
    assert room.notices.of("accepted")["new"] is False


def test_a_listed_event_that_cannot_be_a_job_says_why(room: Mailroom) -> None:
    assert isinstance(take_listed("gone", Event("1", NOW, BODY), room.reception), Buried)
    refused = take_listed("crm", Event("1", NOW, b'{"txt":"x"}'), room.reception)
    assert isinstance(refused, Buried)
    assert (refused.reason, refused.tenant) == ("INVALID_INPUT", TENANT)
    room.take(an_event())
    assert isinstance(take_listed("crm", Event("msg_1", NOW, OTHER), room.reception), Ignored)


# --- trouble -------------------------------------------------------------------------------------
def test_an_event_that_cannot_be_recorded_stays(room: Mailroom) -> None:
    room.store.troubles.add("create", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        room.take(an_event())
    assert room.letters.sent == []
    room.take(an_event())
    assert room.job["pk"] == JOB


def test_a_lost_reply_is_not_taken_for_a_duplicate_or_a_failure(room: Mailroom) -> None:
    room.store.troubles.add("create", Trouble.UNHEARD)
    room.take(an_event())
    assert room.job["pk"] == JOB


def test_a_letter_that_cannot_be_sent_leaves_the_message(room: Mailroom) -> None:
    room.letters.refuses = lambda message: True
    with pytest.raises(Unavailable, match="letter"):
        room.take(FORGED["a space"])
    assert "buried" not in room.notices.steps
