"""The @connections API: how functions post to a connection, look at it and close it.

On AWS the host of its address names the API; here the path does, `/<api id>/<stage>/@connections/<connection id>`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime

from local.aws.calls import Call, Refusal, Response
from local.aws.connections_api import SERVICE, Target, target_of
from local.aws.errors import render
from local.aws.server import Player
from local.clock import VirtualClock
from local.sockets.connection import Connection
from local.sockets.connections import refusal
from local.sockets.gateway import SocketGateway

_NORMAL = 1000


class Management:
    """Plays three operations of the AWS server; called inside the server's lock."""

    def __init__(self, gateway: SocketGateway, clock: VirtualClock) -> None:
        """The gateway must know its API already."""
        self._definition = gateway.definition
        self._connections = gateway.connections
        self._stopping = gateway.stopping
        self._clock = clock

    @property
    def players(self) -> Mapping[tuple[str, str], Player]:
        """By service and operation."""
        return {
            (SERVICE, "PostToConnection"): lambda call: self._play(call, self._post),
            (SERVICE, "GetConnection"): lambda call: self._play(call, self._get),
            (SERVICE, "DeleteConnection"): lambda call: self._play(call, self._delete),
        }

    def _play(self, call: Call, do: Callable[[Call, Connection], Callable[[], Response]]) -> Callable[[], Response]:
        target = target_of(call)
        if target is None or not self._is_ours(target):
            return _answered(render(call, refusal("ForbiddenException")))
        connection = self._connections.find(target.connection_id)
        if connection is None:
            return _answered(render(call, refusal("GoneException")))
        return do(call, connection)

    def _is_ours(self, target: Target) -> bool:
        ours = self._definition
        return ours is not None and (target.api_id, target.stage) == (ours.api_id, ours.stage)

    def _post(self, call: Call, connection: Connection) -> Callable[[], Response]:
        trouble = self._connections.trouble(connection.id)
        if trouble is not None and trouble.error:
            return _answered(render(call, refusal(trouble.error)))
        if trouble is None or not trouble.delay_s:
            return _answered(self._send(call, connection))
        delay_s = trouble.delay_s

        def later() -> Response:
            self._stopping.wait(delay_s)
            return self._send(call, connection)

        return later

    def _send(self, call: Call, connection: Connection) -> Response:
        """Answered when it is on its way: whether the client gets it, nobody knows."""
        try:
            text = call.body.decode()
        except UnicodeDecodeError:
            return render(call, Refusal("BadRequestException", "Invalid message: text frames are UTF-8", 400))
        if self._connections.find(connection.id) is None:
            return render(call, refusal("GoneException"))
        if not connection.post(text, self._clock.now()):
            return render(call, refusal("LimitExceededException"))
        return Response(200, {"content-type": "application/json"})

    def _get(self, _: Call, connection: Connection) -> Callable[[], Response]:
        upgrade = connection.peer.upgrade
        told = {
            "connectedAt": _iso(connection.peer.connected_at),
            "identity": {"sourceIp": upgrade.source_ip, "userAgent": upgrade.header("user-agent")},
            "lastActiveAt": _iso(connection.last_active_at),
        }
        return _answered(Response(200, {"content-type": "application/json"}, json.dumps(told).encode()))

    def _delete(self, _: Call, connection: Connection) -> Callable[[], Response]:
        connection.close(_NORMAL)
        return _answered(Response(204, {}))


def _answered(response: Response) -> Callable[[], Response]:
    return lambda: response


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
