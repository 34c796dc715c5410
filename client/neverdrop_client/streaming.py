"""A job's text as it comes, through every cut: WebSocket after WebSocket, else by polling."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx

from neverdrop_client import sockets
from neverdrop_client.closing import Closed, Closing
from neverdrop_client.cursor import Cursor
from neverdrop_client.errors import Gone, JobFailed, NeverdropError, NotFound, NotPermitted, StreamClosed
from neverdrop_client.events import Event, Final, Restarted, Text
from neverdrop_client.http import Http, fetch, json_of
from neverdrop_client.messages import Ending
from neverdrop_client.polling import poll
from neverdrop_client.request import Request

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
        self._closing = Closing()
        self._cursor, self._events = Cursor(after), self._run()
        self._is_whole = after is None  # nothing of the text was passed over, or given to somebody

    def __next__(self) -> Event:
        self._is_whole = False
        try:
            self._closing.check()
            event = next(self._events)
            self._closing.check()  # it may have been closed while an answer was under way
            return event
        except Closed:
            self._events.close()
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, from any thread: who waits for the next event gets none. Where it is polled it takes as
        long as the answer under way."""
        self._closing.ask()
        with suppress(ValueError):  # it is being read, and ends there
            self._events.close()

    def text(self) -> str:
        """All of the text, when the job has ended: from its first piece on, also of a stream that was read from or
        began later. Raises JobFailed, which has the text that there is, and StreamClosed."""
        if not self._is_whole:
            self._events.close()
            self._cursor, self._events = Cursor(), self._run()
        said: list[str] = []
        for event in self:
            match event:
                case Text(text=text):
                    said.append(text)
                case Restarted():
                    said.clear()
                case Final(job=job) if job["status"] != "COMPLETED":
                    raise JobFailed(job, "".join(said))
                case Final():
                    return "".join(said)
        raise StreamClosed(f"the stream of job {self._job_id} was closed before its text was whole")

    # -----------------------------------------------------------------------------------------------------------

    def _run(self) -> Generator[Event, None, None]:
        yield from self._by_socket()
        if self._cursor.ending is None:
            yield from poll(self._http, self._job_id, self._cursor, self._patience_s, self._closing)
        ending = self._cursor.ending
        assert ending is not None
        yield Final(ending.attempt, ending.chunks, ending.job, self._result_of(ending))

    def _by_socket(self) -> Iterator[Event]:
        """Until the job ends, or no connection brings anything more."""
        fruitless = 0
        while self._cursor.ending is None and fruitless < FRUITLESS:
            if fruitless:
                longest = min(PAUSE_S * 2.0**fruitless, LONGEST_PAUSE_S)
                self._closing.pause(longest * random.uniform(0.5, 1.0))  # noqa: S311
            began, had_news = time.monotonic(), False
            self._closing.check()
            url = self._ticket()
            if url is None:
                return
            try:
                for event in sockets.watch(url, self._job_id, self._cursor, self._closing):
                    had_news = True
                    yield event
            except sockets.NoSocket as none:
                # below Python 3.13, TLS that is read and written at once stalls now and then: once more, no oftener
                fruitless += 2 if none.silent else 1
            except sockets.Broken:
                fruitless = 0 if had_news or time.monotonic() - began > LIVED_S else fruitless + 1

    def _ticket(self) -> str | None:
        """Where one connection may be opened, once. None where the API has no such thing to give."""
        body = json.dumps({"job_ids": [self._job_id]})
        try:
            request = Request("POST", "/tickets", body=body)
            answer = self._http.ask(request, attempts=TICKET_ATTEMPTS, pause=self._closing.pause)
            url = str(json_of(answer, "url")["url"])
            scheme = httpx.URL(url).scheme
        except (NotFound, Gone, NotPermitted):
            raise
        except (NeverdropError, httpx.InvalidURL, UnicodeError):
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
