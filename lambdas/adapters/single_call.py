"""One HTTP exchange for one paid call: a connection of its own, and one deadline for all of it.

botocore's `read_timeout` starts anew with each packet, so an answer that drips has no end; and a connection that was
kept through a freeze may be dead without a sign, which costs the whole timeout and the one attempt."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError
from botocore.httpsession import get_cert_path

CONNECT_S = 3.0
SLICE = 65_536


class SingleCall:
    """To be registered for botocore's `before-send`: whatever it returns is the response. A stream of events is handed
    on as it comes, within the same deadline; any other body is read first."""

    def __init__(self, total_s: float) -> None:
        self._total_s = total_s

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        ends = time.monotonic() + self._total_s
        url = urlsplit(request.url)
        connection = _connected(url.scheme, url.hostname or "", url.port, request.url)
        try:
            connection.sock = _Timed(connection.sock, ends)
            with _timeouts_of(request.url):
                response = _answered(connection, request)
            body: _Body | _Whole = _Body(connection, response, request.url)
            if response.status >= 300 or not request.stream_output:
                body = _Whole(b"".join(body.stream()))
        except BaseException:
            connection.close()
            raise
        answered: Any = dict(response.headers.items())
        return AWSResponse(request.url, response.status, answered, body)


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


def _answered(connection: http.client.HTTPConnection, request: Any) -> http.client.HTTPResponse:
    url = urlsplit(request.url)
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    headers = {name: _text(value) for name, value in request.headers.items()} | {"Connection": "close"}
    connection.request(request.method, target, body=request.body, headers=headers)
    return connection.getresponse()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def _timeouts_of(url: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise ReadTimeoutError(endpoint_url=url, error=error) from error


class _Timed:
    """A socket as http.client uses it, with one deadline for all that is sent and read: a socket's own timeout starts
    anew with each byte of a header, a frame or a body."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends = sock, ends

    def sendall(self, data: Any) -> None:
        self._sock.settimeout(_left(self._ends))
        self._sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Closing it closes the socket, if that was asked for meanwhile."""
        return io.BufferedReader(_TimedReads(self._sock, self._ends))

    def close(self) -> None:
        self._sock.close()


class _TimedReads(io.RawIOBase):
    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends = sock, ends
        self._reads: Any = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._ends))
        read: int | None = self._reads.readinto(buffer)
        return read

    def close(self) -> None:
        self._reads.close()
        super().close()


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for this call is over")
    return left


class _Body:
    """A body as it comes. Its connection is closed with its end, whatever that is, or by `close`."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, url: str) -> None:
        self._connection, self._response, self._url = connection, response, url

    def stream(self, **_: Any) -> Iterator[bytes]:
        try:
            while not self._response.isclosed():  # from Python 3.13 on it closes, socket and all, with the last byte
                with _timeouts_of(self._url):
                    part = self._response.read1(SLICE)
                if not part:
                    break  # before that, the end is an empty read
                yield part
            if self._response.length:  # http.client takes a cut body for a whole one
                raise http.client.IncompleteRead(b"", self._response.length)
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()
        self._connection.close()


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
