"""SQS messages as Lambda's events show them, and how many of them one event holds."""

from __future__ import annotations

import base64
import json
from typing import Any

from local.events.mapping import EVENT_LIMIT_BYTES

_LAMBDA_ATTRIBUTES = frozenset(
    {
        "ApproximateFirstReceiveTimestamp",
        "ApproximateReceiveCount",
        "AWSTraceHeader",
        "DeadLetterQueueSourceArn",
        "MessageDeduplicationId",
        "MessageGroupId",
        "SenderId",
        "SentTimestamp",
        "SequenceNumber",
    }
)
Message = dict[str, Any]
"""As ReceiveMessage gives it."""


def record(message: Message, source_arn: str) -> dict[str, Any]:
    """One entry of an event's `Records`."""
    system = message.get("Attributes", {})
    built = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": {name: value for name, value in system.items() if name in _LAMBDA_ATTRIBUTES},
        "messageAttributes": {name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": source_arn,
        "awsRegion": source_arn.split(":")[3],
    }
    if "MD5OfMessageAttributes" in message:
        built["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    return built


def _attribute(value: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
    if "StringValue" in value:
        shown["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        shown["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return shown


def size(messages: list[Message]) -> int:
    """The bodies' bytes."""
    return sum(len(message["Body"].encode()) for message in messages)


def within_event_limit(messages: list[Message]) -> list[list[Message]]:
    """Batches that fit into an event, which is JSON: a body of quotes doubles in it."""
    chunks: list[list[Message]] = [[]]
    used = 0
    for message in messages:
        size = len(json.dumps(message["Body"])) + 2048 + sum(map(len, map(str, message.get("Attributes", {}).values())))
        if chunks[-1] and used + size > EVENT_LIMIT_BYTES:
            chunks.append([])
            used = 0
        chunks[-1].append(message)
        used += size
    return chunks
