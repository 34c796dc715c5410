"""What is gone is forgotten: a runtime that stays up does not grow."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from moto.dynamodb.models.dynamo_type import Item
from moto.s3.models import FakeKey
from moto.sns.models import sns_backends
from moto.sqs.models import sqs_backends

from local.aws.patches import sns, sqs_handles
from local.aws.tables import find_table
from tests.integration.local_aws import Aws, serving
from tests.integration.stock_moto import stock

KEY = {"pk": {"S": "a"}, "sk": {"S": "job"}}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def _empty(aws: Aws) -> None:
    aws.server.reset()


def live(kind: type) -> int:
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


def test_items_that_were_overwritten_are_gone(aws):
    aws.table(sort_key=True)

    def overwrite() -> int:
        for number in range(10):
            aws.client("dynamodb").put_item(TableName="things", Item={**KEY, "n": {"N": str(number)}})
        return live(Item)

    assert overwrite() == 1
    with stock("BaseModel.__new__"):
        assert overwrite() > 5


def test_objects_that_were_overwritten_are_gone_without_complaint(aws):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="box")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(5):
            s3.put_object(Bucket="box", Key="k", Body=str(number).encode())
        s3.delete_object(Bucket="box", Key="k")
        assert live(FakeKey) == 0


@pytest.mark.parametrize("patched", [True, False])
def test_keys_that_were_asked_for_in_vain_leave_no_partition(aws, patched):
    aws.table(sort_key=True)

    def partitions() -> int:
        dynamodb = aws.client("dynamodb")
        dynamodb.get_item(TableName="things", Key={**KEY, "pk": {"S": "absent"}})
        dynamodb.put_item(TableName="things", Item=KEY)
        dynamodb.delete_item(TableName="things", Key=KEY)
        table = find_table("us-east-1", "things")
        assert table is not None
        return len(table.items)

    if patched:
        assert partitions() == 0
    else:
        with stock("Table.get_item", "Table.delete_item"):
            assert partitions() == 2


def held(aws: Aws) -> tuple[int, int]:
    """Receipt handles of deleted messages, and published messages, that are still remembered."""
    url = aws.queue()
    topic = aws.client("sns").create_topic(Name="facts")["TopicArn"]
    for _ in range(8):
        aws.client("sqs").send_message(QueueUrl=url, MessageBody="x")
        (message,) = aws.client("sqs").receive_message(QueueUrl=url)["Messages"]
        aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        aws.client("sns").publish(TopicArn=topic, Message="x")
    queue: Any = sqs_backends["123456789012"]["us-east-1"].queues["letters"]
    sent = sns_backends["123456789012"]["us-east-1"].topics[topic].sent_notifications
    return len(queue.deleted_messages), len(sent)


def test_deleted_handles_and_published_messages_are_remembered_for_a_while_only(aws, monkeypatch):
    monkeypatch.setattr(sqs_handles, "KEPT", 5)
    monkeypatch.setattr(sns, "KEPT", 5)
    assert held(aws) == (5, 5)
    aws.server.reset()
    with stock("Queue.delete_message", "Topic.publish"):
        handles, published = held(aws)
        assert handles >= 8
        assert published == 8
