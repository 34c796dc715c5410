"""A job's text as it comes, through every cut: WebSocket after WebSocket, else by polling."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import Any, Self

import httpx

from neverdrop_client import sockets
from neverdrop_client.cursor import Cursor
from neverdrop_client.errors import Gone, JobFailed, NeverdropError, NotFound, NotPermitted
from neverdrop_client.events import Event, Final, Restarted, Text
from neverdrop_client.http import Http, Request, fetch, json_of
from neverdrop_client.messages import Ending
from neverdrop_client.polling import poll

FRUITLESS = 3  # connections in a row that brought nothing, until it is polled instead
LIVED_S = 60.0  # a connection that lasted so long was a good one, even if there was nothing to say
PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
TICKET_ATTEMPTS = 3


class Stream(Iterator[Event]):
    """The events of one job, as an iterator and a context manager. Holds what is on its way, never the whole text.

    What it raises (NotFound, NotPermitted, NoAnswer after a minute without any) ends it; `Client.stream(after=…)` goes
    on behind the last Text seen."""

    def __init__(
        self, http: Http, job_id: str, result: Callable[[str], Any], *, after: Text | None, patience_s: float
    ) -> None:
        self._http, self._job_id, self._result = http, job_id, result
        self._patience_s = patience_s
        self._cursor = Cursor(after)
        self._events = self._run()

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._events.close()

    def text(self) -> str:
        """All of the text, when the job has ended. Raises JobFailed, which has the text that there is."""
        said: list[str] = []
        for event in self:
            match event:
                case Text(text=text):
                    said.append(text)
                case Restarted():
                    said.clear()
                case Final(job=job) if job["status"] != "COMPLETED":
                    raise JobFailed(job, "".join(said))
        return "".join(said)

    # -----------------------------------------------------------------------------------------------------------

    def _run(self) -> Generator[Event, None, None]:
        yield from self._by_socket()
        if self._cursor.ending is None:
            yield from poll(self._http, self._job_id, self._cursor, self._patience_s)
        ending = self._cursor.ending
        assert ending is not None
        yield Final(ending.attempt, ending.chunks, ending.job, self._result_of(ending))

    def _by_socket(self) -> Iterator[Event]:
        """Until the job ends, or no connection brings anything more."""
        fruitless = 0
        while self._cursor.ending is None and fruitless < FRUITLESS:
            if fruitless:
                time.sleep(min(PAUSE_S * 2.0**fruitless, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0))  # noqa: S311
            began, had_news = time.monotonic(), False
            url = self._ticket()
            if url is None:
                return
            try:
                for event in sockets.watch(url, self._job_id, self._cursor):
                    had_news = True
                    yield event
            except sockets.NoSocket as none:
                fruitless = FRUITLESS if none.silent else fruitless + 1
            except sockets.Broken:
                fruitless = 0 if had_news or time.monotonic() - began > LIVED_S else fruitless + 1

    def _ticket(self) -> str | None:
        """Where one connection may be opened, once. None where the API has no such thing to give."""
        body = json.dumps({"job_ids": [self._job_id]})
        try:
            answer = self._http.ask(Request("POST", "/tickets", body=body), attempts=TICKET_ATTEMPTS)
            url = str(json_of(answer, "url")["url"])
            scheme = httpx.URL(url).scheme
        except (NotFound, Gone, NotPermitted):
            raise
        except (NeverdropError, httpx.InvalidURL):
            return None
        return url if scheme == "wss" or (scheme == "ws" and self._http.is_here) else None

    def _result_of(self, ending: Ending) -> Any:
        """It came along, or in parts, or as a link; else it is asked for. None when there is none (any more)."""
        if ending.job["status"] != "COMPLETED":
            return None
        try:
            return self._result_here(ending)
        except (NeverdropError, ValueError, RecursionError):
            pass
        try:
            return self._result(self._job_id)
        except Gone:
            return None

    def _result_here(self, ending: Ending) -> Any:
        if "result" in ending.place:
            return ending.place["result"]
        if "result_url" in ending.place:
            return fetch(str(ending.place["result_url"]))
        return json.loads(self._cursor.result_text() or "")
