"""One open connection: frames on their way to its client, and when it has been open or idle for too long."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from local.sockets.shapes import Peer

MESSAGE_LIMIT_BYTES, FRAME_LIMIT_BYTES = 128 * 1024, 32 * 1024
IDLE_S, LIFETIME_S = 600.0, 7200.0
BUFFER_LIMIT_BYTES = 4 * MESSAGE_LIMIT_BYTES
"""What waits for a client that does not read. AWS says that there is a limit, not which."""

GOING_AWAY, NOT_TEXT, ABNORMAL = 1001, 1003, 1006
_PATIENCE_S = 0.5


@dataclass(frozen=True)
class _Closing:
    code: int
    reason: str


class Connection:
    """Whoever posts to it never waits for its client: a thread of its own sends. Used from many threads at once."""

    def __init__(self, wire: ServerConnection, peer: Peer) -> None:
        self.peer = peer
        self.last_active_at = peer.connected_at
        self.lost = False
        """The gateway knows it no more, and its client does not know that yet."""
        self.dead = False
        """The network in between is gone, and neither end knows that yet: whatever is sent never arrives."""
        self.silent = False
        """Nobody hears that it has ended."""
        self.closing = False
        """Its end is on its way: whoever posts finds it gone."""
        self.received = self.sent = 0
        self._wire = wire
        self._changed = threading.Condition()
        self._waiting: deque[str | _Closing] = deque()
        self._waiting_bytes = 0
        self._ended = False
        self._sender = threading.Thread(target=self._send_all, name=f"socket-{peer.id}", daemon=True)

    @property
    def id(self) -> str:
        """As functions know it."""
        return self.peer.id

    def open(self) -> None:
        """The upgrade is done: let frames go."""
        self._sender.start()

    def post(self, text: str, now: datetime) -> bool:
        """Have a message sent, after those before it. False if so much waits already that it does not fit."""
        with self._changed:
            if self._ended or self._waiting_bytes + len(text.encode()) > BUFFER_LIMIT_BYTES:
                return False
            self.last_active_at = now
            if self.dead:
                return True
            self._waiting.append(text)
            self._waiting_bytes += len(text.encode())
            self._changed.notify_all()
        return True

    def heard(self, now: datetime) -> bool:
        """A message came; False if it never arrives."""
        with self._changed:
            if self.lost or self.dead:
                return False
            self.last_active_at = now
            self.received += 1
        return True

    def is_over(self, now: datetime) -> bool:
        """Whether it has been idle, or open, for longer than API Gateway bears."""
        idle_s, open_s = (now - self.last_active_at).total_seconds(), (now - self.peer.connected_at).total_seconds()
        return idle_s >= IDLE_S or open_s >= LIFETIME_S

    def close(self, code: int, reason: str = "") -> None:
        """Close it, after what is on its way; a client that does not read is cut off. Does not wait."""
        with self._changed:
            stuck, self.closing = bool(self._waiting), True
            self._waiting.append(_Closing(code, reason))
            self._changed.notify_all()
        if stuck:
            timer = threading.Timer(_PATIENCE_S, self.cut)
            timer.daemon = True
            timer.start()

    def cut(self) -> None:
        """As a network does it: no close frame, in neither direction."""
        cut(self._wire)

    def end(self) -> bool:
        """It is gone: nothing is sent any more. True for whoever says so first."""
        with self._changed:
            first, self._ended = not self._ended, True
            self._waiting.clear()
            self._changed.notify_all()
        return first

    def stop(self) -> None:
        """End it, whatever its client does; when this returns, its thread is gone."""
        self.end()
        if self._sender.is_alive() and self._sender is not threading.current_thread():
            self._sender.join(timeout=_PATIENCE_S)
            if self._sender.is_alive():  # it hangs in a client that does not read
                self.cut()
                self._sender.join(timeout=5)

    def describe(self) -> dict[str, Any]:
        """For the controls."""
        return {
            "connection_id": self.id,
            "connected_at": self.peer.connected_at.isoformat(),
            "last_active_at": self.last_active_at.isoformat(),
            "lost": self.lost,
            "dead": self.dead,
            "received": self.received,
            "sent": self.sent,
            "waiting": len(self._waiting),
        }

    def _send_all(self) -> None:
        with contextlib.suppress(ConnectionClosed, OSError):
            for one in self._due():
                if isinstance(one, _Closing):
                    self._wire.close(one.code, one.reason)
                    return
                frames = list(fragments(one))
                self._wire.send(frames if len(frames) > 1 else one)

    def _due(self) -> Iterator[str | _Closing]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if self._ended:
                    return
                one = self._waiting[0]
            yield one
            with self._changed:
                if self._waiting:
                    self._waiting.popleft()
                if isinstance(one, str):
                    self._waiting_bytes -= len(one.encode())
                    self.sent += 1


def cut(wire: ServerConnection) -> None:
    """End a connection without a word."""
    with contextlib.suppress(OSError):
        wire.socket.shutdown(socket.SHUT_RDWR)


def fragments(text: str) -> Iterator[str]:
    """A message in frames of the size that API Gateway sends, none of which splits a character."""
    data = text.encode()
    start = 0
    while start < len(data) or start == 0:
        end = start + FRAME_LIMIT_BYTES
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end].decode()
        start = end
