"""The strict layer refuses what AWS refuses, and lets pass what AWS lets pass; stock moto takes it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.strict import Strict
from tests.integration.local_aws import Aws, error_code, index, serving
from tests.integration.stock_moto import stock

KEY = {"pk": {"S": "a"}}


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates[:] = [Strict()]
    return running


@pytest.fixture
def table(aws: Aws) -> str:
    return aws.table(strings=("due_shard", "due_at"), GlobalSecondaryIndexes=[index("due", "due_shard", "due_at")])


@pytest.fixture
def url(aws: Aws) -> str:
    return aws.queue()


def refused(call: Callable[[], object], code: str, words: str | None = None) -> None:
    with pytest.raises(ClientError, match=words) as error:
        call()
    assert error_code(error.value) == code


def text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def send(aws: Aws, url: str, body: str, **more) -> None:
    aws.client("sqs").send_message(QueueUrl=url, MessageBody=body, **more)


# --- SQS -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("character", ["\x0b", "\x00", "\ufffe", "\uffff", "\x1f"])
def test_moto_03_characters_outside_the_allowed_set_are_refused(aws, url, character):
    refused(lambda: send(aws, url, f"ab{character}c"), "InvalidMessageContents", "allowed characters")
    in_attribute = {"a": text(f"x{character}")}
    refused(lambda: send(aws, url, "abc", MessageAttributes=in_attribute), "InvalidMessageContents")
    aws.server.gates.clear()
    send(aws, url, f"ab{character}c")


@pytest.mark.parametrize("body", ["\t\n\r ", "\U0001f600", "\ud7ff\ue000\ufffd", "plain"])
def test_moto_03_allowed_characters_pass(aws, url, body):
    send(aws, url, body)
    assert aws.client("sqs").receive_message(QueueUrl=url)["Messages"][0]["Body"] == body


def test_moto_04_an_empty_body_is_refused(aws, url):
    refused(lambda: send(aws, url, ""), "MissingParameter", "MessageBody")
    aws.server.gates.clear()
    send(aws, url, "")


def test_moto_05_the_eleventh_attribute_is_refused(aws, url):
    ten = {f"a{number}": text("x") for number in range(10)}
    send(aws, url, "x", MessageAttributes=ten)
    eleven = {**ten, "traceparent": text("x")}
    refused(lambda: send(aws, url, "x", MessageAttributes=eleven), "InvalidParameterValue", r"\[11\] exceeds")
    aws.server.gates.clear()
    send(aws, url, "x", MessageAttributes=eleven)


@pytest.mark.parametrize("name", ["aws.trace", "Amazon.x", ".x", "x.", "x..y", "x" * 257, "ä"])
def test_attribute_names_that_sqs_reserves_or_cannot_read_are_refused(aws, url, name):
    refused(lambda: send(aws, url, "x", MessageAttributes={name: text("x")}), "InvalidParameterValue", "name")


def test_an_empty_attribute_value_is_refused(aws, url):
    refused(lambda: send(aws, url, "x", MessageAttributes={"a": text("")}), "InvalidParameterValue", "non-empty")


@pytest.mark.parametrize("value", ["soon", "1,5", "", "0x1"])
def test_a_number_that_is_none_is_refused(aws, url, value):
    attribute = {"a": {"DataType": "Number.ms", "StringValue": value}}
    refused(lambda: send(aws, url, "x", MessageAttributes=attribute), "InvalidParameterValue")
    for number in ("0", "-1.5", "1e10", "1764442577123"):
        send(aws, url, "x", MessageAttributes={"a": {"DataType": "Number", "StringValue": number}})


def test_size_is_counted_in_bytes_with_attributes(aws, url):
    send(aws, url, "x" * 1_048_576)
    refused(lambda: send(aws, url, "x" * 1_048_577), "InvalidParameterValue", "shorter than 1048576 bytes")
    refused(lambda: send(aws, url, "ä" * 524_289), "InvalidParameterValue", "bytes")
    exactly = {"name": text("v" * 90)}  # 4 + 6 + 90 bytes
    send(aws, url, "x" * (1_048_576 - 100), MessageAttributes=exactly)
    refused(lambda: send(aws, url, "x" * (1_048_576 - 99), MessageAttributes=exactly), "InvalidParameterValue")
    aws.server.gates.clear()
    send(aws, url, "ä" * 524_289)


def test_a_queue_may_have_a_lower_limit(aws):
    small = aws.queue("small", MaximumMessageSize="1024")
    send(aws, small, "x" * 1024)
    refused(lambda: send(aws, small, "ä" * 513), "InvalidParameterValue", "shorter than 1024 bytes")


def batch(aws: Aws, url: str, *bodies: str, ids: list[str] | None = None) -> Any:
    entries = [{"Id": (ids or list(map(str, range(99))))[n], "MessageBody": body} for n, body in enumerate(bodies)]
    return aws.client("sqs").send_message_batch(QueueUrl=url, Entries=entries)


def test_a_batch_is_limited_in_bytes_entries_and_ids(aws, url):
    assert len(batch(aws, url, *["x"] * 10)["Successful"]) == 10
    prefix = "AWS.SimpleQueueService."
    refused(lambda: batch(aws, url, "ä" * 270_000, "ä" * 270_000), f"{prefix}BatchRequestTooLong")
    refused(lambda: batch(aws, url, *["x"] * 11), f"{prefix}TooManyEntriesInBatchRequest")
    refused(lambda: batch(aws, url), f"{prefix}EmptyBatchRequest")
    refused(lambda: batch(aws, url, "x", ids=["ä"]), f"{prefix}InvalidBatchEntryId")
    refused(lambda: batch(aws, url, "x", "y", ids=["1", "1"]), f"{prefix}BatchEntryIdsNotDistinct")
    refused(lambda: batch(aws, url, "x", ""), "MissingParameter")


def test_batches_of_deletions_are_limited_too(aws, url):
    entries = [{"Id": str(number), "ReceiptHandle": f"r{number}"} for number in range(11)]
    refused(
        lambda: aws.client("sqs").delete_message_batch(QueueUrl=url, Entries=entries),
        "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
    )


def test_a_message_group_must_be_readable(aws, url):
    send(aws, url, "x", MessageGroupId="tenant-1")
    refused(lambda: send(aws, url, "x", MessageGroupId="tenant 1"), "InvalidParameterValue", "MessageGroupId")
    refused(lambda: send(aws, url, "x", MessageGroupId="t" * 129), "InvalidParameterValue", "MessageGroupId")


# --- SNS -----------------------------------------------------------------------------------------


def test_moto_24_an_empty_message_is_refused_by_sns(aws):
    arn = aws.client("sns").create_topic(Name="facts")["TopicArn"]
    refused(lambda: aws.client("sns").publish(TopicArn=arn, Message=""), "InvalidParameter", "Empty message")
    aws.server.gates.clear()
    aws.client("sns").publish(TopicArn=arn, Message="")


def test_sns_counts_bytes_and_demands_values(aws):
    sns = aws.client("sns")
    arn = sns.create_topic(Name="facts")["TopicArn"]
    sns.publish(TopicArn=arn, Message="x" * 262_144)
    refused(lambda: sns.publish(TopicArn=arn, Message="ä" * 131_073), "InvalidParameter", "too long")
    refused(lambda: sns.publish(TopicArn=arn, Message="x", MessageAttributes={"a": text("")}), "ParameterValueInvalid")
    refused(lambda: sns.publish(TopicArn=arn, Message="x", Subject="a\nb"), "InvalidParameter", "Subject")
    entries = [{"Id": str(number), "Message": "x" * 140_000} for number in range(2)]
    refused(lambda: sns.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries), "BatchRequestTooLong")


# --- DynamoDB ------------------------------------------------------------------------------------


def put(aws: Aws, **attributes: dict[str, Any]) -> None:
    aws.client("dynamodb").put_item(TableName="things", Item={**KEY, **attributes})


def update(
    aws: Aws,
    expression: str,
    key: dict[str, Any] | None = None,
    names: dict[str, Any] | None = None,
    **values: dict[str, Any],
) -> None:
    more: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
    if values:
        more["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    aws.client("dynamodb").update_item(TableName="things", Key=key or KEY, UpdateExpression=expression, **more)


def test_moto_09_an_empty_key_is_refused_by_update(aws, table):
    def attempt() -> None:
        update(aws, "SET a = :a", key={"pk": {"S": ""}}, a={"S": "x"})

    refused(attempt, "ValidationException", "empty string value. Key: pk")
    aws.server.gates.clear()
    attempt()


def test_a_key_must_be_the_tables_own(aws, table):
    dynamodb = aws.client("dynamodb")
    for key in ({"pk": {"N": "1"}}, {"pk": {"S": "a"}, "sk": {"S": "b"}}, {"due_at": {"S": "x"}}):
        refused(partial(dynamodb.delete_item, TableName=table, Key=key), "ValidationException", "schema")
        refused(partial(update, aws, "SET a = :a", key, a={"S": "x"}), "ValidationException", "schema")


@pytest.mark.parametrize("write", ["put", "update", "batch", "transaction"])
def test_moto_10_an_index_key_of_another_type_is_refused(aws, table, write):
    wrong = {"due_shard": {"N": "1"}}
    dynamodb = aws.client("dynamodb")
    attempts: dict[str, Callable[[], object]] = {
        "put": lambda: put(aws, **wrong),
        "update": lambda: update(aws, "SET due_shard = :d", d={"N": "1"}),
        "batch": lambda: dynamodb.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": {**KEY, **wrong}}}]}),
        "transaction": lambda: dynamodb.transact_write_items(
            TransactItems=[{"Put": {"TableName": table, "Item": {**KEY, **wrong}}}]
        ),
    }
    refused(attempts[write], "ValidationException", "(?i)type mismatch for .*key due_shard expected: s actual: n")
    assert dynamodb.scan(TableName=table)["Count"] == 0
    if write != "update":  # the one write that stock checks, too
        with stock("Table.put_item"):
            attempts[write]()


def test_an_empty_index_key_is_refused(aws, table):
    refused(lambda: put(aws, due_shard={"S": ""}), "ValidationException", "secondary index")
    put(aws)
    refused(lambda: update(aws, "SET due_shard = :d", d={"S": ""}), "ValidationException", "secondary index")


def test_moto_11_more_than_38_digits_are_refused_wherever_they_stand(aws, table):
    put(aws, n={"N": "9" * 38}, zeros={"N": "1" + "0" * 60}, small={"N": "0." + "0" * 50 + "1"})
    long = {"N": "1" * 39}
    for value in (long, {"NS": ["1", "1" * 39]}, {"L": [{"M": {"deep": long}}]}):
        refused(partial(put, aws, n=value), "ValidationException", "38 significant digits")
        refused(partial(update, aws, "SET n = :n", n=value), "ValidationException", "38")
    aws.server.gates.clear()
    put(aws, n=long)


def test_an_item_may_have_400_kib_with_its_names_and_not_a_byte_more(aws, table):
    room = 400 * 1024 - len("pk") - 1 - len("body")
    put(aws, body={"S": "x" * room})
    refused(lambda: put(aws, body={"S": "x" * (room + 1)}), "ValidationException", "Item size has exceeded")
    refused(lambda: put(aws, body={"S": "ä" * (room // 2 + 1)}), "ValidationException", "Item size")
    refused(lambda: update(aws, "SET more = :m", m={"S": ""}), "ValidationException", "Item size to update")
    with stock("LimitedSizeDict.__setitem__", "Table.put_item"):
        refused(lambda: put(aws, body={"S": "x" * room}), "ValidationException")  # stock stops short of AWS's limit


@pytest.mark.parametrize(
    ("expression", "text_of"),
    [
        ("ConditionExpression", "status = :a"),
        ("ConditionExpression", "attribute_exists(status) AND pk = :a"),
        ("FilterExpression", "begins_with(data, :a)"),
        ("ProjectionExpression", "pk, status"),
    ],
)
def test_ddb_11_reserved_words_are_refused_in_every_expression(aws, table, expression, text_of):
    values = {"ExpressionAttributeValues": {":a": {"S": "x"}}} if ":a" in text_of else {}
    dynamodb = aws.client("dynamodb")
    if expression == "ConditionExpression":
        attempt = lambda: dynamodb.put_item(TableName=table, Item=KEY, **{expression: text_of}, **values)  # noqa: E731
    else:
        attempt = lambda: dynamodb.scan(TableName=table, **{expression: text_of}, **values)  # noqa: E731
    refused(attempt, "ValidationException", "reserved keyword: (status|data)")


def test_functions_and_syntax_are_no_reserved_words(aws, table):
    put(aws, note={"S": "x"})
    update(
        aws,
        "SET note = if_not_exists(note, :n), more = list_append(:l, :l) REMOVE absent",
        n={"S": "x"},
        l={"L": []},
    )
    found = aws.client("dynamodb").scan(
        TableName=table,
        FilterExpression="size(note) BETWEEN :a AND :b AND NOT (note IN (:c)) OR contains(note, :d)",
        ExpressionAttributeValues={":a": {"N": "0"}, ":b": {"N": "9"}, ":c": {"S": "y"}, ":d": {"S": "z"}},
    )
    assert found["Count"] == 1


def test_placeholders_must_be_used_and_defined(aws, table):
    dynamodb = aws.client("dynamodb")
    refused(
        lambda: dynamodb.put_item(
            TableName=table,
            Item=KEY,
            ConditionExpression="attribute_not_exists(pk)",
            ExpressionAttributeValues={":idle": {"S": "x"}},
        ),
        "ValidationException",
        "unused in expressions: keys: {:idle}",
    )
    refused(lambda: update(aws, "SET #a = :a", a={"S": "x"}), "ValidationException", "not defined")
    refused(lambda: update(aws, "SET a = :a", names={"#b": "b"}, a={"S": "x"}), "ValidationException", "unused")


def test_batches_are_limited_and_distinct(aws, table):
    dynamodb = aws.client("dynamodb")

    def write(*numbers: int) -> None:
        items = [
            {"PutRequest": {"Item": {"pk": {"S": f"p{one}"}, "n": {"N": str(at)}}}} for at, one in enumerate(numbers)
        ]
        dynamodb.batch_write_item(RequestItems={table: items})

    write(*range(25))
    refused(lambda: write(*range(26)), "ValidationException", "less than or equal to 25")
    refused(lambda: write(1, 2, 1), "ValidationException", "duplicates")


def test_a_limit_of_nothing_is_refused(aws, table):
    query = {"TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
    create = aws.client("dynamodb")
    create.meta.events.register("before-call.dynamodb.Query", _limit_zero)
    try:
        refused(lambda: create.query(**query), "ValidationException", "greater than or equal to 1")
    finally:
        create.meta.events.unregister("before-call.dynamodb.Query", _limit_zero)


def _limit_zero(params: dict[str, Any], **_: object) -> None:
    """The SDK itself refuses Limit=0; another client may not."""
    params["body"] = params["body"].replace(b"{", b'{"Limit": 0, ', 1)


def test_moto_07_a_transaction_with_a_used_token_is_not_done_again(aws, table):
    put(aws, n={"N": "0"})
    dynamodb = aws.client("dynamodb")

    def add(amount: str) -> None:
        part = {
            "TableName": table,
            "Key": KEY,
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": {"N": amount}},
        }
        dynamodb.transact_write_items(ClientRequestToken="token-1", TransactItems=[{"Update": part}])

    def count() -> str:
        return str(dynamodb.get_item(TableName=table, Key=KEY)["Item"]["n"]["N"])

    add("1")
    add("1")
    assert count() == "1"
    with pytest.raises(dynamodb.exceptions.IdempotentParameterMismatchException):
        add("5")
    assert count() == "1"
    aws.server.gates.clear()
    add("1")
    assert count() == "2"


def test_moto_08_a_transaction_above_4_mb_is_refused(aws, table):
    items = [
        {"Put": {"TableName": table, "Item": {"pk": {"S": f"p{number}"}, "body": {"S": "x" * 390_000}}}}
        for number in range(11)
    ]
    attempt = lambda: aws.client("dynamodb").transact_write_items(TransactItems=items)  # noqa: E731
    refused(attempt, "ValidationException", "4 MB")


def test_a_failed_condition_returns_the_old_item(aws, table):
    put(aws, note={"S": "first"})
    dynamodb = aws.client("dynamodb")
    attempts: tuple[Callable[[dict[str, str]], object], ...] = (
        lambda more: dynamodb.put_item(TableName=table, Item=KEY, **more),
        lambda more: dynamodb.delete_item(TableName=table, Key=KEY, **more),
        lambda more: dynamodb.update_item(TableName=table, Key=KEY, UpdateExpression="REMOVE note", **more),
    )
    for attempt in attempts:
        with pytest.raises(dynamodb.exceptions.ConditionalCheckFailedException) as error:
            attempt(
                {
                    "ConditionExpression": "attribute_not_exists(pk)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            )
        assert error.value.response["Item"] == {**KEY, "note": {"S": "first"}}


# --- S3 ------------------------------------------------------------------------------------------


def test_a_delete_marker_cannot_be_read(aws):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="box")
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    version = s3.put_object(Bucket="box", Key="k", Body=b"x")["VersionId"]
    marker = s3.delete_object(Bucket="box", Key="k")["VersionId"]
    refused(lambda: s3.get_object(Bucket="box", Key="k", VersionId=marker), "MethodNotAllowed")
    refused(lambda: s3.get_object(Bucket="box", Key="k"), "NoSuchKey")
    refused(lambda: s3.get_object(Bucket="box", Key="k", VersionId="none"), "NoSuchVersion")
    assert s3.get_object(Bucket="box", Key="k", VersionId=version)["Body"].read() == b"x"


def test_keys_and_metadata_are_limited(aws):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="box")
    s3.put_object(Bucket="box", Key="k" * 1024, Body=b"x")
    refused(lambda: s3.put_object(Bucket="box", Key="ä" * 513, Body=b"x"), "KeyTooLongError")
    refused(lambda: s3.put_object(Bucket="box", Key="k", Body=b"x", Metadata={"name": "v" * 2045}), "MetadataTooLarge")
