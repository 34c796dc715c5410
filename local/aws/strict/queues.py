"""What SQS demands of a queue: attributes within their bounds."""

from __future__ import annotations

from local.aws.calls import Call, Refusal
from local.aws.strict.sqs import MAXIMUM_BYTES, MAXIMUM_DELAY_S

_BOUNDS = {
    "DelaySeconds": (0, MAXIMUM_DELAY_S),
    "MaximumMessageSize": (1024, MAXIMUM_BYTES),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
}


def _queue_is_possible(call: Call) -> Refusal | None:
    for name, value in (call.parameters.get("Attributes") or {}).items():
        low, high = _BOUNDS.get(name, (None, None))
        if low is not None and high is not None and not (str(value).isdecimal() and low <= int(value) <= high):
            return Refusal("InvalidAttributeValue", f"Invalid value for the parameter {name}.")
    return None


RULES = {
    ("sqs", "CreateQueue"): (_queue_is_possible,),
    ("sqs", "SetQueueAttributes"): (_queue_is_possible,),
}
