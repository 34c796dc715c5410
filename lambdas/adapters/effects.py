"""The Effects port on the answers table: recorded intents, guarded repeats, and starts that are never repeated."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
)
from botocore.exceptions import ClientError

from lambdas.adapters import clock
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.adapters.fenced_layer import FencedLayer, row_id
from lambdas.contracts.names import ANSWER_KEY
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.policy import DAY_S
from lambdas.core.ports import AnswerPending, EffectNotRecorded, Unavailable

KEY_PREFIX = "effect/v1"
INTENT, ONCE = "intent/v1", "once/v1"
STARTED, ENDED = "STARTED", "ENDED"

Act = Callable[[], dict[str, Any]]


class DynamoEffects:
    """Rows `intent/v1#…`, `once/v1#…` and, by Powertools, `effect/v1#…`; kept as long as answers are."""

    def __init__(self, client: Any, table: str, *, keep_days: int) -> None:
        self._client, self._table, self._keep_s = client, table, keep_days * DAY_S
        self._config = IdempotencyConfig(
            expires_after_seconds=self._keep_s, hash_function="sha256", use_local_cache=False,
            raise_on_no_idempotency_key=True,
        )  # fmt: skip
        self._layer = FencedLayer(client, table)
        self._guarded = idempotent_function(
            _perform, data_keyword_argument="key", persistence_store=self._layer, config=self._config,
            key_prefix=KEY_PREFIX,
        )  # fmt: skip

    def invocation_started(self, context: Any) -> None:
        """The window of an effect in progress is the rest of this invocation."""
        self._config.register_lambda_context(context)

    def intend(self, name: str, payload: str) -> str:
        standing = self._put(f"{INTENT}#{name}", {"data": {"S": payload}})
        return str(standing["data"]["S"]) if standing else payload

    def repeatable(self, key: str, act: Act) -> dict[str, Any]:
        performed = Performed(act)
        try:
            kept: dict[str, Any] = self._guarded(key=key, performed=performed)
        except IdempotencyAlreadyInProgressError:
            until = self._layer.in_progress_until(row_id(KEY_PREFIX, key))
            raise AnswerPending(until or clock.now()) from None  # its holder is dead: nobody else works on this job
        except IdempotencyPersistenceLayerError as error:
            if performed.raised:
                raise performed.raised from None  # its row could not be freed; it lapses with this invocation
            if performed.done:
                raise EffectNotRecorded(str(error)) from error
            raise Unavailable(f"guarding an effect: {error}") from error
        return kept

    def once(self, key: str, act: Act) -> dict[str, Any]:
        row, holder = f"{ONCE}#{key}", uuid.uuid4().hex
        try:
            standing = self._put(row, {"status": {"S": STARTED}, "holder": {"S": holder}})
        except Unavailable:
            self._withdraw(row, holder)  # the start may stand there, but nothing has been started
            raise
        if standing and standing["holder"]["S"] != holder:
            if standing["status"]["S"] == ENDED:
                kept: dict[str, Any] = json.loads(standing["data"]["S"])
                return kept
            raise Permanent("it was started and its end is not recorded; it may have happened", "OUTCOME_UNKNOWN")
        try:
            result = act()
        except (NotDone, Permanent):  # both say that it did not happen
            self._withdraw(row, holder)
            raise
        except Exception as error:
            raise Permanent(f"it raised {type(error).__name__}; it may have happened", "OUTCOME_UNKNOWN") from error
        self._end(row, holder, result)
        return result

    def _put(self, row: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        """None when the row is new, else what stands there (a repeat of this very put included)."""
        item = {ANSWER_KEY: {"S": row}, "expiration": {"N": str(int(time.time()) + self._keep_s)}, **fields}
        with as_unavailable("recording an effect"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#id)",
                    ExpressionAttributeNames={"#id": ANSWER_KEY},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                standing: dict[str, Any] = error.response.get("Item", {})  # type: ignore[assignment]
                return standing
        return None

    def _end(self, row: str, holder: str, result: dict[str, Any]) -> None:
        """It happened. If that cannot be recorded, this try still knows; a later one must not repeat it."""
        with suppress(Unavailable), as_unavailable("recording the end of an effect"):
            self._client.update_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row}},
                UpdateExpression="SET #status = :ended, #data = :data",
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={"#status": "status", "#data": "data", "#holder": "holder"},
                ExpressionAttributeValues={
                    ":ended": {"S": ENDED},
                    ":data": {"S": json.dumps(result)},
                    ":me": {"S": holder},
                },
            )

    def _withdraw(self, row: str, holder: str) -> None:
        with suppress(Unavailable), as_unavailable("withdrawing an effect that did not happen"):
            self._client.delete_item(
                TableName=self._table,
                Key={ANSWER_KEY: {"S": row}},
                ConditionExpression="attribute_not_exists(#id) OR #holder = :me",
                ExpressionAttributeNames={"#id": ANSWER_KEY, "#holder": "holder"},
                ExpressionAttributeValues={":me": {"S": holder}},
            )


class Performed:
    """One attempt at an effect. `done`: it happened. `raised`: what came instead."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self.done = False
        self.raised: Exception | None = None

    def perform(self) -> dict[str, Any]:
        try:
            result = self._act()
        except Exception as error:
            self.raised = error
            raise
        self.done = True
        return result


def _perform(*, key: str, performed: Performed) -> dict[str, Any]:
    """The guarded function: its result, never empty, becomes the row's data."""
    return performed.perform()
