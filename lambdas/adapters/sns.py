"""Facts to the `job-events` topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lambdas.adapters.batching import Batch, deliver, string_attributes
from lambdas.adapters.clients import as_unavailable
from lambdas.core.ports import Message

BATCH_BYTES = 250_000  # SNS takes 256 KiB a message and a batch, attributes included


class SnsTopic:
    """The publishing part of Outbox."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client, self._arn = client, arn

    def publish(self, messages: Sequence[Message]) -> set[int]:
        """Positions of those that SNS did not take, after repeating what it refused."""
        return deliver(messages, batch_bytes=BATCH_BYTES, send=self._publish)

    def listeners(self) -> int:
        """How many subscriptions it has. Raises Unavailable."""
        with as_unavailable("asking for the subscriptions of job events"):
            answer = self._client.get_topic_attributes(TopicArn=self._arn)
        return int(answer["Attributes"].get("SubscriptionsConfirmed", 0))

    def _publish(self, batch: Batch) -> Mapping[str, Any]:
        entries = [
            {
                "Id": str(position),
                "Message": message.body,
                "MessageAttributes": string_attributes(message),
                "MessageGroupId": message.group,  # a standard topic hands it on to queues, which are fair by it
            }
            for position, message in batch.items()
        ]
        return self._client.publish_batch(  # type: ignore[no-any-return]
            TopicArn=self._arn, PublishBatchRequestEntries=entries
        )
