"""What SQS demands of messages: characters, bytes, attributes, batches (MOTO-03 to MOTO-05)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

from moto.sqs.models import sqs_backends

from local.aws.calls import Call, Refusal
from local.aws.strict.attributes import attribute_problem
from local.stack.place import ACCOUNT

MAXIMUM_BYTES = 1_048_576
MAXIMUM_ATTRIBUTES = 10
MAXIMUM_ENTRIES = 10
MAXIMUM_DELAY_S = 900

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
GROUP_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")

Message = dict[str, Any]


def message_bytes(message: Message) -> int:
    """Bytes that SQS counts: the body, and the names, types and values of the attributes."""
    size = len(_bytes(message.get("MessageBody") or ""))
    for name, attribute in (message.get("MessageAttributes") or {}).items():
        size += len(_bytes(name)) + len(_bytes(attribute.get("DataType") or ""))
        size += len(_bytes(attribute.get("StringValue") or "")) + _binary_length(attribute.get("BinaryValue"))
    return size


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _binary_length(value: Any) -> int:
    if not value:
        return 0
    return len(value) if isinstance(value, bytes) else len(base64.b64decode(value))


def _messages(call: Call) -> Iterator[Message]:
    if call.operation == "SendMessageBatch":
        yield from _entries(call)
    else:
        yield call.parameters


def _entries(call: Call) -> list[Message]:
    return list(call.parameters.get("Entries") or [])


def _each_message(rule: Callable[[Call, Message], Refusal | None]) -> Callable[[Call], Refusal | None]:
    """A batch with one bad message is refused as a whole; AWS sends the others and reports the bad one."""

    def check(call: Call) -> Refusal | None:
        return next((refusal for message in _messages(call) if (refusal := rule(call, message))), None)

    return check


def _has_body(call: Call, message: Message) -> Refusal | None:
    if message.get("MessageBody"):
        return None
    return Refusal("MissingParameter", "The request must contain the parameter MessageBody.")


def _has_allowed_characters(call: Call, message: Message) -> Refusal | None:
    texts = [message.get("MessageBody") or ""]
    texts += [one.get("StringValue") or "" for one in (message.get("MessageAttributes") or {}).values()]
    found = next((match for text in texts if (match := _FORBIDDEN.search(text))), None)
    if found is None:
        return None
    return Refusal(
        "InvalidMessageContents",
        f"Invalid binary character '#x{ord(found.group()):X}' was found in the message body, the set of allowed "
        "characters is #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
    )


def _has_few_attributes(call: Call, message: Message) -> Refusal | None:
    count = len(message.get("MessageAttributes") or {})
    if count <= MAXIMUM_ATTRIBUTES:
        return None
    return _invalid(f"Number of message attributes [{count}] exceeds the allowed maximum [{MAXIMUM_ATTRIBUTES}].")


def _has_sound_attributes(call: Call, message: Message) -> Refusal | None:
    for name, attribute in (message.get("MessageAttributes") or {}).items():
        problem = attribute_problem(name, attribute)
        if problem:
            return _invalid(problem)
    return None


def _has_sound_delay(call: Call, message: Message) -> Refusal | None:
    delay = message.get("DelaySeconds")
    if not isinstance(delay, int) or 0 <= delay <= MAXIMUM_DELAY_S:
        return None
    return _invalid(
        f"Value {delay} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= "
        f"{MAXIMUM_DELAY_S}."
    )


def _fits_kind_of_queue(call: Call, message: Message) -> Refusal | None:
    deduplication = message.get("MessageDeduplicationId")
    if deduplication is None or _queue_name(call).endswith(".fifo"):
        return None
    return _invalid(
        f"Value {deduplication} for parameter MessageDeduplicationId is invalid. Reason: The request include "
        "parameter that is not valid for this queue type."
    )


def _fits_queue(call: Call, message: Message) -> Refusal | None:
    limit = _queue_limit(call)
    if message_bytes(message) <= limit:
        return None
    return _invalid(f"One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes.")


def _queue_limit(call: Call) -> int:
    queue: Any = sqs_backends[ACCOUNT][call.region].queues.get(_queue_name(call))
    return int(queue.maximum_message_size) if queue else MAXIMUM_BYTES


def _queue_name(call: Call) -> str:
    return str(call.parameters.get("QueueUrl") or call.path).rsplit("/", 1)[-1]


def _has_sound_group(call: Call, message: Message) -> Refusal | None:
    group = message.get("MessageGroupId")
    if group is None or GROUP_ID.fullmatch(group):
        return None
    return _invalid("MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")


def _batch_fits(call: Call) -> Refusal | None:
    size = sum(map(message_bytes, _entries(call)))
    if size <= MAXIMUM_BYTES:
        return None
    return Refusal(
        "AWS.SimpleQueueService.BatchRequestTooLong",
        f"Batch requests cannot be longer than {MAXIMUM_BYTES} bytes. You have sent {size} bytes.",
    )


def _batch_has_sound_ids(call: Call) -> Refusal | None:
    ids = [str(entry.get("Id") or "") for entry in _entries(call)]
    if not all(map(ENTRY_ID.fullmatch, ids)):
        return Refusal(
            "AWS.SimpleQueueService.InvalidBatchEntryId",
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most "
            "80 letters long.",
        )
    repeated = next((one for one in ids if ids.count(one) > 1), None)
    if repeated is None:
        return None
    return Refusal("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", f"Id {repeated} repeated.")


def _batch_is_short(call: Call) -> Refusal | None:
    count = len(_entries(call))
    if count == 0:
        return Refusal(
            "AWS.SimpleQueueService.EmptyBatchRequest",
            f"There should be at least one {call.operation}RequestEntry in the request.",
        )
    if count <= MAXIMUM_ENTRIES:
        return None
    return Refusal(
        "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
        f"Maximum number of entries per request are {MAXIMUM_ENTRIES}. You have sent {count}.",
    )


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterValue", message)


_MESSAGE = tuple(
    _each_message(rule)
    for rule in (
        _has_body,
        _has_few_attributes,
        _has_sound_attributes,
        _has_allowed_characters,
        _has_sound_group,
        _has_sound_delay,
        _fits_kind_of_queue,
        _fits_queue,
    )
)
_BATCH = (_batch_is_short, _batch_has_sound_ids)

RULES = {
    ("sqs", "SendMessage"): _MESSAGE,
    ("sqs", "SendMessageBatch"): (*_BATCH, _batch_fits, *_MESSAGE),
    ("sqs", "DeleteMessageBatch"): _BATCH,
    ("sqs", "ChangeMessageVisibilityBatch"): _BATCH,
}
