"""The DeliveryStore port: deliveries in the partition of their job, found by when they are due."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lambdas.adapters.attributes import from_item, record_in, to_attribute, to_item
from lambdas.adapters.records import Records
from lambdas.contracts.names import DELIVERY_SK, DUE_AT, DUE_INDEX, DUE_SHARD, JOB_SK
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import Change
from lambdas.core.times import Instant
from lambdas.core.webhooks.ports import Key

BESIDE_MAX = 10_000  # a job's deliveries: events that it had, times endpoints that wanted them


class DynamoDeliveries:
    """On the table of jobs."""

    def __init__(self, client: Any, table: str) -> None:
        self._records = Records(client, table)

    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._records.create(record, "planning a delivery")

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        return self._records.apply(key, change)

    def read(self, key: Key) -> Mapping[str, Any] | None:
        return self._records.read(key)

    def beside(self, job_id: str) -> list[Mapping[str, Any]]:
        """An item that cannot be read is left out: the others are told all the same."""
        items = self._records.query(
            f"reading the deliveries of {job_id}",
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": to_attribute(job_id),
                ":first": to_attribute(DELIVERY_SK),
                ":last": to_attribute(JOB_SK),
            },
            ConsistentRead=True,
            limit=BESIDE_MAX,
        )
        found: list[Mapping[str, Any]] = []
        for item in items:
            with suppress(UnreadableRecord):
                found.append(record_in(item))
        return found

    def due(self, shard: str, before: Instant, after: tuple[str, Key] | None, limit: int) -> list[tuple[str, Key]]:
        start = {DUE_SHARD: shard, DUE_AT: after[0], "pk": after[1][0], "sk": after[1][1]} if after else None
        items = self._records.query(
            "looking for due deliveries",
            IndexName=DUE_INDEX,
            KeyConditionExpression="#shard = :shard AND #due < :before",
            ExpressionAttributeNames={"#shard": DUE_SHARD, "#due": DUE_AT},
            ExpressionAttributeValues={":shard": to_attribute(shard), ":before": to_attribute(times.text(before))},
            limit=limit,
            **({"ExclusiveStartKey": to_item(start)} if start else {}),
        )
        return [(row[DUE_AT], (row["pk"], row["sk"])) for row in map(from_item, items)]
