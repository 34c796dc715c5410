"""A WebSocket server on loopback that answers by a script, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.server import ServerConnection, serve

PATIENCE_S = 120.0  # real seconds, with a client that is slow: longer than that client's test waits


class Hung(Exception):
    """The script ends, and the connection with it, without a closing handshake."""


class Line:
    """One connection, as a script sees it."""

    def __init__(self, connection: ServerConnection, server: ScriptedSockets) -> None:
        self._connection, self._server = connection, server

    def heard(self) -> dict[str, Any]:
        """What the client asks for next."""
        asked: dict[str, Any] = json.loads(self._connection.recv(PATIENCE_S))
        self._server.heard.append(asked)
        return asked

    def say(self, *frames: dict[str, Any] | str | bytes) -> None:
        for frame in frames:
            self._connection.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    def close(self) -> None:
        """As a network does it: no closing frame."""
        with suppress(OSError):
            self._connection.socket.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """The same, and the script ends."""
        self.close()
        raise Hung

    def wait(self) -> None:
        """Until the client has gone."""
        with suppress(WebSocketException):
            while True:
                self.heard()


Script = Callable[[Line], None]


class ScriptedSockets:
    """The first connection gets the first script, and so on; the last one for good."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self.scripts = list(scripts)
        self.heard: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._server = serve(
            self._handle, "127.0.0.1", 0, ssl=tls, compression=None, open_timeout=PATIENCE_S, close_timeout=1,
            ping_interval=None,
        )  # fmt: skip
        port = self._server.socket.getsockname()[1]
        self.url = f"wss://localhost:{port}/live" if tls else f"ws://127.0.0.1:{port}/live"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()

    def _handle(self, connection: ServerConnection) -> None:
        with self._lock:
            assert connection.request is not None
            self.paths.append(connection.request.path)
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        with suppress(WebSocketException, OSError, Hung):
            script(Line(connection, self))
