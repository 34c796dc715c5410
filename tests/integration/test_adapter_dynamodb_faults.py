"""DynamoDB's adapter when replies are lost, requests refused, pages cut short: what it did, and what it says it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Refused, Unavailable
from tests.integration.cloud import Cloud
from tests.integration.records import an_id, every_change, pending
from tests.integration.test_adapter_dynamodb import CHANGED


@pytest.fixture
def store(cloud: Cloud) -> DynamoJobStore:
    return DynamoJobStore(client("dynamodb"), cloud.jobs_table)


@pytest.mark.parametrize("name", CHANGED)
def test_ddb_05_a_write_whose_reply_was_lost_is_recognised_as_its_own(cloud: Cloud, store: DynamoJobStore, name: str):
    record, change = every_change(clock.now())[name]
    store.create(record)
    cloud.wire.clear()
    cloud.wire.lose("UpdateItem")
    assert store.apply(record["pk"], change) == Applied(change.applied_to(record))
    assert cloud.wire.count("UpdateItem") == 2  # botocore's own repeat, or this test shows nothing
    assert store.read(record["pk"]) == change.applied_to(record)


def test_ddb_05_a_job_whose_put_was_repeated_is_answered_as_it_was_put(cloud: Cloud, store: DynamoJobStore):
    record = pending()
    cloud.wire.lose("PutItem")
    assert store.create(record) == record
    assert cloud.wire.count("PutItem") == 2


@pytest.mark.parametrize("name", CHANGED)
def test_a_refused_write_says_so_even_when_the_first_refusal_was_lost(cloud: Cloud, store: DynamoJobStore, name: str):
    record, change = every_change(clock.now())[name]
    other = {**record, "attempt": 40, "tries": 40, "claim_id": "somebody", "status": "WAITING"}
    other |= {"booked_by": {"key-facts": "somebody"}}
    store.create(other)
    cloud.wire.lose("UpdateItem")
    assert store.apply(record["pk"], change) == Refused(other)


def _calls(store: DynamoJobStore) -> dict[str, Callable[[], Any]]:
    record, change = every_change(clock.now())["claim"]
    return {
        "PutItem": lambda: store.create(record),
        "UpdateItem": lambda: store.apply(record["pk"], change),
        "GetItem": lambda: store.read(record["pk"]),
        "BatchGetItem": lambda: store.read_many([record["pk"]]),
        "Query": lambda: store.due("1", clock.now(), None, 5),
    }


OPERATIONS = ["PutItem", "UpdateItem", "GetItem", "BatchGetItem", "Query"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_refusal_of_the_first_attempt_is_unavailable_and_known(cloud: Cloud, store: DynamoJobStore, operation: str):
    cloud.wire.refuse(operation, "AccessDeniedException")
    with pytest.raises(Unavailable) as error:
        _calls(store)[operation]()
    assert error.value.unknown is False
    assert cloud.wire.count(operation) == 1


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("code", ["InternalServerError", "ServiceUnavailable"])
def test_a_server_error_is_unavailable_and_unknown(cloud: Cloud, store: DynamoJobStore, operation: str, code: str):
    cloud.wire.refuse(operation, code, 500)
    with pytest.raises(Unavailable) as error:
        _calls(store)[operation]()
    assert error.value.unknown is True
    assert cloud.wire.count(operation) == 3


def test_a_server_error_that_botocore_does_not_repeat_is_unknown_all_the_same(cloud: Cloud, store: DynamoJobStore):
    """Its quota of repeats may be used up, too."""
    cloud.wire.refuse("PutItem", "HttpVersionNotSupported", 505)
    with pytest.raises(Unavailable) as error:
        store.create(pending())
    assert (error.value.unknown, cloud.wire.count("PutItem")) == (True, 1)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_broken_connection_is_unavailable_and_unknown(cloud: Cloud, store: DynamoJobStore, operation: str):
    cloud.wire.cut(operation, times=3)
    with pytest.raises(Unavailable) as error:
        _calls(store)[operation]()
    assert error.value.unknown is True


def test_a_throttle_after_an_attempt_whose_reply_was_lost_is_unknown(cloud: Cloud, store: DynamoJobStore):
    record = pending()
    cloud.wire.lose("PutItem")
    cloud.wire.refuse("PutItem", "ThrottlingException")
    with pytest.raises(Unavailable) as error:
        store.create(record)
    assert error.value.unknown is True
    assert store.read(record["pk"]) == record  # it had landed


def test_a_throttle_that_passes_is_not_felt(cloud: Cloud, store: DynamoJobStore):
    record = pending()
    cloud.wire.refuse("PutItem", "ProvisionedThroughputExceededException", times=2)
    assert store.create(record) is None


def test_no_write_is_tried_more_than_three_times(cloud: Cloud, store: DynamoJobStore):
    cloud.wire.refuse("PutItem", "ThrottlingException")
    with pytest.raises(Unavailable):
        store.create(pending())
    assert cloud.wire.count("PutItem") == 3


def test_an_empty_job_id_is_refused_before_anything_is_sent(cloud: Cloud, store: DynamoJobStore):
    """MOTO-09: moto would take it, AWS would not."""
    _, change = every_change(clock.now())["claim"]
    for call in (lambda: store.read(""), lambda: store.apply("", change), lambda: store.read_many([""])):
        with pytest.raises(ValueError, match="empty"):
            call()
    assert cloud.wire.count() == 0


def test_the_record_is_read_consistently_before_anybody_decides(cloud: Cloud, store: DynamoJobStore):
    store.read(an_id())
    assert '"ConsistentRead": true' in cloud.wire.sent[-1].body


def test_of_many_writes_those_that_were_not_written_are_told_and_the_others_stand(cloud: Cloud, store: DynamoJobStore):
    (one, change), (other, _) = (every_change(clock.now())["push_due"] for _ in range(2))
    for record in (one, other):
        store.create(record)
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=one["pk"])
    troubles = store.apply_many([(one["pk"], change), (other["pk"], change)])
    assert troubles.keys() == {one["pk"]}
    assert "AccessDeniedException" in troubles[one["pk"]]
    assert (store.read(one["pk"]), store.read(other["pk"])) == (one, change.applied_to(other))


class Pages:
    """A client whose queries and batches answer what the test prepared: what moto never does and AWS may."""

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        self.answers, self.asked = answers, []  # type: ignore[var-annotated]

    def query(self, **arguments: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        return self.answers["query"].pop(0)

    def batch_get_item(self, **arguments: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        return self.answers["batch"].pop(0)


def _row(job_id: str) -> dict[str, Any]:
    now = {"S": times.text(clock.now())}
    return {"pk": {"S": job_id}, "sk": {"S": "job"}, "created_at": now, "due_at": now}


def _found(pages: Pages, limit: int) -> list[str]:
    return [job_id for _, job_id in DynamoJobStore(pages, "t").due("1", clock.now(), None, limit)]


def test_ddb_10_a_page_without_rows_is_not_the_last():
    last = {"pk": {"S": "x"}}
    pages = Pages(
        query=[{"Items": [], "LastEvaluatedKey": last}, {"Items": [_row("a")], "LastEvaluatedKey": last}, {"Items": []}]
    )
    assert _found(pages, 10) == ["a"]
    assert [one.get("ExclusiveStartKey") for one in pages.asked] == [None, last, last]


def test_moto_14_a_last_page_that_is_empty_ends_the_list():
    last = {"pk": {"S": "b"}}
    pages = Pages(query=[{"Items": [_row("a"), _row("b")], "LastEvaluatedKey": last}])
    assert _found(pages, 2) == ["a", "b"]  # full: nobody asks for more
    pages = Pages(query=[{"Items": [_row("a"), _row("b")], "LastEvaluatedKey": last}, {"Items": []}])
    assert _found(pages, 3) == ["a", "b"]


def test_a_query_asks_for_no_more_rows_than_are_still_wanted():
    pages = Pages(
        query=[{"Items": [_row("a")], "LastEvaluatedKey": {"pk": {"S": "a"}}}, {"Items": [_row("b"), _row("c")]}]
    )
    _found(pages, 3)
    assert [one["Limit"] for one in pages.asked] == [3, 2]


def _batch(found: list[str], left: list[str]) -> dict[str, Any]:
    unprocessed = {"t": {"Keys": [{"pk": {"S": one}, "sk": {"S": "job"}} for one in left]}} if left else {}
    return {"Responses": {"t": [_row(one) for one in found]}, "UnprocessedKeys": unprocessed}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("lambdas.adapters.dynamodb.time.sleep", made.append)
    return made


def test_keys_that_the_table_kept_back_are_asked_for_again(pauses: list[float]):
    pages = Pages(batch=[_batch(["b"], ["a", "c"]), _batch([], ["a", "c"]), _batch(["c", "a"], [])])
    read = DynamoJobStore(pages, "t").read_many(["a", "b", "c"])
    assert [record["pk"] for record in read] == ["a", "b", "c"]
    assert [len(one["RequestItems"]["t"]["Keys"]) for one in pages.asked] == [3, 2, 2]
    assert pauses == [0.05, 0.05]


def test_a_table_that_keeps_back_for_ever_is_busy_and_not_a_short_list(pauses: list[float]):
    pages = Pages(batch=[_batch([], ["a"]) for _ in range(20)])
    with pytest.raises(Unavailable) as told:
        DynamoJobStore(pages, "t").read_many(["a"])
    assert (told.value.unknown, told.value.throttled) == (False, True)
    assert (len(pages.asked), pauses) == (5, [0.05, 0.1, 0.2, 0.4])


def test_a_table_that_tells_a_part_at_a_time_is_heard_to_its_end(pauses: list[float]):
    ids = [str(number) for number in range(10)]
    pages = Pages(batch=[_batch([one], ids[number + 1 :]) for number, one in enumerate(ids)])
    assert [record["pk"] for record in DynamoJobStore(pages, "t").read_many(ids)] == ids
    assert pauses == [0.05] * 9


@pytest.mark.parametrize("name", ["NULL", "SS", "B"])
def test_a_record_that_holds_what_no_record_of_ours_has_raises_no_bare_error_from_a_conditional_write(
    cloud: Cloud, store: DynamoJobStore, name: str
):
    """Somebody edited it in the console: the claim is refused, or the record is unreadable; the batch lives on."""
    record, change = every_change(clock.now())["claim"]
    odd = {"NULL": {"NULL": True}, "SS": {"SS": ["x"]}, "B": {"B": b"x"}}[name]
    store.create({**record, "tries": 99})
    cloud.client("dynamodb").update_item(
        TableName=cloud.jobs_table,
        Key={"pk": {"S": record["pk"]}, "sk": {"S": "job"}},
        UpdateExpression="SET note = :odd",
        ExpressionAttributeValues={":odd": odd},
    )
    with pytest.raises(UnreadableRecord):
        store.apply(record["pk"], change)
