"""Where the API is, and how a request is let in: unsigned on this machine, else SigV4 or a token."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from ipaddress import ip_address

import httpx

from ops.exits import Exit, Failure, usage

LOCAL_RUNTIME = "http://127.0.0.1:8080"  # where `make run` listens
LOOK = httpx.Timeout(5.0, connect=1.0)  # its first answer may have to load a function
EXECUTE_API = re.compile(r".+\.execute-api(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)")
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
        """What lets a request in. Failure without credentials, or without a region to sign for."""
        if self.is_local:  # no secret leaves for whoever listens on a port of this machine
            return Headers({"X-Local-Tenant": self.tenant} if self.tenant else {})
        if self.token and not admin:
            return Headers({"Authorization": f"Bearer {self.token}"})
        return Signature(httpx.URL(self.url).host, self.profile, self.region)


def reach(url: str | None, token: str | None, tenant: str | None, profile: str | None, region: str | None) -> Access:
    """The API that is meant: the one named, else the local runtime if it answers. Failure when that is none."""
    _check("--token", token)
    _check("--tenant", tenant)
    access = Access(_valid(url) if url else _local_runtime(), token, tenant, profile, region)
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


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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


class Signature(httpx.Auth):
    """AWS Signature Version 4 for `execute-api`, by the credentials that the AWS CLI would use."""

    requires_request_body = True

    def __init__(self, host: str, profile: str | None, region: str | None) -> None:
        self._sign = _signer(host, profile, region)

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers.update(self._sign(request))
        yield request


def _signer(host: str, profile: str | None, region: str | None) -> Callable[[httpx.Request], dict[str, str]]:
    from botocore.auth import SigV4Auth  # noqa: PLC0415  half a second that the local runtime need not wait for
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ProfileNotFound  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    session = Session(profile=profile)
    try:
        named = EXECUTE_API.fullmatch(host)
        region = region or (named[1] if named else session.get_config_variable("region"))
        credentials = session.get_credentials()
    except ProfileNotFound as error:
        raise usage(str(error)) from None
    except BotoCoreError as error:
        raise Failure(Exit.FORBIDDEN, f"no AWS credentials: {error}") from None
    if credentials is None:
        fix = "aws configure sso, or name a profile with --profile or AWS_PROFILE"
        raise Failure(Exit.FORBIDDEN, f"no AWS credentials to sign with: {fix}")
    if not region:
        raise usage(f"which region is {host} in? Say so with --region")

    def sign(request: httpx.Request) -> dict[str, str]:
        signed = AWSRequest(request.method, str(request.url), data=request.content)
        try:
            SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(signed)
        except BotoCoreError as error:
            raise Failure(Exit.FORBIDDEN, f"no AWS credentials: {error}; perhaps: aws sso login") from None
        return dict(signed.headers.items())

    return sign
