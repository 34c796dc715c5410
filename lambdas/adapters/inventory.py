"""The Inventory port: pages of the index of uploads, and of the whole table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.adapters.attributes import from_item, to_item
from lambdas.adapters.clients import as_unavailable
from lambdas.contracts.names import COMPLETED, JOB_SK, STATUS, UPLOAD_INDEX, UPLOAD_KEY, UPLOAD_SHARD
from lambdas.core.ports import Completed, UploadRow

_ALL = " "  # every key comes after it


class DynamoInventory:
    """Eventually consistent, at half the price: whoever acts reads the record again."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def uploads(self, shard: str, after: str, limit: int) -> list[UploadRow]:
        rows: list[UploadRow] = []
        start: dict[str, Any] = {}
        with as_unavailable("looking through the uploads"):
            while len(rows) < limit:
                answer = self._client.query(
                    TableName=self._table,
                    IndexName=UPLOAD_INDEX,
                    KeyConditionExpression="#shard = :shard AND #key > :after",
                    ExpressionAttributeNames={"#shard": UPLOAD_SHARD, "#key": UPLOAD_KEY},
                    ExpressionAttributeValues={":shard": {"S": shard}, ":after": {"S": after or _ALL}},
                    Limit=limit - len(rows),
                    **start,
                )
                rows += [_row(from_item(item)) for item in answer["Items"]]
                if "LastEvaluatedKey" not in answer:
                    break
                start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return rows

    def completed(self, after: str, limit: int) -> tuple[list[Completed], str]:
        pk, _, sk = after.rpartition("\0")
        start = {"ExclusiveStartKey": to_item({"pk": pk, "sk": sk})} if after else {}
        with as_unavailable("looking through the jobs"):
            answer = self._client.scan(
                TableName=self._table,
                Limit=limit,
                FilterExpression="#sk = :job AND #status = :completed AND attribute_exists(#result)",
                ProjectionExpression="#pk, #result, #at",
                ExpressionAttributeNames={
                    "#pk": "pk", "#sk": "sk", "#status": STATUS, "#result": "result_key", "#at": "finished_at",
                },
                ExpressionAttributeValues={":job": {"S": JOB_SK}, ":completed": {"S": COMPLETED}},
                **start,
            )  # fmt: skip
        rows = [from_item(item) for item in answer["Items"]]
        found = [Completed(row["pk"], row["result_key"], row.get("finished_at", "")) for row in rows]
        last = answer.get("LastEvaluatedKey")
        return found, f"{last['pk']['S']}\0{last['sk']['S']}" if last else ""


def _row(row: Mapping[str, Any]) -> UploadRow:
    """Key and version, as `ids.upload_order` put them together."""
    key, _, version = row[UPLOAD_KEY].rpartition("\0")
    return UploadRow(key, version, row["pk"], row.get(STATUS, ""))
