"""A toy stack whose HTTP API leads into queues, with no function between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.integration.local_toys import Toy

ATTRIBUTES = {
    "signature": {"DataType": "String", "StringValue": "${request.header.stripe-signature}"},
    "received_ms": {"DataType": "Number", "StringValue": "${context.requestTimeEpoch}"},
    "request_id": {"DataType": "String", "StringValue": "${context.requestId}"},
    "source": {"DataType": "String", "StringValue": "stripe"},
}
PARAMETERS = {
    "QueueUrl": {"Ref": "Inbox"},
    "MessageBody": "$request.body",
    "MessageAttributes": json.dumps(ATTRIBUTES),
    "MessageGroupId": "stripe",
}


def toy_at(folder: Path, **changes: Any) -> Toy:
    """A stack whose routes lead into queues; `changes` go into the first one's integration."""
    toy = Toy(folder)
    toy.api({}, stage={"RouteSettings": {"POST /slow": {"ThrottlingRateLimit": 0.01, "ThrottlingBurstLimit": 2}}})
    for queue in ("Inbox", "Other", "Served", "Slow"):
        toy.queue(queue)
    toy.gateway_role("Sender", "Inbox", "Served", "Slow")
    toy.gateway_role("Stranger")
    toy.direct("POST /events/stripe", "Sender", PARAMETERS, **changes)
    plain = {"MessageBody": "$request.body"}
    toy.direct("POST /forbidden", "Stranger", {"QueueUrl": {"Ref": "Inbox"}, **plain})
    toy.direct("POST /elsewhere", "Sender", {"QueueUrl": {"Ref": "Other"}, **plain})
    toy.direct("POST /slow", "Sender", {"QueueUrl": {"Ref": "Slow"}, **plain})
    toy.direct(
        "POST /tenants/{tenant}",
        "Sender",
        {"QueueUrl": {"Ref": "Served"}, "MessageGroupId": "$request.querystring.group", **plain}
        | {"MessageAttributes": '{"tenant": {"DataType": "String", "StringValue": "${request.path.tenant}"}}'},
        ResponseParameters={
            "200": {
                "ResponseParameters": [
                    {"Destination": "overwrite:statuscode", "Source": "202"},
                    {"Destination": "overwrite:header.content-type", "Source": "application/xml"},
                    {"Destination": "append:header.x-inbox", "Source": "yes"},
                ]
            }
        },
    )
    return toy
