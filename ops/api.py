"""The HTTP API as operators and scripts use it: one method for each route, and its failures as those of commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import httpx

from neverdrop_client import Client, NotYet, Retry, Text
from neverdrop_client.events import Event
from neverdrop_client.http import json_of, value_of
from neverdrop_client.registry import Webhooks
from neverdrop_client.request import RESULT_ANSWERS, Request, path_of
from ops import storage
from ops.access import Access
from ops.answers import failing, failure

Json = dict[str, Any]
T = TypeVar("T")
PAGE = 100


class Api:
    """Each method answers what the route answers, and raises Failure when that is a refusal or nothing at all."""

    def __init__(
        self,
        access: Access,
        *,
        say: Callable[[str], None],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._access, self._say, self._transport = access, say, transport

    def close(self) -> None:
        for client in ("_tenant", "_operator"):
            if client in self.__dict__:
                self.__dict__[client].close()

    @cached_property
    def _tenant(self) -> Client:
        return self._client(admin=False)

    @cached_property
    def _operator(self) -> Client:
        return self._client(admin=True)

    def _client(self, *, admin: bool) -> Client:
        return Client(
            self._access.url, auth=self._access.pass_for(admin=admin), on_retry=self._told, transport=self._transport
        )

    def _told(self, retry: Retry) -> None:
        self._say(f"{failure(retry.error)}; once more in {retry.pause_s:.1f} s")

    # --- jobs ------------------------------------------------------------------------------------------------

    def submit(self, type_: str, task_input: str, *, key: str, **more: Any) -> Json:
        """`task_input` is JSON text and sent as it is written. The key makes the request repeatable."""
        head = json.dumps({"type": type_, **_given(more)})
        body = f'{head[:-1]}, "input": {task_input}}}'
        with failing():
            return dict(self._tenant.submit_json(body, key=key))

    def job(self, job_id: str, *, wait_s: int | None = None) -> Json:
        with failing():
            return dict(self._tenant.job(job_id, wait_s=wait_s))

    def events(self, job_id: str) -> Json:
        with failing():
            return self._tenant.events(job_id)

    def result(self, job_id: str) -> Any:
        """Failure REFUSED while there is none yet, or when there will be none."""
        with failing():
            answer = self._ask(Request("GET", _path("jobs", job_id, "result"), answers=RESULT_ANSWERS))
            if answer.status_code == 303:  # large
                return value_of(storage.fetch(answer.headers.get("location", "")))
            if answer.status_code == 202:
                raise NotYet(json_of(answer, "status"))
            return value_of(answer)

    def stream(self, job_id: str, *, after: Text | None = None) -> Iterator[Event]:
        """The job's text as it comes, and how it ended."""
        with failing(), self._tenant.stream(job_id, after=after) as events:
            yield from events

    def jobs(self, *, status: str | None, type_: str | None, limit: int) -> Iterator[Json]:
        """Newest first, page by page; all of them when `limit` is 0."""
        page = PAGE if status or type_ else min(limit or PAGE, PAGE)  # what is filtered leaves pages short
        found = self._pages("/jobs", "jobs", {"status": status, "type": type_, "limit": page})
        return islice(found, limit or None)

    def redeliver(self, job_id: str, endpoint: str | None) -> Json:
        with failing():
            return dict(self._tenant.redeliver(job_id, endpoint=endpoint))

    def endpoints(self, ask: Callable[[Webhooks], T]) -> T:
        """Ask something about the tenant's endpoints."""
        with failing():
            return ask(self._tenant.webhooks)

    def cancel(self, job_id: str) -> Json:
        with failing():
            return dict(self._tenant.cancel(job_id))

    def retry(self, job_id: str) -> Json:
        with failing():
            return dict(self._tenant.retry(job_id))

    def delete(self, job_id: str) -> None:
        with failing():
            self._tenant.delete(job_id)

    def grant_upload(self, type_: str, content_type: str) -> Json:
        body = json.dumps({"type": type_, "content_type": content_type})
        return self._json(Request("POST", "/uploads", body=body), "job_id", "url", "fields")

    # --- sweeps ----------------------------------------------------------------------------------------------

    def start_sweep(self, parts: Sequence[str], *, dry_run: bool) -> Json:
        """A second one that a repetition starts does no harm: parts are swept by one at a time."""
        body = _given({"parts": list(parts) or None, "dry_run": dry_run or None})
        return self._json(Request("POST", "/admin/sweeps", body=json.dumps(body)), "sweep_id")

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
        return self._json(
            Request("POST", _path("admin", "dead-letters", letter_id, "repair"), body=body, repeatable=False)
        )

    def discard(self, letter_id: str, reason: str, queue: str | None) -> Json:
        body = json.dumps(_given({"reason": reason, "queue": queue}))
        return self._json(
            Request("POST", _path("admin", "dead-letters", letter_id, "discard"), body=body, repeatable=False)
        )

    def start_redrive(self, **what: Any) -> Json:
        body = json.dumps(_given(what))
        return self._json(Request("POST", "/admin/dead-letters/redrive", body=body, repeatable=False), "redrive_id")

    def redrive(self, redrive_id: str) -> Json:
        return self._json(Request("GET", _path("admin", "redrives", redrive_id)))

    def reviews(self, status: str | None) -> Iterator[Json]:
        return self._pages("/admin/review", "reviews", {"status": status})

    # --- how it is asked -------------------------------------------------------------------------------------

    def _pages(self, path: str, name: str, query: Mapping[str, object]) -> Iterator[Json]:
        cursor: str | None = None
        while True:
            page = self._json(Request("GET", path, {**query, "cursor": cursor}), name)
            yield from page[name]
            cursor = page.get("cursor")
            if not cursor:
                return

    def _json(self, request: Request, *names: str) -> Json:
        with failing():
            return json_of(self._ask(request), *names)

    def _ask(self, request: Request) -> httpx.Response:
        with failing():
            return (self._operator if request.path.startswith("/admin/") else self._tenant).request(request)


def _path(*parts: str) -> str:
    with failing():
        return path_of(*parts)


def _given(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}
