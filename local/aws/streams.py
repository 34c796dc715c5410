"""Reads a table's stream the way a Lambda event source mapping does, without asking over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import StreamShard, Table

from local.aws.lock import MOTO
from local.aws.patches import dynamodb_streams
from local.stack.place import ACCOUNT, REGION


class StreamReader:
    """One table's stream. moto has one shard per table, so the order is total."""

    def __init__(self, table_name: str, region: str = REGION) -> None:
        """The table may be created later; reading a table without a stream is a LookupError."""
        self._name = table_name
        self._region = region

    def read(self, after_sequence: str | int | None = None, limit: int = 1000) -> list[dict[str, Any]]:
        """At most `limit` records after a sequence number (None: from the oldest that is kept), as Lambda gets them.

        `ApproximateCreationDateTime` is epoch seconds, images are DynamoDB JSON, binaries are base64.
        """
        with MOTO:
            table, shard = self._shard()
            start = 0 if after_sequence is None else int(after_sequence) + 1
            found = dynamodb_streams.records(shard, start, limit)
            arn = f"{table.table_arn}/stream/{table.latest_stream_label}"
        return [_for_lambda(record, arn, self._region) for record in found]

    def latest(self) -> str:
        """The sequence number of the newest record ever written: reading after it starts at LATEST."""
        with MOTO:
            return str(dynamodb_streams.next_sequence(self._shard()[1]) - 1)

    def trim(self, up_to_sequence: str | int) -> None:
        """Forget the records up to and including this one: everybody has read them."""
        with MOTO:
            dynamodb_streams.trim(self._shard()[1], int(up_to_sequence))

    def _shard(self) -> tuple[Table, StreamShard]:
        table = dynamodb_backends[ACCOUNT][self._region].tables.get(self._name)
        if table is None or table.stream_shard is None:
            raise LookupError(f"{self._name} has no stream")
        return table, table.stream_shard


def _for_lambda(record: dict[str, Any], arn: str, region: str) -> dict[str, Any]:
    change = dict(record["dynamodb"])
    created: datetime = change["ApproximateCreationDateTime"]
    change["ApproximateCreationDateTime"] = int(created.replace(tzinfo=UTC).timestamp())
    return {**record, "awsRegion": region, "eventSourceARN": arn, "dynamodb": change}
