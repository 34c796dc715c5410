"""The wire between a client and the WebSocket API: it sends each chunk in a frame of its own, and breaks where it is
told to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve


class Broken(Exception):
    """This connection is cut."""


class Wire(httpx.BaseTransport):
    """A transport for the client: the tickets that come through it lead to this wire. `cuts`: the numbers of the chunks
    behind which it breaks, once each."""

    def __init__(self, cuts: set[int]) -> None:
        self.cuts = set(cuts)
        self.connections = 0
        self.live_cuts = 0  # those of a job that was at work when it was asked for
        self._upstream = ""
        self.status = ""  # of the job, as it was told last
        self._http = httpx.HTTPTransport()
        self._server = serve(self._carry, "127.0.0.1", 0, compression=None, close_timeout=1, ping_interval=None)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._http.handle_request(request)
        if request.url.path != "/tickets" or answer.status_code != 201:
            return answer
        body = json.loads(answer.read())
        answer.close()
        place = urlsplit(body["url"])
        self._upstream = f"{place.scheme}://{place.netloc}"
        port = self._server.socket.getsockname()[1]
        return httpx.Response(201, json={**body, "url": f"ws://127.0.0.1:{port}{place.path}?{place.query}"})

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._http.close()

    def _carry(self, client: ServerConnection) -> None:
        assert client.request is not None
        self.connections += 1
        place = self._upstream + client.request.path
        with (
            suppress(WebSocketException, OSError, Broken),
            connect(place, open_timeout=60, compression=None, ping_interval=None, close_timeout=1) as up,
        ):
            upwards = threading.Thread(target=_pass_on, args=(client, up), daemon=True)
            upwards.start()
            try:
                for data in up:
                    self._pass_down(json.loads(data), client)
            finally:
                _cut(up.socket)
                _cut(client.socket)
                upwards.join()

    def _pass_down(self, frame: dict[str, Any], client: ServerConnection) -> None:
        self.status = frame.get("status", self.status)
        for piece in _pieces(frame):
            client.send(json.dumps(piece))
            if piece["type"] == "chunks" and piece["from"] in self.cuts:
                self.cuts.remove(piece["from"])
                self.live_cuts += self.status == "PROCESSING"
                raise Broken


def _pieces(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if frame["type"] != "chunks":
        yield frame
        return
    for n, text in enumerate(frame["texts"], frame["from"]):
        yield {**frame, "from": n, "texts": [text]}


def _pass_on(client: ServerConnection, up: ClientConnection) -> None:
    with suppress(WebSocketException, OSError):
        for data in client:
            up.send(data)
    _cut(up.socket)


def _cut(wire: socket.socket) -> None:
    """No closing frame, in either direction."""
    with suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)
