"""The address at which API Gateway takes what is sent to connections, on loopback: it answers as told."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from local.requests import WholeRequests


class ManagementApi:
    """`sent`: the frames of each connection. `answers`: (status, code) of its next posts; who is in `silent` gets none
    until `spoken` is set."""

    def __init__(self) -> None:
        self.sent: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.answers: dict[str, deque[tuple[int, str]]] = defaultdict(deque)
        self.silent: set[str] = set()
        self.spoken = threading.Event()
        self.asked: list[str] = []
        api = self

        class Handler(WholeRequests, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                api.asked.append(f"{self.command} {self.path}")
                connection = unquote(self.path.rpartition("/@connections/")[2])
                if connection in api.silent:
                    api.spoken.wait()
                    self.close_connection = True
                    return
                status, code = api.answers[connection].popleft() if api.answers[connection] else (200, "")
                if status == 200:
                    api.sent[connection].append(json.loads(body))
                self.send_response(status)
                if code:
                    self.send_header("x-amzn-ErrorType", code)
                answer = b"" if status == 200 else b'{"message": "as told"}'
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/live"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        self.spoken.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def types(self, connection: str) -> list[str]:
        return [frame["type"] for frame in self.sent[connection]]


@contextmanager
def management_api() -> Iterator[ManagementApi]:
    api = ManagementApi()
    try:
        yield api
    finally:
        api.end()
