"""What DynamoDB demands of keys, values, conditions and start keys is demanded here; stock moto takes it, or breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.strict import Strict
from tests.integration.local_aws import Aws, error_code, index, serving
from tests.integration.stock_moto import stock

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
SAME = "pk = :p"
OVER_HASH, OVER_RANGE = {**KEY, "pk": {"S": "ä" * 1025}}, {**KEY, "sk": {"S": "x" * 1025}}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    """No test leaves more than the one item behind, under the key KEY."""
    with serving() as running:
        running.server.gates[:] = [Strict()]
        running.table(
            sort_key=True,
            strings=("due_shard", "due_at"),
            GlobalSecondaryIndexes=[index("due", "due_shard", "due_at")],
        )
        yield running


@pytest.fixture
def dynamodb(aws: Aws) -> Any:
    return aws.client("dynamodb")


def refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ClientError, match=words) as error:
        call()
    assert error_code(error.value) == "ValidationException"


def values(**given: dict[str, Any]) -> dict[str, Any]:
    return {"ExpressionAttributeValues": {f":{name}": value for name, value in given.items()}}


def query(dynamodb: Any, condition: str, **more: Any) -> Any:
    return dynamodb.query(TableName="things", KeyConditionExpression=condition, **more)


OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "GetItem": lambda to, key: to.get_item(TableName="things", Key=key),
    "DeleteItem": lambda to, key: to.delete_item(TableName="things", Key=key),
    "UpdateItem": lambda to, key: to.update_item(TableName="things", Key=key),
    "PutItem": lambda to, key: to.put_item(TableName="things", Item=key),
    "BatchGetItem": lambda to, key: to.batch_get_item(RequestItems={"things": {"Keys": [key]}}),
    "BatchWriteItem": lambda to, key: to.batch_write_item(RequestItems={"things": [{"PutRequest": {"Item": key}}]}),
    "TransactWriteItems": lambda to, key: to.transact_write_items(
        TransactItems=[{"Delete": {"TableName": "things", "Key": key}}]
    ),
    "TransactGetItems": lambda to, key: to.transact_get_items(
        TransactItems=[{"Get": {"TableName": "things", "Key": key}}]
    ),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_key_that_is_too_long_is_refused_by_every_operation(dynamodb, operation):
    refused(lambda: OPERATIONS[operation](dynamodb, OVER_HASH), "hashkey has exceeded .* of2048 bytes")
    refused(lambda: OPERATIONS[operation](dynamodb, OVER_RANGE), "all range keys .* 1024 bytes")


def test_a_key_of_just_the_length_is_a_key(dynamodb):
    longest = {"pk": {"S": "ä" * 1024}, "sk": {"S": "x" * 1024}}
    assert "Item" not in dynamodb.get_item(TableName="things", Key=longest)
    assert query(dynamodb, "pk = :p AND sk = :s", **values(p=longest["pk"], s=longest["sk"]))["Count"] == 0


def nested(levels: int) -> dict[str, Any]:
    """An attribute of so many levels, the last a text."""
    return reduce(lambda value, _: {"M": {"n": value}}, range(levels - 1), {"S": "leaf"})


BAD_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"SS": ["a", "b", "a"]}, "duplicates"),
    ({"NS": ["1", "1.0"]}, "duplicates"),
    ({"BS": [b"a", b"a"]}, "duplicates"),
    (nested(33), "nested levels"),
    ({"L": [nested(32)]}, "nested levels"),
    ({"N": "1e126"}, "Number overflow"),
    ({"N": "-1e126"}, "Number overflow"),
    ({"L": [{"N": "1e-131"}]}, "Number underflow"),
]


@pytest.mark.parametrize(("value", "words"), BAD_VALUES, ids=lambda one: one if isinstance(one, str) else "")
def test_a_value_that_dynamodb_cannot_hold_is_refused_wherever_it_stands(dynamodb, value, words):
    refused(lambda: dynamodb.put_item(TableName="things", Item={**KEY, "x": value}), words)
    refused(
        lambda: dynamodb.update_item(TableName="things", Key=KEY, UpdateExpression="SET x = :x", **values(x=value)),
        words,
    )


@pytest.mark.parametrize("value", [nested(32), {"N": "9e125"}, {"N": "1e-130"}, {"N": "0"}, {"NS": ["1", "2"]}])
def test_a_value_at_the_very_limit_is_held(dynamodb, value):
    dynamodb.put_item(TableName="things", Item={**KEY, "x": value})


def test_an_update_nests_no_deeper_than_a_put(dynamodb):
    dynamodb.put_item(TableName="things", Item={**KEY, "m": nested(20)})
    inside = f"SET m{'.n' * 18} = :x"

    def update(levels: int) -> None:
        dynamodb.update_item(TableName="things", Key=KEY, UpdateExpression=inside, **values(x=nested(levels)))

    update(14)
    refused(lambda: update(15), "Nesting Levels")


def test_a_value_has_one_type(aws):
    item = {**KEY, "x": {"S": "two", "N": "2"}}
    with aws.unchecked("dynamodb") as dynamodb:
        refused(lambda: dynamodb.put_item(TableName="things", Item=item), "more than one datatypes")


BAD_CONDITIONS: list[tuple[str, dict[str, Any], str]] = [
    ("", {}, "expression can not be empty"),
    ("x BETWEEN :a AND :b", {"a": {"N": "10"}, "b": {"N": "9"}}, "requires upper bound"),
    ("x = x", {}, "first operand must be distinct"),
    ("m.x <> m.x", {}, "first operand must be distinct"),
    (
        f"x IN ({', '.join(f':v{n}' for n in range(101))})",
        {f"v{n}": {"S": str(n)} for n in range(101)},
        "operands: 101",
    ),
]


@pytest.mark.parametrize(("condition", "given", "words"), BAD_CONDITIONS, ids=[words for *_, words in BAD_CONDITIONS])
def test_a_condition_that_says_nothing_is_refused(dynamodb, condition, given, words):
    more = values(**given) if given else {}
    refused(lambda: dynamodb.put_item(TableName="things", Item=KEY, ConditionExpression=condition, **more), words)
    if condition:
        refused(lambda: dynamodb.scan(TableName="things", FilterExpression=condition, **more), words)


def test_conditions_near_the_limits_are_asked(dynamodb):
    hundred = {f"v{n}": {"S": str(n)} for n in range(100)}
    condition = (
        f"NOT x IN ({', '.join(f':{name}' for name in hundred)}) AND x BETWEEN :low AND :low AND x <> m.x AND y <> x"
    )
    found = dynamodb.scan(TableName="things", FilterExpression=condition, **values(**hundred, low={"N": "-3"}))
    assert found["Count"] == 0


@pytest.mark.parametrize(
    ("condition", "stocks"),
    [
        ("size(x) > :t", "OpGreaterThan.expr"),
        ("size(x) >= :t", "OpGreaterThanOrEqual.expr"),
        ("x < :t", "OpLessThan.expr"),
        ("x <= :t", "OpLessThanOrEqual.expr"),
        ("x BETWEEN :t AND :t", "FuncBetween.expr"),
    ],
)
def test_values_of_two_types_do_not_match(dynamodb, condition, stocks):
    """As the documentation says of comparisons: a value of another type does not match."""
    dynamodb.put_item(TableName="things", Item={**KEY, "x": {"L": []}})
    asked = {"TableName": "things", "FilterExpression": condition, **values(t={"S": "a"})}
    assert dynamodb.scan(**asked)["Count"] == 0
    with stock(stocks), pytest.raises(ClientError) as error:
        dynamodb.scan(**asked)
    assert error_code(error.value) == "InternalFailure"


@pytest.mark.parametrize("condition", ["size(absent) > :n", "size(absent) = :n", "size(pk.x) BETWEEN :n AND :n"])
def test_what_has_no_size_does_not_match(dynamodb, condition):
    dynamodb.put_item(TableName="things", Item=KEY)
    assert dynamodb.scan(TableName="things", FilterExpression=condition, **values(n={"N": "0"}))["Count"] == 0


def test_paths_of_a_projection_do_not_overlap(dynamodb):
    for paths in ("m, m.a", "m.a, m", "x, x"):
        asked = partial(dynamodb.get_item, TableName="things", Key=KEY, ProjectionExpression=paths)
        refused(asked, "overlap")
    dynamodb.get_item(TableName="things", Key=KEY, ProjectionExpression="m.a, m.b, x, l[0], l[1]")


def test_older_parameters_do_not_mix_with_expressions(dynamodb):
    older = {"Expected": {"x": {"Exists": False}}}
    mixed = {"ConditionExpression": "attribute_not_exists(x)", **older}
    refused(lambda: dynamodb.put_item(TableName="things", Item=KEY, **mixed), "Can not use both .*{Expected}")


def test_nothing_to_get_or_write_is_refused(aws):
    with aws.unchecked("dynamodb") as dynamodb:
        refused(lambda: dynamodb.batch_get_item(RequestItems={"things": {"Keys": []}}), "greater than or equal to 1")
        refused(lambda: dynamodb.transact_write_items(TransactItems=[]), "greater than or equal to 1")
        refused(lambda: dynamodb.transact_get_items(TransactItems=[]), "greater than or equal to 1")


BAD_QUERIES: list[tuple[str, dict[str, Any], str]] = [
    ("pk = :p", {"p": {"N": "1"}}, "does not match schema type"),
    ("pk = :p AND sk = :s", {"p": {"S": "a"}, "s": {"BOOL": True}}, "does not match schema type"),
    ("pk = :p AND begins_with(sk, :s)", {"p": {"S": "a"}, "s": {"N": "1"}}, "operand type: N"),
    ("pk = :p AND sk < :s", {"p": {"S": "a"}, "s": {"BOOL": True}}, "operand type: BOOL"),
    ("pk = :p AND sk > :p AND sk < :s", {"p": {"S": "a"}, "s": {"S": "z"}}, "only contain one condition per key"),
    ("pk = :p AND sk BETWEEN :a AND :b", {"p": {"S": "a"}, "a": {"S": "z"}, "b": {"S": "a"}}, "requires upper bound"),
    ("pk = :p OR sk = :p", {"p": {"S": "a"}}, "Invalid operator .*: OR"),
    ("pk = :p AND sk <> :p", {"p": {"S": "a"}}, "Invalid operator .*: <>"),
    ("pk = :p", {"p": OVER_HASH["pk"]}, "hashkey"),
]


@pytest.mark.parametrize(("condition", "given", "words"), BAD_QUERIES, ids=[words for *_, words in BAD_QUERIES])
def test_a_key_condition_that_no_key_can_meet_is_refused(dynamodb, condition, given, words):
    refused(lambda: query(dynamodb, condition, **values(**given)), words)


def test_a_filter_names_no_key_of_what_is_queried(dynamodb):
    given = values(p={"S": "a"})
    refused(lambda: query(dynamodb, SAME, FilterExpression="sk = :p", **given), "Primary key attribute: sk")
    named = {"ExpressionAttributeNames": {"#k": "pk"}, **given}
    refused(lambda: query(dynamodb, SAME, FilterExpression="size(#k) > :p", **named), "Primary key attribute: pk")
    query(dynamodb, SAME, FilterExpression="m.sk = :p OR due_at = :p", **given)
    query(dynamodb, "due_shard = :p", IndexName="due", FilterExpression="sk = :p", **given)
    dynamodb.scan(TableName="things", FilterExpression="sk = :p", **given)


def test_a_query_starts_within_its_own_partition(dynamodb):
    given = values(p={"S": "a"})
    outside = {**KEY, "pk": {"S": "other"}}
    refused(lambda: query(dynamodb, SAME, ExclusiveStartKey=outside, **given), "outside query boundaries")
    query(dynamodb, SAME, ExclusiveStartKey=KEY, **given)
    in_index = {**KEY, "due_shard": {"S": "a"}, "due_at": {"S": "b"}}
    query(dynamodb, "due_shard = :p", IndexName="due", ExclusiveStartKey=in_index, **given)


@pytest.mark.parametrize(
    ("condition", "inside"),
    [
        ("sk < :s", "l"),
        ("sk >= :s", "m"),
        ("sk BETWEEN :s AND :t", "t"),
        ("begins_with(sk, :s)", "mm"),
    ],
)
def test_a_query_starts_within_its_condition_on_the_sort_key(dynamodb, condition, inside):
    outside = "a" if inside != "l" else "m"
    given = values(p={"S": "a"}, s={"S": "m"}, **({"t": {"S": "t"}} if ":t" in condition else {}))
    asked = partial(query, dynamodb, f"{SAME} AND {condition}", **given)
    refused(lambda: asked(ExclusiveStartKey={**KEY, "sk": {"S": outside}}), "range key predicate")
    asked(ExclusiveStartKey={**KEY, "sk": {"S": inside}})


@pytest.mark.parametrize("start", [{"foo": {"S": "a"}}, {"pk": {"S": "a"}}, {**KEY, "sk": {"N": "1"}}])
def test_a_start_key_is_a_whole_key(dynamodb, start):
    refused(lambda: query(dynamodb, SAME, ExclusiveStartKey=start, **values(p={"S": "a"})), "starting key is invalid")
    refused(lambda: dynamodb.scan(TableName="things", ExclusiveStartKey=start), "starting key is invalid")
