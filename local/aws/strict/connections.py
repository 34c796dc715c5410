"""What API Gateway demands of a post to a connection."""

from __future__ import annotations

from local.aws.calls import Call, Refusal
from local.aws.connections_api import PAYLOAD_LIMIT_BYTES, SERVICE


def _fits(call: Call) -> Refusal | None:
    if len(call.body) <= PAYLOAD_LIMIT_BYTES:
        return None
    return Refusal("PayloadTooLargeException", "The data has exceeded the maximum size allowed.", 413)


RULES = {(SERVICE, "PostToConnection"): (_fits,)}
