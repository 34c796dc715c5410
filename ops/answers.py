"""What an HTTP answer means to a command: its JSON, or which failure it is and whether it may pass."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx

from ops.exits import Exit, Failure

CODES = {401: Exit.FORBIDDEN, 403: Exit.FORBIDDEN, 404: Exit.NOT_FOUND, 410: Exit.NOT_FOUND, 409: Exit.REFUSED}
PASSING = {500, 502, 503, 504}  # API Gateway answers 500 and 503 for functions that died or were throttled
TOLD = 300  # characters of an answer that is not ours
UNKNOWN = "whether it was carried out is not known: look before you repeat it"
HINTS = {
    401: "this API may want a token: --token or NEVERDROP_TOKEN",
    403: "whose credentials are these, and may they call this route?",
    413: "send it as a file: python -m ops upload",
}


@dataclass(frozen=True)
class Trouble:
    """A request that was not answered as it should be. `after_s`: when the API wants to be asked again."""

    failure: Failure
    passing: bool
    after_s: float | None = None


def value_of(answer: httpx.Response) -> Any:
    """The JSON of an answer, whatever it is."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        raise Failure(Exit.UNREACHABLE, f"the API answered {answer.status_code} without JSON") from None


def json_of(answer: httpx.Response, *names: str) -> dict[str, Any]:
    """The JSON object of an answer, which has at least these names."""
    value = value_of(answer)
    missing = [name for name in names if not isinstance(value, dict) or name not in value]
    if missing or not isinstance(value, dict):
        lack = f"JSON without {missing[0]!r}" if missing else "JSON that is no object"
        raise Failure(Exit.UNREACHABLE, f"the API answered {answer.status_code} with {lack}: is it one of Neverdrop?")
    return value


def refused(answer: httpx.Response, *, repeatable: bool) -> Trouble:
    """An answer of 400 or above."""
    status = answer.status_code
    is_ours = answer.headers.get("content-type", "").startswith("application/problem+json")
    if status == 429 or status >= 500:
        invited = status == 503 and "retry-after" in answer.headers  # by us: asking once more is harmless
        passing = status == 429 or invited or (repeatable and status in PASSING)
        doubt = "" if passing or status not in PASSING else f"; {UNKNOWN}"
        told = f"the API answered {status}: {_told(answer)}{doubt}"
        return Trouble(Failure(Exit.UNREACHABLE, told), passing, _after(answer))
    if status == 404 and not is_ours:
        told = f"the API has no such route ({_told(answer)}): is the URL right, and the deployment not older than this?"
        return Trouble(Failure(Exit.UNREACHABLE, told), passing=False)
    hint = f"; {HINTS[status]}" if status in HINTS else ""
    return Trouble(Failure(CODES.get(status, Exit.USAGE), f"{_told(answer)}{hint}"), passing=False)


def unanswered(error: httpx.HTTPError, url: str, *, repeatable: bool) -> Trouble:
    """No answer at all. What never reached the API may always be sent again."""
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    told = f"no answer from {url}: {error or type(error).__name__}"
    if not (never_sent or repeatable):
        told = f"{told}; {UNKNOWN}"
    return Trouble(Failure(Exit.UNREACHABLE, told), passing=never_sent or repeatable)


def _after(answer: httpx.Response) -> float | None:
    written = answer.headers.get("retry-after", "")
    return float(written) if re.fullmatch(r"[0-9]{1,6}", written) else None


def _told(answer: httpx.Response) -> str:
    """What a problem says, with the places it points to; else what API Gateway or a proxy says."""
    try:
        body = answer.json()
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return answer.text[:TOLD].strip() or answer.reason_phrase
    if "detail" not in body:
        return str(body.get("message") or body.get("Message") or answer.reason_phrase)[:TOLD]
    errors = body.get("errors")
    places = [str(one["pointer"]) for one in errors if isinstance(one, dict) and one.get("pointer")] if errors else []
    return f"{body['detail']}{' (at ' + ', '.join(places) + ')' if places else ''}"
