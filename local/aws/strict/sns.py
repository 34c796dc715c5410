"""What SNS demands of a message (MOTO-24)."""

from __future__ import annotations

import json
from typing import Any

from local.aws.calls import Call, Refusal
from local.aws.strict.attributes import ATTRIBUTE_NAME
from local.aws.strict.sqs import ENTRY_ID, GROUP_ID, message_bytes

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
            if not ATTRIBUTE_NAME.fullmatch(name):
                return Refusal("ParameterValueInvalid", f"The message attribute name '{name}' is invalid.")
            if not attribute.get("DataType"):
                return Refusal(
                    "ValidationError",
                    f"1 validation error detected: Value null at 'messageAttributes.{name}.member.dataType' failed to "
                    "satisfy constraint: Member must not be null",
                )
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


def _has_default(call: Call) -> Refusal | None:
    """A message for each protocol names one for all others."""
    for message in _messages(call):
        if message.get("MessageStructure") != "json":
            continue
        try:
            protocols = json.loads(message["Message"])
        except ValueError:
            return _invalid("Message Structure - JSON message body failed to parse")
        if not isinstance(protocols, dict) or "default" not in protocols:
            return _invalid("Message Structure - No default entry in JSON message body")
    return None


def _has_sound_group(call: Call) -> Refusal | None:
    groups = [message["MessageGroupId"] for message in _messages(call) if message.get("MessageGroupId") is not None]
    if all(map(GROUP_ID.fullmatch, groups)):
        return None
    return _invalid("MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")


def _batch_has_sound_ids(call: Call) -> Refusal | None:
    if all(ENTRY_ID.fullmatch(str(message.get("Id") or "")) for message in _messages(call)):
        return None
    return Refusal(
        "InvalidBatchEntryId", "The Id of a batch entry in a batch request doesn't abide by the specification."
    )


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


_MESSAGE = (_has_message, _has_sound_attributes, _has_sound_subject, _has_default, _has_sound_group, _fits)

RULES = {
    ("sns", "Publish"): _MESSAGE,
    ("sns", "PublishBatch"): (_batch_is_short, _batch_has_sound_ids, *_MESSAGE),
}
