"""What AWS refuses when it creates an event source mapping, and moto would not (MOTO-22)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

_RANGES = {
    "MaximumBatchingWindowInSeconds": (0, 300),
    "MaximumRecordAgeInSeconds": (60, 604_800),
    "MaximumRetryAttempts": (0, 10_000),
    "ParallelizationFactor": (1, 10),
}
_UNLIMITED = -1  # what the two limits of retries may also be
_READERS = 2
"""Of a shard of a DynamoDB stream: AWS throttles a third."""


def check_stack(stack: Stack) -> None:
    """TemplateError, with the logical id, for the first mapping that AWS would not accept."""
    for mapping in stack.of_type("AWS::Lambda::EventSourceMapping"):
        try:
            _check_mapping(stack, mapping)
        except TemplateError as error:
            raise error.at(mapping.logical_id) from error
    _check_readers(stack)


def _check_readers(stack: Stack) -> None:
    read = Counter[str]()
    for mapping in stack.of_type("AWS::Lambda::EventSourceMapping"):
        source = mapping.properties["EventSourceArn"]
        read[source] += ":dynamodb:" in source
        if read[source] > _READERS:
            text = f"more than {_READERS} mappings read {source}: AWS throttles them"
            raise TemplateError(text).at(mapping.logical_id)


def _check_mapping(stack: Stack, mapping: Resource) -> None:
    properties = mapping.properties
    for name, (least, most) in _RANGES.items():
        value = properties.get(name)
        if value is not None and value != _UNLIMITED and not least <= int(value) <= most:
            raise TemplateError(f"{name} must be between {least} and {most}, not {value}")
    if ":sqs:" in properties["EventSourceArn"]:
        _check_queue_mapping(stack, properties)
    else:
        _check_stream_mapping(properties)


def _check_queue_mapping(stack: Stack, properties: Mapping[str, Any]) -> None:
    queue = stack.by_arn(properties["EventSourceArn"])
    function = _function(stack, properties["FunctionName"])
    visibility, timeout = int(queue.properties.get("VisibilityTimeout", 30)), int(function.properties.get("Timeout", 3))
    if visibility < timeout:
        raise TemplateError(
            f"Queue visibility timeout: {visibility} seconds is less than Function timeout: {timeout} seconds"
        )
    batch, window = int(properties.get("BatchSize", 10)), int(properties.get("MaximumBatchingWindowInSeconds", 0))
    most = 10 if queue.properties.get("FifoQueue") else 10_000
    if not 1 <= batch <= most:
        raise TemplateError(f"BatchSize must be between 1 and {most}, not {batch}")
    if batch > 10 and window < 1:
        raise TemplateError("MaximumBatchingWindowInSeconds must be greater than 0 when BatchSize is greater than 10")
    _check_concurrency(properties, function)


def _check_concurrency(properties: Mapping[str, Any], function: Resource) -> None:
    maximum = properties.get("ScalingConfig", {}).get("MaximumConcurrency")
    if maximum is None:
        return
    if not 2 <= int(maximum) <= 1000:
        raise TemplateError(f"MaximumConcurrency must be between 2 and 1000, not {maximum}")
    reserved = function.properties.get("ReservedConcurrentExecutions")
    if reserved is not None and int(maximum) > int(reserved):
        raise TemplateError(f"MaximumConcurrency {maximum} is more than the function's reserved {reserved}")


def _check_stream_mapping(properties: Mapping[str, Any]) -> None:
    if properties.get("StartingPosition") not in ("TRIM_HORIZON", "LATEST"):
        raise TemplateError("StartingPosition must be TRIM_HORIZON or LATEST for a DynamoDB stream")
    batch = int(properties.get("BatchSize", 100))
    if not 1 <= batch <= 10_000:
        raise TemplateError(f"BatchSize must be between 1 and 10000, not {batch}")
    if "ScalingConfig" in properties:
        raise TemplateError("ScalingConfig is for SQS event sources only")


def _function(stack: Stack, name: str) -> Resource:
    bare = name.rpartition(":function:")[2].partition(":")[0]
    for function in stack.of_type("AWS::Lambda::Function"):
        if function.ref == bare:
            return function
    raise TemplateError(f"no function {name}")
