"""What S3 demands of an object's key, metadata, version and checksums, of a presigned URL and of many deletions."""

from __future__ import annotations

import base64
import hashlib
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import unquote

from moto.s3.models import FakeDeleteMarker, s3_backends

from local.aws.calls import Call, Refusal
from local.aws.strict import post_policy
from local.stack.place import ACCOUNT

_LONGEST_KEY = 1024
_MOST_METADATA = 2048
_LONGEST_S = 7 * 24 * 3600
_MOST_KEYS = 1000

_CHECKSUMS: dict[str, Callable[[bytes], bytes]] = {
    "CRC32": lambda content: zlib.crc32(content).to_bytes(4, "big"),
    "SHA1": lambda content: hashlib.sha1(content, usedforsecurity=False).digest(),
    "SHA256": lambda content: hashlib.sha256(content).digest(),
}
"""Those that the standard library computes; others (CRC32C, CRC64NVME) are not compared."""


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


def _came_whole(call: Call) -> Refusal | None:
    """The body is what its sender says of it. One sent in signed chunks is not what was summed up: moto reads those."""
    if "aws-chunked" in call.headers.get("content-encoding", ""):
        return None
    return _check_md5(call) or _check_checksums(call)


def _check_md5(call: Call) -> Refusal | None:
    claimed = call.headers.get("content-md5")
    if claimed is None:
        return None
    actual = hashlib.md5(call.body, usedforsecurity=False).digest()
    wanted = _decoded(claimed)
    if wanted is None or len(wanted) != len(actual):
        return Refusal("InvalidDigest", "The Content-MD5 you specified was invalid.")
    if wanted == actual:
        return None
    return Refusal("BadDigest", "The Content-MD5 you specified did not match what we received.")


def _check_checksums(call: Call) -> Refusal | None:
    for name, compute in _CHECKSUMS.items():
        header = f"x-amz-checksum-{name.lower()}"
        if header not in call.headers:
            continue
        wanted, actual = _decoded(call.headers[header]), compute(call.body)
        if wanted is None or len(wanted) != len(actual):
            return Refusal("InvalidRequest", f"Value for {header} header is invalid.")
        if wanted != actual:
            return Refusal("BadDigest", f"The {name} you specified did not match the calculated checksum.")
    return None


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _deletes_few(call: Call) -> Refusal | None:
    if call.body.count(b"<Object>") <= _MOST_KEYS:
        return None
    return Refusal(
        "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema"
    )


_ANY = (_is_not_over,)
_WRITTEN = (_has_short_key, _has_little_metadata)

RULES = {
    ("s3", "DeleteObject"): _ANY,
    ("s3", "DeleteObjects"): (_came_whole, _deletes_few),
    ("s3", "GetObject"): (*_ANY, _is_no_marker),
    ("s3", "HeadObject"): _ANY,
    ("s3", "PostObject"): (*post_policy.RULES, *_WRITTEN),
    ("s3", "PutObject"): (*_ANY, *_WRITTEN, _came_whole),
    ("s3", "UploadPart"): (*_ANY, _came_whole),
}
