"""Jobs in DynamoDB: each a record of its own key, found by when it is due and whose it is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from lambdas.adapters.attributes import from_item, record_in, to_item
from lambdas.adapters.clients import as_unavailable
from lambdas.adapters.records import Records, item_key
from lambdas.contracts.names import (
    CREATED_AT,
    DUE_AT,
    DUE_INDEX,
    DUE_SHARD,
    JOB_SK,
    TENANT_INDEX,
    TENANT_SHARD,
)
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.times import Instant

BATCH_GET_MAX = 100
WRITERS = 8
PAUSES_S = (0.05, 0.1, 0.2, 0.4)  # before keys that the table kept back are asked for again


class DynamoJobStore:
    """The JobStore port on one table."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table
        self._records = Records(client, table)

    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._records.create(record, "recording a job")

    def apply(self, job_id: str, change: Change) -> Applied | Refused:
        return self._records.apply((job_id, JOB_SK), change)

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        def trouble(one: tuple[str, Change]) -> str | None:
            try:
                self.apply(*one)
            except (Unavailable, UnreadableRecord) as error:
                return str(error)
            return None

        with ThreadPoolExecutor(WRITERS) as threads:
            troubles = list(threads.map(trouble, changes))
        return {job_id: why for (job_id, _), why in zip(changes, troubles, strict=True) if why is not None}

    def read(self, job_id: str) -> Mapping[str, Any] | None:
        return self._records.read((job_id, JOB_SK))

    def read_many(self, job_ids: Sequence[str]) -> list[Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(job_ids), BATCH_GET_MAX):
            keys = [item_key((job_id, JOB_SK)) for job_id in job_ids[start : start + BATCH_GET_MAX]]
            found |= {record["pk"]: record for record in self._batch_get(keys)}
        return [found[job_id] for job_id in job_ids if job_id in found]

    def _batch_get(self, keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Given up only by rounds that bring nothing: a busy table tells a part at a time."""
        items: list[dict[str, Any]] = []
        in_vain = iter(PAUSES_S)
        while True:
            asked = len(keys)
            with as_unavailable("reading jobs"):
                answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys}})
            items += _readable(answer.get("Responses", {}).get(self._table, []))
            keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if not keys:
                return items
            pause_s = next(in_vain, None) if len(keys) >= asked else PAUSES_S[0]
            if pause_s is None:
                raise Unavailable("reading jobs: the table keeps back what was asked", unknown=False, throttled=True)
            time.sleep(pause_s)

    def due(self, shard: str, before: Instant, after: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        items = self._records.query(
            "querying jobs",
            IndexName=DUE_INDEX,
            KeyConditionExpression="#shard = :shard AND #due < :before",
            ExpressionAttributeNames={"#shard": DUE_SHARD, "#due": DUE_AT},
            ExpressionAttributeValues={":shard": {"S": shard}, ":before": {"S": times.text(before)}},
            limit=limit,
            **_start({DUE_SHARD: shard, DUE_AT: after[0], "pk": after[1], "sk": JOB_SK} if after else None),
        )
        return [(row[DUE_AT], row["pk"]) for row in map(from_item, items)]

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        last = {TENANT_SHARD: shard, CREATED_AT: before[0], "pk": before[1], "sk": JOB_SK} if before else None
        items = self._records.query(
            "querying jobs",
            IndexName=TENANT_INDEX,
            KeyConditionExpression="#shard = :shard",
            ExpressionAttributeNames={"#shard": TENANT_SHARD},
            ExpressionAttributeValues={":shard": {"S": shard}},
            ScanIndexForward=False,
            limit=limit,
            **_start(last),
        )
        return [(row[CREATED_AT], row["pk"]) for row in map(from_item, items)]


def _start(last: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"ExclusiveStartKey": to_item(last)} if last else {}


def _readable(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    records = []
    for item in items:
        with suppress(UnreadableRecord):
            records.append(record_in(item))
    return records
