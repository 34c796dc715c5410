"""The event with which Lambda hands over messages of an SQS queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NoQueueEvent(ValueError):
    """Something other than SQS invoked the function: answering would delete what was not handled."""


def records_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    records = event.get("Records")
    if not isinstance(records, list) or not records or not all(_is_queue_record(record) for record in records):
        raise NoQueueEvent("expected the Records of an SQS queue")
    return records


def _is_queue_record(record: Any) -> bool:
    return isinstance(record, dict) and record.get("eventSource") == "aws:sqs"
