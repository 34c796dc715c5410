"""Which URL may be registered, or given as `callback_url`: only what every reader of it takes for the same place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from lambdas.core.canonical import sha256_of
from lambdas.core.webhooks.addresses import why_not

URL_MAX = 2_048
PORTS = (443, 8443)
CALLBACK_ID = "callback-"

_FORM = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<authority>[^/?#]*)"
    r"(?P<path>/[^?#]*)?"
    r"(?P<query>\?[^#]*)?"
    r"(?P<fragment>#.*)?"
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_TARGET = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
HOST_MAX = 253
# names that mean something on the machine or in the network that asks, and nothing in the world
_OWN = ("localhost", "localdomain", "local", "internal", "home.arpa", "lan", "intranet", "corp", "onion")


@dataclass(frozen=True)
class Destination:
    """A URL that may be called. `host`: in lower case, an IPv6 address without its brackets. `target`: path and query,
    as they are sent."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """What the `Host` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"https": 443, "http": 80}[self.scheme]
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """Its one written form."""
        return self.origin + self.target


@dataclass(frozen=True)
class UnusableUrl:
    """Why it is not called, for the human who wrote it."""

    reason: str


class _Unusable(Exception):
    """Carries the reason."""


def read(url: str, *, local: bool = False) -> Destination | UnusableUrl:
    """Where this URL leads. Nothing is looked up: where its name leads is judged at each attempt (`addresses`).

    `local`: on a developer's machine, where receivers have no TLS, any port will do, and loopback."""
    try:
        return _read(url, local)
    except _Unusable as why:
        return UnusableUrl(str(why))


def callback_id(destination: Destination) -> str:
    """The endpoint id of all callback URLs of one origin: they share its circuit."""
    return CALLBACK_ID + sha256_of(destination.origin)[:16]


def _read(url: str, local: bool) -> Destination:
    if len(url) > URL_MAX:
        raise _Unusable(f"longer than {URL_MAX} characters")
    if not all("!" <= character <= "~" for character in url):
        raise _Unusable("only visible ASCII characters: a host in its xn-- form, the rest percent-encoded, no spaces")
    if "\\" in url:
        raise _Unusable("a backslash, which readers of URLs disagree on")
    found = _FORM.fullmatch(url)
    if found is None:
        raise _Unusable("no absolute URL of the form https://host/path")
    scheme = found["scheme"].lower()
    if scheme not in (("https", "http") if local else ("https",)):
        raise _Unusable(f"{scheme} is not https")
    if found["fragment"] is not None:
        raise _Unusable("a fragment (#…), which is never sent")
    target = (found["path"] or "/") + (found["query"] or "")
    if not _TARGET.fullmatch(target):
        raise _Unusable("characters in its path or query that must be percent-encoded")
    host, port = _place(found["authority"], scheme, local)
    return Destination(scheme, host, port, target)


def _place(authority: str, scheme: str, local: bool) -> tuple[str, int]:
    if "@" in authority:
        raise _Unusable("a user name or password in it; deliveries are authenticated by their signature")
    found = _AUTHORITY.fullmatch(authority)
    if found is None or not found["host"]:
        raise _Unusable("no host in it")
    return _host(found["host"].lower(), local), _port(found["port"], scheme, local)


def _port(written: str | None, scheme: str, local: bool) -> int:
    port = {"https": 443, "http": 80}[scheme] if written is None else int(written) if _PORT.fullmatch(written) else 0
    if local and 0 < port < 65_536:
        return port
    if port not in PORTS:
        raise _Unusable(f"its port is not one of {', '.join(map(str, PORTS))}")
    return port


def _host(host: str, local: bool) -> str:
    if host.startswith("["):
        return _public(_ipv6(host[1:-1]), local)
    if "%" in host:
        raise _Unusable("a percent sign in its host")
    if host.endswith("."):
        raise _Unusable("a dot at the end of its host")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        if not _QUAD.fullmatch(host):
            raise _Unusable("an IP address in an odd notation; write four decimal numbers, as in 93.184.216.34")
        return _public(host, local)
    if len(host) > HOST_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise _Unusable("its host is no name of letters, digits and hyphens, with dots between")
    if not local:
        _refuse_own_names(host, labels)
    return host


def _refuse_own_names(host: str, labels: list[str]) -> None:
    if any(host == own or host.endswith(f".{own}") for own in _OWN) or len(labels) == 1:
        raise _Unusable("its host is a name of a machine or a private network, not of the public internet")


def _ipv6(written: str) -> str:
    try:
        if "%" in written:
            raise ValueError(written)
        address = ip_address(written)
    except ValueError:
        raise _Unusable("the brackets in it hold no IPv6 address") from None
    if not isinstance(address, IPv6Address):
        raise _Unusable("the brackets in it hold no IPv6 address")
    return str(address)  # its one form: two notations are no two endpoints


def _public(address: str, local: bool) -> str:
    reason = why_not([address], local=local)
    if reason:
        raise _Unusable(reason)
    return address
