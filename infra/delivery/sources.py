"""What an event source mapping reads from."""

from __future__ import annotations

from typing import Literal

from infra.delivery.template import CannotTell, Resource, Template

MAPPING = "AWS::Lambda::EventSourceMapping"
QUEUE = "AWS::SQS::Queue"
TABLES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
STREAMS = (*TABLES, "AWS::Kinesis::Stream", "AWS::Kinesis::StreamConsumer")

# what only a broker's mapping has: Kafka, MQ, DocumentDB
_OF_BROKERS = (
    "AmazonManagedKafkaEventSourceConfig",
    "DocumentDBEventSourceConfig",
    "Queues",
    "SelfManagedEventSource",
    "SelfManagedKafkaEventSourceConfig",
    "Topics",
)

Source = Literal["queue", "stream", "other"]


def source_of(template: Template, mapping: Resource) -> Source:
    """The kind of source. One outside the template shows by what its mapping must have: streams a place to start."""
    try:
        kind = template.follow(mapping.get("EventSourceArn")).kind
    except CannotTell:
        if any(mapping.get(name) is not None for name in _OF_BROKERS):
            return "other"
        return "queue" if mapping.get("StartingPosition") is None else "stream"
    return "queue" if kind == QUEUE else "stream" if kind in STREAMS else "other"


def queue_of(template: Template, mapping: Resource) -> Resource | None:
    """The queue of a mapping, None if it reads from something else. Raises CannotTell if it is not in the template."""
    return template.follow(mapping.get("EventSourceArn")) if source_of(template, mapping) == "queue" else None
