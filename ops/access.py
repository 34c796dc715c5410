"""Where the API is, and how a request is let in: unsigned on this machine, else SigV4 or a token."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field

import httpx

from neverdrop_client import BearerAuth, SigV4
from neverdrop_client.request import is_loopback
from ops.exits import Exit, Failure, usage

LOCAL_RUNTIME = "http://127.0.0.1:8080"  # where `make run` listens
LOOK = httpx.Timeout(5.0, connect=1.0)  # its first answer may have to load a function
HOST = re.compile(rb"[\w.:-]+")
HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?")  # what may stand in a header as it is

Flow = Generator[httpx.Request, httpx.Response, None]


@dataclass(frozen=True)
class Access:
    """One API. Routes of operators are always signed; those of tenants take the token where there is one."""

    url: str
    token: str | None = field(default=None, repr=False)
    tenant: str | None = None
    profile: str | None = None
    region: str | None = None

    @property
    def is_local(self) -> bool:
        return is_local(httpx.URL(self.url))

    def pass_for(self, *, admin: bool) -> httpx.Auth:
        """What lets a request in."""
        if self.is_local:  # no secret leaves for whoever listens on a port of this machine
            return Headers({"X-Local-Tenant": self.tenant} if self.tenant else {})
        if self.token and not admin:
            token = self.token
            return BearerAuth(lambda: token)
        return SigV4(profile=self.profile, region=self.region)


def reach(url: str | None, token: str | None, tenant: str | None, profile: str | None, region: str | None) -> Access:
    """The API that is meant: the one named, else the local runtime if it answers. Failure when that is none."""
    _check("--token", token)
    _check("--tenant", tenant)
    access = Access(_local_runtime() if url is None else _valid(url), token, tenant, profile, region)
    if tenant and not access.is_local:
        raise usage("--tenant is for the local runtime; a deployed API takes the tenant from your verified identity")
    return access


def _valid(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise usage(f"--url is no URL: {error}") from None
    if parsed.scheme not in ("http", "https") or not HOST.fullmatch(parsed.raw_host):
        raise usage("--url must be https://…, or http:// on this machine")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise usage("--url takes a scheme, a host and a path: no user, no query")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        raise usage("--url must be https:// for anything but this machine: signatures and tokens are secrets")
    return url.rstrip("/")


def is_local(url: httpx.URL) -> bool:
    """The local runtime, which speaks no TLS. Who does, and has a certificate that counts, is trusted like any host."""
    return url.scheme == "http" and is_loopback(url.host)


def _local_runtime() -> str:
    try:
        answer = httpx.get(f"{LOCAL_RUNTIME}/health", timeout=LOOK, trust_env=False)
        found = answer.status_code == 200 and answer.json().get("status") == "ok"
    except (httpx.HTTPError, ValueError, AttributeError):
        found = False
    if not found:
        where = f"no Neverdrop answers at {LOCAL_RUNTIME}: start one with `make run`"
        raise Failure(Exit.UNREACHABLE, f"{where}, or name a deployed API with --url or NEVERDROP_URL")
    return LOCAL_RUNTIME


def _check(option: str, value: str | None) -> None:
    if value is not None and not HEADER.fullmatch(value):  # the value itself may be a secret
        raise usage(f"{option} may have printable ASCII only")


class Headers(httpx.Auth):
    """Says who asks in plain headers."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers.update(self._headers)
        yield request
