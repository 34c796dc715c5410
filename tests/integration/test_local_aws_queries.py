"""Queries give what AWS gives, at a cost that does not depend on what else is in the table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.local_aws import Aws, index, serving
from tests.integration.local_work import work_of
from tests.integration.stock_moto import stock

SHARDS = ("s0", "s1", "s2")


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture
def table(aws: Aws) -> str:
    aws.server.reset()
    return aws.table(
        "jobs",
        sort_key=True,
        strings=("due_shard", "due_at"),
        GlobalSecondaryIndexes=[
            index("due", "due_shard", "due_at"),
            {**index("wide", "due_shard"), "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]}},
        ],
    )


def put(aws: Aws, pk: str, sk: str = "job", **more: str) -> None:
    item = {"pk": pk, "sk": sk, **more}
    aws.client("dynamodb").put_item(TableName="jobs", Item={name: {"S": value} for name, value in item.items()})


def due(aws: Aws, shard: str = "s0", **more):
    return aws.client("dynamodb").query(
        TableName="jobs",
        IndexName="due",
        KeyConditionExpression="due_shard = :shard",
        ExpressionAttributeValues={":shard": {"S": shard}},
        **more,
    )


def names(answer) -> list[str]:
    return [item["pk"]["S"] for item in answer["Items"]]


def test_an_index_holds_items_with_all_its_keys_and_only_what_it_projects(aws, table):
    put(aws, "a", due_shard="s0", due_at="2026", note="x", other="y")
    put(aws, "b", due_shard="s0")
    put(aws, "c", due_at="2026")
    assert due(aws)["Items"] == [
        {name: {"S": value} for name, value in {"pk": "a", "sk": "job", "due_shard": "s0", "due_at": "2026"}.items()}
    ]
    wide = aws.client("dynamodb").query(
        TableName=table,
        IndexName="wide",
        KeyConditionExpression="due_shard = :shard",
        ExpressionAttributeValues={":shard": {"S": "s0"}},
    )
    assert sorted(map(sorted, wide["Items"])) == [["due_shard", "note", "pk", "sk"], ["due_shard", "pk", "sk"]]


def test_an_item_moves_in_the_index_with_its_keys_and_leaves_it_without_them(aws, table):
    put(aws, "a", due_shard="s0", due_at="1")
    put(aws, "b", due_shard="s0", due_at="2")
    dynamodb = aws.client("dynamodb")
    change = {"TableName": table, "Key": {"pk": {"S": "a"}, "sk": {"S": "job"}}}
    dynamodb.update_item(**change, UpdateExpression="SET due_at = :d", ExpressionAttributeValues={":d": {"S": "3"}})
    assert names(due(aws)) == ["b", "a"]
    dynamodb.update_item(**change, UpdateExpression="SET due_shard = :d", ExpressionAttributeValues={":d": {"S": "s1"}})
    assert (names(due(aws)), names(due(aws, "s1"))) == (["b"], ["a"])
    dynamodb.update_item(**change, UpdateExpression="REMOVE due_shard")
    assert names(due(aws, "s1")) == []
    put(aws, "b", due_shard="s2", due_at="2")
    assert (names(due(aws)), names(due(aws, "s2"))) == ([], ["b"])
    dynamodb.delete_item(TableName=table, Key={"pk": {"S": "b"}, "sk": {"S": "job"}})
    assert names(due(aws, "s2")) == []


def test_a_failed_transaction_leaves_the_index_as_it_was(aws, table):
    put(aws, "a", due_shard="s0", due_at="1")
    item = {"pk": {"S": "b"}, "sk": {"S": "job"}, "due_shard": {"S": "s0"}, "due_at": {"S": "2"}}
    dynamodb = aws.client("dynamodb")
    assert names(due(aws)) == ["a"]
    with pytest.raises(dynamodb.exceptions.TransactionCanceledException):
        dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": table, "Item": item}},
                {
                    "ConditionCheck": {
                        "TableName": table,
                        "Key": {"pk": {"S": "a"}, "sk": {"S": "job"}},
                        "ConditionExpression": "attribute_not_exists(pk)",
                    }
                },
            ]
        )
    assert names(due(aws)) == ["a"]
    put(aws, "c", due_shard="s0", due_at="3")
    assert names(due(aws)) == ["a", "c"]


def test_pages_are_complete_and_in_order_both_ways(aws, table):
    for number in range(7):
        put(aws, f"job-{number}", due_shard="s0", due_at=str(number // 2))  # equal sort keys, told apart by the table's
    for forward in (True, False):
        found: list[str] = []
        start: dict[str, Any] = {}
        while True:
            page = due(aws, Limit=2, ScanIndexForward=forward, **start)
            found += names(page)
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        expected = [f"job-{number}" for number in range(7)]
        assert found == (expected if forward else expected[::-1])


def test_moto_14_a_page_that_ends_at_the_last_item_still_has_a_key(aws, table):
    for number in range(5):
        put(aws, f"job-{number}", due_shard="s0", due_at=str(number))
    page = due(aws, Limit=5)
    assert page["Count"] == 5
    assert page["LastEvaluatedKey"]["pk"] == {"S": "job-4"}
    after = due(aws, Limit=5, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert after["Items"] == []
    assert "LastEvaluatedKey" not in after
    with stock("Table.query"):
        assert "LastEvaluatedKey" not in due(aws, Limit=5)


def test_a_filter_is_applied_after_the_limit(aws, table):
    for number in range(4):
        put(aws, "one", sk=str(number), note="odd" if number % 2 else "even")
    page = aws.client("dynamodb").query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND sk < :sk",
        FilterExpression="note = :note",
        ExpressionAttributeValues={":pk": {"S": "one"}, ":sk": {"S": "3"}, ":note": {"S": "odd"}},
        Limit=2,
    )
    assert (page["Count"], page["ScannedCount"]) == (1, 2)
    assert page["LastEvaluatedKey"] == {"pk": {"S": "one"}, "sk": {"S": "1"}}


@pytest.mark.parametrize("seed", range(5))
def test_answers_are_those_of_stock_moto_for_any_conditions(aws, table, seed):
    dice = random.Random(seed)
    for _ in range(40):
        more = {"due_at": str(dice.randrange(5))} if dice.random() < 0.8 else {}
        put(aws, f"job-{dice.randrange(8)}", sk=str(dice.randrange(4)), due_shard=dice.choice(SHARDS), **more)
    for _ in range(15):
        query = _random_query(dice)
        mine = aws.client("dynamodb").query(TableName=table, **query)
        with stock("Table.query"):
            theirs = aws.client("dynamodb").query(TableName=table, **query)
        if query.get("IndexName") == "wide":  # without a sort key the order is anybody's
            assert sorted(map(str, mine["Items"])) == sorted(map(str, theirs["Items"])), query
        else:
            assert mine["Items"] == theirs["Items"], query
        assert mine["Count"] == theirs["Count"]


def _random_query(dice: random.Random) -> Any:
    hash_name, range_name, more = dice.choice(
        [("pk", "sk", {}), ("due_shard", "due_at", {"IndexName": "due"}), ("due_shard", None, {"IndexName": "wide"})]
    )
    condition = f"{hash_name} = :h"
    values = {":h": {"S": f"job-{dice.randrange(8)}" if hash_name == "pk" else dice.choice(SHARDS)}}
    if range_name and dice.random() < 0.7:
        condition += f" AND {range_name} {dice.choice(['=', '<', '<=', '>', '>='])} :r"
        values[":r"] = {"S": str(dice.randrange(5))}
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": dice.random() < 0.5,
        **({"Limit": dice.randrange(1, 6)} if range_name and dice.random() < 0.5 else {}),
        **more,
    }


def test_a_query_is_the_same_work_in_a_full_table(aws, table):
    put(aws, "wanted", due_shard="s0", due_at="1")

    def work() -> int:
        return work_of(lambda: due(aws))

    assert names(due(aws)) == ["wanted"]
    empty = work()
    items = [
        {
            "PutRequest": {
                "Item": {
                    "pk": {"S": f"job-{number}"},
                    "sk": {"S": "job"},
                    "due_shard": {"S": "s1"},
                    "due_at": {"S": "1"},
                }
            }
        }
        for number in range(300)
    ]
    for first in range(0, len(items), 25):
        aws.client("dynamodb").batch_write_item(RequestItems={table: items[first : first + 25]})
    assert names(due(aws)) == ["wanted"]
    assert work() < 1.1 * empty
    with stock("Table.query"):
        assert work() > 2 * empty
