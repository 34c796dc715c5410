"""The redrive of dead letters, which moto lacks (MOTO-06), with AWS's rule for where a letter goes back to.

SQS knows the source only of letters that it moved itself. A letter that somebody sent to the dead-letter queue has
none: without a destination the task fails with CouldNotDetermineMessageSource.
"""

from __future__ import annotations

import uuid
from typing import Any, cast

from moto.core.responses import ActionResult
from moto.core.utils import unix_time_millis
from moto.sqs.exceptions import SQSException
from moto.sqs.models import Message, Queue, SQSBackend
from moto.sqs.responses import SQSResponse

from local.aws.patches.patch import Patch
from local.aws.patches.sqs import forget_expired

UNKNOWN_SOURCE = "CouldNotDetermineMessageSource"
_KEPT_TASKS = 10
_HIGHEST_RATE = 500

_stock_receive = SQSResponse.receive_message


def _start(response: SQSResponse) -> ActionResult:
    source = _queue(response.sqs_backend, response._get_param("SourceArn"))
    _check_rate(response._get_param("MaxNumberOfMessagesPerSecond"))
    if not any(queue.dead_letter_queue is source for queue in response.sqs_backend.queues.values()):
        raise SQSException("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
    destination_arn = response._get_param("DestinationArn")
    if destination_arn:
        _queue(response.sqs_backend, destination_arn)
    task = _move(response.sqs_backend, source, destination_arn)
    tasks = source.__dict__.setdefault("move_tasks", [])
    tasks.insert(0, task)
    del tasks[_KEPT_TASKS:]
    return ActionResult({"TaskHandle": task["TaskHandle"]})


def _check_rate(rate: Any) -> None:
    """A rate that AWS would refuse is; otherwise it changes nothing here."""
    if rate is not None and not 1 <= int(rate) <= _HIGHEST_RATE:
        raise SQSException(
            "InvalidParameterValue",
            f"Value {rate} for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: Must be between 1 and 500.",
        )


def _list(response: SQSResponse) -> ActionResult:
    source = _queue(response.sqs_backend, response._get_param("SourceArn"))
    limit = int(response._get_param("MaxResults") or 1)
    tasks = source.__dict__.get("move_tasks", [])[:limit]
    return ActionResult({"Results": [_shown(task) for task in tasks]})


def _shown(task: dict[str, Any]) -> dict[str, Any]:
    """AWS shows the handle of a running task only, and ours are over before they can be looked at."""
    return {name: value for name, value in task.items() if name != "TaskHandle" and value is not None}


def _cancel(response: SQSResponse) -> ActionResult:
    raise SQSException("ResourceNotFoundException", "The specified task does not exist or is not running.")


def _queue(backend: SQSBackend, arn: str | None) -> Queue:
    found = next((queue for queue in backend.queues.values() if queue.queue_arn == arn), None)
    if found is None:
        raise SQSException(
            "ResourceNotFoundException",
            "The resource that you specified for the SourceArn or DestinationArn parameter doesn't exist.",
        )
    return found


def _move(backend: SQSBackend, source: Queue, destination_arn: str | None) -> dict[str, Any]:
    forget_expired(source)
    letters = list(source.messages)
    moved, failure = 0, None
    for letter in letters:
        target_arn = destination_arn or letter.__dict__.get("dead_letter_source")
        if target_arn is None:
            failure = UNKNOWN_SOURCE
            break
        source._messages.remove(letter)
        _queue(backend, target_arn).add_message(_as_new(letter))
        moved += 1
    return {
        "TaskHandle": str(uuid.uuid4()),
        "Status": "FAILED" if failure else "COMPLETED",
        "SourceArn": source.queue_arn,
        "DestinationArn": destination_arn,
        "ApproximateNumberOfMessagesMoved": moved,
        "ApproximateNumberOfMessagesToMove": len(letters),
        "FailureReason": failure,
        "StartedTimestamp": int(unix_time_millis()),
    }


def _as_new(letter: Message) -> Message:
    """A redriven message is a new one: id, age and receive count start over."""
    message = Message(str(uuid.uuid4()), letter.body, letter.system_attributes)
    message.message_attributes = letter.message_attributes
    message.group_id = letter.group_id
    message.deduplication_id = letter.deduplication_id
    message.mark_sent()
    return message


def _receive(response: SQSResponse) -> ActionResult:
    """Stock's answer, plus the attribute that says where a letter came from."""
    result = _stock_receive(response)
    asked = response._get_param("AttributeNames", []) + response._get_param("MessageSystemAttributeNames", [])
    if not {"All", "DeadLetterQueueSourceArn"} & set(asked):
        return result
    queue = response.sqs_backend.get_queue(response._get_queue_name())
    sources = {message.id: message.__dict__.get("dead_letter_source") for message in queue._messages}
    for message in cast("dict[str, Any]", result.result).get("Messages", []):
        if sources.get(message["MessageId"]):
            message.setdefault("Attributes", {})["DeadLetterQueueSourceArn"] = sources[message["MessageId"]]
    return result


PATCHES = (
    Patch(SQSResponse, "start_message_move_task", _start),
    Patch(SQSResponse, "list_message_move_tasks", _list),
    Patch(SQSResponse, "cancel_message_move_task", _cancel),
    Patch(SQSResponse, "receive_message", _receive),
)
