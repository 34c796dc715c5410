"""Neverdrop's API for programs."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Self, cast

import httpx

from neverdrop_client.errors import BadArgument, JobFailed, NeverdropError, NoAnswer, NotYet, Unavailable
from neverdrop_client.events import Progress, Text
from neverdrop_client.http import LEAST_S, Http, Retry, fetch, json_of, value_of
from neverdrop_client.messages import Garbled, progress_of
from neverdrop_client.registry import Webhooks
from neverdrop_client.request import RESULT_ANSWERS, Request, json_text, path_of
from neverdrop_client.shapes import FINAL, Accepted, Job, Redelivery
from neverdrop_client.streaming import Stream

WAIT_S = 20  # the most that the API holds an answer
PROGRESS_S = 2  # so long, where somebody wants to hear of a job's progress
LOOK_S = 1.0  # a deployment may not hold answers: then the pause is ours
PATIENCE_S = 60.0  # while a job is waited for, an API that gives no answer is asked again for so long
_KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")


class Client:
    """One API and who asks it. Threads may share it; each method raises a NeverdropError for what is refused or not
    answered. Requests that can be repeated without harm are."""

    def __init__(
        self,
        base_url: str,
        *,
        auth: httpx.Auth | None = None,
        headers: Mapping[str, str] | None = None,
        on_retry: Callable[[Retry], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`auth`: BearerAuth or SigV4; none for the local runtime. `on_retry` hears of each repetition."""
        self._http = Http(base_url, auth=auth, headers=headers, on_retry=on_retry, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def request(self, request: Request) -> httpx.Response:
        """Any route: its answer of 2xx, or one that the request says is an answer."""
        return self._http.ask(request)

    # --- jobs ----------------------------------------------------------------------------------------------------

    def submit(
        self,
        type_: str,
        task_input: Any,
        *,
        key: str | None = None,
        stream: bool = False,
        callback_url: str | None = None,
        not_before: str | None = None,
        fresh: bool = False,
        urgent: bool = False,
    ) -> Accepted:
        """Recorded when it returns. The same key is the same job: without one it makes its own, under which it repeats
        what fails in passing. What it raises has the `idempotency_key`: submit again with it if it must not be lost."""
        wishes = {
            "stream": stream or None, "callback_url": callback_url, "not_before": not_before, "fresh": fresh or None,
            "urgent": urgent or None,
        }  # fmt: skip
        given = {name: value for name, value in wishes.items() if value is not None}
        return self.submit_json(json_text({"type": type_, "input": task_input, **given}), key=key)

    def submit_json(self, body: str, *, key: str | None = None) -> Accepted:
        """The same with a body of one's own, which is sent as it is written."""
        key = str(uuid.uuid4()) if key is None else key
        if not _KEY.fullmatch(key):
            raise BadArgument("a key has 1 to 255 printable ASCII characters")
        try:
            answer = self._http.ask(Request("POST", "/jobs", body=body, headers={"Idempotency-Key": key}))
            return cast("Accepted", json_of(answer, "job_id"))
        except NeverdropError as error:
            error.idempotency_key = key
            raise

    def job(self, job_id: str, *, wait_s: int | None = None) -> Job:
        """As it stands; with `wait_s` (at most 20) the answer is held until it has ended."""
        return _job_in(self._http.ask(_asking(job_id, wait_s)))

    def wait(
        self, job_id: str, timeout: float | None = None, *, on_progress: Callable[[Progress], None] | None = None
    ) -> Job:
        """The job when it is COMPLETED (see its `partial`). Raises JobFailed when it ended otherwise, NotYet after
        `timeout` seconds, also when the API was away or throttling then; without a timeout NoAnswer, Throttled or
        Unavailable after a minute of that. `on_progress` hears how far a workflow is, each time that it has come
        further."""
        until = None if timeout is None else time.monotonic() + timeout
        held_s = WAIT_S if on_progress is None else PROGRESS_S
        told: Progress | None = None
        job: Job = {"job_id": job_id}
        while True:
            asked = time.monotonic()
            job = self._look(job, until, held_s)
            come = None if on_progress is None else _progress_of(job)
            if on_progress is not None and come is not None and come != told:
                told = come
                on_progress(come)
            if job["status"] in FINAL:
                return _completed(job)
            now = time.monotonic()
            if until is not None and now >= until:
                raise NotYet(job)
            next_look = asked + LOOK_S if until is None else min(asked + LOOK_S, until)
            time.sleep(max(0.0, next_look - now))

    def result(self, job_id: str) -> Any:
        """What the task returned, of any size. Raises NotYet while it is open, Conflict when it ended without one."""
        answer = self._http.ask(Request("GET", path_of("jobs", job_id, "result"), answers=RESULT_ANSWERS))
        if answer.status_code == 303:
            return fetch(answer.headers.get("location", ""))
        if answer.status_code == 202:
            raise NotYet(json_of(answer, "status"))
        return value_of(answer)

    def events(self, job_id: str) -> dict[str, Any]:
        """Its timeline, from its receipt to its deliveries."""
        return json_of(self._http.ask(Request("GET", path_of("jobs", job_id, "events"))), "status", "events")

    def stream(self, job_id: str, *, after: Text | None = None) -> Stream:
        """Its text as it comes, from the first piece on or behind one that was seen, and how it ended. A job that has
        ended is told at once. Only jobs submitted with `stream` have text; any job has an end."""
        path_of(job_id)
        return Stream(self._http, job_id, self.result, after=after, patience_s=PATIENCE_S)

    def cancel(self, job_id: str) -> Accepted:
        return self._change(job_id, "cancel")

    def retry(self, job_id: str) -> Accepted:
        """Reopen what FAILED or was CANCELLED."""
        return self._change(job_id, "retry", repeatable=False)

    def redeliver(self, job_id: str, *, endpoint: str | None = None) -> Redelivery:
        """Send the webhooks of a job's end once more: to all who want it, or to this endpoint (or `callback`) alone."""
        if endpoint == "":
            raise BadArgument("'' is no endpoint: name one, or leave it out for all who want it")
        body = None if endpoint is None else json_text({"endpoint": endpoint})
        answer = self._http.ask(Request("POST", path_of("jobs", job_id, "redeliver"), body=body))
        return cast("Redelivery", json_of(answer, "event_id", "deliveries"))

    def delete(self, job_id: str) -> None:
        """What is kept of it, its result too; once more changes nothing. Raises Conflict while it is open."""
        self._http.ask(Request("DELETE", path_of("jobs", job_id), answers=(204,)))

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(self._http)

    def _look(self, seen: Job, until: float | None, held_s: int) -> Job:
        """As it stands, the answer held for so long at most. `seen`: how it stood before."""
        job_id = seen["job_id"]
        if until is None:
            return _job_in(self._http.ask(_asking(job_id, held_s), patience_s=PATIENCE_S))
        left = max(0.0, until - time.monotonic())
        held_s = min(held_s, max(0, int(left - LEAST_S)))  # what is held to the very end may come too late
        try:
            return _job_in(self._http.ask_within(_asking(job_id, held_s), left))
        except (NoAnswer, Unavailable) as error:
            if time.monotonic() < until:  # it does not pass
                raise
            raise NotYet(seen, error) from None

    def _change(self, job_id: str, what: str, *, repeatable: bool = True) -> Accepted:
        request = Request("POST", path_of("jobs", job_id, what), repeatable=repeatable)
        return cast("Accepted", json_of(self._http.ask(request), "status"))


def _asking(job_id: str, wait_s: int | None) -> Request:
    return Request("GET", path_of("jobs", job_id), {"wait": wait_s})


def _job_in(answer: httpx.Response) -> Job:
    return cast("Job", json_of(answer, "job_id", "status"))


def _completed(job: Job) -> Job:
    if job["status"] != "COMPLETED":
        raise JobFailed(job)
    return job


def _progress_of(job: Job) -> Progress | None:
    """None for a job that is no workflow's, or has not begun."""
    try:
        return progress_of(job["progress"], int(job.get("attempt", 0))) if "progress" in job else None
    except Garbled:
        return None
