"""The Poster port: one POST to where a stranger's URL leads, if that is on the public internet.

The address that was checked is the one that is connected to: nothing is looked up twice. One deadline spans all of it,
for a receiver that sends a byte a second would outlast any timeout that starts anew with each packet. No redirect is
followed, no proxy is used, no connection is kept."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from ipaddress import ip_address

from botocore.httpsession import get_cert_path

from lambdas.adapters.answered import Cut, Heard, Malformed, read_answer
from lambdas.core.webhooks import urls
from lambdas.core.webhooks.addresses import why_not
from lambdas.core.webhooks.ports import Answer, Undelivered
from lambdas.core.webhooks.urls import Destination

USER_AGENT = "Neverdrop-Webhooks/1"
_HEADER = re.compile(r"[!-~][ -~]*", re.ASCII)

Resolve = Callable[[str, int, float], Sequence[str]]  # name, port, seconds: addresses. Raises Undelivered
Connect = Callable[[str, int, float], socket.socket]  # address, port, seconds. Raises OSError


class CheckedPoster:
    """`local`: as `core.webhooks.urls` and `addresses` mean it. `resolve`, `connect`, `trust`: how names are looked up,
    sockets opened and certificates judged."""

    def __init__(
        self,
        *,
        local: bool = False,
        resolve: Resolve | None = None,
        connect: Connect | None = None,
        trust: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._local = local
        self._resolve, self._connect, self._trust = resolve or look_up, connect or connected, trust or public_trust

    def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> Answer:
        started = time.monotonic()
        ends = started + timeout_s
        destination = urls.read(url, local=self._local)
        if isinstance(destination, urls.UnusableUrl):
            raise Undelivered("address", destination.reason)
        request = _written(destination, headers, body)
        with self._opened(destination, self._addresses(destination, ends), ends) as connection:
            heard = _exchanged(connection, request, ends)
        return Answer(heard.status, heard.retry_after, heard.excerpt, int((time.monotonic() - started) * 1000))

    def _addresses(self, destination: Destination, ends: float) -> Sequence[str]:
        """Where it may be connected to: each address of its name has been looked at."""
        host = destination.host
        if _is_address(host):
            found: Sequence[str] = [host]
        else:  # the dot keeps a resolver from trying the name in domains of its own network
            found = self._resolve(host if self._local else f"{host}.", destination.port, _left(ends))
        reason = why_not(found, local=self._local)
        if reason:
            raise Undelivered("address", reason)
        return found

    def _opened(self, destination: Destination, addresses: Sequence[str], ends: float) -> socket.socket:
        """Connected to the first of them that lets itself be; each has its share of the time that is left."""
        trouble = "nobody answered"
        for at, address in enumerate(addresses):
            share = _left(ends) / (len(addresses) - at)
            try:
                plain = self._connect(address, destination.port, share)
            except OSError as error:
                trouble = f"{address}: {error.strerror or type(error).__name__}"
                continue
            return self._secured(plain, destination.host, ends) if destination.scheme == "https" else plain
        raise Undelivered("connect", trouble)

    def _secured(self, plain: socket.socket, host: str, ends: float) -> socket.socket:
        try:
            plain.settimeout(_left(ends))
            return self._trust().wrap_socket(plain, server_hostname=host)
        except TimeoutError:
            raise Undelivered("timeout", "no TLS handshake in the time for one attempt") from None
        except ssl.SSLCertVerificationError as error:
            raise Undelivered("tls", f"its certificate does not hold: {error.verify_message}") from error
        except OSError as error:
            raise Undelivered("tls", f"no TLS handshake: {getattr(error, 'reason', None) or error.strerror}") from error
        finally:
            plain.close()  # wrapped, it has given its connection away


def _exchanged(connection: socket.socket, request: bytes, ends: float) -> Heard:
    def left() -> float:
        return _left(ends)

    try:
        with suppress(ConnectionError):  # who has heard enough may answer before all is said
            _sent(connection, request, ends)
        return read_answer(connection, left)
    except TimeoutError:
        raise Undelivered("timeout", "no answer in the time for one attempt") from None
    except Malformed as error:
        raise Undelivered("malformed", str(error)) from error
    except Cut as error:
        raise Undelivered("cut", str(error)) from error
    except OSError as error:
        raise Undelivered("cut", f"the connection broke: {error.strerror or type(error).__name__}") from error


def _sent(connection: socket.socket, request: bytes, ends: float) -> None:
    rest = memoryview(request)
    while rest:
        connection.settimeout(_left(ends))
        rest = rest[connection.send(rest) :]


def _written(destination: Destination, headers: Mapping[str, str], body: bytes) -> bytes:
    """The request to the byte. A header that could end another is a mistake of ours: ValueError."""
    fields = {
        "host": destination.authority,
        "user-agent": USER_AGENT,
        "accept": "*/*",
        "accept-encoding": "identity",
        **{name.lower(): value for name, value in headers.items()},
        "content-length": str(len(body)),
        "connection": "close",
    }
    for name, value in fields.items():
        if not _HEADER.fullmatch(value):
            raise ValueError(f"the header {name} cannot be written")
    lines = [f"POST {destination.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise Undelivered("timeout", "the time for one attempt is over")
    return left


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def look_up(name: str, port: int, timeout_s: float) -> Sequence[str]:
    """All addresses of a name, as the system resolves it, in its order. Raises Undelivered.

    `getaddrinfo` has no timeout, and none can be given to it: it is asked in a thread of its own, which is left behind
    when the time is over. That thread does nothing else, and ends when the resolver gives up (with glibc 5 s a server,
    twice, unless RES_OPTIONS says otherwise): so many of them there can be at worst as attempts in that time."""
    found: list[str] = []
    trouble: list[str] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError) as error:
            trouble.append(getattr(error, "strerror", None) or type(error).__name__)
        else:
            found.extend(dict.fromkeys(str(answer[4][0]) for answer in answers))

    asking = threading.Thread(target=ask, name="lookup", daemon=True)
    asking.start()
    asking.join(timeout_s)
    if asking.is_alive():
        raise Undelivered("timeout", "its name was not resolved in the time for one attempt")
    if trouble:
        raise Undelivered("lookup", f"its name was not resolved: {trouble[0]}")
    return found


def connected(address: str, port: int, timeout_s: float) -> socket.socket:
    """To this very address: no name is looked up here. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    plain = socket.socket(family, socket.SOCK_STREAM)
    try:
        plain.settimeout(timeout_s)
        plain.connect((address, port))
    except BaseException:
        plain.close()
        raise
    return plain


@cache
def public_trust() -> ssl.SSLContext:
    """The certificates that botocore brings and trusts."""
    context = ssl.create_default_context(cafile=get_cert_path(True))
    context.set_alpn_protocols(["http/1.1"])
    return context
