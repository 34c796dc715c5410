"""The HTTP side: a quiet threaded server on loopback that can break a connection and always ends cleanly."""

from __future__ import annotations

import http
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from local.requests import WholeRequests

LOOPBACK: Final = "127.0.0.1"
MOST_BYTES: Final = 26_214_400  # of a request; Bedrock takes 25 MB
_PHRASES: Final = {status.value: status.phrase for status in http.HTTPStatus}
_JSON: Final = ("Content-Type", "application/json")


@dataclass(frozen=True)
class Response:
    """Without `length` the body is chunked. With `breaks` the connection is dropped after the last chunk."""

    status: int
    headers: list[tuple[str, str]]
    chunks: Iterable[bytes]
    length: int | None = None
    breaks: bool = False


class DroppedError(ConnectionAbortedError):
    """Raised to end a connection without an answer; werkzeug passes over connection errors in silence."""


class Client:
    """Who waits for the answer to one request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def is_gone(self) -> bool:
        """Whether the client has hung up, so that nobody waits any more."""
        try:
            return self._connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def drop(self) -> None:
        """Breaks the connection; otherwise the server would wait for another request on it."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


Answerer = Callable[[WSGIEnvironment, bytes, Client], Response]


def counted(status: int, headers: list[tuple[str, str]], body: bytes, cut_after: int | None = None) -> Response:
    """A body with its length; with `cut_after` no more than so many bytes of it arrive."""
    if cut_after is None or cut_after >= len(body):
        return Response(status, headers, (body,), len(body))
    return Response(status, headers, (body[:cut_after],), len(body), breaks=True)


def json_response(value: object, status: int = 200) -> Response:
    return counted(status, [_JSON], json.dumps(value).encode())


class _Handler(WholeRequests, WSGIRequestHandler):
    """Logs nothing about requests: what was called is in the list of calls."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's own name
        return


class _Server(ThreadedWSGIServer):
    """Binds the socket itself, because werkzeug ends the process when the port is taken."""

    daemon_threads = False  # only then does closing the server wait for its request threads

    def __init__(self, port: int, answer: Answerer) -> None:
        self.connections: set[socket.socket] = set()
        with socket.create_server((LOOPBACK, port), backlog=128) as listening:
            super().__init__(LOOPBACK, port, _application(answer), handler=_Handler, fd=listening.fileno())


@dataclass
class LoopbackServer:
    """Serves from start to stop. Raises OSError at once when the port is taken."""

    port: int
    answer: Answerer
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._server = _Server(self.port, self.answer)
        self.port = self._server.port

    def start(self) -> None:
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="model-server", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Takes no more connections, lets ready answers out, breaks what is left, ends all threads."""
        if self._thread:
            self._server.shutdown()
            self._thread.join(0.2)
            while self._thread.is_alive():
                for connection in list(self._server.connections):
                    Client(connection).drop()
                self._thread.join(0.1)
        self._server.server_close()


def _application(answer: Answerer) -> Callable[[WSGIEnvironment, StartResponse], Iterator[bytes]]:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        client = Client(environ["werkzeug.socket"])
        try:
            response = _answered(environ, client, answer)
        except DroppedError:
            client.drop()
            raise
        headers = list(response.headers)
        if response.length is not None:
            headers.append(("Content-Length", str(response.length)))
        start_response(f"{response.status} {_PHRASES.get(response.status, 'Error')}", headers)
        return _sent(response, client)

    return application


def _answered(environ: WSGIEnvironment, client: Client, answer: Answerer) -> Response:
    given = environ.get("CONTENT_LENGTH") or "0"
    length = int(given) if given.isdigit() else 0
    if length > MOST_BYTES:
        return json_response({"message": "Request body is too large."}, 413)
    return answer(environ, environ["wsgi.input"].read(length), client)


def _sent(response: Response, client: Client) -> Iterator[bytes]:
    """All chunks, and then the break if there is one: no end of a chunked body, no rest of a counted one."""
    yield from response.chunks
    if response.breaks:
        client.drop()
        raise DroppedError
