"""SQS event source mappings: receive, invoke, delete what succeeded; what failed comes back by its visibility."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping as Properties
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.compute.environments import Functions, new_trace_id
from local.compute.invocation import Invocation
from local.compute.pool import Slot
from local.events import lineage
from local.events.bells import Bell
from local.events.filters import Filters
from local.events.mapping import EVENT_LIMIT_BYTES, Mapping
from local.events.messages import Message, record, size, within_event_limit
from local.events.partial import failed_items

_log = logging.getLogger(__name__)
_IDLE_S = 0.25
_RECEIVE_LIMIT = 10


class QueueMapping(Mapping):
    """Serves one function from one queue, with as many batches at once as this source and the function may run."""

    kind = "sqs"
    asked_first = ("sqs:GetQueueAttributes",)

    def __init__(
        self,
        logical_id: str,
        properties: Properties[str, Any],
        functions: Functions,
        bell: Bell,
        *,
        sqs: Any,
        queue_url: str,
        lineages: lineage.Lineages,
    ) -> None:
        super().__init__(logical_id, properties, functions, bell)
        self._sqs = sqs
        self._url = queue_url
        self._lineages = lineages
        self._batch_size = int(properties.get("BatchSize", 10))
        self._window_s = float(properties.get("MaximumBatchingWindowInSeconds", 0))
        maximum = properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        self._maximum = None if maximum is None else int(maximum)
        self._filters = Filters(properties.get("FilterCriteria"))
        self._invoking: set[threading.Thread] = set()

    def stop(self) -> None:
        """Also waits for the batches under way: their processes are gone by now, or will be."""
        super().stop()
        for thread in list(self._invoking):
            thread.join(timeout=60)

    def _is_busy(self) -> bool:
        return bool(self._invoking)

    def _look(self) -> float:
        share = self._functions.share(self.role, self._maximum)
        if share is not None and len(self._invoking) >= share:
            return 0.05
        slot = self._functions.acquire(self.role, 0.5)  # room first: what is received must be worked on at once
        if slot is None:
            return 0.05
        try:
            messages = self._assemble()
        except (ClientError, BotoCoreError) as error:
            if not self._stopping.is_set():
                _log.warning("%s: cannot receive: %s", self.logical_id, error)
            messages = []
        if not messages:
            slot.release()
            return _IDLE_S
        thread = threading.Thread(target=self._serve, args=(slot, messages), name=f"batch-{self.role}", daemon=True)
        self._invoking.add(thread)
        thread.start()
        return 0.0

    # --- receiving -------------------------------------------------------------------------------------

    def _assemble(self) -> list[Message]:
        """Up to a batch of messages: what is there now, or what comes within the window after the first."""
        batch = self._receive(self._batch_size)
        close_at = self._bell.now() + self._window_s
        while batch and len(batch) < self._batch_size and size(batch) < EVENT_LIMIT_BYTES:
            more = self._receive(self._batch_size - len(batch))
            if not more:
                if self._bell.now() >= close_at or self._must_hurry():
                    break
                self._bell.sleep_until(close_at, self._stopping, longest_s=_IDLE_S)
            batch += more
        return batch

    def _must_hurry(self) -> bool:
        return self._stopping.is_set() or not self.enabled or self._functions.paused(self.role)

    def _receive(self, count: int) -> list[Message]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(count, _RECEIVE_LIMIT),
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        self.exercise("sqs:ReceiveMessage", self.source_arn)
        received = answer.get("Messages", [])
        wanted = [message for message in received if self._filters.pass_(self._filterable(message))]
        self._delete([message for message in received if message not in wanted])
        return wanted

    def _filterable(self, message: Message) -> dict[str, Any]:
        """A filter on `body` looks into JSON, or at plain text."""
        shown = record(message, self.source_arn)
        try:
            return {**shown, "body": json.loads(message["Body"])}
        except (ValueError, RecursionError):
            return shown

    # --- serving -----------------------------------------------------------------------------------------

    def _serve(self, slot: Slot, messages: list[Message]) -> None:
        try:
            for number, chunk in enumerate(within_event_limit(messages)):
                self._serve_batch(slot if number == 0 else self._wait_for_slot(), chunk)
        except (ClientError, BotoCoreError) as error:
            if not self._stopping.is_set():
                _log.warning("%s: cannot delete: %s", self.logical_id, error)
        finally:
            self._invoking.discard(threading.current_thread())
            self._bell.ring()

    def _wait_for_slot(self) -> Slot:
        while True:
            slot = self._functions.acquire(self.role, 5.0)
            if slot is not None:
                return slot
            if self._stopping.is_set():
                raise SystemExit  # ends this thread only

    def _serve_batch(self, slot: Slot, messages: list[Message]) -> None:
        history = self._lineages.of([message["MessageId"] for message in messages])
        arn = self._functions.definition(self.role).arn
        if self._lineages.cuts(history, arn):
            slot.release()
            self._cut_loop(messages)
            return
        event = {"Records": [record(message, self.source_arn) for message in messages]}
        with self._functions.settling():  # a skip of the clock in between would have it delivered once more
            outcome = self._functions.use(slot, event, new_trace_id(lineage.extended(history, arn)))
            failed = self._failed(outcome, [message["MessageId"] for message in messages])
            self._delete([message for message in messages if message["MessageId"] not in failed])

    def _failed(self, outcome: Invocation, identifiers: list[str]) -> set[str]:
        if not outcome.ok:
            return set(identifiers)
        if not self.partial:
            return set()
        failed = failed_items(outcome.result, identifiers)
        if failed is None:
            _log.warning("%s: malformed partial batch response: %.200r", self.logical_id, outcome.result)
            return set(identifiers)
        return failed

    def _cut_loop(self, messages: list[Message]) -> None:
        _log.warning("%s: %s calls itself through its queue: stopped after 16 rounds", self.logical_id, self.role)
        policy = self._attributes().get("RedrivePolicy")
        if policy is not None:
            name = json.loads(policy)["deadLetterTargetArn"].rsplit(":", 1)[-1]
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
            for message in messages:
                self._sqs.send_message(QueueUrl=url, MessageBody=message["Body"])
        self._delete(messages)

    def _attributes(self) -> dict[str, str]:
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["All"])
        return dict(answer.get("Attributes", {}))

    def _delete(self, messages: list[Message]) -> None:
        for at in range(0, len(messages), 10):
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages[at : at + 10])
            ]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)
            self.exercise("sqs:DeleteMessage", self.source_arn)
