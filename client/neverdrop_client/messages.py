"""What is said about one job, over a WebSocket or in the answers to polls, checked for its form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neverdrop_client.events import Progress
from neverdrop_client.shapes import FINAL, Job

PLACES: tuple[str, ...] = ("result", "parts", "result_url")
MOST_PARTS = 64  # of a result; the API sends a few, and a link instead of more


class Garbled(Exception):
    """What came is not what Neverdrop says."""


@dataclass(frozen=True)
class Watching:
    """The answer to a watch: from here on everything comes."""

    attempt: int
    start: int


@dataclass(frozen=True)
class Chunks:
    """`texts[i]` is chunk number `start + i`."""

    attempt: int
    start: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class RestartedAt:
    attempt: int


@dataclass(frozen=True)
class Part:
    """A slice of the result's JSON."""

    attempt: int
    part: int
    parts: int
    text: str


@dataclass(frozen=True)
class Ending:
    """`place`: which of `result`, `parts` and `result_url` came along, if any did."""

    attempt: int
    chunks: int
    job: Job
    place: Mapping[str, Any]


@dataclass(frozen=True)
class Trouble:
    """The API cannot do what was asked for."""

    code: str


Message = Watching | Chunks | RestartedAt | Progress | Part | Ending | Trouble


def parse(data: str | bytes, job_id: str) -> Message | None:
    """A frame; None when it is about another job, or of a kind that is not known (yet). Raises Garbled."""
    frame = _object(data)
    if frame.get("job_id", job_id) != job_id:
        return None
    match frame.get("type"):
        case "watching":
            return Watching(_number(frame, "attempt"), _number(frame, "from"))
        case "chunks":
            return Chunks(_number(frame, "attempt"), _number(frame, "from"), texts_of(frame))
        case "restarted":
            return RestartedAt(_number(frame, "attempt"))
        case "progress":
            return progress_of(frame, _number(frame, "attempt"))
        case "result":
            return _part(frame)
        case "final":
            place = {name: frame[name] for name in PLACES if name in frame}
            return Ending(_number(frame, "attempt"), _number(frame, "chunks"), job_of(frame.get("job")), place)
        case "error" | None:  # None is API Gateway's own: a function failed or was throttled
            return Trouble(str(frame.get("code", frame.get("message"))))
        case _:
            return None


def _object(data: str | bytes) -> dict[str, Any]:
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError):
        raise Garbled("no JSON") from None
    if not isinstance(frame, dict):
        raise Garbled("no object")
    return frame


def chunks_of(answer: Mapping[str, Any]) -> Chunks:
    """The same as the answer to a poll says it. Raises Garbled."""
    return Chunks(_number(answer, "attempt"), _number(answer, "from"), texts_of(answer))


def progress_of(said: Any, attempt: int) -> Progress:
    """As frames, jobs and answers to polls have it. Raises Garbled."""
    if not isinstance(said, Mapping):
        raise Garbled("progress")
    return Progress(attempt, _names(said, "done"), _names(said, "failed"), _number(said, "total"))


def _names(said: Mapping[str, Any], what: str) -> tuple[str, ...]:
    names = said.get(what)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Garbled(what)
    return tuple(names)


def texts_of(frame: Mapping[str, Any]) -> tuple[str, ...]:
    texts = frame.get("texts")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Garbled("texts")
    return tuple(texts)


def job_of(value: Any) -> Job:
    """A job that has ended."""
    if not isinstance(value, dict) or value.get("status") not in FINAL:
        raise Garbled("job")
    job: Job = value  # type: ignore[assignment]  # what it may lack is not needed here
    return job


def _part(frame: Mapping[str, Any]) -> Part:
    text, part, parts = frame.get("text"), _number(frame, "part"), _number(frame, "parts")
    if not isinstance(text, str) or not part < parts <= MOST_PARTS:
        raise Garbled("result")
    return Part(_number(frame, "attempt"), part, parts, text)


def _number(frame: Mapping[str, Any], name: str) -> int:
    value = frame.get(name)
    if type(value) is not int or value < 0:
        raise Garbled(name)
    return value
