"""An HTTP API on loopback that answers by a script, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from local.requests import WholeRequests


@dataclass(frozen=True)
class Reply:
    """`body` is sent as JSON unless it is bytes. `is_cut`: the connection ends instead."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


@dataclass(frozen=True)
class Seen:
    method: str
    path: str  # as it stood on the wire
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def problem(status: int, detail: str, pointer: str | None = None, **headers: str) -> Reply:
    """As our functions refuse."""
    told: dict[str, Any] = {"type": "urn:neverdrop:problem:x", "title": "x", "status": status, "detail": detail}
    if pointer is not None:
        told["errors"] = [{"pointer": pointer, "detail": detail}]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, told, {"Content-Type": "application/problem+json", **named})


def gateway(status: int, message: str, **headers: str) -> Reply:
    """As API Gateway refuses."""
    return Reply(status, {"message": message}, {name.replace("_", "-"): value for name, value in headers.items()})


class ScriptedApi:
    """Routes that were not scripted answer as API Gateway does: 404."""

    def __init__(self) -> None:
        self.requests: list[Seen] = []
        self._replies: dict[str, list[Reply]] = defaultdict(list)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def on(self, route: str, *replies: Reply | Any) -> None:
        """What `GET /jobs/x` answers, one after the other; the last one for good. Anything but a Reply is a body."""
        self._replies[route] = [one if isinstance(one, Reply) else Reply(200, one) for one in replies]

    def answer(self, seen: Seen) -> Reply:
        self.requests.append(seen)
        replies = self._replies.get(f"{seen.method} {seen.path}", [gateway(404, "Not Found")])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def of(self, route: str) -> list[Seen]:
        return [seen for seen in self.requests if f"{seen.method} {seen.path}" == route]

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_for(api: ScriptedApi) -> type[BaseHTTPRequestHandler]:
    class Handler(WholeRequests, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two packets: the second would wait for 40 ms

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def _any(self) -> None:
            target = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = api.answer(Seen(self.command, target.path, dict(parse_qsl(target.query)), headers, body))
            if reply.is_cut:
                self.close_connection = True
                return
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            content = b"" if reply.status == 204 else content
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815  as http.server looks for them

    return Handler
