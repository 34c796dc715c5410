"""What is sent over a connection: JSON texts, each small enough for one frame, and each true on its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lambdas.core import views
from lambdas.core.job import Job
from lambdas.core.workflows.progress import Progress

# API Gateway: frames of 32 KB. https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
FRAME_MAX = 32_767
SLICE_BYTES = 24_000  # of a result's text, as JSON
_WRAPPING = 512  # more than the names, ids and numbers around texts


def watching(job: Job, start: int) -> bytes:
    return _json({"type": "watching", **_of(job), "from": start, "status": job.status})


def restarted(job: Job) -> bytes:
    return _json({"type": "restarted", **_of(job)})


def progress(job: Job, come: Progress) -> bytes:
    """40 names of 40 characters: far below a frame."""
    return _json({"type": "progress", **_of(job), **come.shown()})


def chunks(job: Job, first: int, texts: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """As few frames as can be, each with the number of the chunk behind its last."""
    start, size = 0, 0
    for position, text in enumerate(texts):
        more = len(_json(text)) + 1  # and its comma
        if position > start and size + more > FRAME_MAX - _WRAPPING:
            yield _chunks(job, first + start, texts[start:position]), first + position
            start, size = position, 0
        size += more
    if texts:
        yield _chunks(job, first + start, texts[start:]), first + len(texts)


def ending(job: Job, count: int, result: str | None, link: str | None) -> list[bytes]:
    """The last frames of a job: its result in slices when it is too large for one, and how it ended."""
    final = {"type": "final", **_of(job), "chunks": count, "job": _shown(job)}
    if link is not None:
        return [_json({**final, "result_url": link})]
    if result is None:
        return [_json(final)]
    # its very text: it is JSON already, and is not read and written anew
    whole = _json(final)[:-1] + b',"result":' + result.encode() + b"}"
    if len(whole) <= FRAME_MAX:
        return [whole]
    parts = list(slices(result, SLICE_BYTES))
    told = {"type": "result", **_of(job), "parts": len(parts)}
    return [
        *(_json({**told, "part": part, "text": text}) for part, text in enumerate(parts)),
        _json({**final, "parts": len(parts)}),
    ]


def unwatched(job_id: str) -> bytes:
    return _json({"type": "unwatched", "job_id": job_id})


def pong() -> bytes:
    return _json({"type": "pong"})


def error(code: str, detail: str, job_id: str = "") -> bytes:
    return _json({"type": "error", "code": code, "detail": detail, **({"job_id": job_id} if job_id else {})})


def slices(text: str, most: int) -> Iterator[str]:
    """Consecutive parts of a text that have no more than so many bytes as JSON; characters stay whole."""
    start = 0
    while start < len(text):
        length = most
        while (size := len(_json(text[start : start + length]))) > most:
            length = min(length, len(text) - start) * most // size
        yield text[start : start + length]
        start += length


def _chunks(job: Job, first: int, texts: Sequence[str]) -> bytes:
    return _json({"type": "chunks", **_of(job), "from": first, "texts": list(texts)})


def _shown(job: Job) -> dict[str, Any]:
    """Without its `callback_url`: whoever has a ticket may be a browser, and a secret may be in that URL."""
    return {name: value for name, value in views.job(job).items() if name != "callback_url"}


def _of(job: Job) -> dict[str, Any]:
    return {"job_id": job.id, "attempt": job.attempt}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
