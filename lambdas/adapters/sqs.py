"""Messages to an SQS queue; and how full a queue is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lambdas.adapters.batching import Batch, deliver, string_attributes
from lambdas.adapters.clients import as_unavailable
from lambdas.core.ports import Message

BATCH_BYTES = 1_000_000  # SQS takes 1 MiB a message and a batch, attributes included
HIDE_MAX_S = 42_000  # SQS allows twelve hours, counted from the receive

_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class SqsQueue:
    """One queue: a sending part of Outbox, and the WorkQueue port."""

    def __init__(self, client: Any, url: str) -> None:
        self._client, self._url = client, url

    def send(self, messages: Sequence[Message]) -> set[int]:
        """Positions of those that SQS did not take, after repeating what it refused."""
        return deliver(messages, batch_bytes=BATCH_BYTES, send=self._send)

    def _send(self, batch: Batch) -> Mapping[str, Any]:
        entries = [_entry(position, message) for position, message in batch.items()]
        return self._client.send_message_batch(QueueUrl=self._url, Entries=entries)  # type: ignore[no-any-return]

    def depth(self) -> int:
        with as_unavailable("asking for the depth of the work queue"):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=list(_COUNTS))
        return sum(int(answer["Attributes"].get(name, 0)) for name in _COUNTS)

    def hide(self, receipt_handle: str, seconds: int) -> None:
        """Keep a received message back for so long, nearly twelve hours at most."""
        with as_unavailable("hiding an early message"):
            self._client.change_message_visibility(
                QueueUrl=self._url,
                ReceiptHandle=receipt_handle,
                VisibilityTimeout=max(0, min(seconds, HIDE_MAX_S)),
            )


def _entry(position: int, message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "Id": str(position),
        "MessageBody": message.body,
        "MessageGroupId": message.group,  # on a standard queue: fair queues, one tenant does not starve another
        "MessageAttributes": string_attributes(message),
    }
    return entry | ({"DelaySeconds": message.delay_s} if message.delay_s else {})
