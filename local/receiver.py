"""A web server on loopback that takes what it is sent: the receiver of the demo's webhook."""

from __future__ import annotations

import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from local.requests import WholeRequests

MOST_BYTES = 262_144


class Receiver:
    """Keeps the headers and the very bytes of each POST, and says 204. Serves inside of `with`."""

    def __init__(self) -> None:
        self._got: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._got))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next(self, timeout_s: float) -> tuple[dict[str, str], bytes] | None:
        """The next one; None when none comes in time."""
        try:
            return self._got.get(timeout=timeout_s)
        except queue.Empty:
            return None


def _handler(got: queue.Queue[tuple[dict[str, str], bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(WholeRequests, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = min(int(self.headers.get("content-length") or 0), MOST_BYTES)
            got.put((dict(self.headers.items()), self.rfile.read(length)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    return Handler
