"""Reads what a stranger's server answers: never more than a bounded part of it, and nothing is trusted.

`http.client` is not used here: a byte a second passes each of its timeouts, and it takes the first `1xx` but 100 for
the answer."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

HEAD_MAX = 32_768  # bytes of all status lines and headers, those of interim answers included
BODY_MAX = 65_536  # bytes of a body; then the connection is closed
EXCERPT_BYTES = 200
RETRY_AFTER_MAX = 100  # characters; the longest date has 33
TOO_LONG = f"its headers are larger than {HEAD_MAX} bytes"
_SLICE = 16_384
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: .*)?", re.DOTALL)
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?", re.DOTALL)
_SWITCHING = 101

Left = Callable[[], float]  # seconds until the deadline; raises when it is over


class Cut(Exception):
    """The connection ended before there was an answer."""


class Malformed(Exception):
    """No answer in HTTP/1."""


@dataclass(frozen=True)
class Heard:
    """`retry_after`: the header as it came, "" without one; `excerpt`: the beginning of the body, as text."""

    status: int
    retry_after: str
    excerpt: str


def read_answer(connection: socket.socket, left: Left) -> Heard:
    """The answer stands once its headers are whole: a body that is cut, drips or never ends changes nothing about it.
    Raises Cut, Malformed, OSError, and what `left` raises."""
    source = _Source(connection, left)
    status, headers = _head(source)
    body = bytearray()
    with suppress(Exception):
        _read_body(source, status, headers, body)
    plain = headers.get("content-encoding", "identity").lower() == "identity"
    excerpt = bytes(body[:EXCERPT_BYTES]).decode("utf-8", "ignore") if plain else ""
    return Heard(status, headers.get("retry-after", "")[:RETRY_AFTER_MAX], excerpt)


class _Source:
    """The connection as lines and pieces; each wait ends with the deadline."""

    def __init__(self, connection: socket.socket, left: Left) -> None:
        self._connection, self._left = connection, left
        self._kept = bytearray()

    def line(self, most: int) -> bytes:
        """Without its end. Malformed when it is longer than `most` bytes, Cut when there is no end."""
        while (end := self._kept.find(b"\n")) < 0 and len(self._kept) <= most:
            if not self._more():
                raise Cut("closed before it had answered")
        if not 0 <= end <= most:
            raise Malformed(TOO_LONG)
        line = bytes(self._kept[:end])
        del self._kept[: end + 1]
        return line.removesuffix(b"\r")

    def piece(self, most: int) -> bytes:
        """At most so many bytes; none at the end."""
        if not self._kept:
            self._more()
        piece = bytes(self._kept[:most])
        del self._kept[:most]
        return piece

    def _more(self) -> bool:
        self._connection.settimeout(self._left())
        found = self._connection.recv(_SLICE)
        self._kept += found
        return bool(found)


def _head(source: _Source) -> tuple[int, Mapping[str, str]]:
    """Status and headers (the first of each name) of the final answer: interim ones come before it."""
    room = HEAD_MAX
    while True:
        line = source.line(room)
        found = _STATUS.fullmatch(line)
        if found is None:
            raise Malformed("its answer does not begin as one in HTTP/1")
        headers, room = _headers(source, room - len(line) - 1)
        status = int(found[1])
        if status >= 200 or status == _SWITCHING:
            return status, headers


def _headers(source: _Source, room: int) -> tuple[dict[str, str], int]:
    headers: dict[str, str] = {}
    while line := source.line(room):
        room -= len(line) + 2
        name, colon, value = line.decode("latin-1").partition(":")
        if colon and name.strip() == name:
            headers.setdefault(name.lower(), value.strip())
    return headers, room


def _read_body(source: _Source, status: int, headers: Mapping[str, str], body: bytearray) -> None:
    if status in (204, 304) or status < 200:
        return
    if "chunked" in headers.get("transfer-encoding", "").lower():
        _read_chunks(source, body)
        return
    length = headers.get("content-length", "")
    whole = int(length) if length.isascii() and length.isdigit() and len(length) < 10 else BODY_MAX
    _fill(source, body, min(whole, BODY_MAX))


def _read_chunks(source: _Source, body: bytearray) -> None:
    """Sizes count against the limit, too: a body may be all sizes."""
    room = BODY_MAX
    while room > 0:
        line = source.line(room)
        found = _SIZE.fullmatch(line)
        size = int(found[1], 16) if found else 0
        if not size:
            return
        room -= len(line) + size + 4
        _fill(source, body, min(len(body) + size, BODY_MAX))
        source.line(2)


def _fill(source: _Source, body: bytearray, until: int) -> None:
    while len(body) < until and (piece := source.piece(until - len(body))):
        body += piece
