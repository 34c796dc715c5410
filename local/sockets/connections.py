"""The connections that are open, and what a test may do to them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from local.aws.calls import Refusal
from local.sockets.connection import Connection

ERRORS = {
    "ForbiddenException": 403,
    "GoneException": 410,
    "InternalServerErrorException": 500,
    "LimitExceededException": 429,
    "PayloadTooLargeException": 413,
}


@dataclass
class Trouble:
    """What becomes of the next `times` posts to a connection: an error, or they take longer."""

    connection_id: str
    error: str = ""
    delay_s: float = 0.0
    times: int = 1


class Connections:
    """Used from many threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Connection] = {}
        self._troubles: list[Trouble] = []
        self._invocations = 0

    # --- for the gateway -----------------------------------------------------------------------------------

    def add(self, connection: Connection) -> None:
        """It may be posted to from now on."""
        with self._lock:
            self._open[connection.id] = connection

    def remove(self, connection: Connection) -> None:
        """It is gone."""
        with self._lock:
            self._open.pop(connection.id, None)

    def all(self) -> list[Connection]:
        """Every connection that a client holds."""
        with self._lock:
            return list(self._open.values())

    def find(self, connection_id: str) -> Connection | None:
        """The one that the gateway knows by that id; none that is lost or being closed."""
        with self._lock:
            found = self._open.get(connection_id)
        return None if found is None or found.lost or found.closing else found

    def invoking(self, count: int) -> None:
        """So many invocations more, or less, are under way because of connections."""
        with self._lock:
            self._invocations += count

    def trouble(self, connection_id: str) -> Trouble | None:
        """What is to become of one post; the turn is taken."""
        with self._lock:
            found = next((one for one in self._troubles if one.connection_id == connection_id), None)
            if found is not None:
                found.times -= 1
                self._troubles = [one for one in self._troubles if one.times > 0]
        return found

    # --- for tests -----------------------------------------------------------------------------------------

    @property
    def ids(self) -> list[str]:
        """Of every connection that a client holds, the oldest first."""
        return [connection.id for connection in self.all()]

    @property
    def quiet(self) -> bool:
        """Whether none is open, and nobody is being told of anything any more."""
        with self._lock:
            return not self._open and not self._invocations

    def cut(self, connection_id: str, *, disconnect: bool = True, code: int | None = None) -> None:
        """End it as a network does, or with a close code; without `disconnect` no function hears of it. LookupError
        for an unknown one."""
        connection = self._held(connection_id)
        connection.silent = not disconnect
        if code is None:
            connection.cut()
        else:
            connection.close(code)

    def lose(self, connection_id: str) -> None:
        """The gateway knows it no more: posts find it gone, frames go nowhere, its client notices nothing, and no
        function hears of its end. LookupError for an unknown one."""
        self._held(connection_id).lost = True

    def mute(self, connection_id: str) -> None:
        """Its network is gone, and nobody knows: posts go well and never arrive, nor does what its client sends. Until
        it is cut, or idle for too long. LookupError for an unknown one."""
        self._held(connection_id).dead = True

    def slow(self, connection_id: str, delay_s: float, times: int = 1) -> None:
        """Its next posts take so many real seconds, and arrive then."""
        self._expect(Trouble(connection_id, delay_s=delay_s, times=times))

    def fail(self, connection_id: str, error: str = "LimitExceededException", times: int = 1) -> None:
        """Its next posts end with that error, of ERRORS, and reach nobody."""
        self._expect(Trouble(connection_id, error=error, times=times))

    def calm(self) -> None:
        """Posts go well again."""
        with self._lock:
            self._troubles.clear()

    def describe(self) -> dict[str, Any]:
        """For the controls."""
        with self._lock:
            troubles = [vars(one).copy() for one in self._troubles]
        return {"connections": [one.describe() for one in self.all()], "posts": troubles}

    def _expect(self, trouble: Trouble) -> None:
        with self._lock:
            self._troubles.append(trouble)

    def _held(self, connection_id: str) -> Connection:
        with self._lock:
            return self._open[connection_id]


def refusal(error: str) -> Refusal:
    """One of ERRORS as the management API says it."""
    return Refusal(error, _WORDS.get(error, error), ERRORS[error])


_WORDS: dict[str, str] = {
    "ForbiddenException": "Forbidden",
    "GoneException": "The connection with the provided id no longer exists.",
    "InternalServerErrorException": "Internal server error",
    "LimitExceededException": "Rate exceeded",
    "PayloadTooLargeException": "The data has exceeded the maximum size allowed.",
}
