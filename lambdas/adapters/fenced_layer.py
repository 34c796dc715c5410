"""Powertools' persistence layer with fenced writes: every row names its holder, and only the holder saves or frees it.

Stock Powertools writes unconditionally: a holder whose window lapsed could delete or replace its successor's answer
(docs/adr/0006)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from botocore.exceptions import ClientError

from lambdas.adapters import clock
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.contracts.names import ANSWER_KEY
from lambdas.core.canonical import sha256_of

IN_PROGRESS, COMPLETED = "INPROGRESS", "COMPLETED"


class FencedLayer(BasePersistenceLayer):
    """Rows `{id, status, expiration, in_progress_expiration, holder, data}`; save and delete only by their holder."""

    def __init__(self, client: Any, table: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._client, self._table = client, table
        self._holders: dict[str, str] = {}
        self._taken_over: set[str] = set()

    def has_taken_over(self, row_id: str) -> bool:
        """Whether the row I hold was another's whose window ended: it may have left its answer in S3."""
        return row_id in self._taken_over

    def holder_of(self, row_id: str) -> str | None:
        """Who I am to this row while I hold it."""
        return self._holders.get(row_id)

    def _get_record(self, idempotency_key: str) -> DataRecord:
        item = self.row(idempotency_key)
        if item is None:
            raise IdempotencyItemNotFoundError
        return _record(item)

    def row(self, row_id: str) -> dict[str, Any] | None:
        answer = self._client.get_item(TableName=self._table, Key={ANSWER_KEY: {"S": row_id}}, ConsistentRead=True)
        item: dict[str, Any] | None = answer.get("Item")
        return item

    def in_progress_until(self, row_id: str) -> datetime | None:
        """When the holder's window ends; None when the row is gone, done or lapsed: to be asked for again at once."""
        with as_unavailable("reading what is under way"):
            row = self.row(row_id)
        if row is None or row["status"]["S"] != IN_PROGRESS:
            return None
        until = datetime.fromtimestamp(int(row["in_progress_expiration"]["N"]) / 1000, UTC)
        return until if until > clock.now() else None

    def _put_record(self, data_record: DataRecord) -> None:
        holder, now_ms = uuid.uuid4().hex, int(time.time() * 1000)
        row_id = data_record.idempotency_key
        item = {
            ANSWER_KEY: {"S": row_id},
            "status": {"S": IN_PROGRESS},
            "expiration": {"N": str(data_record.expiry_timestamp)},
            "in_progress_expiration": {"N": str(data_record.in_progress_expiry_timestamp)},
            "holder": {"S": holder},
        }
        try:
            answer = self._client.put_item(
                TableName=self._table,
                Item=item,
                ReturnValues="ALL_OLD",
                ConditionExpression=(
                    "attribute_not_exists(#id) OR #expiration < :now OR (#status = :open AND #until < :now_ms)"
                ),
                ExpressionAttributeNames={
                    "#id": ANSWER_KEY,
                    "#expiration": "expiration",
                    "#status": "status",
                    "#until": "in_progress_expiration",
                },
                ExpressionAttributeValues={
                    ":now": {"N": str(now_ms // 1000)},
                    ":now_ms": {"N": str(now_ms)},
                    ":open": {"S": IN_PROGRESS},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = _found(error)
            if found.get("holder", {}).get("S") != holder:  # else: my own put, whose reply was lost
                raise IdempotencyItemAlreadyExistsError(old_data_record=_record(found) if found else None) from error
            answer = {"Attributes": item}  # what it replaced is not known: perhaps such a row
        self._holders[row_id] = holder
        replaced = answer.get("Attributes", {}).get("status", {}).get("S")
        (self._taken_over.add if replaced == IN_PROGRESS else self._taken_over.discard)(row_id)

    def _update_record(self, data_record: DataRecord) -> None:
        """The answer, if I still hold the row. Refused: somebody took over after my window; the answer stays mine."""
        row_id = data_record.idempotency_key
        try:
            self._client.update_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row_id}},
                UpdateExpression="SET #status = :done, #data = :data, #expiration = :expiration",
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={
                    "#status": "status",
                    "#data": "data",
                    "#expiration": "expiration",
                    "#holder": "holder",
                },
                ExpressionAttributeValues={
                    ":done": {"S": COMPLETED},
                    ":data": {"S": data_record.response_data},
                    ":expiration": {"N": str(data_record.expiry_timestamp)},
                    ":me": {"S": self._holders.get(row_id, "")},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            _found(error)  # a refusal is a successor's row, or nobody's: nothing to do either way
        self._holders.pop(row_id, None)
        self._taken_over.discard(row_id)

    def _delete_record(self, data_record: DataRecord) -> None:
        """Free the row after a failed call, if I still hold it."""
        self._taken_over.discard(data_record.idempotency_key)
        holder = self._holders.pop(data_record.idempotency_key, "")
        self.delete(data_record.idempotency_key, holder)

    def delete(self, row_id: str, holder: str) -> None:
        try:
            self._client.delete_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row_id}},
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={"#holder": "holder"},
                ExpressionAttributeValues={":me": {"S": holder}},
            )
        except ClientError as error:
            _found(error)


def row_id(prefix: str, key: str) -> str:
    """As Powertools makes it: SHA-256 of the guarded argument's JSON under the function's prefix."""
    return f"{prefix}#{sha256_of(key)}"


def _record(item: Mapping[str, Any]) -> DataRecord:
    return DataRecord(
        idempotency_key=item[ANSWER_KEY]["S"],
        status=item["status"]["S"],
        expiry_timestamp=int(item["expiration"]["N"]),
        in_progress_expiry_timestamp=int(item["in_progress_expiration"]["N"]),
        response_data=item.get("data", {}).get("S", ""),
    )


def _found(error: ClientError) -> dict[str, Any]:
    """The row that refused a conditional write; any other error goes on."""
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    item: dict[str, Any] = error.response.get("Item", {})  # type: ignore[assignment]
    return item
