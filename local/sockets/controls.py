"""`/_local/connections*`: what a test may do to the connections of the WebSocket API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.faults import BadRequestError, whole_number
from local.sockets.connections import ERRORS, Connections

Body = dict[str, Any]


class SocketControls:
    """A part of the runtime's controls."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @property
    def known(self) -> dict[str, Callable[[Body], Any]]:
        """By method and path below /_local/."""
        return {
            "GET connections": lambda _: self._connections.describe(),
            "POST connections/cut": self._cut,
            "POST connections/lose": self._lose,
            "POST connections/mute": self._mute,
            "POST connections/posts": self._trouble,
            "DELETE connections/posts": self._calm,
        }

    def _cut(self, body: Body) -> Any:
        connection_id, code = self._id(body), body.get("code")
        if code is not None and (isinstance(code, bool) or not isinstance(code, int) or not 1000 <= code <= 4999):
            raise BadRequestError(f"code must be a close code, 1000 to 4999, not {code!r}")
        self._connections.cut(connection_id, disconnect=body.get("disconnect", True) is not False, code=code)
        return {"connection_id": connection_id}

    def _lose(self, body: Body) -> Any:
        connection_id = self._id(body)
        self._connections.lose(connection_id)
        return {"connection_id": connection_id}

    def _mute(self, body: Body) -> Any:
        connection_id = self._id(body)
        self._connections.mute(connection_id)
        return {"connection_id": connection_id}

    def _trouble(self, body: Body) -> Any:
        connection_id, times = self._id(body), whole_number(body, "times", 1)
        error, delay_s = body.get("error"), body.get("delay_s")
        if (error is None) == (delay_s is None):
            raise BadRequestError('one of error and delay_s: {"connection_id": "…", "error": "GoneException"}')
        if error is not None:
            if error not in ERRORS:
                raise BadRequestError(f"error must be one of {sorted(ERRORS)}, not {error!r}")
            self._connections.fail(connection_id, error, times)
        else:
            self._connections.slow(connection_id, _seconds(delay_s), times)
        return self._connections.describe()

    def _calm(self, _: Body) -> Any:
        self._connections.calm()
        return {}

    def _id(self, body: Body) -> str:
        wanted = body.get("connection_id")
        if wanted not in self._connections.ids:
            raise BadRequestError(f"connection_id must be one of {self._connections.ids}, not {wanted!r}")
        return str(wanted)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 600:
        raise BadRequestError(f"delay_s must be 0 to 600 real seconds, not {value!r}")
    return float(value)
