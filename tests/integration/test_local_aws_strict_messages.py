"""What SQS, SNS, S3 and Secrets Manager demand of attributes, ids, checksums and sizes; stock moto takes it all."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.strict import Strict
from tests.integration.local_aws import Aws, error_code, serving


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates[:] = [Strict()]
    return running


def refused(call: Callable[[], object], code: str, words: str | None = None) -> None:
    with pytest.raises(ClientError, match=words) as error:
        call()
    assert error_code(error.value) == code


def typed(kind: str, value: str = "1") -> dict[str, dict[str, str]]:
    return {"a": {"DataType": kind, "StringValue": value}}


# --- SQS -----------------------------------------------------------------------------------------


def test_a_delay_is_between_none_and_a_quarter_of_an_hour(aws):
    sqs, url = aws.client("sqs"), aws.queue()
    for delay in (-1, 901):
        refused(
            partial(sqs.send_message, QueueUrl=url, MessageBody="x", DelaySeconds=delay),
            "InvalidParameterValue",
            f"Value {delay} for parameter DelaySeconds",
        )
    refused(
        lambda: sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "x", "DelaySeconds": -1}]),
        "InvalidParameterValue",
    )
    for delay in (0, 900):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)


def test_a_deduplication_id_is_for_fifo_queues(aws):
    sqs, ids = aws.client("sqs"), {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    url = aws.queue()
    refused(lambda: sqs.send_message(QueueUrl=url, **ids), "InvalidParameterValue", "MessageDeduplicationId")
    sqs.send_message(QueueUrl=aws.queue("letters.fifo", FifoQueue="true"), **ids)


def test_an_attribute_has_a_type_of_bounded_length(aws):
    sqs, url = aws.client("sqs"), aws.queue()

    def send(attributes: dict[str, Any]) -> None:
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)

    refused(lambda: send(typed("String." + "x" * 250)), "InvalidParameterValue", "less than 256")
    for number in ("1" * 39, "1.1e126", "9e-129"):
        refused(partial(send, typed("Number", number)), "InvalidParameterValue", "to a number")
    send(typed("String." + "x" * 249))
    for number in ("1" * 38 + "000", "1e126", "-1e-128", "0"):
        send(typed("Number", number))
    with aws.unchecked("sqs") as other:
        untyped = {"a": {"StringValue": "x"}}
        refused(
            lambda: other.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=untyped),
            "InvalidParameterValue",
            "non-empty message attribute type",
        )


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("VisibilityTimeout", 43_200),
        ("MessageRetentionPeriod", 1_209_600),
        ("DelaySeconds", 900),
        ("ReceiveMessageWaitTimeSeconds", 20),
        ("MaximumMessageSize", 1_048_576),
    ],
)
def test_attributes_of_a_queue_have_bounds(aws, name, most):
    sqs, url = aws.client("sqs"), aws.queue()
    for value in (str(most + 1), "-1", "soon"):
        refused(
            partial(sqs.set_queue_attributes, QueueUrl=url, Attributes={name: value}),
            "InvalidAttributeValue",
            name,
        )
    refused(lambda: aws.queue("other", **{name: str(most + 1)}), "InvalidAttributeValue", name)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={name: str(most)})


# --- SNS -----------------------------------------------------------------------------------------


@pytest.fixture
def topic(aws: Aws) -> str:
    return str(aws.client("sns").create_topic(Name="facts")["TopicArn"])


@pytest.mark.parametrize("name", ["a b", "AWS.x", "amazon.x", ".x", "x.", "x..y", "ä"])
def test_sns_takes_no_attribute_that_sqs_could_not(aws, topic, name):
    attribute = {name: {"DataType": "String", "StringValue": "x"}}
    sns = aws.client("sns")
    refused(
        lambda: sns.publish(TopicArn=topic, Message="x", MessageAttributes=attribute), "ParameterValueInvalid", "name"
    )
    sns.publish(TopicArn=topic, Message="x", MessageAttributes={"a.b_c-D": {"DataType": "String", "StringValue": "x"}})


def test_a_published_attribute_has_a_type(aws, topic):
    with aws.unchecked("sns") as sns:
        untyped = {"a": {"StringValue": "x"}}
        refused(
            lambda: sns.publish(TopicArn=topic, Message="x", MessageAttributes=untyped), "ValidationError", "dataType"
        )


def test_a_message_for_each_protocol_names_one_for_the_others(aws, topic):
    sns = aws.client("sns")

    def publish(message: str) -> None:
        sns.publish(TopicArn=topic, MessageStructure="json", Message=message)

    refused(lambda: publish('{"sqs": "x"}'), "InvalidParameter", "No default entry")
    refused(lambda: publish("[]"), "InvalidParameter", "No default entry")
    refused(lambda: publish("{sqs"), "InvalidParameter", "failed to parse")
    entry = {"Id": "1", "MessageStructure": "json", "Message": "{}"}
    refused(
        lambda: sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[entry]), "InvalidParameter", "No default"
    )
    publish('{"default": "x"}')


def test_a_published_group_and_ids_of_entries_are_readable(aws, topic):
    sns = aws.client("sns")
    refused(
        lambda: sns.publish(TopicArn=topic, Message="x", MessageGroupId="a b"), "InvalidParameter", "MessageGroupId"
    )
    for bad in ("a b", "i" * 81):
        entries = [{"Id": bad, "Message": "x"}]
        refused(
            partial(sns.publish_batch, TopicArn=topic, PublishBatchRequestEntries=entries),
            "InvalidBatchEntryId",
        )
    sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[{"Id": "i-_" * 26, "Message": "x"}])


# --- S3 ------------------------------------------------------------------------------------------


@pytest.fixture
def s3(aws: Aws) -> Any:
    client = aws.client("s3")
    client.create_bucket(Bucket="box")
    return client


def coded(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


SUMS = {
    "ContentMD5": hashlib.md5(b"x", usedforsecurity=False).digest(),
    "ChecksumSHA256": hashlib.sha256(b"x").digest(),
    "ChecksumSHA1": hashlib.sha1(b"x", usedforsecurity=False).digest(),
    "ChecksumCRC32": zlib.crc32(b"x").to_bytes(4, "big"),
}


@pytest.mark.parametrize("kind", SUMS)
def test_a_body_that_is_not_what_its_sum_says_is_refused(s3, kind):
    s3.put_object(Bucket="box", Key="k", Body=b"x", **{kind: coded(SUMS[kind])})
    unreadable = "InvalidDigest" if kind == "ContentMD5" else "InvalidRequest"
    for claimed, code in ((coded(bytes(len(SUMS[kind]))), "BadDigest"), ("AAAA", unreadable), ("?", unreadable)):
        refused(partial(s3.put_object, Bucket="box", Key="other", Body=b"x", **{kind: claimed}), code)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="box")["Contents"]] == ["k"]


def test_a_part_that_is_not_what_its_sum_says_is_refused(s3):
    upload = s3.create_multipart_upload(Bucket="box", Key="k")["UploadId"]
    part = {"Bucket": "box", "Key": "k", "UploadId": upload, "PartNumber": 1, "Body": b"x"}
    refused(lambda: s3.upload_part(**part, ContentMD5=coded(bytes(16))), "BadDigest")
    s3.upload_part(**part, ContentMD5=coded(SUMS["ContentMD5"]))


def test_a_thousand_keys_are_deleted_at_once_and_no_more(s3):
    s3.put_object(Bucket="box", Key="0", Body=b"x")
    keys = [{"Key": str(number)} for number in range(1001)]
    refused(lambda: s3.delete_objects(Bucket="box", Delete={"Objects": keys}), "MalformedXML")
    assert s3.list_objects_v2(Bucket="box")["KeyCount"] == 1
    s3.delete_objects(Bucket="box", Delete={"Objects": keys[:1000]})
    assert s3.list_objects_v2(Bucket="box")["KeyCount"] == 0


# --- Secrets Manager -----------------------------------------------------------------------------


def test_a_secret_has_64_kib(aws):
    secrets = aws.client("secretsmanager")
    secrets.create_secret(Name="crm", SecretString="x" * 65_536)
    refused(lambda: secrets.create_secret(Name="b", SecretString="ä" * 32_769), "ValidationException", "secretString")
    refused(lambda: secrets.put_secret_value(SecretId="crm", SecretString="x" * 65_537), "ValidationException")
    refused(
        lambda: secrets.update_secret(SecretId="crm", SecretBinary=b"x" * 65_537), "ValidationException", "secretBinary"
    )
