"""S3 tells queues about new objects as the template says and in AWS's words; what AWS would not set up is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_plus

import pytest

from local.aws.s3_events import encoded_key
from local.clock import VirtualClock
from local.events.notifications import Notifications
from local.stack.errors import TemplateError
from local.stack.provision import Stack, provision
from local.stack.template import parse
from tests.integration.local_aws import Aws, serving
from tests.integration.stock_moto import stock
from tests.integration.test_local_s3_uploads import post, signed

BOX = "box"
SEND = {
    "Effect": "Allow",
    "Principal": {"Service": "s3.amazonaws.com"},
    "Action": "sqs:SendMessage",
    "Resource": {"Fn::GetAtt": ["Inbox", "Arn"]},
    "Condition": {
        "ArnLike": {"aws:SourceArn": f"arn:aws:s3:::{BOX}"},
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
    },
}
TLS_ONLY = {
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": "sqs:*",
    "Resource": {"Fn::GetAtt": ["Inbox", "Arn"]},
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
UPLOADS = {"S3Key": {"Rules": [{"Name": "prefix", "Value": "uploads/"}]}}


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    return running


def to_inbox(event: str = "s3:ObjectCreated:*", **more: Any) -> dict[str, Any]:
    return {"Event": event, "Queue": {"Fn::GetAtt": ["Inbox", "Arn"]}, **more}


def stack(
    aws: Aws,
    *configurations: dict[str, Any],
    statements: Any = (TLS_ONLY, SEND),
    queue: dict[str, Any] | None = None,
    bucket: dict[str, Any] | None = None,
    depends: str = "Policy",
    **other: Any,
) -> Stack:
    notification = {"QueueConfigurations": list(configurations or [to_inbox(Filter=UPLOADS)]), **other}
    document = {
        "Resources": {
            "Inbox": {"Type": "AWS::SQS::Queue", "Properties": queue or {}},
            "Policy": {
                "Type": "AWS::SQS::QueuePolicy",
                "Properties": {
                    "Queues": [{"Ref": "Inbox"}],
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": list(statements)},
                },
            },
            "Box": {
                "Type": "AWS::S3::Bucket",
                "DependsOn": [depends],
                "Properties": {"BucketName": BOX, "NotificationConfiguration": notification, **(bucket or {})},
            },
        }
    }
    return provision(parse(document, name="test"), aws.server.url)


def received(aws: Aws, made: Stack) -> list[dict[str, Any]]:
    """Everything in the inbox, in order; it is empty afterwards."""
    sqs, url = aws.client("sqs"), made.resources["Inbox"].ref
    found: list[dict[str, Any]] = []
    while batch := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
        for message in batch:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def heard(aws: Aws, made: Stack) -> list[dict[str, Any]]:
    """The records, without the test event."""
    return [record for message in received(aws, made) for record in message.get("Records", [])]


def put(aws: Aws, key: str, body: bytes = b"hello") -> dict[str, Any]:
    return dict(aws.client("s3").put_object(Bucket=BOX, Key=key, Body=body))


# --- what is told ------------------------------------------------------------------------------------------


def test_s3_02_first_of_all_comes_a_test_event(aws):
    (test,) = received(aws, stack(aws))
    assert (test["Service"], test["Event"], test["Bucket"]) == ("Amazon S3", "s3:TestEvent", BOX)
    assert "Records" not in test


def test_record_has_the_shape_that_aws_documents(aws):
    made = stack(aws)
    with VirtualClock() as clock:
        clock.advance(7200)
        before = datetime.now(UTC) - timedelta(milliseconds=1)  # that is how exactly it is told
        answer = put(aws, "uploads/acme/a b+c é~.json")
        (record,) = heard(aws, made)
        assert before < datetime.fromisoformat(record["eventTime"]) <= datetime.now(UTC)
    assert record["eventTime"].endswith("Z")
    assert {name: record[name] for name in ("eventVersion", "eventSource", "awsRegion", "eventName")} == {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "us-east-1",
        "eventName": "ObjectCreated:Put",
    }
    assert set(record) >= {"userIdentity", "requestParameters", "responseElements"}
    assert record["s3"]["bucket"]["name"] == BOX
    assert record["s3"]["bucket"]["arn"] == f"arn:aws:s3:::{BOX}"
    told_of = record["s3"]["object"]
    assert told_of.pop("sequencer")
    assert told_of == {
        "key": "uploads/acme/a+b%2Bc+%C3%A9%7E.json",
        "size": 5,
        "eTag": answer["ETag"].strip('"'),
    }


@pytest.mark.parametrize("key", ["in/red flower.jpg", "100%25.txt", "a/b//c", "ü/=&?#", "~*-._"])
def test_s3_01_key_is_encoded_once_and_slashes_stay(key):
    assert unquote_plus(encoded_key(key)) == key
    assert encoded_key(key).count("/") == key.count("/")


def test_moto_23_record_names_the_version_and_its_place_in_the_order(aws):
    made = stack(aws, bucket={"VersioningConfiguration": {"Status": "Enabled"}})
    ids = [put(aws, "uploads/a")["VersionId"] for _ in range(3)]
    objects = [record["s3"]["object"] for record in heard(aws, made)]
    assert [one["versionId"] for one in objects] == ids
    sequencers = [one["sequencer"] for one in objects]
    assert sequencers == sorted(set(sequencers))
    with stock("notifications.send_event"):
        put(aws, "uploads/a")
    (record,) = heard(aws, made)
    assert "versionId" not in record["s3"]["object"]


def test_each_way_to_create_an_object_has_its_name_and_comes_once(aws):
    made = stack(aws)
    s3 = aws.client("s3")
    put(aws, "uploads/put")
    s3.copy_object(Bucket=BOX, Key="uploads/copied", CopySource={"Bucket": BOX, "Key": "uploads/put"})
    given = signed(aws, key="uploads/posted")
    assert post(given["url"], given["fields"], b"xyz").status == 204
    upload = s3.create_multipart_upload(Bucket=BOX, Key="uploads/parts")["UploadId"]
    part = {"Bucket": BOX, "Key": "uploads/parts", "UploadId": upload}
    etag = s3.upload_part(**part, PartNumber=1, Body=b"p" * 7)["ETag"]
    s3.complete_multipart_upload(**part, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert [
        (record["eventName"], record["s3"]["object"]["key"], record["s3"]["object"]["size"])
        for record in heard(aws, made)
    ] == [
        ("ObjectCreated:Put", "uploads/put", 5),
        ("ObjectCreated:Copy", "uploads/copied", 5),
        ("ObjectCreated:Post", "uploads/posted", 3),
        ("ObjectCreated:CompleteMultipartUpload", "uploads/parts", 7),
    ]


def test_nothing_else_is_told(aws):
    made = stack(aws, bucket={"VersioningConfiguration": {"Status": "Enabled"}})
    version = put(aws, "uploads/a")["VersionId"]
    assert len(heard(aws, made)) == 1
    s3 = aws.client("s3")
    s3.put_object_tagging(Bucket=BOX, Key="uploads/a", Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    s3.put_object_acl(Bucket=BOX, Key="uploads/a", ACL="private")
    s3.delete_object(Bucket=BOX, Key="uploads/a")
    s3.delete_object(Bucket=BOX, Key="uploads/a", VersionId=version)
    put(aws, "elsewhere/a")
    assert heard(aws, made) == []


def test_kinds_prefixes_and_suffixes_are_heeded(aws):
    rules = [{"Name": "Prefix", "Value": "in/"}, {"Name": "Suffix", "Value": ".json"}]
    made = stack(aws, to_inbox("s3:ObjectCreated:Put", Filter={"S3Key": {"Rules": rules}}))
    for key in ("in/a.json", "in/a.txt", "out/a.json"):
        put(aws, key)
    aws.client("s3").copy_object(Bucket=BOX, Key="in/b.json", CopySource={"Bucket": BOX, "Key": "in/a.json"})
    assert [record["s3"]["object"]["key"] for record in heard(aws, made)] == ["in/a.json"]


def test_a_queue_that_is_gone_costs_nobody_his_upload(aws):
    made = stack(aws)
    aws.client("sqs").delete_queue(QueueUrl=made.resources["Inbox"].ref)
    assert put(aws, "uploads/a")["ETag"]


# --- what is refused ---------------------------------------------------------------------------------------

UNABLE = r"\[Box\].*Unable to validate the following destination configurations"


@pytest.mark.parametrize(
    "statements",
    [
        (),
        (TLS_ONLY,),
        ({**SEND, "Principal": {"Service": "sns.amazonaws.com"}},),
        ({**SEND, "Principal": {"AWS": "arn:aws:iam::123456789012:root"}},),
        ({**SEND, "Action": "sqs:ReceiveMessage"},),
        ({**SEND, "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::another"}}},),
        ({**SEND, "Condition": {"StringEquals": {"aws:SourceAccount": "999999999999"}}},),
        (SEND, {**SEND, "Effect": "Deny", "Principal": "*"}),
    ],
)
def test_bucket_is_refused_when_its_queue_does_not_let_s3_in(aws, statements):
    with pytest.raises(TemplateError, match=UNABLE):
        stack(aws, statements=statements)


def test_bucket_is_taken_when_any_principal_may_send(aws):
    assert stack(aws, statements=({**SEND, "Principal": "*", "Action": ["SQS:*"]},))


def test_bucket_that_does_not_wait_for_the_policy_is_refused(aws):
    with pytest.raises(TemplateError, match=UNABLE):
        stack(aws, depends="Inbox")


@pytest.mark.parametrize("queue", [{"FifoQueue": True}, {"KmsMasterKeyId": "alias/aws/sqs"}])
def test_queue_that_s3_cannot_write_to_is_refused(aws, queue):
    with pytest.raises(TemplateError, match=UNABLE):
        stack(aws, queue=queue)


def test_queue_that_does_not_exist_is_refused(aws):
    with pytest.raises(TemplateError, match=UNABLE):
        stack(aws, {"Event": "s3:ObjectCreated:*", "Queue": "arn:aws:sqs:us-east-1:123456789012:nobody"})
    with stock("FakeBucket.set_notification_configuration"):
        aws.server.reset()
        assert stack(aws, {"Event": "s3:ObjectCreated:*", "Queue": "arn:aws:sqs:us-east-1:123456789012:nobody"})


def test_overlapping_configurations_are_refused(aws):
    deeper = {"S3Key": {"Rules": [{"Name": "prefix", "Value": "uploads/acme/"}]}}
    with pytest.raises(TemplateError, match="Configurations overlap"):
        stack(aws, to_inbox(Filter=UPLOADS), to_inbox("s3:ObjectCreated:Put", Filter=deeper))
    aws.server.reset()
    assert stack(aws, to_inbox("s3:ObjectCreated:Copy", Filter=UPLOADS), to_inbox("s3:ObjectCreated:Put"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"TopicConfigurations": []}, "TopicConfigurations is not played"),
        ({"LambdaConfigurations": []}, "LambdaConfigurations is not played"),
        ({"EventBridgeConfiguration": {}}, "EventBridgeConfiguration is not played"),
    ],
)
def test_other_destinations_are_refused_and_not_skipped(aws, more, words):
    with pytest.raises(TemplateError, match=rf"\[Box\].*{words}"):
        stack(aws, **more)


def test_other_events_are_refused_and_not_skipped(aws):
    with pytest.raises(TemplateError, match=r"\[Box\].*s3:ObjectRemoved:\* is not played"):
        stack(aws, to_inbox("s3:ObjectRemoved:*"))


# --- what may go wrong -------------------------------------------------------------------------------------


@pytest.fixture
def made(aws: Aws) -> Stack:
    made = stack(aws)
    received(aws, made)
    return made


@pytest.fixture
def notifications(aws: Aws, made: Stack) -> Iterator[Notifications]:
    between = Notifications(lambda: None)
    between.start()
    yield between
    between.stop()


def keys(aws: Aws, made: Stack) -> list[str]:
    return [record["s3"]["object"]["key"].removeprefix("uploads/") for record in heard(aws, made)]


def test_next_notifications_are_lost(aws, made, notifications):
    notifications.drop(2)
    for key in "abc":
        put(aws, f"uploads/{key}")
    assert keys(aws, made) == ["c"]
    told = notifications.describe()
    assert [one["key"] for one in told["dropped"]] == ["uploads/a", "uploads/b"]
    assert (told["pending"], told["delivered"]) == ([], 1)


def test_only_those_of_keys_that_match(aws, made, notifications):
    notifications.drop(1, match="b")
    for key in "abb":
        put(aws, f"uploads/{key}")
    assert keys(aws, made) == ["a", "b"]


def test_next_notifications_come_twice_and_are_the_same(aws, made, notifications):
    notifications.duplicate(1)
    put(aws, "uploads/a")
    put(aws, "uploads/b")
    first, second, third = heard(aws, made)
    assert first == second
    assert third["s3"]["object"]["key"] == "uploads/b"


def test_late_notifications_keep_their_order_and_others_pass_them(aws, made, notifications):
    notifications.delay(2)
    for key in "abc":
        put(aws, f"uploads/{key}")
    assert keys(aws, made) == ["c"]
    assert [one["key"] for one in notifications.describe()["held"]] == ["uploads/a", "uploads/b"]
    assert notifications.release() == 2
    assert keys(aws, made) == ["a", "b"]
    assert notifications.release() == 0


def test_reordered_notifications_come_last_first(aws, made, notifications):
    notifications.reorder(3)
    for key in "abc":
        put(aws, f"uploads/{key}")
    assert keys(aws, made) == []
    notifications.release()
    assert keys(aws, made) == ["c", "b", "a"]


def test_event_sources_are_woken_when_something_arrives_and_only_then(aws, made):
    rings: list[None] = []
    between = Notifications(lambda: rings.append(None))
    between.start()
    try:
        between.delay(1)
        put(aws, "uploads/a")
        assert len(rings) == 0
        put(aws, "uploads/b")
        assert len(rings) == 1
        between.release()
        assert len(rings) == 2
    finally:
        between.stop()


def test_rules_are_used_up_one_after_the_other(aws, made, notifications):
    notifications.drop(1)
    notifications.duplicate(1)
    for key in "abc":
        put(aws, f"uploads/{key}")
    assert keys(aws, made) == ["b", "b", "c"]


def test_clear_forgets_everything(aws, made, notifications):
    notifications.drop(5)
    notifications.delay(1, match="never")
    put(aws, "uploads/a")
    notifications.clear()
    put(aws, "uploads/b")
    assert keys(aws, made) == ["b"]
    assert notifications.describe() == {"pending": [], "held": [], "dropped": [], "delivered": 1}


def test_after_stop_everything_passes(aws, made, notifications):
    notifications.drop(5)
    notifications.stop()
    put(aws, "uploads/a")
    assert keys(aws, made) == ["a"]


def test_many_uploads_and_releases_at_once_lose_and_double_nothing(aws, made, notifications):
    notifications.delay(1000)
    stop = threading.Event()

    def release() -> None:
        while not stop.is_set():
            notifications.release()

    with ThreadPoolExecutor(4) as pool:
        releasing = pool.submit(release)
        done = [pool.submit(put, aws, f"uploads/{number}") for number in range(60)]
        for one in done:
            one.result(timeout=120)
        stop.set()
        releasing.result(timeout=120)
    notifications.release()
    assert sorted(keys(aws, made), key=int) == [str(number) for number in range(60)]
