"""What lets a request in: a token, or Signature Version 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx

from neverdrop_client.errors import BadArgument, NoCredentials, NoRegion

if TYPE_CHECKING:
    from botocore.session import Session

_EXECUTE_API = re.compile(r".+\.execute-api(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)")

_TOKEN = re.compile(r"[!-~](?:[ -~]*[!-~])?")

Flow = Generator[httpx.Request, httpx.Response, None]


class BearerAuth(httpx.Auth):
    """A token, asked for with each request: whoever makes them knows when a new one is due. White space around it is
    none of it (files end in a line's end); one that no header can carry is a BadArgument, which does not show it."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Flow:
        token = self._token()
        if not isinstance(token, str) or not _TOKEN.fullmatch(token.strip()):
            raise BadArgument("the token is empty, or has characters that no header can carry")
        request.headers["Authorization"] = f"Bearer {token.strip()}"
        yield request


class SigV4(httpx.Auth):
    """AWS Signature Version 4 for `execute-api`, by the credentials that the AWS CLI would use. Needs botocore
    (`neverdrop-client[sigv4]`). The region is the one named, the host's own, or the configured one, in this order."""

    requires_request_body = True

    def __init__(self, *, profile: str | None = None, region: str | None = None) -> None:
        self._profile, self._region = profile, region

    def auth_flow(self, request: httpx.Request) -> Flow:
        request.headers.update(self._signed(request))
        yield request

    @cached_property
    def _session(self) -> Session:
        from botocore.session import Session  # noqa: PLC0415  half a second that who has a token need not wait for

        return Session(profile=self._profile)

    @cached_property
    def _credentials(self) -> Any:
        from botocore.exceptions import BotoCoreError, ProfileNotFound  # noqa: PLC0415

        try:
            found = self._session.get_credentials()
        except ProfileNotFound as error:
            raise BadArgument(str(error)) from None
        except BotoCoreError as error:
            raise NoCredentials(f"no AWS credentials: {error}") from None
        if found is None:
            raise NoCredentials("no AWS credentials to sign with")
        return found

    def _region_of(self, host: str) -> str:
        named = _EXECUTE_API.fullmatch(host)
        region = self._region
        if region is None:
            region = named[1] if named else self._session.get_config_variable("region")
        if not region:
            raise NoRegion(f"which region is {host} in?")
        return str(region)

    def _signed(self, request: httpx.Request) -> dict[str, str]:
        from botocore.auth import SigV4Auth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        credentials, region = self._credentials, self._region_of(request.url.host)
        signed = AWSRequest(request.method, str(request.url), data=request.content)
        try:
            SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(signed)
        except BotoCoreError as error:
            raise NoCredentials(f"no AWS credentials: {error}") from None
        return dict(signed.headers.items())
