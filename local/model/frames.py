"""Encodes `application/vnd.amazon.eventstream`: botocore ships the decoder alone."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
_STRING: Final = 7  # header value type: UTF-8 string with a 16-bit length


def event(kind: str, payload: Mapping[str, Any]) -> bytes:
    """One event of the stream, such as `messageStart`."""
    return _json_frame({":event-type": kind, ":content-type": "application/json", ":message-type": "event"}, payload)


def exception(code: str, message: str) -> bytes:
    """A modelled error in mid-stream; `code` in the stream's spelling, such as `throttlingException`."""
    headers = {":exception-type": code, ":content-type": "application/json", ":message-type": "exception"}
    return _json_frame(headers, {"message": message})


def from_script(item: Mapping[str, Any]) -> bytes:
    """A frame of a scripted stream: an event, an exception, or any bytes (a broken frame)."""
    if "event" in item:
        return event(str(item["event"]), item.get("payload") or {})
    if "exception" in item:
        return exception(str(item["exception"]), str(item.get("message", "")))
    return base64.b64decode(item["base64"])


def corrupted(frame: bytes) -> bytes:
    """The same frame with a wrong checksum at its end."""
    return frame[:-1] + bytes([frame[-1] ^ 0xFF])


def _json_frame(headers: Mapping[str, str], payload: Mapping[str, Any]) -> bytes:
    return encode(headers, json.dumps(payload).encode())


def encode(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Prelude (both lengths), its CRC, headers, payload, CRC over all before it; integers big-endian."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + head + payload
    return message + struct.pack(">I", binascii.crc32(message))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack(">B", len(key)) + key + struct.pack(">BH", _STRING, len(text)) + text
