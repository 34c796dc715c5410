"""Items are answered as stock moto answers them, only sooner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.local_aws import Aws, serving
from tests.integration.local_work import work_of
from tests.integration.stock_moto import stock

EVERYTHING: dict[str, Any] = {
    "pk": {"S": "a"},
    "number": {"N": "-1.5"},
    "bytes": {"B": b"\x00\xff"},
    "yes": {"BOOL": True},
    "nothing": {"NULL": True},
    "strings": {"SS": ["x", "y"]},
    "numbers": {"NS": ["1", "2"]},
    "blobs": {"BS": [b"1", b"2"]},
    "list": {"L": [{"S": "ä"}, {"L": []}, {"M": {"deep": {"N": "1"}}}]},
    "map": {"M": {"name": {"S": "\U0001f600"}, "empty": {"M": {}}}},
}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving() as running:
        yield running


def answers(aws: Aws, item: dict[str, Any]) -> list[Any]:
    """What every operation on items answers, without what differs from call to call."""
    aws.server.reset()
    aws.table()
    dynamodb = aws.client("dynamodb")
    key = {"pk": item["pk"]}
    found = [
        dynamodb.put_item(TableName="things", Item=item, ReturnValues="ALL_OLD"),
        dynamodb.put_item(TableName="things", Item=item, ReturnValues="ALL_OLD"),
        dynamodb.get_item(TableName="things", Key=key),
        dynamodb.get_item(TableName="things", Key={"pk": {"S": "absent"}}),
        dynamodb.get_item(TableName="things", Key=key, ProjectionExpression="pk"),
        dynamodb.batch_get_item(RequestItems={"things": {"Keys": [key]}}),
        dynamodb.scan(TableName="things", Limit=1),
        dynamodb.query(
            TableName="things", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": item["pk"]}
        ),
        *(
            dynamodb.update_item(
                TableName="things",
                Key=key,
                UpdateExpression="SET note = :n",
                ExpressionAttributeValues={":n": {"S": returned}},
                ReturnValues=returned,
            )
            for returned in ("NONE", "ALL_NEW", "ALL_OLD", "UPDATED_NEW", "UPDATED_OLD")
        ),
        dynamodb.delete_item(TableName="things", Key=key, ReturnValues="ALL_OLD"),
    ]
    for answer in found:
        answer.pop("ResponseMetadata")
    return found


@pytest.mark.parametrize("left_out", [(), ("bytes", "blobs")])
def test_answers_are_those_of_stock_moto(aws, left_out):
    item = {name: value for name, value in EVERYTHING.items() if name not in left_out}
    mine = answers(aws, item)
    with stock("DynamoResult.execute_result"):
        assert mine == answers(aws, item)


def test_reading_an_item_is_several_times_less_work(aws):
    aws.server.reset()
    aws.table()
    dynamodb = aws.client("dynamodb")
    dynamodb.put_item(TableName="things", Item={"pk": {"S": "a"}, **{f"a{n}": {"S": "x"} for n in range(40)}})

    def work() -> int:
        return work_of(lambda: dynamodb.get_item(TableName="things", Key={"pk": {"S": "a"}}))

    mine = work()
    with stock("DynamoResult.execute_result"):
        assert work() > 3 * mine
