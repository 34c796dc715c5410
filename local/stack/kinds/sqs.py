"""SQS queues and their policies."""

from __future__ import annotations

import json
from typing import Any

from local.stack.kinds.kind import Kind, Made, Properties, Workbench

_ATTRIBUTES = frozenset(
    {
        "ContentBasedDeduplication",
        "DeduplicationScope",
        "DelaySeconds",
        "FifoQueue",
        "FifoThroughputLimit",
        "KmsDataKeyReusePeriodSeconds",
        "KmsMasterKeyId",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "ReceiveMessageWaitTimeSeconds",
        "RedriveAllowPolicy",
        "RedrivePolicy",
        "SqsManagedSseEnabled",
        "VisibilityTimeout",
    }
)


def text(value: Any) -> str:
    """An attribute as SQS and SNS take them: everything is text, structures are JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def _queue(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    ending = ".fifo" if properties.get("FifoQueue") else ""
    name = properties.get("QueueName") or bench.name(logical_id, 80 - len(ending)) + ending
    attributes = {key: text(value) for key, value in properties.items() if key in _ATTRIBUTES}
    tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
    url = bench.client("sqs").create_queue(QueueName=name, Attributes=attributes, tags=tags)["QueueUrl"]
    return Made(url, {"Arn": bench.arn("sqs", name), "QueueName": name, "QueueUrl": url})


def _policy(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    for url in properties["Queues"]:
        bench.client("sqs").set_queue_attributes(
            QueueUrl=url, Attributes={"Policy": text(properties["PolicyDocument"])}
        )
    return Made(bench.name(logical_id, 128))


KINDS = (
    Kind("AWS::SQS::Queue", _queue, _ATTRIBUTES | {"QueueName", "Tags"}),
    Kind("AWS::SQS::QueuePolicy", _policy, frozenset({"PolicyDocument", "Queues"})),
)
