"""Sends many messages in the batches that a service takes, repeats what it refused, and tells what is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.core.ports import Message

BATCH_MAX = 10
TRIES = 3
FIRST_PAUSE_S = 0.2

Batch = Mapping[int, Message]


def deliver(messages: Sequence[Message], *, batch_bytes: int, send: Callable[[Batch], Mapping[str, Any]]) -> set[int]:
    """Positions of those that were not taken. `send` makes one call and answers with the service's own `Failed`."""
    refused: set[int] = set()
    for group in batches(messages, batch_bytes):
        refused |= _deliver({position: messages[position] for position in group}, send)
    return refused


def _deliver(left: dict[int, Message], send: Callable[[Batch], Mapping[str, Any]]) -> set[int]:
    for attempt in range(TRIES):
        if attempt:
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            answer = send(left)
        except (ClientError, BotoCoreError):
            return set(left)  # the client has made its own attempts
        failed = {int(entry["Id"]) for entry in answer.get("Failed", [])}
        left = {position: message for position, message in left.items() if position in failed}
        if not left:
            break
    return set(left)


def batches(messages: Sequence[Message], batch_bytes: int) -> Iterator[list[int]]:
    """Positions, grouped so that no group has more than ten messages or more bytes than a batch may have."""
    group: list[int] = []
    size = 0
    for position, message in enumerate(messages):
        bytes_ = size_of(message)
        if group and (len(group) == BATCH_MAX or size + bytes_ > batch_bytes):
            yield group
            group, size = [], 0
        group.append(position)
        size += bytes_
    if group:
        yield group


def size_of(message: Message) -> int:
    """Bytes that count against a limit."""
    return message.size


def string_attributes(message: Message) -> dict[str, dict[str, str]]:
    """As SQS and SNS want them; both refuse an empty value."""
    return {name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items() if value}
