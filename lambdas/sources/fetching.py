"""One GET of a stranger's list: encrypted, bounded in time and bytes, and led nowhere else."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from urllib.parse import SplitResult, urlsplit

from lambdas.core.ports import Unavailable

CONNECT_S = 5.0
SLICE = 65_536
BUSY = (429, 502, 503, 504)
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def get(url: str, headers: Mapping[str, str], *, seconds: float, most: int) -> bytes:
    """The body of a 200. Raises Unavailable for anything else; `throttled` for those of `BUSY`. `seconds`: from the
    connection on all of it together, as a timeout of each read would let an answer drip without end."""
    place = urlsplit(url)
    connection, deadline = _connection(place), _Deadline()
    try:
        connection.connect()
        connection.sock.settimeout(seconds + CONNECT_S)  # it had been told how long to connect; the deadline is nearer
        deadline.begin(connection.sock, seconds)
        body = _exchanged(connection, place, headers, most)
        deadline.refuse_what_was_cut()
        return body
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = f"no whole answer within {seconds:g} s" if deadline.is_over else f"{type(error).__name__}: {error}"
        raise Unavailable(f"GET {place.hostname}: {why}", unknown=False) from error
    finally:
        deadline.end()
        connection.close()


class _Deadline:
    """Cuts a connection when its time is over, from a thread that is gone when `end` returns."""

    def __init__(self) -> None:
        self.is_over = False
        self._timer: threading.Timer | None = None

    def begin(self, sock: socket.socket, seconds: float) -> None:
        """The connection itself forgets its socket with the headers of an answer."""
        self._timer = threading.Timer(seconds, self._cut, (sock,))
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def refuse_what_was_cut(self) -> None:
        """To http.client a connection that was closed among the headers is the end of them."""
        if self.is_over:
            raise TimeoutError

    def _cut(self, sock: socket.socket) -> None:
        self.is_over = True
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _connection(place: SplitResult) -> http.client.HTTPConnection:
    host = place.hostname or ""
    if place.scheme == "https" and host:
        return http.client.HTTPSConnection(host, place.port, timeout=CONNECT_S, context=_trust())
    if place.scheme == "http" and host in LOOPBACK:
        return http.client.HTTPConnection(host, place.port, timeout=CONNECT_S)
    raise Unavailable(f"{place.scheme}://{host} is not asked: a list is read over https", unknown=False)


def _exchanged(
    connection: http.client.HTTPConnection, place: SplitResult, headers: Mapping[str, str], most: int
) -> bytes:
    target = f"{place.path or '/'}?{place.query}" if place.query else place.path or "/"
    connection.request("GET", target, headers={**headers, "Connection": "close"})
    with connection.getresponse() as response:
        if response.status != http.client.OK:
            why = f"GET {place.hostname}: it answered {response.status}"
            raise Unavailable(why, unknown=False, throttled=response.status in BUSY)
        return _read(response, most)


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    body = bytearray()
    while not response.isclosed():  # from Python 3.13 on it closes with the last byte
        part = response.read1(SLICE)
        if not part:
            break
        body += part
        if len(body) > most:
            raise ValueError(f"a page of more than {most:,} bytes")
    if response.length:  # http.client takes a cut body for a whole one
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()
