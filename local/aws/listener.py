"""A WSGI server on loopback that keeps connections alive and leaves neither threads nor sockets behind.

werkzeug's own handler closes every connection and waits 10 ms for stray data after each answer; that would be most
of the time of a call. This one reads each body whole, so that the next request starts where the last one ended.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from local.requests import WholeRequests

_log = logging.getLogger(__name__)

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class NoReplyError(Exception):
    """Raised by an application that wants the connection cut instead of answered."""


class _Handler(WholeRequests, MotoRequestHandler):
    """One connection, one request after another."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def run_wsgi(self) -> None:
        environ = self.make_environ()
        body = self._read_body(environ)
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        answer: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            answer[:] = [status, headers]

        try:
            chunks = self.server.app(environ, start_response)
            payload = b"".join(chunks)
        except NoReplyError:
            self.close_connection = True
            return
        except Exception:
            _log.exception("%s %s", self.command, self.path)
            answer, payload = ["500 Internal Server Error", []], b""
        self._write(answer[0], answer[1], payload)

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        if environ.get("wsgi.input_terminated"):
            return bytes(environ["wsgi.input"].read())
        return bytes(self.rfile.read(int(environ.get("CONTENT_LENGTH") or 0)))

    def _write(self, status: str, headers: list[tuple[str, str]], payload: bytes) -> None:
        code, _, reason = status.partition(" ")
        self.send_response_only(int(code), reason)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names and int(code) not in (204, 304):
            self.send_header("content-length", str(len(payload)))
        if "date" not in names:
            self.send_header("date", self.date_time_string())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)

    def log_request(self, *_: Any) -> None:
        """Say nothing: callers log what they ask for."""

    def log(self, *_: Any) -> None:
        """Say nothing about broken requests either; the application reports its own errors."""


class Listener(ThreadedWSGIServer):
    """Serves `app` on 127.0.0.1 from its own threads; port 0 picks a free one. OSError if the port is taken."""

    daemon_threads = True  # a connection that is still open at exit must not hold the process

    def __init__(self, port: int, app: WsgiApp) -> None:
        # Bound here, because werkzeug answers a port that is taken with a print and an exit.
        with socket.create_server(("127.0.0.1", port)) as bound:
            super().__init__("127.0.0.1", port, app, handler=_Handler, fd=bound.fileno())
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._guard = threading.Lock()
        self._acceptor = threading.Thread(target=self._accept, name=f"listener-{self.port}", daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Accept connections from now on."""
        self._acceptor.start()

    def stop(self) -> None:
        """Close the door, cut what is open, and wait until every thread is gone."""
        self.shutdown()
        self._acceptor.join()
        with self._guard:
            open_now = dict(self._connections)
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in open_now.values():
            thread.join(timeout=60)

    def _accept(self) -> None:
        self.serve_forever(poll_interval=0.1)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection on a thread that `stop` knows of."""
        thread = threading.Thread(
            target=self.process_request_thread, args=(request, client_address), name="connection", daemon=True
        )
        with self._guard:
            self._connections[request] = thread
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._guard:
                self._connections.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nobody's error."""
