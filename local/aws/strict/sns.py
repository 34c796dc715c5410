"""What SNS demands of a message (MOTO-24)."""

from __future__ import annotations

from typing import Any

from local.aws.calls import Call, Refusal
from local.aws.strict.sqs import message_bytes

MAXIMUM_BYTES = 262_144
MAXIMUM_ENTRIES = 10
_LONGEST_SUBJECT = 100


def _messages(call: Call) -> list[dict[str, Any]]:
    if call.operation == "PublishBatch":
        return list(call.parameters.get("PublishBatchRequestEntries") or [])
    return [dict(call.parameters)]


def _has_message(call: Call) -> Refusal | None:
    if all(message.get("Message") for message in _messages(call)):
        return None
    return _invalid("Empty message")


def _has_sound_attributes(call: Call) -> Refusal | None:
    for message in _messages(call):
        for name, attribute in (message.get("MessageAttributes") or {}).items():
            if not attribute.get("StringValue") and not attribute.get("BinaryValue"):
                return Refusal(
                    "ParameterValueInvalid",
                    f"The message attribute '{name}' must contain non-empty message attribute value for message "
                    f"attribute type '{attribute.get('DataType')}'.",
                )
    return None


def _has_sound_subject(call: Call) -> Refusal | None:
    for message in _messages(call):
        subject = message.get("Subject")
        if subject is None:
            continue
        if not subject or len(subject) > _LONGEST_SUBJECT or not subject.isprintable() or not subject.isascii():
            return _invalid("Subject")
    return None


def _fits(call: Call) -> Refusal | None:
    size = sum(
        message_bytes({"MessageBody": message.get("Message"), "MessageAttributes": message.get("MessageAttributes")})
        for message in _messages(call)
    )
    if size <= MAXIMUM_BYTES:
        return None
    if call.operation == "PublishBatch":
        return Refusal(
            "BatchRequestTooLong", "The length of all the batch messages put together is more than the limit."
        )
    return _invalid("Message too long")


def _batch_is_short(call: Call) -> Refusal | None:
    count = len(_messages(call))
    if count == 0:
        return Refusal("EmptyBatchRequest", "The batch request doesn't contain any entries.")
    if count > MAXIMUM_ENTRIES:
        return Refusal("TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible.")
    return None


def _invalid(what: str) -> Refusal:
    return Refusal("InvalidParameter", f"Invalid parameter: {what}")


_MESSAGE = (_has_message, _has_sound_attributes, _has_sound_subject, _fits)

RULES = {
    ("sns", "Publish"): _MESSAGE,
    ("sns", "PublishBatch"): (_batch_is_short, *_MESSAGE),
}
