"""A receiver of webhooks on loopback: each of its paths answers as the test says, and remembers what came."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from local.requests import WholeRequests


@dataclass(frozen=True)
class Came:
    """One request as it came. Names of headers in lower case."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def is_signed_with(self, secret: str) -> bool:
        """As the library that receivers verify with would sign it at that time: the clock is the stack's, and may be
        far ahead of the library's."""
        at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
        return Webhook(secret).sign(self.id, at, self.body.decode()) in self.headers["webhook-signature"].split(" ")


@dataclass(frozen=True)
class Says:
    """An answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Drips:
    """A byte a second, for ever: never silent for long enough for a timeout that starts anew with each byte."""

    pause_s: float = 1.0


@dataclass(frozen=True)
class Hangs:
    """It takes the request, and never closes. `head`: it answers 200, but its body has no end; else nothing at all."""

    head: bool = False


Behaviour = Says | Drips | Hangs


class Receiver:
    """Answers on a port of its own until it is closed; `down` and `up` keep the port."""

    def __init__(self) -> None:
        self._scripts: dict[str, deque[Behaviour]] = defaultdict(lambda: deque([Says()]))
        self._came: dict[str, list[Came]] = defaultdict(list)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self.down()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}{path}"

    def says(self, path: str, *behaviours: Behaviour) -> str:
        """One after the other, the last one for ever; the URL of this path."""
        self._scripts[path] = deque(behaviours)
        return self.url(path)

    def came(self, path: str) -> list[Came]:
        with self._lock:
            return list(self._came[path])

    def up(self) -> None:
        if self._server is None:
            self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
            self._server.daemon_threads = True
            self._port = self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _next(self, path: str, came: Came) -> Behaviour:
        with self._lock:
            self._came[path].append(came)
            script = self._scripts[path]
            return script.popleft() if len(script) > 1 else script[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(WholeRequests, BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                came = Came({name.lower(): value for name, value in self.headers.items()}, body)
                try:
                    receiver._answer(self, receiver._next(urlsplit(self.path).path, came))
                except OSError:
                    self.close_connection = True  # who called has gone

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler

    def _answer(self, handler: BaseHTTPRequestHandler, behaviour: Behaviour) -> None:
        match behaviour:
            case Says(status, headers, body):
                handler.send_response(status)
                for name, value in {**headers, "content-length": str(len(body))}.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(body)
            case Drips(pause_s):
                for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"." * 10_000:
                    handler.wfile.write(bytes([byte]))
                    if self._over.wait(pause_s):
                        return
            case Hangs(head):
                if head:
                    handler.send_response(200)
                    handler.send_header("content-length", "1000")
                    handler.end_headers()
                    handler.wfile.write(b"half of it")
                self._over.wait()
