"""Every call of our functions is counted, and DynamoDB's units are those that AWS would charge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.meter import Meter
from local.aws.server import Call, Caller, Refusal, Response
from tests.integration.local_aws import Aws, index, serving

WORKER = Caller("worker", "arn:aws:iam::123456789012:role/worker", "request-1")
METER = Meter()


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates[:] = [METER]
    running.server.callers.register("WORKER", WORKER)
    running.table(
        "jobs",
        sort_key=True,
        strings=("due_shard", "due_at", "tenant"),
        GlobalSecondaryIndexes=[
            index("due", "due_shard", "due_at"),
            index("by_tenant", "tenant"),
            {
                **index("noted", "tenant"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]},
            },
        ],
    )
    METER.reset()
    return running


KEY = {"pk": {"S": "job-1"}, "sk": {"S": "job"}}
DUE = {"due_shard": {"S": "s0"}, "due_at": {"S": "2026"}}


def dynamodb(aws: Aws):
    return aws.client("dynamodb", "WORKER")


def put(aws: Aws, **attributes: dict[str, Any]) -> Any:
    return dynamodb(aws).put_item(TableName="jobs", Item={**KEY, **attributes}, ReturnConsumedCapacity="INDEXES")[
        "ConsumedCapacity"
    ]


def update(aws: Aws, expression: str, **values: dict[str, Any]) -> Any:
    more = {"ExpressionAttributeValues": {f":{name}": value for name, value in values.items()}} if values else {}
    return dynamodb(aws).update_item(
        TableName="jobs", Key=KEY, UpdateExpression=expression, ReturnConsumedCapacity="INDEXES", **more
    )["ConsumedCapacity"]


def text(size: int) -> dict[str, str]:
    return {"S": "x" * size}


def test_calls_are_recorded_with_who_made_them_and_what_they_cost(aws):
    put(aws, **DUE)
    dynamodb(aws).get_item(TableName="jobs", Key=KEY, ConsistentRead=True)
    url = aws.queue()
    aws.client("sqs", "WORKER").send_message(QueueUrl=url, MessageBody="x")
    aws.client("dynamodb").put_item(TableName="jobs", Item=KEY)
    found = METER.calls()
    assert [(call.function, call.request_id) for call in found] == [("worker", "request-1")] * 3
    assert [(call.service, call.operation) for call in found] == [
        ("dynamodb", "PutItem"),
        ("dynamodb", "GetItem"),
        ("sqs", "SendMessage"),
    ]
    assert [(call.write_units, call.read_units) for call in found] == [(2, 0), (0, 1), (0, 0)]
    assert [(call.table, call.subject) for call in found] == [("jobs", "job-1"), ("jobs", "job-1"), (None, None)]


def test_a_put_costs_the_record_and_every_index_it_enters(aws):
    capacity = put(aws, **DUE, tenant={"S": "acme"})
    assert capacity == {
        "TableName": "jobs",
        "CapacityUnits": 4.0,
        "Table": {"CapacityUnits": 1.0},
        "GlobalSecondaryIndexes": {
            "due": {"CapacityUnits": 1.0},
            "by_tenant": {"CapacityUnits": 1.0},
            "noted": {"CapacityUnits": 1.0},
        },
    }


def test_stock_moto_says_one_unit_whatever_is_written(aws):
    aws.server.gates.clear()
    assert put(aws, **DUE, body=text(5000))["CapacityUnits"] == 1.0


def test_an_update_costs_the_larger_size_and_no_index_that_stays_as_it_is(aws):
    put(aws, **DUE, body=text(3000))
    assert update(aws, "SET body = :b", b=text(10)) == {
        "TableName": "jobs",
        "CapacityUnits": 3.0,
        "Table": {"CapacityUnits": 3.0},
    }
    assert update(aws, "SET body = :b", b=text(2100))["CapacityUnits"] == 3.0


def test_an_index_entry_that_moves_costs_two_and_one_that_goes_costs_one(aws):
    put(aws, **DUE)
    moved = update(aws, "SET due_at = :d", d={"S": "2027"})
    assert moved["GlobalSecondaryIndexes"] == {"due": {"CapacityUnits": 2.0}}
    gone = update(aws, "REMOVE due_shard, due_at")
    assert gone["GlobalSecondaryIndexes"] == {"due": {"CapacityUnits": 1.0}}
    assert gone["CapacityUnits"] == 2.0
    assert "GlobalSecondaryIndexes" not in update(aws, "SET note = :n", n=text(1))


def test_a_projected_attribute_that_changes_costs_its_index_one(aws):
    put(aws, tenant={"S": "acme"}, note=text(5))
    changed = update(aws, "SET note = :n", n=text(1500))
    assert changed["GlobalSecondaryIndexes"] == {"noted": {"CapacityUnits": 2.0}}


def test_a_write_that_changes_nothing_costs_its_size(aws):
    put(aws, **DUE, body=text(1500))
    assert put(aws, **DUE, body=text(1500))["CapacityUnits"] == 2.0


def test_a_deletion_costs_the_item_and_its_index_entries(aws):
    put(aws, **DUE, body=text(1500))
    answer = dynamodb(aws).delete_item(TableName="jobs", Key=KEY, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == {"TableName": "jobs", "CapacityUnits": 3.0}


def test_a_failed_condition_costs_as_much_as_the_item_in_its_way(aws):
    put(aws, **DUE, body=text(2500))
    with pytest.raises(ClientError):
        dynamodb(aws).put_item(TableName="jobs", Item=KEY, ConditionExpression="attribute_not_exists(pk)")
    failed = METER.calls()[-1]
    assert (failed.write_units, failed.error) == (3, "ConditionalCheckFailedException")
    with pytest.raises(ClientError):
        dynamodb(aws).update_item(
            TableName="jobs",
            Key={"pk": {"S": "absent"}, "sk": {"S": "job"}},
            UpdateExpression="REMOVE note",
            ConditionExpression="attribute_exists(pk)",
        )
    assert METER.calls()[-1].write_units == 1


def test_transactions_cost_double(aws):
    answer = dynamodb(aws).transact_write_items(
        TransactItems=[{"Put": {"TableName": "jobs", "Item": {**KEY, **DUE}}}], ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 4.0
    answer = dynamodb(aws).transact_get_items(
        TransactItems=[{"Get": {"TableName": "jobs", "Key": KEY}}], ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 2.0


def test_batches_cost_the_sum_of_their_items(aws):
    items = [{**KEY, "pk": {"S": f"job-{number}"}, "body": text(1500)} for number in range(3)]
    answer = dynamodb(aws).batch_write_item(
        RequestItems={"jobs": [{"PutRequest": {"Item": item}} for item in items]}, ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"] == [{"TableName": "jobs", "CapacityUnits": 6.0}]
    keys = [{"pk": item["pk"], "sk": item["sk"]} for item in items]
    answer = dynamodb(aws).batch_get_item(
        RequestItems={"jobs": {"Keys": keys, "ConsistentRead": True}}, ReturnConsumedCapacity="TOTAL"
    )
    assert answer["ConsumedCapacity"] == [{"TableName": "jobs", "CapacityUnits": 3.0}]


@pytest.mark.parametrize(("size", "consistent", "units"), [(10, False, 0.5), (10, True, 1), (5000, True, 2)])
def test_a_get_costs_by_size_and_consistency(aws, size, consistent, units):
    put(aws, body=text(size))
    answer = dynamodb(aws).get_item(
        TableName="jobs",
        Key=KEY,
        ConsistentRead=consistent,
        ReturnConsumedCapacity="TOTAL",
        ProjectionExpression="pk",
    )
    assert answer["ConsumedCapacity"]["CapacityUnits"] == units


def test_a_query_costs_what_it_read_together_and_of_an_index_only_what_it_holds(aws):
    for number in range(8):
        item = {**KEY, **DUE, "sk": {"S": str(number)}, "body": text(1000)}
        dynamodb(aws).put_item(TableName="jobs", Item=item)
    base = dynamodb(aws).query(
        TableName="jobs",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": KEY["pk"]},
        ReturnConsumedCapacity="TOTAL",
    )
    assert base["ConsumedCapacity"]["CapacityUnits"] == 1.5  # 8 x ~1,060 bytes: three times 4 KB, halved
    of_index = dynamodb(aws).query(
        TableName="jobs",
        IndexName="due",
        KeyConditionExpression="due_shard = :s",
        ExpressionAttributeValues={":s": {"S": "s0"}},
        ReturnConsumedCapacity="INDEXES",
    )
    assert of_index["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert of_index["ConsumedCapacity"]["GlobalSecondaryIndexes"] == {"due": {"CapacityUnits": 0.5}}


def test_capacity_is_told_to_whoever_asks_and_to_nobody_else(aws):
    asked = aws.client("dynamodb").put_item(TableName="jobs", Item={**KEY, **DUE}, ReturnConsumedCapacity="TOTAL")
    assert asked["ConsumedCapacity"] == {"TableName": "jobs", "CapacityUnits": 2.0}
    silent = aws.client("dynamodb").update_item(TableName="jobs", Key=KEY, UpdateExpression="REMOVE note")
    assert "ConsumedCapacity" not in silent


def test_a_call_that_was_refused_is_not_counted(aws):
    class Refusing:
        exclusive = True

        def before(self, call: Call) -> Refusal | None:
            return Refusal("ProvisionedThroughputExceededException", "slow down")

        def after(self, call: Call, response: Response) -> Response:
            return response

    aws.server.gates.append(Refusing())
    with pytest.raises(ClientError):
        put(aws)
    assert METER.calls() == []
    assert METER._before == {}


def test_the_memory_of_a_meter_is_bounded(aws):
    small = Meter(kept=3)
    aws.server.gates[:] = [small]
    for number in range(5):
        put(aws, note=text(number))
    assert len(small.calls()) == 3


def test_objects_are_recorded_by_their_path(aws):
    aws.client("s3").create_bucket(Bucket="box")
    aws.client("s3", "WORKER").put_object(Bucket="box", Key="results/1", Body=b"x")
    (call,) = METER.calls()
    assert (call.service, call.operation, call.subject) == ("s3", "PutObject", "/box/results/1")


def test_a_missing_object_is_recorded_with_its_error(aws):
    aws.client("s3").create_bucket(Bucket="box")
    missing: Callable[[], object] = lambda: aws.client("s3", "WORKER").get_object(Bucket="box", Key="x")  # noqa: E731
    with pytest.raises(ClientError):
        missing()
    assert METER.calls()[-1].error == "404"
