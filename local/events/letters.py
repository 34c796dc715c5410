"""What Lambda sends to the on-failure destination of a stream mapping, and the two facts it takes from a record."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

Record = dict[str, Any]
"""One stream record as Lambda gets it."""


def letter(
    records: list[Record], condition: str, *, function_arn: str, stream_arn: str, count: int, now_s: float
) -> str:
    """Where the records are in the stream, not what they are: that is all that AWS sends to a queue or topic.

    `condition` says why they were given up, `count` after how many invocations.
    """
    response = {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"}
    built = {
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": function_arn,
            "condition": condition,
            "approximateInvokeCount": count,
        },
        **({"responseContext": response} if count else {}),
        "version": "1.0",
        "timestamp": _iso(now_s),
        "DDBStreamBatchInfo": {
            "shardId": "shardId-00000001",
            "startSequenceNumber": sequence(records[0]),
            "endSequenceNumber": sequence(records[-1]),
            "approximateArrivalOfFirstRecord": _iso(written_at(records[0])),
            "approximateArrivalOfLastRecord": _iso(written_at(records[-1])),
            "batchSize": len(records),
            "streamArn": stream_arn,
        },
    }
    return json.dumps(built)


def sequence(record: Record) -> str:
    """Its place in the stream."""
    return str(record["dynamodb"]["SequenceNumber"])


def written_at(record: Record) -> float:
    """When it was written, in epoch seconds."""
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


def _iso(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
