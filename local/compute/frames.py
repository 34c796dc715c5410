"""Messages between the runtime and a child process: JSON, each behind its length in four bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")


def encode(message: dict[str, Any]) -> bytes:
    """One frame. Raises what `json.dumps` raises."""
    body = json.dumps(message).encode()
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into messages again."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Every message that is complete with `data`."""
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(json.loads(self._buffer[_LENGTH.size : end]))
            del self._buffer[:end]
        return messages


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Wait for one message; None when the other side is gone."""
    head = _exactly(connection, _LENGTH.size)
    body = _exactly(connection, _LENGTH.unpack(head)[0]) if head else None
    return None if body is None else dict(json.loads(body))


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < count:
        data = connection.recv(min(count - len(chunks), 1 << 20))
        if not data:
            return None
        chunks += data
    return bytes(chunks)
