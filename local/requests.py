"""HTTP requests are served whole or not at all: who is killed while it sends one has asked for nothing, as on AWS."""

from __future__ import annotations

from socketserver import StreamRequestHandler
from typing import Any, BinaryIO


class CutError(ConnectionError):
    """The connection ended before the request did."""


class WholeRequests(StreamRequestHandler):
    """Goes before a handler of http.server's kind, which takes the end of a connection for the end of its headers, and
    what has come of a body for the body."""

    def setup(self) -> None:
        """As inherited, then guard what is read."""
        super().setup()
        self.rfile: Any = _UntilCut(self.rfile)

    def handle_one_request(self) -> None:
        """As inherited; the end of the connection is no error, wherever it comes."""
        try:
            super().handle_one_request()  # type: ignore[misc]
        except CutError:
            self.close_connection = True


class _UntilCut:
    """What a client sends. CutError where it ends."""

    def __init__(self, received: BinaryIO) -> None:
        self._received = received

    def readline(self, limit: int = -1) -> bytes:
        line = self._received.readline(limit)
        if not line.endswith(b"\n") and len(line) != limit:
            raise CutError
        return line

    def read(self, size: int) -> bytes:
        received = self._received.read(size)
        if len(received) < size:
            raise CutError
        return received

    def __getattr__(self, name: str) -> Any:
        return getattr(self._received, name)
