"""The port that WebSocket clients talk to: upgrades, frames, and the end of each connection."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from local.clock import VirtualClock
from local.compute.environments import Functions
from local.events.bells import Bell
from local.events.throttle import Throttle
from local.sockets import connection as limits
from local.sockets import shapes
from local.sockets.authorizing import MAY, Authorization
from local.sockets.connection import GOING_AWAY, NOT_TEXT, Connection, cut
from local.sockets.connections import Connections
from local.sockets.definition import CONNECT, DISCONNECT, Definition, read
from local.sockets.integration import Integration
from local.sockets.shapes import Peer
from local.sockets.wire import Wire, add_headers, error_frame, how, refusal, response_of, upgrade
from local.stack.stack import Stack

_log = logging.getLogger(__name__)
URL_LIMIT = 4096
_LOOK_S = 1.0


class SocketGateway:
    """Binds 127.0.0.1 at once, because the stack's outputs name its address, and serves after `start`."""

    def __init__(self, port: int) -> None:
        """Port 0 picks a free one. OSError if the port is taken."""
        self._wires: WeakSet[Wire] = WeakSet()
        self._guard = threading.Lock()
        quiet = logging.getLogger("local.sockets.wire")
        quiet.setLevel(logging.CRITICAL)  # a client that breaks the protocol is nobody's error
        self._server: Server = serve(
            self._serve, "127.0.0.1", port, create_connection=self._wire, process_request=self._upgrade,  # type: ignore[arg-type]
            process_response=add_headers, compression=None, open_timeout=60, ping_interval=None, close_timeout=1,
            max_size=(limits.MESSAGE_LIMIT_BYTES, limits.FRAME_LIMIT_BYTES), server_header=None, logger=quiet,
        )  # fmt: skip
        self.url = f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self.connections = Connections()
        self._threads: set[threading.Thread] = set()
        self.definition: Definition | None = None
        self.stopping = threading.Event()
        self._acceptor: threading.Thread | None = None

    def play(self, stack: Stack, functions: Functions, clock: VirtualClock) -> None:
        """Learn which API it is, if the stack has one. TemplateError for what is not played on this machine."""
        definition = self.definition = read(stack)
        if definition is None:
            return
        self._api = definition
        self._clock = clock
        self._authorization = Authorization(definition, functions, clock)
        self._integration = Integration(functions)
        self._throttle = Throttle(definition.stage_settings, list(definition.routes))
        self._bell = Bell(clock)

    def start(self) -> None:
        """Serve from now on, if there is anything to serve."""
        if self.definition is None:
            return
        self._acceptor = threading.Thread(target=self._server.serve_forever, name="sockets", daemon=True)
        self._acceptor.start()
        self._run(self._watch_the_clock)

    def forget(self) -> None:
        """What ends from now on is nobody's fault: the functions are being stopped."""
        self.stopping.set()

    def stop(self) -> None:
        """Close the door and every connection, and wait until their threads are gone."""
        self.forget()
        if self._acceptor is None:
            self._server.socket.close()
            self._server.shutdown_watcher.close()
            self._server.shutdown_notifier.close()
            return
        self._bell.ring()
        for connection in self.connections.all():
            connection.stop()
        with self._guard:
            wires = list(self._wires)
        for wire in wires:
            if wire.request is None:  # it has connected and said nothing
                cut(wire)
        self._server.shutdown()
        self._acceptor.join()
        for thread in list(self._threads):
            thread.join(timeout=60)

    # --- an upgrade ----------------------------------------------------------------------------------------

    def _wire(self, *arguments: Any, **named: Any) -> Wire:
        wire = Wire(*arguments, **named)
        with self._guard:
            self._wires.add(wire)
        return wire

    def _upgrade(self, wire: ServerConnection, request: Request) -> Response | None:
        """None lets the client in; called on the connection's own thread, which may wait."""
        assert isinstance(wire, Wire)
        try:
            wire.protocol.process_request(request)
        except InvalidHandshake:
            return None  # no upgrade at all: the library says so
        now = self._clock.now()
        peer = Peer(shapes.new_id(), upgrade(wire, request), now)
        if peer.upgrade.path != f"/{self._api.stage}":
            return refusal(403, peer)
        if len(request.path) > URL_LIMIT:
            return refusal(414, peer)
        if not self._throttle.take(CONNECT):
            return refusal(429, peer)
        status, peer = self._authorization.judge(peer)
        return refusal(status, peer) if status != MAY else self._connect(wire, peer)

    def _connect(self, wire: Wire, peer: Peer) -> Response | None:
        route = self._api.routes.get(CONNECT)
        if route is not None:
            answer = self._integration.run(route, shapes.connecting(self._api, peer, self._clock.now()))
            if not answer.accepted:
                return refusal(answer.status, peer) if answer.broken else response_of(answer.status, answer.body)
            wire.answered = answer.headers
        if self.stopping.is_set():
            return refusal(500, peer)
        wire.client = Connection(wire, peer)
        self.connections.add(wire.client)
        self._run(lambda: self._see_its_end(wire))
        return None

    def _see_its_end(self, wire: Wire) -> None:
        """Also that of a client that is gone before it heard that it may come in: it was connected all the same."""
        wire.recv_events_thread.join()
        assert wire.client is not None
        self._end(wire.client, *how(wire))

    # --- frames --------------------------------------------------------------------------------------------

    def _serve(self, wire: ServerConnection) -> None:
        assert isinstance(wire, Wire)
        client = wire.client
        assert client is not None
        client.open()
        with suppress(ConnectionClosed):
            while True:
                self._take(client, wire.recv())

    def _take(self, client: Connection, message: str | bytes) -> None:
        """Each message has a thread of its own: on AWS, too, one does not wait for the one before it."""
        if isinstance(message, bytes):
            client.close(NOT_TEXT, "Binary frames are not supported")
            return
        if client.heard(self._clock.now()):
            self.connections.invoking(1)
            self._invoke(lambda: self._integrate(client, message))

    def _integrate(self, client: Connection, text: str) -> None:
        route = self._api.select(text)
        if route is None:
            return self._tell(client, "Forbidden")
        if not self._throttle.take(route.key):
            return self._tell(client, "Too Many Requests")
        event = shapes.message(self._api, client.peer, self._clock.now(), route.key, text)
        if self._integration.run(route, event).broken and not self.stopping.is_set():
            self._tell(client, "Internal server error", event["requestContext"]["requestId"])
        return None

    def _tell(self, client: Connection, words: str, request_id: str = "") -> None:
        if not client.lost:
            client.post(error_frame(words, client.id, request_id), self._clock.now())

    def _end(self, client: Connection, code: int, reason: str) -> None:
        if not client.end():
            return
        route = self._api.routes.get(DISCONNECT)
        if route is None or client.lost or client.silent or self.stopping.is_set():
            self.connections.remove(client)
            return
        event = shapes.disconnected(self._api, client.peer, self._clock.now(), code, reason)
        self.connections.invoking(1)
        self.connections.remove(client)  # before the function runs: who posts by then finds it gone
        self._invoke(lambda: self._integration.run(route, event))

    # -------------------------------------------------------------------------------------------------------

    def _watch_the_clock(self) -> None:
        while not self.stopping.is_set():
            now = self._clock.now()
            for connection in self.connections.all():
                if connection.is_over(now) and not connection.closing:
                    connection.close(GOING_AWAY, "Going away")
            self._bell.wait(_LOOK_S)

    def _invoke(self, work: Callable[[], object]) -> None:
        """Work that has been counted already."""

        def invoke() -> None:
            try:
                work()
            finally:
                self.connections.invoking(-1)

        self._run(invoke)

    def _run(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except Exception:
                _log.exception("the WebSocket gateway failed")
            finally:
                self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="socket-work", daemon=True)
        self._threads.add(thread)
        thread.start()
