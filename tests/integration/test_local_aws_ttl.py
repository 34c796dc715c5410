"""Items leave when their time to live is over: late, and with a record that says who deleted them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from local.aws.streams import StreamReader
from local.aws.ttl import delete_expired
from local.clock import VirtualClock
from tests.integration.local_aws import Aws, serving


@pytest.fixture(scope="module")
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as running:
        yield running


@pytest.fixture(scope="module")
def aws(clock: VirtualClock) -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture
def table(aws: Aws) -> str:
    aws.server.reset()
    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    name = aws.table(sort_key=True, StreamSpecification=view)
    aws.client("dynamodb").update_time_to_live(
        TableName=name, TimeToLiveSpecification={"AttributeName": "expires_at", "Enabled": True}
    )
    return name


def put(aws: Aws, pk: str, **attributes: dict[str, str]) -> None:
    aws.client("dynamodb").put_item(TableName="things", Item={"pk": {"S": pk}, "sk": {"S": "job"}, **attributes})


def left(aws: Aws) -> list[str]:
    return sorted(item["pk"]["S"] for item in aws.client("dynamodb").scan(TableName="things")["Items"])


def test_moto_15_an_item_stays_readable_for_a_while_and_then_goes(aws, table, clock):
    put(aws, "ends", expires_at={"N": str(int(time.time()) + 60)})
    put(aws, "stays")
    clock.advance(3600)
    assert delete_expired() == 0
    assert left(aws) == ["ends", "stays"]
    clock.advance(48 * 3600)
    assert left(aws) == ["ends", "stays"]
    assert delete_expired() == 1
    assert left(aws) == ["stays"]


def test_the_stream_says_that_the_service_deleted_it(aws, table):
    put(aws, "ends", expires_at={"N": str(int(time.time()) - 1)})
    delete_expired(late_s=0)
    record = StreamReader(table).read()[-1]
    assert record["eventName"] == "REMOVE"
    assert record["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


@pytest.mark.parametrize("value", [{"S": "1"}, {"N": "1"}, {"N": str(int(time.time() * 1000))}])
def test_ddb_09_what_is_no_recent_time_in_seconds_never_ends(aws, table, value):
    put(aws, "stays", expires_at=value)
    assert delete_expired(late_s=0) == 0
    assert left(aws) == ["stays"]
