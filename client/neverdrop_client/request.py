"""A request before it is sent: what it asks for, and whether it can be written at all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from neverdrop_client.errors import BadArgument

RESULT_ANSWERS = (200, 202, 303)  # 303 leads to a large result
UNWRITABLE = "the request cannot be written: it has characters that no request can carry"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")


@dataclass(frozen=True)
class Request:
    """`repeatable`: doing it twice is doing it once, so an unknown outcome may be settled by asking again. `answers`:
    the statuses that Neverdrop answers with; none named: any of 2xx."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    answers: tuple[int, ...] = ()

    @property
    def target(self) -> str:
        asked = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(asked, quote_via=quote, errors='surrogateescape')}" if asked else self.path

    def is_answer(self, status: int) -> bool:
        return status in self.answers if self.answers else 200 <= status < 300


@dataclass(frozen=True)
class Written:
    """A request as it goes over the wire, each time that it does."""

    method: str
    target: str
    content: bytes | None
    headers: Mapping[str, str]


def written(request: Request) -> Written:
    """Raises BadArgument for what UTF-8 cannot say (half of a surrogate pair), and no header can carry."""
    headers = dict(request.headers) if request.body is None else {"Content-Type": "application/json", **request.headers}
    check_headers(headers)
    with suppress(UnicodeEncodeError):  # it holds all of the body: it is to be no context of what is raised
        content = None if request.body is None else request.body.encode()
        return Written(request.method, request.target, content, headers)
    raise BadArgument(UNWRITABLE)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises BadArgument. Values may be secrets: it names the header alone."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise BadArgument("a header's name has letters, digits and hyphens")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise BadArgument(f"the header {name} may have printable ASCII only, and no space or line's end around it")


def json_text(value: Any) -> str:
    """The JSON of a value. Raises BadArgument for one that has none."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, TypeError) else type(error).__name__
    raise BadArgument(f"that is no JSON: {why}")


def path_of(*parts: str) -> str:
    """A path in which no id can leave its place. Raises BadArgument."""
    return "".join("/" + _segment(part) for part in parts)


def _segment(part: str) -> str:
    if part not in ("", ".", "..") and len(part) <= 256:
        with suppress(UnicodeEncodeError):
            return quote(part, safe="", errors="surrogateescape")
    raise BadArgument(f"{part!r} is no id")


def api_url(url: str) -> str:
    """The API's address as requests begin with it. Raises BadArgument."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):  # their messages have parts of it, which may be a password
        parsed = None
    if parsed is None:
        raise BadArgument("the API's address is no URL")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo or parsed.query or parsed.fragment:
        raise BadArgument("the API's address is a scheme, a host and a path, like https://api.example.com")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        raise BadArgument("the API's address must be https:// unless it is on this machine: what lets you in is secret")
    return url.rstrip("/")


def is_local(url: str) -> bool:
    """The local runtime, which speaks no TLS: no proxy leads there. Who does speak it is a host like any other, with
    certificates that the environment may name. Raises httpx.InvalidURL."""
    parsed = httpx.URL(url)
    return parsed.scheme == "http" and is_loopback(parsed.host)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
