"""Requests: asked again where that is safe, and raised as what they are where they are refused."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from neverdrop_client.errors import BadArgument, Conflict, NeverdropError, NoAnswer, Refused, Unexpected, refusal
from neverdrop_client.request import UNWRITABLE, Request, Written, api_url, check_headers, is_local, written

PATIENCE_S, CONNECT_S = 35.0, 5.0  # API Gateway itself gives up after 30 s
PATIENCE = httpx.Timeout(PATIENCE_S, connect=CONNECT_S)
LEAST_S = 1.0  # for an attempt, however little time there is: an answer needs some
ATTEMPTS, FETCH_ATTEMPTS = 5, 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
WHOSE = "is it one of Neverdrop?"
CLOSED = "this client was closed"
_NEVER_WRITTEN = (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeEncodeError)
PASSING = {500, 502, 503, 504}  # API Gateway answers 500 and 503 for functions that died or were throttled


@dataclass(frozen=True)
class Retry:
    """A request that will be made once more: why, and after which pause."""

    error: NeverdropError
    pause_s: float


@dataclass(frozen=True)
class _Trouble:
    """`passes`: asked again, it may be answered. `maybe_done`: it may have been carried out all the same."""

    error: NeverdropError
    passes: bool = False
    maybe_done: bool = False
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
        self.url = api_url(url)
        check_headers(headers or {})
        self._on_retry = on_retry
        self.is_here = is_local(self.url)
        self._client = httpx.Client(
            auth=auth, headers=headers, transport=transport, timeout=PATIENCE, trust_env=not self.is_here
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        request: Request,
        *,
        attempts: int = ATTEMPTS,
        patience_s: float = 0.0,
        pause: Callable[[float], None] | None = None,
    ) -> httpx.Response:
        """The answer, if it is one that Neverdrop gives. What is throttled or fails in passing is asked again, longer
        apart each time, until it was asked so often and for so long. `pause`: what to do instead of sleeping."""
        return self._asked(request, attempts, patience_s, pause or time.sleep)

    def ask_within(self, request: Request, seconds: float) -> httpx.Response:
        """The same, as often as there is time for; then it is over, also for an attempt that nobody answers."""
        return self._asked(request, 1, seconds, time.sleep, ends=True)

    def _asked(
        self,
        request: Request,
        attempts: int,
        patience_s: float,
        pause: Callable[[float], None],
        *,
        ends: bool = False,
    ) -> httpx.Response:
        """`ends`: no attempt takes longer than there is patience left."""
        message, asked_before, attempt = written(request), False, 0
        until = time.monotonic() + patience_s
        while True:
            attempt += 1
            outcome = self._once(request, message, until - time.monotonic() if ends else None)
            if isinstance(outcome, httpx.Response):
                return outcome
            left_s = until - time.monotonic() if attempt >= attempts else LONGEST_PAUSE_S
            if not outcome.passes or left_s <= 0:
                raise _repeated(outcome.error) if asked_before else outcome.error
            asked_before = asked_before or outcome.maybe_done
            self._rest(outcome, attempt, left_s, pause)

    def _rest(self, trouble: _Trouble, attempt: int, most_s: float, pause: Callable[[float], None]) -> None:
        """Between two attempts."""
        grown = random.uniform(0.5, 1.0) * FIRST_PAUSE_S * 2.0 ** min(attempt, 8)  # noqa: S311
        seconds = min(trouble.after_s or grown, LONGEST_PAUSE_S, most_s)
        if self._on_retry is not None:
            self._on_retry(Retry(trouble.error, seconds))
        pause(seconds)

    def _once(self, request: Request, message: Written, left_s: float | None) -> httpx.Response | _Trouble:
        """Whoever hears of a retry, or another thread, may have closed the client meanwhile."""
        if self._client.is_closed:
            return _Trouble(BadArgument(CLOSED))
        try:
            answer = self._client.request(
                message.method, self.url + message.target, content=message.content, headers=message.headers,
                timeout=_timeout(left_s),
            )  # fmt: skip
        except _NEVER_WRITTEN:
            return _Trouble(BadArgument(UNWRITABLE))  # their messages may have a secret
        except httpx.HTTPError as error:
            return _unanswered(error, self.url, repeatable=request.repeatable)
        except RuntimeError:  # httpx's own word for it
            if not self._client.is_closed:
                raise
            return _Trouble(BadArgument(CLOSED))
        if answer.status_code >= 400:
            return _refused(answer, repeatable=request.repeatable)
        if not request.is_answer(answer.status_code):
            return _Trouble(Unexpected(f"the API answered {answer.status_code} to {message.method}: {WHOSE}"))
        return answer


def fetch(url: str) -> Any:
    """The JSON that a presigned URL leads to. It is all the right that is needed: no identity goes along."""
    for attempt in range(1, FETCH_ATTEMPTS + 1):
        try:
            with httpx.Client(timeout=PATIENCE, trust_env=not is_local(url)) as client:
                answer = client.get(url)
        except _NEVER_WRITTEN:
            told, passes = "the API answered with an address that is none", False
        except httpx.HTTPError as error:  # whose message may have the URL, which is a secret
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
        raise Unexpected(f"the API answered {answer.status_code} with {lack}: {WHOSE}")
    return value


def _refused(answer: httpx.Response, *, repeatable: bool) -> _Trouble:
    status = answer.status_code
    invited = status == 503 and "retry-after" in answer.headers  # by Neverdrop itself: asking once more is harmless
    passes = status == 429 or invited or (repeatable and status in PASSING)
    maybe_done = status in PASSING
    return _Trouble(refusal(answer, in_doubt=not passes and maybe_done), passes, maybe_done, _after(answer))


def _unanswered(error: httpx.HTTPError, url: str, *, repeatable: bool) -> _Trouble:
    """No answer at all. What never reached the API may always be sent again."""
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError)
    passes = never_sent or repeatable
    told = NoAnswer(f"no answer from {url}: {error or type(error).__name__}", in_doubt=not passes)
    return _Trouble(told, passes, maybe_done=not never_sent)


def _after(answer: httpx.Response) -> float | None:
    """Seconds until the API wants to be asked again: it says so in seconds or as a date."""
    written = answer.headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,6}", written):
        return float(written)
    try:
        return max(0.0, (parsedate_to_datetime(written) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _repeated(error: NeverdropError) -> NeverdropError:
    """Of a request that may have been carried out before."""
    if isinstance(error, BadArgument):
        return NoAnswer(str(error), in_doubt=False)
    if isinstance(error, Refused):
        error.asked_before = True
    if isinstance(error, Conflict):
        error.args = (f"{error}; it was asked for more than once: an earlier request may have done it",)
    return error


def _timeout(left_s: float | None) -> httpx.Timeout:
    """For one attempt."""
    if left_s is None:
        return PATIENCE
    longest = max(left_s, LEAST_S)
    return httpx.Timeout(min(longest, PATIENCE_S), connect=min(longest, CONNECT_S))


class _WithoutSignature(logging.Filter):
    """httpx logs each URL that it asks for; one that is presigned is a secret for as long as it lives."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_unsigned(one) if isinstance(one, httpx.URL) else one for one in record.args)
        return True


def _unsigned(url: httpx.URL) -> httpx.URL:
    return url.copy_with(query=None) if "x-amz-signature" in str(url).lower() else url


logging.getLogger("httpx").addFilter(_WithoutSignature())
