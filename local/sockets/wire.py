"""One client's socket, and what is said over it that no function has said."""

from __future__ import annotations

import json
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection

from local.sockets import shapes
from local.sockets.connection import ABNORMAL, Connection
from local.sockets.shapes import Peer, Upgrade

_WORDS = {
    401: "Unauthorized",
    403: "Forbidden",
    414: "URI Too Long",
    429: "Too Many Requests",
    500: "Internal server error",
    502: "Internal server error",
    504: "Endpoint request timed out",
}


class Wire(ServerConnection):
    """One client's socket, which remembers whose it is."""

    client: Connection | None = None
    answered: dict[str, str] | None = None
    """Headers that $connect's function adds to the answer."""


def upgrade(wire: Wire, request: Request) -> Upgrade:
    """What the client has sent to begin with."""
    target = urlsplit(request.path)
    return Upgrade(target.path, target.query, tuple(request.headers.raw_items()), _source_ip(wire))


def _source_ip(wire: Wire) -> str:
    try:
        return str(wire.remote_address[0])
    except OSError:  # it is gone already
        return "127.0.0.1"


def add_headers(wire: ServerConnection, _: Request, response: Response) -> None:
    """What $connect's function wants the client to be told."""
    if isinstance(wire, Wire) and response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
        for name, value in (wire.answered or {}).items():
            response.headers[name] = value


def how(wire: Wire) -> tuple[int, str]:
    """The code that the connection has ended with, and why: by whoever closed first."""
    protocol = wire.protocol
    first = protocol.close_rcvd if protocol.close_rcvd_then_sent is not False else protocol.close_sent
    closed = first or protocol.close_rcvd or protocol.close_sent
    return (ABNORMAL, "") if closed is None else (int(closed.code), closed.reason)


def error_frame(words: str, connection_id: str, request_id: str = "") -> str:
    """What API Gateway says by itself, in a frame or a refusal."""
    return json.dumps({"message": words, "connectionId": connection_id, "requestId": request_id or shapes.new_id()})


def refusal(status: int, peer: Peer) -> Response:
    """API Gateway's own, of an upgrade."""
    return response_of(status, error_frame(_WORDS[status], peer.id))


def response_of(status: int, body: str) -> Response:
    """An answer in the place of an upgrade."""
    data = body.encode()
    headers = Headers(
        [("Content-Type", "application/json"), ("Content-Length", str(len(data))), ("Connection", "close")]
    )
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
    return Response(status, phrase, headers, data)
