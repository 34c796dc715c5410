"""The DeadLetters port: looks through a queue by receiving, and gives back what it only looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.adapters.clients import as_unavailable, client
from lambdas.adapters.environment import Environment
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core.letters.letter import DELIVERIES, INBOX, URGENT, WORK
from lambdas.core.ports import Found

BATCH = 10


class SqsDeadLetters:
    """One dead-letter queue."""

    def __init__(self, client: Any, url: str) -> None:
        self._client, self._url = client, url
        self._queue = SqsQueue(client, url)

    def receive(self, *, hide_s: int, wait_s: int = 0) -> list[Found]:
        with as_unavailable("looking through dead letters"):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH,
                VisibilityTimeout=hide_s,
                WaitTimeSeconds=wait_s,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return [_found(message) for message in answer.get("Messages", [])]

    def show(self, receipts: Sequence[str]) -> None:
        for start in range(0, len(receipts), BATCH):
            entries = [
                {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                for n, receipt in enumerate(receipts[start : start + BATCH])
            ]
            try:
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError):
                return  # they come back by themselves, when their time is over

    def remove(self, receipts: Sequence[str]) -> set[int]:
        left: set[int] = set()
        for start in range(0, len(receipts), BATCH):
            page = receipts[start : start + BATCH]
            entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(page)]
            try:
                answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError):
                left |= set(range(start, start + len(page)))
            else:
                left |= {start + int(one["Id"]) for one in answer.get("Failed", [])}
        return left

    def total(self) -> int:
        return self._queue.depth()


def _found(message: Mapping[str, Any]) -> Found:
    system = message.get("Attributes", {})
    attributes = message.get("MessageAttributes", {})
    return Found(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        attributes={name: one["StringValue"] for name, one in attributes.items() if "StringValue" in one},
        sent_at=datetime.fromtimestamp(int(system.get("SentTimestamp", 0)) / 1000, UTC),
        moved="DeadLetterQueueSourceArn" in system,
        group=system.get("MessageGroupId", ""),
    )


def dead_letters_of(environment: Environment) -> dict[str, SqsDeadLetters]:
    """The queues of dead letters by the names that operators use."""
    urls = {
        WORK: names.WORK_DLQ_URL,
        URGENT: names.URGENT_DLQ_URL,
        INBOX: names.INBOX_DLQ_URL,
        DELIVERIES: names.DELIVERIES_DLQ_URL,
    }
    return {name: SqsDeadLetters(client("sqs"), environment.text(url)) for name, url in urls.items()}


def queues_of(environment: Environment) -> dict[str, SqsQueue]:
    """The queues that their letters go back to, by the same names."""
    urls = {
        WORK: names.WORK_QUEUE_URL,
        URGENT: names.URGENT_QUEUE_URL,
        INBOX: names.INBOX_QUEUE_URL,
        DELIVERIES: names.DELIVERIES_QUEUE_URL,
    }
    return {name: SqsQueue(client("sqs"), environment.text(url)) for name, url in urls.items()}
