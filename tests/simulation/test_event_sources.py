"""Signed webhooks from end to end: through the gateway's own integration, the inbox and ingest to a completed job."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest

from local.faults import Fault
from local.runtime import Runtime
from tests.signing import KEY, SECRETS, hmac_sha256
from tests.simulation.outside import SETTINGS, Outside, a_word, at_once


@pytest.fixture(scope="module")
def stack() -> Iterator[Outside]:
    with Runtime(SETTINGS, write_log=lambda *_: None) as runtime:
        outside = Outside(runtime)
        yield outside
        outside.close()


@pytest.fixture
def outside(stack: Outside) -> Iterator[Outside]:
    yield stack
    stack.quiet()
    stack.letters()


def call(word: str) -> bytes:
    return json.dumps({"text": f"ANN: {word} is broken. BOB: I will send a new one today."}).encode()


def test_a_signed_webhook_that_is_delivered_five_times_at_once_is_one_job(outside: Outside) -> None:
    id_, word = a_word(), a_word()
    headers = outside.signed(call(word), id_)
    answers = at_once(5, lambda: outside.post(call(word), headers))
    assert [answer.status for answer in answers] == [202] * 5
    job = outside.final(outside.event_job(id_))
    assert (job["status"], job["type"]) == ("COMPLETED", "summarize")
    outside.quiet()
    assert len(outside.model_calls(word)) == 1
    assert outside.letters() == []
    listed = outside.get("/jobs?limit=100", "acme").json()["jobs"]
    assert [one["job_id"] for one in listed].count(job["job_id"]) == 1


def test_a_wrong_signature_an_old_timestamp_and_a_changed_byte_are_a_letter_each_and_no_job(outside: Outside) -> None:
    ids = [a_word() for _ in range(4)]
    body = call(a_word())
    outside.post(body, outside.signed(body, ids[0], key=b"not the key"))
    outside.post(body, outside.signed(body, ids[1], age_s=301))
    outside.post(body[:-2] + b"!}", outside.signed(body, ids[2]))
    outside.post(body, outside.signed(body, ids[3], age_s=-400))
    outside.quiet()
    assert not any(outside.exists(outside.event_job(id_)) for id_ in ids)
    letters = outside.letters()
    reasons = [letter["MessageAttributes"]["reason"]["StringValue"] for letter in letters]
    assert sorted(reasons) == ["BAD_SIGNATURE", "BAD_SIGNATURE", "TIMESTAMP_IN_FUTURE", "TIMESTAMP_TOO_OLD"]
    envelopes = [json.loads(letter["Body"]) for letter in letters]
    assert len({envelope["event_id"] for envelope in envelopes}) == 4
    for envelope in envelopes:
        assert envelope["payload"]["attributes"]["source"] == "crm"
        assert "request_id" in envelope["payload"]["attributes"]


def test_an_event_replayed_after_its_time_is_refused_and_its_job_stays(outside: Outside) -> None:
    id_, body = a_word(), call(a_word())
    headers = outside.signed(body, id_)
    outside.post(body, headers)
    job = outside.final(outside.event_job(id_))
    outside.skip(301)
    outside.post(body, headers)
    outside.quiet()
    assert outside.reasons() == ["TIMESTAMP_TOO_OLD"]
    assert outside.final(outside.event_job(id_))["attempt"] == job["attempt"]


def test_the_exact_bytes_of_a_binary_source_come_through(outside: Outside) -> None:
    id_, word = a_word(), a_word()
    body = f"ANN: caller={word}&mood=%20bad\r\n".encode()
    headers = {"content-type": "application/x-www-form-urlencoded", **hmac_sha256(body, id_=id_)}
    answer = outside.post(body, headers, "forge")
    assert (answer.status, set(answer.json())) == (202, {"request_id"})
    assert outside.final(outside.event_job(id_, "forge"), "globex")["status"] == "COMPLETED"
    assert outside.target.get(f"/jobs/{outside.event_job(id_, 'forge')}", "acme").status == 404


def test_an_event_that_its_tasks_schema_refuses_is_a_letter(outside: Outside) -> None:
    body = b'{"txt":"no text"}'
    assert outside.post(body, outside.signed(body, a_word())).status == 202
    outside.quiet()
    assert outside.reasons() == ["INVALID_INPUT"]


def test_a_request_without_its_signature_is_refused_at_the_door(outside: Outside) -> None:
    body = call(a_word())
    headers = outside.signed(body, a_word())
    del headers["webhook-signature"]
    assert 400 <= outside.post(body, headers).status < 500
    outside.quiet()
    assert outside.letters() == []


def test_a_header_that_breaks_out_of_its_quotes_gains_nothing(outside: Outside) -> None:
    """Where the gateway puts headers into the attributes as they are, a stranger can write any attribute."""
    id_, body = a_word(), call(a_word())
    for name, value in (("review_id", "message.1"), ("source", "forge"), ("encoding", "base64"), ("x", "y")):
        smuggled = f'x"}},"{name}":{{"DataType":"String","StringValue":"{value}'
        outside.post(body, {**outside.signed(body, id_, key=b"not the key"), "webhook-signature": smuggled})
    old = outside.signed(body, id_, age_s=3_600)
    then = old["webhook-timestamp"]
    smuggled = f'{then}"}},"received_ms":{{"DataType":"String","StringValue":"{then}000'
    outside.post(body, {**old, "webhook-timestamp": smuggled})
    outside.quiet()
    assert not outside.exists(outside.event_job(id_))
    assert set(outside.reasons()) == {"BAD_SIGNATURE", "MALFORMED_BODY", "TIMESTAMP_TOO_OLD"}


def test_each_source_has_a_throttle_of_its_own(outside: Outside) -> None:
    body = call(a_word())
    statuses = at_once(20, lambda: outside.post(body, outside.signed(body, a_word()), "slow").status)
    assert set(statuses) == {202, 429}
    assert statuses.count(202) >= 2
    other = outside.post(body, outside.signed(body, a_word()))
    assert other.status == 202


def test_a_secret_can_be_changed_while_events_come(outside: Outside) -> None:
    old, new = SECRETS["neverdrop/crm"], b"the key of tomorrow"
    written = "whsec_" + base64.b64encode(new).decode()
    for secret in (json.dumps([written, old]), old):
        outside.runtime.put_secret("neverdrop/crm", secret)
        outside.skip(301)
        keys = (KEY, new) if secret.startswith("[") else (KEY,)
        for key in keys:
            id_, body = a_word(), call(a_word())
            outside.post(body, outside.signed(body, id_, key=key))
            assert outside.final(outside.event_job(id_))["status"] == "COMPLETED"
    assert outside.letters() == []


def test_a_letter_that_is_moved_back_with_the_aws_api_after_a_fix_completes(outside: Outside) -> None:
    """As the console's redrive does it, with the inbox as custom destination."""
    id_, body = a_word(), call(a_word())
    outside.runtime.put_secret("neverdrop/crm", "whsec_bm90IHRoZSBzZWNyZXQ=")
    outside.skip(301)
    outside.post(body, outside.signed(body, id_))
    outside.quiet()
    outside.runtime.put_secret("neverdrop/crm", SECRETS["neverdrop/crm"])
    outside.skip(3_600)
    arns = {
        name: outside.sqs.get_queue_attributes(QueueUrl=outside.target.outputs[name], AttributeNames=["QueueArn"])[
            "Attributes"
        ]["QueueArn"]
        for name in ("InboxDlqUrl", "InboxQueueUrl")
    }
    outside.sqs.start_message_move_task(SourceArn=arns["InboxDlqUrl"], DestinationArn=arns["InboxQueueUrl"])
    assert outside.final(outside.event_job(id_))["status"] == "COMPLETED"
    assert outside.letters() == []


STRUCK = [
    ("crash", "before"),
    ("crash", "after"),
    ("throttle", "before"),
    ("lost_reply", "after"),
]
CALLS = [("dynamodb", "PutItem"), ("secretsmanager", "GetSecretValue"), ("sqs", "SendMessageBatch")]


@pytest.mark.parametrize(("kind", "when"), STRUCK, ids=[" ".join(one) for one in STRUCK])
@pytest.mark.parametrize(("service", "operation"), CALLS, ids=[" ".join(one) for one in CALLS])
def test_an_ingest_that_is_struck_at_any_of_its_calls_loses_nothing_and_doubles_nothing(
    outside: Outside, service: str, operation: str, kind: str, when: str
) -> None:
    """A batch with an event and a forged one in it: the one becomes a job, the other a letter, under one id each."""
    id_, word = a_word(), a_word()
    forged = outside.signed(call(word), a_word(), key=b"not the key")
    outside.skip(301)  # the secret is read again
    fault = Fault("ingest", kind, when, service=service, operation=operation)
    outside.runtime.faults.add(fault)
    outside.post(call(word), outside.signed(call(word), id_))
    outside.post(call(word), {**forged, "webhook-timestamp": str(int(outside.now()))})
    outside.quiet()
    while outside.depth("all", "InboxQueueUrl"):
        outside.skip(181)  # what was left comes again
        outside.quiet()
    job = outside.final(outside.event_job(id_))
    outside.quiet()
    assert (job["status"], len(outside.model_calls(word))) == ("COMPLETED", 1)
    assert fault.fired == 1
    letters = [json.loads(letter["Body"]) for letter in outside.letters()]
    assert len({letter["event_id"] for letter in letters}) == 1
    assert {letter["payload"]["reason"] for letter in letters} == {"BAD_SIGNATURE"}
