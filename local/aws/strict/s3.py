"""What S3 demands of an object's key and metadata."""

from __future__ import annotations

from urllib.parse import unquote

from local.aws.calls import Call, Refusal

_LONGEST_KEY = 1024
_MOST_METADATA = 2048


def object_key(call: Call) -> str:
    """The key in a path-style URL."""
    return unquote(call.path).lstrip("/").partition("/")[2]


def _has_short_key(call: Call) -> Refusal | None:
    if len(object_key(call).encode("utf-8", "surrogatepass")) <= _LONGEST_KEY:
        return None
    return Refusal("KeyTooLongError", "Your key is too long")


def _has_little_metadata(call: Call) -> Refusal | None:
    prefix = "x-amz-meta-"
    size = sum(
        len(name) - len(prefix) + len(value.encode()) for name, value in call.headers.items() if name.startswith(prefix)
    )
    if size <= _MOST_METADATA:
        return None
    return Refusal("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")


RULES = {("s3", "PutObject"): (_has_short_key, _has_little_metadata)}
