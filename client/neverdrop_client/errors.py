"""What can go wrong, by what there is to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

TOLD = 300  # characters of an answer that is not the API's own
UNKNOWN = "whether it was carried out is not known: look before you repeat it"


class NeverdropError(Exception):
    """Everything that this package raises. `idempotency_key`: of the submission that failed, to repeat it with."""

    idempotency_key: str | None = None


class BadArgument(NeverdropError, ValueError):
    """Nothing was sent: the API would not take that."""


class NoRegion(BadArgument):
    """Nothing says which region to sign for."""


class StreamClosed(NeverdropError):
    """The stream was closed before its text was whole."""


class NoCredentials(NeverdropError):
    """There are no AWS credentials to sign with."""


class NoAnswer(NeverdropError):
    """The API cannot be reached, or the answer was lost. `in_doubt`: it may have been carried out all the same."""

    def __init__(self, message: str, *, in_doubt: bool) -> None:
        super().__init__(f"{message}; {UNKNOWN}" if in_doubt else message)
        self.in_doubt = in_doubt


class Unexpected(NeverdropError):
    """An answer that Neverdrop does not give."""


class Refused(NeverdropError):
    """An answer of 400 or above. `problem` is its body (RFC 9457), or whatever JSON object came instead.
    `asked_before`: an earlier request for the same may have been carried out, its answer was lost."""

    asked_before = False

    def __init__(self, answer: httpx.Response, *, in_doubt: bool = False) -> None:
        self.status = answer.status_code
        self.problem: Mapping[str, Any] = problem_of(answer)
        self.detail = _told(answer, self.problem)
        self.in_doubt = in_doubt
        super().__init__(self._message())

    def _message(self) -> str:
        return self.detail


class Invalid(Refused):
    """400, 413, 422: the request is wrong."""


class NotPermitted(Refused):
    """401, 403."""


class NotFound(Refused):
    """404: there is none of this tenant."""


class NoSuchRoute(Refused):
    """404 of the gateway: another API, or a deployment that is older than this client."""

    def _message(self) -> str:
        asked = "is the URL right, and the deployment not older than this?"
        return f"the API has no such route ({self.detail}): {asked}"


class Gone(Refused):
    """410: deleted, or its time is over."""


class Conflict(Refused):
    """409: its state forbids that."""


class Unavailable(Refused):
    """5xx."""

    def _message(self) -> str:
        doubt = f"; {UNKNOWN}" if self.in_doubt else ""
        return f"the API answered {self.status}: {self.detail}{doubt}"


class Throttled(Unavailable):
    """429."""


class NotYet(NeverdropError):
    """The job is still open, as far as is known: `job` is how it was seen last, with nothing but its id if it never
    was, and `error` why it could not be looked at when the time was over."""

    def __init__(self, job: Mapping[str, Any], error: NeverdropError | None = None) -> None:
        told = f"it is {job['status']}" if "status" in job else "it was not seen"
        why = f"; {error}" if error is not None else ""
        super().__init__(f"job {job.get('job_id')} has no result yet: {told}{why}")
        self.job, self.error = job, error


class JobFailed(NeverdropError):
    """The job is FAILED or CANCELLED; `job` is its record, `code` and `message` say why. `text`: what a stream had
    said until then."""

    def __init__(self, job: Mapping[str, Any], text: str = "") -> None:
        error = job.get("error") or {}
        self.job, self.text = job, text
        self.status = str(job.get("status"))
        self.code, self.message = str(error.get("code") or self.status), str(error.get("message") or "")
        super().__init__(": ".join(word for word in (f"job {job.get('job_id')} is {self.status}",
                                                     str(error.get("code") or ""), self.message) if word))  # fmt: skip


class WebhookRefused(NeverdropError):
    """What came is not from this sender, was changed on the way, or is too old: answer it with 400."""


_BY_STATUS: Mapping[int, type[Refused]] = {
    401: NotPermitted,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: Throttled,
}


def refusal(answer: httpx.Response, *, in_doubt: bool = False) -> Refused:
    """The exception that an answer of 400 or above is."""
    status = answer.status_code
    if status == 404 and not answer.headers.get("content-type", "").startswith("application/problem+json"):
        return NoSuchRoute(answer)
    kind = Unavailable if status >= 500 else _BY_STATUS.get(status, Invalid)
    return kind(answer, in_doubt=in_doubt)


def problem_of(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _told(answer: httpx.Response, body: Mapping[str, Any]) -> str:
    """What a problem says, with the places it points to; else what API Gateway or a proxy says."""
    if not body:
        return answer.text[:TOLD].strip() or answer.reason_phrase
    if "detail" not in body:
        return str(body.get("message") or body.get("Message") or answer.reason_phrase)[:TOLD]
    errors = body.get("errors")
    places = [str(one["pointer"]) for one in errors if isinstance(one, dict) and one.get("pointer")] if errors else []
    return f"{body['detail']}{' (at ' + ', '.join(places) + ')' if places else ''}"
