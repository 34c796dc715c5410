"""What S3 demands of an object's key, metadata and version, and of a presigned URL."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from urllib.parse import unquote

from moto.s3.models import FakeDeleteMarker, s3_backends

from local.aws.calls import Call, Refusal
from local.aws.strict import post_policy
from local.stack.place import ACCOUNT

_LONGEST_KEY = 1024
_MOST_METADATA = 2048
_LONGEST_S = 7 * 24 * 3600


def object_key(call: Call) -> str:
    """The key in a path-style URL, or in a form."""
    if call.operation == "PostObject":
        return call.form.key if call.form else ""
    return unquote(call.path).lstrip("/").partition("/")[2]


def _has_short_key(call: Call) -> Refusal | None:
    if len(object_key(call).encode("utf-8", "surrogatepass")) <= _LONGEST_KEY:
        return None
    return Refusal("KeyTooLongError", "Your key is too long")


def _has_little_metadata(call: Call) -> Refusal | None:
    prefix = "x-amz-meta-"
    given = call.form.fields if call.form else call.headers
    size = sum(
        len(name) - len(prefix) + len(value.encode()) for name, value in given.items() if name.startswith(prefix)
    )
    if size <= _MOST_METADATA:
        return None
    return Refusal("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")


def _is_not_over(call: Call) -> Refusal | None:
    """A presigned URL, if it is one, is of version 4 and may still be used."""
    query = call.query_parameters
    if "AWSAccessKeyId" in query:
        return Refusal(
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
        )
    if "X-Amz-Expires" not in query:
        return None
    try:
        signed_at = datetime.strptime(query.get("X-Amz-Date", ""), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        lasts_s = int(query["X-Amz-Expires"])
    except ValueError as error:
        return Refusal("AuthorizationQueryParametersError", str(error))
    if not 0 <= lasts_s <= _LONGEST_S:
        return Refusal(
            "AuthorizationQueryParametersError", "X-Amz-Expires must be less than a week (in seconds) that is 604800"
        )
    if time.time() < signed_at.timestamp() + lasts_s:
        return None
    return Refusal("AccessDenied", "Request has expired", 403)


def _is_no_marker(call: Call) -> Refusal | None:
    """A delete marker cannot be read, not even by its version."""
    version_id = call.query_parameters.get("versionId")
    bucket = s3_backends[ACCOUNT]["aws"].buckets.get(unquote(call.path).lstrip("/").partition("/")[0])
    if not version_id or bucket is None:
        return None
    for version in bucket.keys.getlist(object_key(call), []):
        if version.version_id == version_id and isinstance(version, FakeDeleteMarker):
            return Refusal("MethodNotAllowed", "The specified method is not allowed against this resource.", 405)
    return None


_ANY = (_is_not_over,)
_WRITTEN = (_has_short_key, _has_little_metadata)

RULES = {
    ("s3", "DeleteObject"): _ANY,
    ("s3", "GetObject"): (*_ANY, _is_no_marker),
    ("s3", "HeadObject"): _ANY,
    ("s3", "PostObject"): (*post_policy.RULES, *_WRITTEN),
    ("s3", "PutObject"): (*_ANY, *_WRITTEN),
    ("s3", "UploadPart"): _ANY,
}
