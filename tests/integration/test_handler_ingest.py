"""Batches of the inbox as SQS hands them over: each message is settled by itself, and only then acknowledged."""

from __future__ import annotations

import base64
import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.contracts.sources import written
from lambdas.core import ids, times
from local.aws.s3_events import Created, message
from local.aws.s3_events import test_message as s3_test_message
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import failures, sqs, sqs_record
from tests.signing import DECLARED, SECRETS, any_source, attributes, hmac_sha256, standard_webhooks

BODY = b'{"text":"ANNA: The pump is broken."}'


@pytest.fixture
def ingest(load_handler: Load, cloud: Cloud) -> ModuleType:
    """With the sources of `tests.signing` declared, and their secrets in place."""
    manager = cloud.client("secretsmanager")
    known = {one["Name"] for one in manager.list_secrets()["SecretList"]}
    for name, secret in SECRETS.items():
        if name not in known:
            manager.create_secret(Name=name, SecretString=secret)
    return load_handler("ingest", SOURCES=written({name: any_source(name) for name in DECLARED}))


def an_event(body: bytes = BODY, *, id_: str = "msg_1", **over: Any) -> dict[str, Any]:
    """A signed event of the source `crm`, at the door a moment ago."""
    now_s = int(clock.now().timestamp())
    found = attributes("crm", standard_webhooks(body, id_=id_, at_s=now_s), received_ms=f"{now_s}000", **over)
    return record(body.decode(), found)


def record(body: str, found: dict[str, str]) -> dict[str, Any]:
    made = sqs_record(body)
    made["attributes"]["SentTimestamp"] = str(times.milliseconds(clock.now()))
    made["messageAttributes"] = {
        name: {"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": "String"}
        for name, value in found.items()
    }
    return made


def put(cloud: Cloud, key: str, body: bytes, content_type: str = "text/plain") -> Created:
    answer = cloud.client("s3").put_object(Bucket=cloud.uploads_bucket, Key=key, Body=body, ContentType=content_type)
    return Created(
        "s3:ObjectCreated:Put", "us-east-1", cloud.uploads_bucket, key, len(body), answer["ETag"].strip('"'),
        answer["VersionId"],
    )  # fmt: skip


def letters(cloud: Cloud) -> list[dict[str, Any]]:
    return cloud.receive(cloud.inbox_letters_url)


def handle(ingest: ModuleType, *records: dict[str, Any], remaining_s: float = 300) -> list[str]:
    return failures(ingest.handler(sqs(*records), Context(remaining_s)))


def test_a_signed_event_is_recorded(cloud: Cloud, ingest: ModuleType, lines: Lines):
    assert handle(ingest, an_event()) == []
    job = cloud.record(ids.job_id_from_key("acme", "POST", "/events/crm", "msg_1"))
    assert (job["status"], job["tenant"], job["source"], job["type"]) == ("PENDING", "acme", "crm", "summarize")
    assert letters(cloud) == []
    (line,) = lines.of("accepted")
    assert (line["job_id"], line["tenant"], line["source"], line["new"]) == (job["pk"], "acme", "crm", True)


def test_a_usual_event_costs_one_call_beside_the_secret(cloud: Cloud, ingest: ModuleType):
    handle(ingest, an_event())
    cloud.wire.clear()
    handle(ingest, an_event(id_="msg_2"))
    assert [one.operation for one in cloud.wire.sent] == ["PutItem"]


def test_each_message_of_a_batch_is_settled_by_itself(cloud: Cloud, ingest: ModuleType):
    upload = put(cloud, "uploads/acme/summarize/a b.txt", b"x")
    cloud.wire.refuse("PutItem", code="ProvisionedThroughputExceededException", times=2, part="msg_kept")
    kept = an_event(b'{"text":"msg_kept"}', id_="msg_kept")
    batch = [
        an_event(),
        an_event(b'{"text":"another"}', id_="msg_1", signature="v1,AAAA"),
        kept,
        record(message(upload, "c"), {}),
        record(s3_test_message(cloud.uploads_bucket), {}),
        an_event(),
    ]
    assert handle(ingest, *batch) == [kept["messageId"]]
    found = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    assert {item["source"]["S"] for item in found} == {"crm", "uploads"}
    assert len(found) == 2
    (letter,) = letters(cloud)
    assert letter["MessageAttributes"]["reason"]["StringValue"] == "BAD_SIGNATURE"
    assert "source" not in letter["MessageAttributes"]
    assert handle(ingest, kept) == []


def test_a_letter_that_sqs_does_not_take_leaves_the_message(cloud: Cloud, ingest: ModuleType, pauses: list[float]):
    bad = an_event(signature="v1,AAAA")
    cloud.wire.refuse("SendMessageBatch", code="AccessDenied", status=403, times=1)
    assert handle(ingest, bad) == [bad["messageId"]]
    assert letters(cloud) == []
    assert handle(ingest, bad) == []
    assert len(letters(cloud)) == 1


def test_while_secrets_cannot_be_read_events_stay_and_uploads_do_not(cloud: Cloud, ingest: ModuleType, lines: Lines):
    upload = put(cloud, "uploads/acme/summarize/call.txt", b"x")
    event = an_event()
    cloud.wire.refuse("GetSecretValue", code="InternalServiceError", status=500, times=2)
    assert handle(ingest, event, record(message(upload, "c"), {})) == [event["messageId"]]
    assert letters(cloud) == []
    assert "neverdrop/crm" in lines.of("left_on_the_queue")[0]["detail"]
    assert handle(ingest, event) == []


def test_a_message_is_not_begun_when_its_end_would_not_be_seen(cloud: Cloud, ingest: ModuleType):
    event = an_event()
    cloud.wire.clear()
    assert handle(ingest, event, remaining_s=7) == [event["messageId"]]
    assert cloud.wire.sent == []


def test_a_crash_of_ours_leaves_its_message_alone(cloud: Cloud, ingest: ModuleType, lines: Lines):
    broken = an_event()
    del broken["attributes"]["SentTimestamp"]
    assert handle(ingest, broken, an_event()) == [broken["messageId"]]
    assert lines.of("ingest_error")


def test_an_upload_is_recorded_with_its_version_and_its_decoded_key(cloud: Cloud, ingest: ModuleType):
    upload = put(cloud, "uploads/acme/summarize/100%25 Anna+é.txt", b"hello")
    assert handle(ingest, record(message(upload, "c"), {})) == []
    job = cloud.record(ids.object_job_id(cloud.uploads_bucket, upload.key, upload.version_id or ""))
    assert job["upload"] == {
        "key": upload.key, "version": upload.version_id, "etag": upload.etag, "bytes": 5,
    }  # fmt: skip


def test_the_index_of_uploads_has_them_in_the_order_of_their_keys(cloud: Cloud, ingest: ModuleType):
    keys = [f"uploads/acme/summarize/{name}" for name in ("b", "a", "a-1", "a/1", "B", "é")]
    for key in keys:
        handle(ingest, record(message(put(cloud, key, b"x"), "c"), {}))
    found = []
    for shard in ids.upload_shards():
        page = cloud.client("dynamodb").query(
            TableName=cloud.jobs_table, IndexName="by_upload", KeyConditionExpression="upload_shard = :shard",
            ExpressionAttributeValues={":shard": {"S": shard}},
        )["Items"]  # fmt: skip
        listed = [item["upload_key"]["S"].partition("\0")[0] for item in page]
        assert listed == sorted(listed, key=str.encode)
        found += listed
    assert sorted(found) == sorted(keys)


def test_the_first_of_two_uploads_under_a_form_is_its_job_whichever_is_told(cloud: Cloud, ingest: ModuleType):
    job_id = ids.upload_id("acme", "summarize", "0f" * 16)
    first, second = (put(cloud, f"uploads/acme/summarize/{job_id}", body) for body in (b"one", b"two"))
    assert handle(ingest, record(message(second, "c"), {}), record(message(first, "c"), {})) == []
    assert cloud.record(job_id)["upload"]["version"] == first.version_id


def test_an_event_with_a_repaired_body_needs_its_review_on_record(cloud: Cloud, ingest: ModuleType):
    from lambdas.adapters.attributes import to_item
    from lambdas.core.canonical import sha256

    event = record(BODY.decode(), {**attributes("forge", hmac_sha256(b"other")), "review_id": "message.1"})
    assert handle(ingest, event) == []
    assert len(letters(cloud)) == 1
    origin = {name: event["messageAttributes"][name]["stringValue"] for name in ("source", "event_id")}
    review = {"pk": "review", "sk": "message.1", "status": "repaired", "body_sha": sha256(BODY.decode()), **origin}
    cloud.client("dynamodb").put_item(TableName=cloud.jobs_table, Item=to_item(review))
    assert handle(ingest, event) == []
    assert cloud.record(ids.job_id_from_key("globex", "POST", "/events/forge", "delivery-1"))["source"] == "forge"


def test_a_letter_moved_back_by_hand_is_the_event_again(cloud: Cloud, ingest: ModuleType):
    """As the console's redrive sends it: body and attributes of the letter."""
    manager = cloud.client("secretsmanager")
    manager.put_secret_value(SecretId="neverdrop/crm", SecretString="whsec_" + base64.b64encode(b"wrong").decode())
    handle(ingest, an_event())
    (letter,) = letters(cloud)
    manager.put_secret_value(SecretId="neverdrop/crm", SecretString=SECRETS["neverdrop/crm"])
    ingest.parts.cache_clear()
    found = {name: one["StringValue"] for name, one in letter["MessageAttributes"].items()}
    assert handle(ingest, record(letter["Body"], found)) == []
    assert cloud.record(ids.job_id_from_key("acme", "POST", "/events/crm", "msg_1"))["source"] == "crm"


def test_no_line_of_the_log_has_a_body_a_header_or_a_secret(ingest: ModuleType, lines: Lines):
    bad = an_event(b'{"text":"PRIVATE"}', signature="v1,SECRETSIGNATURE")
    handle(ingest, bad, an_event(b'{"text":"PRIVATE"}'))
    assert "PRIVATE" not in lines.raw
    assert "SECRETSIGNATURE" not in lines.raw
    assert not any(secret in lines.raw for secret in SECRETS.values())


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"Records": [{"eventSource": "aws:s3"}]}, {"source": "x"}])
def test_what_is_no_queue_event_is_not_acknowledged(ingest: ModuleType, event: dict[str, Any]):
    with pytest.raises(ValueError, match="Records of an SQS queue"):
        ingest.handler(event, Context(30))


def test_an_event_of_a_megabyte_becomes_a_job_or_a_letter_of_the_same_size(cloud: Cloud, ingest: ModuleType):
    body = json.dumps({"text": "é" * 499_000}, ensure_ascii=False).encode()
    assert handle(ingest, an_event(body)) == []
    job_id = ids.job_id_from_key("acme", "POST", "/events/crm", "msg_1")
    assert "input" not in cloud.record(job_id)
    assert handle(ingest, an_event(body, id_="msg_2", signature="v1,AAAA")) == []
    (letter,) = letters(cloud)
    assert letter["Body"] == body.decode()
    assert letter["MessageAttributes"]["reason"]["StringValue"] == "BAD_SIGNATURE"
