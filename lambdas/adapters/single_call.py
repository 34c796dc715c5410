"""One HTTP exchange for one paid call: a connection of its own, and one deadline for all of it.

botocore's `read_timeout` starts anew with each packet, so an answer that drips has no end; and a connection that was
kept through a freeze may be dead without a sign, which costs the whole timeout and the one attempt."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError
from botocore.httpsession import get_cert_path

CONNECT_S = 3.0
SLICE = 65_536


class SingleCall:
    """To be registered for botocore's `before-send`: whatever it returns is the response."""

    def __init__(self, total_s: float) -> None:
        self._total_s = total_s

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        ends = time.monotonic() + self._total_s
        url = urlsplit(request.url)
        connection = _connected(url.scheme, url.hostname or "", url.port, request.url)
        try:
            return _exchanged(connection, request, ends)
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        finally:
            connection.close()


def _connected(scheme: str, host: str, port: int | None, url: str) -> http.client.HTTPConnection:
    """Connected, or an error that says that nothing was sent."""
    connection = (
        http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=_trust())
        if scheme == "https"
        else http.client.HTTPConnection(host, port, timeout=CONNECT_S)
    )
    try:
        connection.connect()
    except TimeoutError as error:
        connection.close()
        raise ConnectTimeoutError(endpoint_url=url, error=error) from error
    except OSError as error:
        connection.close()
        raise EndpointConnectionError(endpoint_url=url, error=error) from error
    return connection


def _exchanged(connection: http.client.HTTPConnection, request: Any, ends: float) -> AWSResponse:
    sock: socket.socket = connection.sock
    sock.settimeout(_left(ends))
    url = urlsplit(request.url)
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    headers = {name: _text(value) for name, value in request.headers.items()} | {"Connection": "close"}
    connection.request(request.method, target, body=request.body, headers=headers)
    response = connection.getresponse()
    body = bytearray()
    while not response.isclosed():  # from Python 3.13 on it closes, socket and all, with the last byte
        sock.settimeout(_left(ends))
        part = response.read1(SLICE)
        if not part:
            break  # before that, the end is an empty read
        body += part
    if response.length:  # http.client takes a cut body for a whole one
        raise http.client.IncompleteRead(bytes(body), response.length)
    answered: Any = dict(response.headers.items())
    return AWSResponse(request.url, response.status, answered, _Whole(bytes(body)))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for this call is over")
    return left


class _Whole:
    """A body that has been read, as botocore asks for it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that botocore brings and trusts."""
    return ssl.create_default_context(cafile=get_cert_path(True))
