"""A table's stream holds one record for every change, and no more than somebody still wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from local.aws.patches import dynamodb_streams
from local.aws.streams import StreamReader
from tests.integration.local_aws import Aws, serving
from tests.integration.stock_moto import stock

VIEW = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture
def table(aws: Aws) -> str:
    aws.server.reset()
    return aws.table("things", sort_key=True, StreamSpecification=VIEW)


def put(aws: Aws, number: int, status: str = "NEW") -> None:
    aws.client("dynamodb").put_item(
        TableName="things", Item={**key(number), "status": {"S": status}, "note": {"S": "first"}}
    )


def key(number: int) -> dict[str, dict[str, str]]:
    return {"pk": {"S": f"job-{number}"}, "sk": {"S": "job"}}


def update(aws: Aws, number: int, expression: str, **values: dict[str, str]) -> None:
    more = {"ExpressionAttributeValues": {f":{name}": value for name, value in values.items()}} if values else {}
    aws.client("dynamodb").update_item(TableName="things", Key=key(number), UpdateExpression=expression, **more)


def test_records_have_the_form_that_lambda_gets(aws, table):
    put(aws, 1)
    put(aws, 1, "DONE")
    aws.client("dynamodb").delete_item(TableName=table, Key=key(1))
    inserted, modified, removed = StreamReader(table).read()
    assert inserted["eventName"] == "INSERT"
    assert inserted["eventSource"] == "aws:dynamodb"
    assert inserted["eventVersion"] == "1.0"
    assert inserted["awsRegion"] == "us-east-1"
    arn = aws.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]
    assert inserted["eventSourceARN"] == arn
    change = inserted["dynamodb"]
    assert change["Keys"] == key(1)
    assert change["NewImage"] == {**key(1), "status": {"S": "NEW"}, "note": {"S": "first"}}
    assert "OldImage" not in change
    assert change["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert isinstance(change["ApproximateCreationDateTime"], int)
    assert change["SizeBytes"] > 0
    assert modified["dynamodb"]["OldImage"]["status"] == {"S": "NEW"}
    assert modified["dynamodb"]["NewImage"]["status"] == {"S": "DONE"}
    assert removed["eventName"] == "REMOVE"
    assert "NewImage" not in removed["dynamodb"]
    assert len({record["eventID"] for record in (inserted, modified, removed)}) == 3


def test_reading_goes_on_after_a_sequence_number(aws, table):
    for number in range(5):
        put(aws, number)
    reader = StreamReader(table)
    first = reader.read(limit=2)
    rest = reader.read(after_sequence=first[-1]["dynamodb"]["SequenceNumber"])
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in first + rest] == [f"job-{n}" for n in range(5)]
    assert reader.read(after_sequence=reader.latest()) == []


def test_trimmed_records_are_gone_and_sequence_numbers_go_on(aws, table):
    for number in range(4):
        put(aws, number)
    reader = StreamReader(table)
    records = reader.read()
    reader.trim(records[2]["dynamodb"]["SequenceNumber"])
    assert reader.read() == records[3:]
    put(aws, 4)
    assert len(reader.read()) == 2
    assert int(reader.read()[-1]["dynamodb"]["SequenceNumber"]) > int(records[3]["dynamodb"]["SequenceNumber"])
    reader.trim(reader.latest())
    assert reader.read() == []


def test_the_streams_api_reads_on_from_what_was_trimmed(aws, table):
    for number in range(3):
        put(aws, number)
    reader = StreamReader(table)
    reader.trim(reader.read()[0]["dynamodb"]["SequenceNumber"])
    streams = aws.client("dynamodbstreams")
    arn = streams.list_streams(TableName=table)["Streams"][0]["StreamArn"]
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    found = streams.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in found] == ["job-1", "job-2"]


def test_a_stream_that_nobody_trims_keeps_a_bounded_number(aws, table, monkeypatch):
    monkeypatch.setattr(dynamodb_streams, "KEPT", 3)
    for number in range(5):
        put(aws, number)
    kept = StreamReader(table).read()
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in kept] == ["job-2", "job-3", "job-4"]


@pytest.mark.parametrize("again", ["put", "update"])
def test_moto_12_a_write_that_changes_nothing_leaves_no_record(aws, table, again):
    put(aws, 1)
    if again == "put":
        put(aws, 1)
    else:
        update(aws, 1, "SET note = :note REMOVE absent", note={"S": "first"})
    assert [record["eventName"] for record in StreamReader(table).read()] == ["INSERT"]


def test_moto_12_stock_writes_a_record_for_nothing(aws, table):
    with stock("StreamShard.add", "StreamShard.get"):
        put(aws, 1)
        put(aws, 1)
        assert len(_shard(table).items) == 2


def test_an_upsert_is_one_insert_with_the_whole_item(aws, table):
    update(aws, 1, "SET a = :a", a={"S": "x"})
    (record,) = StreamReader(table).read()
    assert record["eventName"] == "INSERT"
    assert record["dynamodb"]["NewImage"] == {**key(1), "a": {"S": "x"}}


def test_stock_writes_two_inserts_for_an_upsert(aws, table):
    with stock("DynamoDBBackend.update_item"):
        update(aws, 1, "SET a = :a", a={"S": "x"})
    assert [record["eventName"] for record in StreamReader(table).read()] == ["INSERT", "INSERT"]


def test_an_update_that_fails_leaves_neither_item_nor_record(aws, table):
    with pytest.raises(ClientError):
        update(aws, 1, "SET a = :a ADD b :b", a={"S": "x"}, b={"S": "no number"})
    with pytest.raises(ClientError):
        update(aws, 1, "SET a = b + :a", a={"N": "1"})
    assert aws.client("dynamodb").scan(TableName=table)["Count"] == 0
    assert StreamReader(table).read() == []


def test_an_update_that_fails_half_way_changes_nothing(aws, table):
    put(aws, 1)
    with pytest.raises(ClientError):
        update(aws, 1, "SET a = :a ADD note :b", a={"S": "x"}, b={"S": "no number"})
    item = aws.client("dynamodb").get_item(TableName=table, Key=key(1))["Item"]
    assert item == {**key(1), "status": {"S": "NEW"}, "note": {"S": "first"}}
    assert len(StreamReader(table).read()) == 1


def test_a_table_without_a_stream_is_a_lookup_error(aws, table):
    aws.table("plain")
    with pytest.raises(LookupError, match="plain has no stream"):
        StreamReader("plain").read()


def _shard(table: str):
    return StreamReader(table)._shard()[1]
