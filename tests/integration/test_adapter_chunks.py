"""The Chunks port: DynamoDB, and the fake that unit tests trust, keep text in order and apart by attempt, and let go of
all of it at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lambdas.adapters import chunks as adapter
from lambdas.adapters.attributes import from_item
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import brief_client, client
from lambdas.core.ports import Unavailable
from lambdas.core.streaming.ports import Chunk, Chunks
from tests.builders import NOW, later
from tests.fakes import FakeChunks
from tests.integration.cloud import Cloud
from tests.integration.records import an_id, pending

EXPIRES = int(later(days=91).timestamp())
ALL = 1_000_000


@pytest.fixture
def table(cloud: Cloud) -> DynamoChunks:
    return DynamoChunks(client("dynamodb"), cloud.jobs_table, now=lambda: NOW)


@pytest.fixture(params=["dynamodb", "fake"])
def chunks(request: pytest.FixtureRequest) -> Any:
    return FakeChunks() if request.param == "fake" else request.getfixturevalue("table")


def say(chunks: Chunks, job_id: str, *texts: str, attempt: int = 1) -> None:
    for n, text in enumerate(texts):
        chunks.append(job_id, Chunk(attempt, n, text), EXPIRES)


def texts(chunks: Chunks, job_id: str, attempt: int = 1, first: int = 0, most: int = ALL) -> list[str]:
    found = chunks.read(job_id, attempt, first, most)
    assert [(chunk.attempt, chunk.n) for chunk in found] == [(attempt, first + n) for n in range(len(found))]
    return [chunk.text for chunk in found]


def test_text_is_read_in_its_order_from_where_it_is_asked_for(chunks: Chunks):
    job_id = an_id()
    say(chunks, job_id, *"abcdefghijkl")
    assert texts(chunks, job_id) == list("abcdefghijkl")
    assert texts(chunks, job_id, first=9) == ["j", "k", "l"]
    assert texts(chunks, job_id, first=12) == []


def test_attempts_and_jobs_do_not_know_each_others_text(chunks: Chunks):
    job_id, other = an_id(), an_id()
    say(chunks, job_id, "one")
    say(chunks, job_id, "two", "three", attempt=2)
    say(chunks, job_id, "twelve", attempt=12)
    say(chunks, other, "another's")
    assert [texts(chunks, job_id, attempt) for attempt in (1, 2, 3, 12)] == [["one"], ["two", "three"], [], ["twelve"]]


def test_text_that_was_stored_before_a_time_is_left_out(cloud: Cloud):
    """A job that has the id of one whose record has expired must not be shown that one's text."""
    job_id, at = an_id(), [later(days=-91)]
    stored, fake = DynamoChunks(client("dynamodb"), cloud.jobs_table, now=lambda: at[0]), FakeChunks()
    fake.at = lambda: at[0]
    for chunks in (stored, fake):
        at[0] = later(days=-91)
        say(chunks, job_id, *["old"] * 150)
        at[0] = NOW
        say(chunks, job_id, "new", "er")
        found = [chunk.text for chunk in chunks.read(job_id, 1, 0, ALL, NOW)]
        assert (found, chunks.read(job_id, 1, 2, 1, NOW)) == (["new", "er"], [])
        assert len(chunks.read(job_id, 1, 0, ALL)) == 150


def test_a_reader_gets_no_more_bytes_than_asked_for_but_one_chunk_at_least(chunks: Chunks):
    job_id = an_id()
    say(chunks, job_id, "ééé", "bbb", "cccc")
    assert [len(texts(chunks, job_id, most=most)) for most in (0, 1, 8, 9, 12, 13)] == [1, 1, 1, 2, 2, 3]


def test_what_is_stored_twice_is_there_once(chunks: Chunks):
    job_id = an_id()
    say(chunks, job_id, "a", "b")
    say(chunks, job_id, "a", "b")
    assert texts(chunks, job_id) == ["a", "b"]


def test_any_text_is_read_as_it_was_stored(chunks: Chunks):
    job_id = an_id()
    said = ['"\\\n\t', "\U0001f600é漢", "\x00\x7f\u2028", " "]
    say(chunks, job_id, *said)
    assert texts(chunks, job_id) == said


def test_all_of_a_job_is_deleted_and_nothing_of_another(chunks: Chunks):
    job_id, other = an_id(), an_id()
    for attempt in (1, 2):
        say(chunks, job_id, *"ab", attempt=attempt)
    say(chunks, other, "stays")
    for _ in range(2):
        chunks.delete_all(job_id)
    assert [texts(chunks, job_id, attempt) for attempt in (1, 2)] == [[], []]
    assert texts(chunks, other) == ["stays"]


# --- on the table alone --------------------------------------------------------------------------
def items(cloud: Cloud, job_id: str) -> list[dict[str, Any]]:
    """The job's partition: its record and what lies beside it."""
    found = cloud.client("dynamodb").query(
        TableName=cloud.jobs_table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": job_id}},
    )
    return [from_item(item) for item in found["Items"]]


def test_a_chunk_lies_beside_the_record_and_says_when_it_was_said(cloud: Cloud, table: DynamoChunks):
    record = cloud.put(pending())
    table.append(record["pk"], Chunk(3, 12, "text"), EXPIRES)
    (item,) = [one for one in items(cloud, record["pk"]) if one["sk"] != "job"]
    assert item == {
        "pk": record["pk"], "sk": "chunk#000003#000012", "text": "text", "at": "2026-11-29T15:30:44.123Z",
        "expires_at": EXPIRES,
    }  # fmt: skip


def test_many_chunks_are_read_over_the_pages_they_come_in(table: DynamoChunks):
    job_id = an_id()
    said = [f"{n} " for n in range(adapter.PAGE + 30)]
    say(table, job_id, *said)
    assert texts(table, job_id) == said


def test_no_more_is_read_than_is_needed(cloud: Cloud, table: DynamoChunks):
    job_id = an_id()
    say(table, job_id, *["x" * 2_000] * 20)
    cloud.wire.sent.clear()
    assert [len(texts(table, job_id, most=most)) for most in (1, 8_000)] == [1, 4]
    assert [json.loads(one.body)["Limit"] for one in cloud.wire.sent] == [2, 18]


def test_who_reads_reads_what_was_written(cloud: Cloud, table: DynamoChunks):
    """A final record's chunks are complete: whoever has read it finds all of them."""
    table.read(an_id(), 1, 0, 1_000)
    assert [json.loads(one.body)["ConsistentRead"] for one in cloud.wire.sent] == [True]


def test_deleting_takes_deliveries_and_leaves_the_record(cloud: Cloud, table: DynamoChunks):
    record = cloud.put(pending())
    say(table, record["pk"], *"ab" * 30)
    for sk in ("delivery#callback#e1", "delivery#zzz#\U0001f600"):
        cloud.put({"pk": record["pk"], "sk": sk, "body": "{}"})
    table.delete_all(record["pk"])
    assert [item["sk"] for item in items(cloud, record["pk"])] == ["job"]


class Partly:
    """The client, whose table leaves the first of each batch undone, so often."""

    def __init__(self, real: Any, times: int) -> None:
        self._real, self._left = real, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        ((table, requests),) = RequestItems.items()
        undone, self._left = (requests[:1] if self._left else []), max(0, self._left - 1)
        if requests[len(undone) :]:
            self._real.batch_write_item(RequestItems={table: requests[len(undone) :]})
        return {"UnprocessedItems": {table: undone} if undone else {}}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("lambdas.adapters.chunks.time.sleep", made.append)
    return made


def test_what_the_table_leaves_undone_is_asked_for_again_more_slowly(cloud: Cloud, slept: list[float]):
    chunks, job_id = DynamoChunks(Partly(client("dynamodb"), 3), cloud.jobs_table), an_id()
    say(chunks, job_id, *"abc")
    chunks.delete_all(job_id)
    assert texts(chunks, job_id) == []
    assert slept == sorted(slept)
    assert len(slept) == 3


def test_a_table_that_leaves_it_undone_for_ever_is_told(cloud: Cloud, slept: list[float]):
    chunks, job_id = DynamoChunks(Partly(client("dynamodb"), 99), cloud.jobs_table), an_id()
    say(chunks, job_id, *"abc")
    with pytest.raises(Unavailable):
        chunks.delete_all(job_id)


def test_one_call_deletes_so_much_and_the_next_one_goes_on(table: DynamoChunks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(adapter, "DELETE_MOST", 2 * adapter.DELETES)
    job_id = an_id()
    say(table, job_id, *["x"] * 60)
    with pytest.raises(Unavailable):
        table.delete_all(job_id)
    assert len(table.read(job_id, 1, 50, ALL)) == 10
    table.delete_all(job_id)
    assert table.read(job_id, 1, 0, ALL) == []


CALLS: dict[str, tuple[str, Callable[[Chunks, str], object]]] = {
    "append": ("PutItem", lambda chunks, job_id: chunks.append(job_id, Chunk(1, 1, "b"), EXPIRES)),
    "read": ("Query", lambda chunks, job_id: chunks.read(job_id, 1, 0, ALL)),
    "list": ("Query", lambda chunks, job_id: chunks.delete_all(job_id)),
    "delete": ("BatchWriteItem", lambda chunks, job_id: chunks.delete_all(job_id)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("act", ["refuse", "lose"])
def test_a_store_that_does_not_answer_is_unavailable(cloud: Cloud, table: DynamoChunks, name: str, act: str):
    operation, call = CALLS[name]
    job_id = an_id()
    say(table, job_id, "a")
    if act == "refuse":
        cloud.wire.refuse(operation, "InternalServerError", status=500)
    else:
        cloud.wire.lose(operation, times=10)
    with pytest.raises(Unavailable):
        call(table, job_id)


def test_a_chunk_is_tried_once_it_must_not_hold_up_the_answer(cloud: Cloud):
    cloud.wire.refuse("PutItem", "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        DynamoChunks(brief_client("dynamodb"), cloud.jobs_table).append(an_id(), Chunk(1, 0, "a"), EXPIRES)
    assert cloud.wire.count("PutItem") == 1
