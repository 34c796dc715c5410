"""The long poll: what a stream falls back to where no WebSocket can be had."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from neverdrop_client.closing import Closing
from neverdrop_client.cursor import Cursor, Gap
from neverdrop_client.errors import Unexpected
from neverdrop_client.events import News
from neverdrop_client.http import Http, json_of
from neverdrop_client.messages import Ending, Garbled, RestartedAt, chunks_of, job_of, progress_of
from neverdrop_client.request import Request, path_of
from neverdrop_client.shapes import FINAL

WAIT_S = 20  # the most that the API holds an answer
LOOK_S = 1.0  # a deployment may not hold answers: then the pause is ours
MOST_GAPS = 5


def poll(http: Http, job_id: str, cursor: Cursor, patience_s: float, closing: Closing) -> Iterator[News]:
    """What is new about a job, from the cursor on, until its end. Raises what the API answers instead."""

    def ask(path: str, query: Mapping[str, object], *names: str) -> dict[str, Any]:
        closing.check()
        return json_of(http.ask(Request("GET", path, query), patience_s=patience_s, pause=closing.pause), *names)

    gaps = 0
    while cursor.ending is None:
        asked, has_news = time.monotonic(), False
        try:
            for event in _one(ask, job_id, cursor):
                has_news = True
                yield event
            gaps = 0
        except Gap:
            gaps += 1
        except Garbled as error:
            raise Unexpected(f"the API answered chunks that are none: {error}") from None
        if gaps > MOST_GAPS:
            raise Unexpected("the API leaves out chunks that come before those that it answers")
        if cursor.ending is None and not has_news:
            closing.pause(max(0.0, LOOK_S - (time.monotonic() - asked)))


def _one(ask: Callable[..., dict[str, Any]], job_id: str, cursor: Cursor) -> Iterator[News]:
    cursor.asked = cursor.next
    query = {"from": cursor.next, "attempt": cursor.attempt, "wait": WAIT_S}
    answer = ask(path_of("jobs", job_id, "chunks"), query, "texts", "final")
    said = chunks_of(answer)
    if answer.get("restarted"):
        yield from cursor.take(RestartedAt(said.attempt))
    yield from cursor.take(said)
    if "progress" in answer and not answer["final"]:  # the end tells it as well
        yield from cursor.take(progress_of(answer["progress"], said.attempt))
    if answer["final"]:
        job = ask(path_of("jobs", job_id), {}, "status")
        if job["status"] in FINAL and job.get("attempt") == said.attempt:  # else it was reopened in between
            yield from cursor.take(Ending(said.attempt, said.start + len(said.texts), job_of(job), {}))
