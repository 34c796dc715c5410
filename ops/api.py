"""The HTTP API as operators and scripts use it: one method for each route, repeated where repeating is safe."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from ops import answers, storage
from ops.access import HEADER, Access
from ops.exits import Exit, Failure, usage

Json = dict[str, Any]
PATIENCE = httpx.Timeout(35.0, connect=5.0)  # API Gateway itself gives up after 30 s
ATTEMPTS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
PAGE = 100


@dataclass(frozen=True)
class Request:
    """`repeatable`: doing it twice is doing it once, so an unknown outcome may be settled by asking again."""

    method: str
    path: str
    body: str | None = None
    query: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True

    @property
    def target(self) -> str:
        asked = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(asked, quote_via=quote, errors='surrogateescape')}" if asked else self.path


class Api:
    """Each method answers what the route answers, and raises Failure when that is a refusal or nothing at all."""

    def __init__(
        self,
        access: Access,
        *,
        say: Callable[[str], None],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._access, self._say = access, say
        self._client = httpx.Client(transport=transport, timeout=PATIENCE, trust_env=not access.is_local)
        self._pass = lru_cache(maxsize=None)(lambda admin: access.pass_for(admin=admin))

    def close(self) -> None:
        self._client.close()

    # --- jobs ------------------------------------------------------------------------------------------------

    def submit(self, type_: str, task_input: str, *, key: str, **more: Any) -> Json:
        """`task_input` is JSON text and sent as it is written. The key makes the request repeatable."""
        if not HEADER.fullmatch(key) or len(key) > 255:
            raise usage("a key has 1 to 255 printable ASCII characters")
        head = json.dumps({"type": type_, **_given(more)})
        body = f'{head[:-1]}, "input": {task_input}}}'
        return self._json(Request("POST", "/jobs", body, headers={"Idempotency-Key": key}), "job_id")

    def job(self, job_id: str, *, wait_s: int | None = None) -> Json:
        return self._json(Request("GET", _path("jobs", job_id), query={"wait": wait_s}), "job_id", "status")

    def events(self, job_id: str) -> Json:
        return self._json(Request("GET", _path("jobs", job_id, "events")), "status", "events")

    def result(self, job_id: str) -> Any:
        """Failure REFUSED while there is none yet, or when there will be none."""
        answer = self._ask(Request("GET", _path("jobs", job_id, "result")))
        if answer.status_code == 303:  # large
            return answers.value_of(storage.fetch(answer.headers.get("location", "")))
        if answer.status_code == 202:
            raise Failure(
                Exit.REFUSED, f"job {job_id} has no result yet: it is {answers.json_of(answer, 'status')['status']}"
            )
        return answers.value_of(answer)

    def jobs(self, *, status: str | None, type_: str | None, limit: int) -> Iterator[Json]:
        """Newest first, page by page; all of them when `limit` is 0."""
        page = PAGE if status or type_ else min(limit or PAGE, PAGE)  # what is filtered leaves pages short
        found = self._pages("/jobs", "jobs", {"status": status, "type": type_, "limit": page})
        return islice(found, limit or None)

    def cancel(self, job_id: str) -> Json:
        return self._json(Request("POST", _path("jobs", job_id, "cancel")), "status")

    def retry(self, job_id: str) -> Json:
        return self._json(Request("POST", _path("jobs", job_id, "retry"), repeatable=False), "status")

    def delete(self, job_id: str) -> None:
        self._ask(Request("DELETE", _path("jobs", job_id)))

    def grant_upload(self, type_: str, content_type: str) -> Json:
        body = json.dumps({"type": type_, "content_type": content_type})
        return self._json(Request("POST", "/uploads", body), "job_id", "url", "fields")

    # --- sweeps ----------------------------------------------------------------------------------------------

    def start_sweep(self, parts: Sequence[str], *, dry_run: bool) -> Json:
        """A second one that a repetition starts does no harm: parts are swept by one at a time."""
        body = _given({"parts": list(parts) or None, "dry_run": dry_run or None})
        return self._json(Request("POST", "/admin/sweeps", json.dumps(body)), "sweep_id")

    def sweep(self, sweep_id: str) -> Json:
        return self._json(Request("GET", _path("admin", "sweeps", sweep_id)))

    # --- dead letters ----------------------------------------------------------------------------------------

    def dead_letters(self, queue: str | None) -> Json:
        return self._json(Request("GET", "/admin/dead-letters", query={"queue": queue}), "groups")

    def dead_letter(self, letter_id: str, queue: str | None) -> Json:
        return self._json(Request("GET", _path("admin", "dead-letters", letter_id), query={"queue": queue}))

    def repair(self, letter_id: str, patch: str, reason: str, queue: str | None) -> Json:
        """`patch` is JSON text: a list of JSON patch operations."""
        head = json.dumps(_given({"reason": reason, "queue": queue}))
        body = f'{head[:-1]}, "patch": {patch}}}'
        return self._json(Request("POST", _path("admin", "dead-letters", letter_id, "repair"), body, repeatable=False))

    def discard(self, letter_id: str, reason: str, queue: str | None) -> Json:
        body = json.dumps(_given({"reason": reason, "queue": queue}))
        return self._json(Request("POST", _path("admin", "dead-letters", letter_id, "discard"), body, repeatable=False))

    def start_redrive(self, **what: Any) -> Json:
        body = json.dumps(_given(what))
        return self._json(Request("POST", "/admin/dead-letters/redrive", body, repeatable=False), "redrive_id")

    def redrive(self, redrive_id: str) -> Json:
        return self._json(Request("GET", _path("admin", "redrives", redrive_id)))

    def reviews(self, status: str | None) -> Iterator[Json]:
        return self._pages("/admin/review", "reviews", {"status": status})

    # --- how it is asked -------------------------------------------------------------------------------------

    def _pages(self, path: str, name: str, query: Mapping[str, object]) -> Iterator[Json]:
        cursor: str | None = None
        while True:
            page = self._json(Request("GET", path, query={**query, "cursor": cursor}), name)
            yield from page[name]
            cursor = page.get("cursor")
            if not cursor:
                return

    def _json(self, request: Request, *names: str) -> Json:
        return answers.json_of(self._ask(request), *names)

    def _ask(self, request: Request) -> httpx.Response:
        """The answer below 400. What is throttled or fails in passing is asked again, longer apart each time."""
        for attempt in range(1, ATTEMPTS + 1):
            trouble = self._once(request)
            if isinstance(trouble, httpx.Response):
                return trouble
            if attempt == ATTEMPTS or not trouble.passing:
                raise _in_doubt(trouble.failure) if attempt > 1 else trouble.failure
            pause = trouble.after_s or random.uniform(0.5, 1.0) * FIRST_PAUSE_S * 2**attempt  # noqa: S311
            pause = min(pause, LONGEST_PAUSE_S)
            self._say(f"{trouble.failure}; once more in {pause:.1f} s")
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _once(self, request: Request) -> httpx.Response | answers.Trouble:
        headers = {"Content-Type": "application/json", **request.headers} if request.body else request.headers
        try:
            answer = self._client.request(
                request.method,
                self._access.url + request.target,
                content=request.body.encode() if request.body else None,
                headers=headers,
                auth=self._pass(request.path.startswith("/admin/")),
            )
        except httpx.HTTPError as error:
            return answers.unanswered(error, self._access.url, repeatable=request.repeatable)
        return answer if answer.status_code < 400 else answers.refused(answer, repeatable=request.repeatable)


def _in_doubt(failure: Failure) -> Failure:
    if failure.code != Exit.REFUSED:
        return failure
    return Failure(failure.code, f"{failure}; it was asked for more than once: an earlier request may have done it")


def _path(*parts: str) -> str:
    for part in parts:
        if part in ("", ".", "..") or len(part) > 256:
            raise usage(f"{part!r} is no id")
    return "".join("/" + quote(part, safe="", errors="surrogateescape") for part in parts)


def _given(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}
