"""The Answers port: Powertools idempotency on fenced rows; waiting for a call under way; large answers in S3."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
)

from lambdas.adapters.clients import as_unavailable
from lambdas.adapters.fenced_layer import COMPLETED, FencedLayer, row_id
from lambdas.adapters.s3 import S3Objects
from lambdas.core import ids
from lambdas.core.policy import DAY_S
from lambdas.core.ports import AnswerNotStored, AnswerPending, Kept, Missing, Unavailable

KEY_PREFIX = "model/v1"  # constant: the tenant is inside the hashed key, and a renamed function must not pay again
INLINE_BYTES = 8_192  # above it a PUT to S3 is cheaper than the write units of the row
FIRST_POLL_S, LAST_POLL_S = 0.2, 2.0


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
            self._layer.delete(row_id, by)

    def _kept(self, key: str, tenant: str, envelope: Mapping[str, Any], made: Produced) -> Kept:
        if "answer" in envelope:
            return Kept(envelope["answer"], envelope["by"], reused=not made.done)
        if made.answer is not None:
            return Kept(made.answer, envelope["by"], reused=not made.done)
        try:
            answer = json.loads(self._objects.get(ids.answer_key(tenant, key)))
        except Missing:
            with as_unavailable("freeing the row of an answer that is gone"):
                self._layer.delete(self._row_id(key), envelope["by"])
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
