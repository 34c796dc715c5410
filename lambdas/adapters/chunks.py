"""The Chunks port on the Jobs table: streamed text beside its job's record, in the order of its sort key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.attributes import from_item, to_item
from lambdas.adapters.clients import as_unavailable
from lambdas.contracts.names import CHUNK_SK, DELIVERY_SK, TTL_ATTRIBUTE
from lambdas.core import times
from lambdas.core.ports import Unavailable
from lambdas.core.streaming.ports import Chunk

LAST = 999_999  # six digits of a number
PAGE = 100  # items of one query at most: about as much as one answer to a reader may have
SMALL = 500  # bytes; chunks are seldom smaller, and what a query finds is paid for, whether it is wanted or not
DELETES = 25  # what one BatchWriteItem takes
DELETE_MOST = 10_000  # items of one call: the function that deletes has half a minute
PAUSES_S = (0.05, 0.1, 0.2, 0.4)  # before what a batch left undone is asked for again


class DynamoChunks:
    """`client` writes in one short attempt where it appends (`clients.brief_client`); readers bring their own."""

    def __init__(self, client: Any, table: str, now: Callable[[], datetime] = clock.now) -> None:
        self._client, self._table, self._now = client, table, now

    def append(self, job_id: str, chunk: Chunk, expires_at: int) -> None:
        item = {
            "pk": job_id,
            "sk": _sk(chunk.attempt, chunk.n),
            "text": chunk.text,
            "at": times.text(self._now()),
            TTL_ATTRIBUTE: expires_at,
        }
        with as_unavailable(f"storing streamed text of {job_id}"):
            self._client.put_item(TableName=self._table, Item=to_item(item))

    def read(
        self, job_id: str, attempt: int, first: int, most_bytes: int, since: datetime | None = None
    ) -> Sequence[Chunk]:
        found: list[Chunk] = []
        room = most_bytes
        between = (_sk(attempt, first), _sk(attempt, LAST))
        page = min(PAGE, most_bytes // SMALL + 2)
        wanted: dict[str, Any] = {"ProjectionExpression": "#sk, #text", "names": {"#text": "text"}}
        if since is not None:
            wanted |= {"FilterExpression": "#at >= :since", "values": {":since": times.text(since)}}
            wanted["names"]["#at"] = "at"
        for item in self._items(job_id, *between, page, **wanted):
            room -= len(item["text"].encode())
            if found and room < 0:
                break
            found.append(Chunk(attempt, int(item["sk"].rpartition("#")[2]), item["text"]))
        return found

    def delete_all(self, job_id: str) -> None:
        """Everything beside the record: chunks of every attempt, and what there is of deliveries."""
        keys: list[Mapping[str, Any]] = []
        gone = 0
        for item in self._items(job_id, CHUNK_SK, f"{DELIVERY_SK}~", PAGE, ProjectionExpression="pk, #sk"):
            keys.append(to_item(item))
            if len(keys) == DELETES:
                gone += len(keys)
                self._delete(keys)
                keys = []
            if gone >= DELETE_MOST:
                raise Unavailable(f"deleting what is beside {job_id}: there is more than one call can delete")
        if keys:
            self._delete(keys)

    def _delete(self, keys: Sequence[Mapping[str, Any]]) -> None:
        left = [{"DeleteRequest": {"Key": key}} for key in keys]
        for pause_s in (*PAUSES_S, None):
            with as_unavailable("deleting what is beside a job"):
                answer = self._client.batch_write_item(RequestItems={self._table: left})
            left = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not left:
                return
            if pause_s is not None:
                time.sleep(pause_s)
        raise Unavailable("deleting what is beside a job: the table leaves it undone", throttled=True)

    def _items(
        self,
        job_id: str,
        first: str,
        last: str,
        page: int,
        *,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> Iterator[dict[str, Any]]:
        """As they are now, in order, a page at a time as they are asked for."""
        while True:
            with as_unavailable(f"reading what is beside {job_id}"):
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND #sk BETWEEN :first AND :last",
                    ExpressionAttributeNames={"#sk": "sk", **(names or {})},
                    ExpressionAttributeValues=to_item(
                        {":pk": job_id, ":first": first, ":last": last, **(values or {})}
                    ),
                    ConsistentRead=True,
                    Limit=page,
                    **arguments,
                )
            yield from map(from_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _sk(attempt: int, n: int) -> str:
    return f"{CHUNK_SK}{attempt:06d}#{n:06d}"
