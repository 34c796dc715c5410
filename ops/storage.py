"""S3 by presigned requests: a grant is all they carry, never an identity. Grants are secrets: no message has one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from ops.access import is_local
from ops.exits import Exit, Failure

PATIENCE = httpx.Timeout(60.0, connect=5.0)
ATTEMPTS = 3
PAUSE_S = 2.0
CODES = {400: Exit.USAGE, 403: Exit.FORBIDDEN, 404: Exit.NOT_FOUND, 410: Exit.NOT_FOUND}


def fetch(place: str) -> httpx.Response:
    """What a presigned URL leads to."""
    return _answered(place, lambda client: client.get(place))


def send(grant: Mapping[str, Any], file: Path, content_type: str) -> None:
    """A presigned POST of a file. Repeating it changes nothing: the first version is the job."""
    fields = {str(name): str(value) for name, value in dict(grant["fields"]).items()}
    place = str(grant["url"])

    def post(client: httpx.Client) -> httpx.Response:
        with file.open("rb") as content:
            return client.post(place, data=fields, files={"file": ("file", content, content_type)})

    _answered(place, post)


def _answered(place: str, ask: Callable[[httpx.Client], httpx.Response]) -> httpx.Response:
    with httpx.Client(timeout=PATIENCE, trust_env=not _is_here(place)) as client:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = ask(client)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                failure = Failure(Exit.UNREACHABLE, f"S3 gave no answer: {type(error).__name__}")
            else:
                if answer.is_success:
                    return answer
                told = f"S3 answered {answer.status_code} {_code(answer)}".rstrip()
                failure = Failure(CODES.get(answer.status_code, Exit.UNREACHABLE), told)
            if attempt == ATTEMPTS or failure.code != Exit.UNREACHABLE:
                raise failure
            time.sleep(PAUSE_S * attempt)
    raise AssertionError("unreachable")


def _is_here(place: str) -> bool:
    try:
        return is_local(httpx.URL(place))
    except httpx.InvalidURL:
        raise Failure(Exit.UNREACHABLE, "the API granted something that is no URL") from None


def _code(answer: httpx.Response) -> str:
    """S3 names what is wrong in XML."""
    found = re.search(r"<Code>(\w{1,64})</Code>", answer.text)
    return found[1] if found else ""
