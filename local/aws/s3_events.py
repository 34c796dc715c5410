"""What S3 tells a queue about an object, in its own words.

Shape: "Event message structure" in the S3 user guide, version 2.1. The guide's newer editions count up to 2.6 and only
add fields: a reader must take any 2.x. Keys are encoded as a form encodes them, but slashes stay (minio/minio#11665).
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote_plus

_ORDER = itertools.count(1)
_OWNER = {"principalId": "A3LOCALOWNER"}


@dataclass(frozen=True)
class Created:
    """An object that came to be."""

    event: str
    """As in a configuration: s3:ObjectCreated:Put, …"""
    region: str
    bucket: str
    key: str
    size: int
    etag: str
    """Without quotes."""
    version_id: str | None
    """None in a bucket without versions."""


def message(created: Created, configuration_id: str) -> str:
    """The message that a configuration's queue gets."""
    described: dict[str, object] = {
        "key": encoded_key(created.key),
        "size": created.size,
        "eTag": created.etag,
        **({"versionId": created.version_id} if created.version_id else {}),
        "sequencer": _sequencer(),
    }
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": created.region,
        "eventTime": _now(),
        "eventName": created.event.removeprefix("s3:"),
        "userIdentity": {"principalId": "AWS:AIDALOCAL"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {"x-amz-request-id": uuid.uuid4().hex[:16].upper(), "x-amz-id-2": uuid.uuid4().hex},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": configuration_id,
            "bucket": {
                "name": created.bucket,
                "ownerIdentity": _OWNER,
                "arn": f"arn:aws:s3:::{created.bucket}",
            },
            "object": described,
        },
    }
    return json.dumps({"Records": [record]})


def test_message(bucket: str) -> str:
    """What a queue gets once when it is configured; it holds no `Records`."""
    return json.dumps(
        {
            "Service": "Amazon S3",
            "Event": "s3:TestEvent",
            "Time": _now(),
            "Bucket": bucket,
            "RequestId": uuid.uuid4().hex[:16].upper(),
            "HostId": uuid.uuid4().hex,
        }
    )


def encoded_key(key: str) -> str:
    """`red flower.jpg` is `red+flower.jpg`; what a form leaves alone in Java stays, and so does the slash."""
    return quote_plus(key, safe="/*", errors="surrogatepass").replace("~", "%7E")


def _sequencer() -> str:
    """Hexadecimal digits that grow with each event of a key."""
    return f"00{int(time.time()):08X}{next(_ORDER):08X}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
