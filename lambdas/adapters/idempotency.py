"""The Answers port: Powertools idempotency on DynamoDB, its writes fenced by their holder, large answers in S3.

Stock Powertools writes unconditionally: a holder whose window lapsed could delete or replace its successor's answer.
Here every row names its holder, and only the holder saves or frees it (docs/adr/0006)."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from botocore.exceptions import ClientError

from lambdas.adapters import clock
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts.names import ANSWER_KEY
from lambdas.core import ids
from lambdas.core.canonical import sha256_of
from lambdas.core.ports import AnswerNotStored, AnswerPending, Kept, Missing, Unavailable

KEY_PREFIX = "model/v1"  # constant: the tenant is inside the hashed key, and a renamed function must not pay again
INLINE_BYTES = 8_192  # above it a PUT to S3 is cheaper than the write units of the row
FIRST_POLL_S, LAST_POLL_S = 0.2, 2.0
DAY_S = 86_400

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
            answer = {}
        self._holders[row_id] = holder
        (self._taken_over.add if answer.get("Attributes") else self._taken_over.discard)(row_id)

    def _update_record(self, data_record: DataRecord) -> None:
        """The answer, if I still hold the row. Refused: somebody took over after my window; the answer stays mine."""
        row_id = data_record.idempotency_key
        try:
            self._client.update_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row_id}},
                UpdateExpression="SET #status = :done, #data = :data, #expiration = :expiration",
                ConditionExpression="#holder = :me AND #status = :open",
                ExpressionAttributeNames={
                    "#status": "status",
                    "#data": "data",
                    "#expiration": "expiration",
                    "#holder": "holder",
                },
                ExpressionAttributeValues={
                    ":done": {"S": COMPLETED},
                    ":open": {"S": IN_PROGRESS},
                    ":data": {"S": data_record.response_data},
                    ":expiration": {"N": str(data_record.expiry_timestamp)},
                    ":me": {"S": self._holders.get(row_id, "")},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            _found(error)  # a refusal is mine already saved, or a successor's row: nothing to do either way
        self._holders.pop(row_id, None)

    def _delete_record(self, data_record: DataRecord) -> None:
        """Free the row after a failed call, if I still hold it."""
        holder = self._holders.pop(data_record.idempotency_key, "")
        self.delete(data_record.idempotency_key, holder, IN_PROGRESS)

    def delete(self, row_id: str, holder: str, status: str) -> None:
        try:
            self._client.delete_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row_id}},
                ConditionExpression="#holder = :me AND #status = :status",
                ExpressionAttributeNames={"#holder": "holder", "#status": "status"},
                ExpressionAttributeValues={":me": {"S": holder}, ":status": {"S": status}},
            )
        except ClientError as error:
            _found(error)


class PowertoolsAnswers:
    """The Answers port. One layer and one guarded function per object: a layer takes its key prefix from the last
    function that configured it."""

    def __init__(self, client: Any, table: str, objects: S3Objects, *, keep_days: int) -> None:
        self._layer, self._objects = FencedLayer(client, table), objects
        self._config = IdempotencyConfig(
            expires_after_seconds=keep_days * DAY_S, hash_function="sha256", use_local_cache=False,
            raise_on_no_idempotency_key=True,
        )  # fmt: skip
        self._guarded = idempotent_function(
            _produce, data_keyword_argument="key", persistence_store=self._layer, config=self._config,
            key_prefix=KEY_PREFIX,
        )  # fmt: skip

    def invocation_started(self, context: Any) -> None:
        """The window of a call in progress is the rest of this invocation; to be told before the first call."""
        self._config.register_lambda_context(context)

    def once(
        self, key: str, tenant: str, call: Callable[[], Mapping[str, Any]], *, patience_s: float, look: bool
    ) -> Kept:
        patience = Patience(patience_s)
        while True:
            made = Produced(self, key, tenant, call, look)
            try:
                return self._kept(key, tenant, self._guarded(key=key, produced=made), made)
            except _Vanished:
                continue  # the row pointed to an object that is gone; the row is freed, ask again
            except IdempotencyAlreadyInProgressError:
                expires = self._layer.in_progress_until(row_id(KEY_PREFIX, key))
                if expires is not None and not patience.wait():
                    raise AnswerPending(expires) from None
            except (Unavailable, IdempotencyPersistenceLayerError) as error:
                raise made.trouble(error) from error

    def forget(self, key: str, tenant: str, by: str) -> None:
        row_id = self._row_id(key)
        with as_unavailable("forgetting a rejected answer"):
            row = self._layer.row(row_id)
            if row is None or row.get("holder", {}).get("S") != by or row["status"]["S"] != COMPLETED:
                return
            if "object" in json.loads(row["data"]["S"]):
                self._objects.delete(ids.answer_key(tenant, key))
            self._layer.delete(row_id, by, COMPLETED)

    def _kept(self, key: str, tenant: str, envelope: Mapping[str, Any], made: Produced) -> Kept:
        if "answer" in envelope:
            return Kept(envelope["answer"], envelope["by"], reused=not made.done)
        if made.answer is not None:
            return Kept(made.answer, envelope["by"], reused=not made.done)
        try:
            answer = json.loads(self._objects.get(ids.answer_key(tenant, key)))
        except Missing:
            self._layer.delete(self._row_id(key), envelope["by"], COMPLETED)
            raise _Vanished from None
        return Kept(answer["answer"], envelope["by"], reused=True)

    def store(self, key: str, tenant: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """What the row shall hold: the answer, or, when it is large, that it lies in S3."""
        by = self._layer.holder_of(self._row_id(key)) or ""
        written = json.dumps(answer)
        if len(written.encode()) <= INLINE_BYTES:
            return {"by": by, "answer": dict(answer)}
        self._objects.put(ids.answer_key(tenant, key), json.dumps({"answer": answer}).encode())
        return {"by": by, "object": True}

    def left_behind(self, key: str, tenant: str, look: bool) -> Mapping[str, Any] | None:
        """A large answer of a caller that died between its object and its row; looked for only where one may be."""
        if not look and not self._layer.has_taken_over(self._row_id(key)):
            return None
        try:
            found: Mapping[str, Any] = json.loads(self._objects.get(ids.answer_key(tenant, key)))["answer"]
        except Missing:
            return None
        return found

    def _row_id(self, key: str) -> str:
        return row_id(KEY_PREFIX, key)


def row_id(prefix: str, key: str) -> str:
    """As Powertools makes it: SHA-256 of the guarded argument's JSON under the function's prefix."""
    return f"{prefix}#{sha256_of(key)}"


class Patience:
    """Waits a little longer each time, until no more than `seconds` have gone by in all."""

    def __init__(self, seconds: float) -> None:
        self._ends, self._pause = time.monotonic() + seconds, FIRST_POLL_S

    def wait(self) -> bool:
        """False when the time would be over."""
        if time.monotonic() + self._pause > self._ends:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, LAST_POLL_S)
        return True


class _Vanished(Exception):
    """A row whose object is gone."""


class Produced:
    """One attempt to produce an answer. `done`: a call was made and paid; `raised`: what the call raised instead."""

    def __init__(
        self,
        answers: PowertoolsAnswers,
        key: str,
        tenant: str,
        call: Callable[[], Mapping[str, Any]],
        look: bool,
    ) -> None:
        self._answers, self._key, self._tenant, self._call, self._look = answers, key, tenant, call, look
        self.done = False
        self.raised: Exception | None = None
        self.answer: Mapping[str, Any] | None = None

    def make(self) -> dict[str, Any]:
        found = self._answers.left_behind(self._key, self._tenant, self._look)
        if found is None:
            found = self._called()
        self.answer = found
        return self._answers.store(self._key, self._tenant, found)

    def _called(self) -> Mapping[str, Any]:
        try:
            answer = self._call()
        except Exception as error:
            self.raised = error
            raise
        self.done = True
        return answer

    def trouble(self, error: Exception) -> Exception:
        """What the store's trouble means: nothing to whom the call itself failed, a lost answer to whom it did not."""
        if self.raised:
            return self.raised
        if self.done:
            return AnswerNotStored(str(error))
        return error if isinstance(error, Unavailable) else Unavailable(f"guarding a call: {error}")


def _produce(*, key: str, produced: Produced) -> dict[str, Any]:
    """The guarded function: its result, never empty, becomes the row's data."""
    return produced.make()


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
