"""The event with which Lambda hands over messages of an SQS queue, and how those of a batch are handled together."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lambdas.core.batch import Delivery


class NoQueueEvent(ValueError):
    """Something other than SQS invoked the function: answering would delete what was not handled."""


def records_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    records = event.get("Records")
    if not isinstance(records, list) or not records or not all(_is_queue_record(record) for record in records):
        raise NoQueueEvent("expected the Records of an SQS queue")
    return records


def delivery_in(record: Mapping[str, Any], context: Any) -> Delivery:
    """One message, and the invocation that it came to."""
    return Delivery(
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        receives=int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)),
        request_id=context.aws_request_id,
    )


def at_once(run: Callable[[Delivery], bool], deliveries: Sequence[Delivery]) -> list[str]:
    """All of them in threads, each in its own context; every thread has ended when this returns. The ids of those that
    SQS shall keep: for which `run` was False."""
    if not deliveries:
        return []
    with ThreadPoolExecutor(max_workers=len(deliveries)) as threads:
        running = [threads.submit(contextvars.copy_context().run, run, delivery) for delivery in deliveries]
    return [delivery.message_id for delivery, one in zip(deliveries, running, strict=True) if not one.result()]


def _is_queue_record(record: Any) -> bool:
    return isinstance(record, dict) and record.get("eventSource") == "aws:sqs"
