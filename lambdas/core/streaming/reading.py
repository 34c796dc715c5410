"""What a reader is told of a job's streamed text: from where it stands, of the attempt that the record is at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lambdas.core import views
from lambdas.core.job import Job
from lambdas.core.policy import DAY_S
from lambdas.core.problems import Problem, bad_request
from lambdas.core.streaming.ports import Chunks
from lambdas.core.times import Instant, after
from lambdas.core.workflows.progress import progress_of

MOST_BYTES = 250_000  # of text in one answer: even as JSON it is far from what a Lambda may answer
LAST = 999_999  # of what has six digits in a chunk's key: attempts, and chunks of one


@dataclass(frozen=True)
class Place:
    """Where a reader stands: it has the chunks before number `first`, of `attempt`; None when it does not say which."""

    first: int = 0
    attempt: int | None = None


@dataclass(frozen=True)
class Look:
    """What was found. `restarted`: what the reader has is void: of an earlier attempt, or of another job that had this
    id. `final`: the job is final, and this is all that there was left of its text."""

    job: Job
    restarted: bool
    first: int
    texts: Sequence[str]
    final: bool

    @property
    def is_news(self) -> bool:
        return self.restarted or bool(self.texts) or self.final


def place_of(query: Mapping[str, str]) -> Place | Problem:
    """Where a query string says that its reader stands, or what is wrong with it."""
    numbers: dict[str, int] = {}
    for name in ("from", "attempt"):
        number = views.whole(query.get(name, "0"), 0, LAST)
        if number is None:
            return bad_request(f"{name} must be a whole number from 0 to {LAST:,}")
        numbers[name] = number
    return Place(numbers["from"], numbers["attempt"] if "attempt" in query else None)


def look(found: Job, place: Place, chunks: Chunks) -> Look | Problem:
    """`found` was read before its chunks are: all of a final job's are there then. Raises Unavailable."""
    if place.attempt is not None and place.attempt > found.attempt:
        return bad_request(f"There is no attempt {place.attempt} of this job: it is at attempt {found.attempt}.")
    restarted = place.attempt is not None and place.attempt < found.attempt
    first = 0 if restarted else place.first
    texts = _behind(found, first, chunks)
    if texts is None:  # as on a WebSocket: what was counted there is none of this text
        restarted, first, texts = True, 0, _texts(found, 0, chunks, MOST_BYTES)
    final = found.is_final and not (texts and _texts(found, first + len(texts), chunks, 1))
    return Look(found, restarted, first, texts, final)


def _behind(found: Job, first: int, chunks: Chunks) -> list[str] | None:
    """The texts from this number on; None when there is not even the one before it, which is read along to see that."""
    texts = _texts(found, max(first - 1, 0), chunks, MOST_BYTES)
    if first == 0:
        return texts
    return texts[1:] if texts else None


def _texts(found: Job, first: int, chunks: Chunks, most_bytes: int) -> list[str]:
    """Without a gap: behind one, nothing has its number any more."""
    if not found.stream:
        return []
    said = chunks.read(found.id, found.attempt, first, most_bytes, said_since(found))
    return [chunk.text for n, chunk in enumerate(said, first) if chunk.n == n]


def said_since(found: Job) -> Instant:
    """No text of this job is older. When a record has expired, its key begins another job under the same id: what the
    earlier one has left may still be there, older than any record's days. One day is for clocks that differ."""
    return after(found.created_at, -DAY_S)


def shown(look: Look) -> dict[str, Any]:
    """The answer of `GET /jobs/{id}/chunks`."""
    found, come = look.job, progress_of(look.job)
    return {
        "job_id": found.id,
        "status": found.status,
        "attempt": found.attempt,
        "restarted": look.restarted,
        "from": look.first,
        "texts": list(look.texts),
        "next": look.first + len(look.texts),
        "final": look.final,
        **({"progress": come.shown()} if come else {}),
        "links": views.links(found.id, found.status, stream=found.stream),
    }
