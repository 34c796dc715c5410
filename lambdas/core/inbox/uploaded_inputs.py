"""What the task of an uploaded object gets: JSON as it is, text as its field `text`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core.outcomes import Permanent
from lambdas.core.policy import Limits
from lambdas.core.ports import Missing, TooLarge, UploadedObjects

_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json(?:;[ -~]*)?", re.IGNORECASE | re.ASCII)
_TEXT = re.compile(r"text/[\w.+-]+(?:;[ -~]*)?", re.IGNORECASE | re.ASCII)
# the bytes of a text in UTF-16 can be read as UTF-8 as well, as another text
_FOREIGN = re.compile(r';\s*charset\s*=(?!\s*"?(?:utf-?8|us-ascii)"?\s*(?:;|\Z))', re.IGNORECASE | re.ASCII)


def is_readable(content_type: str) -> bool:
    return not _FOREIGN.search(content_type) and bool(_JSON.fullmatch(content_type) or _TEXT.fullmatch(content_type))


def input_of(upload: Mapping[str, Any], objects: UploadedObjects, limits: Limits) -> Any:
    """From the very version that became the job. Raises Permanent, Unavailable."""
    if upload["bytes"] > limits.upload_bytes:
        raise _too_large(limits)
    try:
        content_type, body = objects.read(upload["key"], upload["version"], upload["etag"], limits.upload_bytes)
    except TooLarge as error:
        raise _too_large(limits) from error
    except Missing as error:
        said = "the uploaded object was overwritten or deleted before it could be read"
        raise Permanent(said, "OVERWRITTEN") from error
    if is_readable(content_type):
        return {"text": _text(body)} if _TEXT.fullmatch(content_type) else _json(body)
    raise Permanent(
        f"the object is {content_type[:80]!r}; what becomes an input is application/json or text/…, in UTF-8",
        "UNSUPPORTED_CONTENT_TYPE",
    )


def _too_large(limits: Limits) -> Permanent:
    return Permanent(f"an upload may have {limits.upload_bytes:,} bytes", "INPUT_TOO_LARGE")


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Permanent(f"the object is no text in UTF-8: byte {error.start}", "INVALID_INPUT") from error


def _json(body: bytes) -> Any:
    try:
        return parse(body)
    except Malformed as error:
        raise Permanent(f"{error.pointer or '/'}: {error.detail}", "INVALID_INPUT") from error
