"""Requests: asked again where that is safe, and raised as what they are where they are refused."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from neverdrop_client.errors import BadArgument, Conflict, NeverdropError, NoAnswer, Unexpected, refusal

PATIENCE = httpx.Timeout(35.0, connect=5.0)  # API Gateway itself gives up after 30 s
ATTEMPTS, FETCH_ATTEMPTS = 5, 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
PASSING = {500, 502, 503, 504}  # API Gateway answers 500 and 503 for functions that died or were throttled


@dataclass(frozen=True)
class Request:
    """`repeatable`: doing it twice is doing it once, so an unknown outcome may be settled by asking again."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True

    @property
    def target(self) -> str:
        asked = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(asked, quote_via=quote, errors='surrogateescape')}" if asked else self.path


@dataclass(frozen=True)
class Retry:
    """A request that will be made once more: why, and after which pause."""

    error: NeverdropError
    pause_s: float


@dataclass(frozen=True)
class _Trouble:
    error: NeverdropError
    passes: bool
    after_s: float | None = None


class Http:
    """One API. Threads may share it."""

    def __init__(
        self,
        url: str,
        *,
        auth: httpx.Auth | None,
        headers: Mapping[str, str] | None,
        on_retry: Callable[[Retry], None] | None,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self.url = _checked(url)
        self._on_retry = on_retry
        self.is_here = is_local(self.url)
        self._client = httpx.Client(
            auth=auth, headers=headers, transport=transport, timeout=PATIENCE, trust_env=not self.is_here
        )

    def close(self) -> None:
        self._client.close()

    def ask(self, request: Request, *, attempts: int = ATTEMPTS, patience_s: float = 0.0) -> httpx.Response:
        """The answer below 400. What is throttled or fails in passing is asked again, longer apart each time, until it
        was asked so often and for so long."""
        began = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            trouble = self._once(request)
            if isinstance(trouble, httpx.Response):
                return trouble
            left_s = patience_s - (time.monotonic() - began)
            if not trouble.passes or (attempt >= attempts and left_s <= 0):
                raise _in_doubt(trouble.error) if attempt > 1 else trouble.error
            grown = random.uniform(0.5, 1.0) * FIRST_PAUSE_S * 2.0 ** min(attempt, 8)  # noqa: S311
            pause = min(trouble.after_s or grown, LONGEST_PAUSE_S, left_s if attempt >= attempts else LONGEST_PAUSE_S)
            if self._on_retry:
                self._on_retry(Retry(trouble.error, pause))
            time.sleep(pause)

    def _once(self, request: Request) -> httpx.Response | _Trouble:
        headers = {"Content-Type": "application/json", **request.headers} if request.body else dict(request.headers)
        content = request.body.encode() if request.body else None
        try:
            answer = self._client.request(request.method, self.url + request.target, content=content, headers=headers)
        except httpx.HTTPError as error:
            return _unanswered(error, self.url, repeatable=request.repeatable)
        return answer if answer.status_code < 400 else _refused(answer, repeatable=request.repeatable)


def fetch(url: str) -> Any:
    """The JSON that a presigned URL leads to. It is all the right that is needed: no identity goes along."""
    for attempt in range(1, FETCH_ATTEMPTS + 1):
        try:
            with httpx.Client(timeout=PATIENCE, trust_env=not is_local(url)) as client:
                answer = client.get(url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:  # whose message may have the URL, which is a secret
            told, passes = f"S3 gave no answer: {type(error).__name__}", isinstance(error, httpx.TransportError)
        else:
            if answer.is_success:
                return value_of(answer)
            told, passes = f"S3 answered {answer.status_code}", answer.status_code >= 500
        if attempt == FETCH_ATTEMPTS or not passes:
            break
        time.sleep(FIRST_PAUSE_S * 2.0**attempt)
    raise NoAnswer(told, in_doubt=False)


def value_of(answer: httpx.Response) -> Any:
    """The JSON of an answer, whatever it is."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        raise Unexpected(f"the API answered {answer.status_code} without JSON") from None


def json_of(answer: httpx.Response, *names: str) -> dict[str, Any]:
    """The JSON object of an answer, which has at least these names."""
    value = value_of(answer)
    missing = [name for name in names if not isinstance(value, dict) or name not in value]
    if missing or not isinstance(value, dict):
        lack = f"JSON without {missing[0]!r}" if missing else "JSON that is no object"
        raise Unexpected(f"the API answered {answer.status_code} with {lack}: is it one of Neverdrop?")
    return value


def path_of(*parts: str) -> str:
    """A path in which no id can leave its place."""
    for part in parts:
        if part in ("", ".", "..") or len(part) > 256:
            raise BadArgument(f"{part!r} is no id")
    return "".join("/" + quote(part, safe="", errors="surrogateescape") for part in parts)


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


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise BadArgument(f"the API's address is no URL: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo or parsed.query or parsed.fragment:
        raise BadArgument("the API's address is a scheme, a host and a path, like https://api.example.com")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        raise BadArgument("the API's address must be https:// unless it is on this machine: what lets you in is secret")
    return url.rstrip("/")


def _refused(answer: httpx.Response, *, repeatable: bool) -> _Trouble:
    status = answer.status_code
    invited = status == 503 and "retry-after" in answer.headers  # by Neverdrop itself: asking once more is harmless
    passes = status == 429 or invited or (repeatable and status in PASSING)
    return _Trouble(refusal(answer, in_doubt=not passes and status in PASSING), passes, _after(answer))


def _unanswered(error: httpx.HTTPError, url: str, *, repeatable: bool) -> _Trouble:
    """No answer at all. What never reached the API may always be sent again."""
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    passes = never_sent or repeatable
    told = NoAnswer(f"no answer from {url}: {error or type(error).__name__}", in_doubt=not passes)
    return _Trouble(told, passes)


def _after(answer: httpx.Response) -> float | None:
    """Seconds until the API wants to be asked again: it says so in seconds or as a date."""
    written = answer.headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,6}", written):
        return float(written)
    try:
        return max(0.0, (parsedate_to_datetime(written) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _in_doubt(error: NeverdropError) -> NeverdropError:
    if isinstance(error, Conflict):
        error.args = (f"{error}; it was asked for more than once: an earlier request may have done it",)
    return error


class _WithoutSignature(logging.Filter):
    """httpx logs each URL that it asks for; one that is presigned is a secret for as long as it lives."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_unsigned(one) if isinstance(one, httpx.URL) else one for one in record.args)
        return True


def _unsigned(url: httpx.URL) -> httpx.URL:
    return url.copy_with(query=None) if "x-amz-signature" in str(url).lower() else url


logging.getLogger("httpx").addFilter(_WithoutSignature())
