"""What the API says about a streamed job `j1`, frame by frame."""

from __future__ import annotations

from typing import Any

from neverdrop_client import Event, Final, Progress, Restarted, Text
from tests.integration.command_line import job


def watching(attempt: int = 1, start: int = 0) -> dict[str, Any]:
    return {"type": "watching", "job_id": "j1", "attempt": attempt, "from": start, "status": "PROCESSING"}


def chunks(*texts: str, start: int = 0, attempt: int = 1) -> dict[str, Any]:
    return {"type": "chunks", "job_id": "j1", "attempt": attempt, "from": start, "texts": list(texts)}


def progress(*done: str, failed: tuple[str, ...] = (), attempt: int = 1, total: int = 5) -> dict[str, Any]:
    come = {"done": list(done), "failed": list(failed), "total": total}
    return {"type": "progress", "job_id": "j1", "attempt": attempt, **come}


def restarted(attempt: int) -> dict[str, Any]:
    return {"type": "restarted", "job_id": "j1", "attempt": attempt}


def part(number: int, of: int, text: str, attempt: int = 1) -> dict[str, Any]:
    return {"type": "result", "job_id": "j1", "attempt": attempt, "part": number, "parts": of, "text": text}


def bare_final(count: int, *, status: str = "COMPLETED", attempt: int = 1, **more: Any) -> dict[str, Any]:
    """Without a result of its own."""
    ended = job(status=status, attempt=attempt)
    return {"type": "final", "job_id": "j1", "attempt": attempt, "chunks": count, "job": ended, **more}


def final(count: int, **more: Any) -> dict[str, Any]:
    return bare_final(count, **{"result": {"done": True}, **more})


def polled(
    *texts: str, start: int = 0, attempt: int = 1, is_final: bool = False, is_restarted: bool = False
) -> dict[str, Any]:
    """An answer of `GET /jobs/j1/chunks`."""
    told = {"job_id": "j1", "status": "COMPLETED" if is_final else "PROCESSING", "attempt": attempt}
    return {
        **told, "restarted": is_restarted, "from": start, "texts": list(texts), "next": start + len(texts),
        "final": is_final, "links": {},
    }  # fmt: skip


def told(events: list[Event]) -> list[str]:
    """Events in short: the texts as they are, `!2` for a restart, `3/5` of a workflow, the status for the end."""
    short = []
    for event in events:
        match event:
            case Text(text=text):
                short.append(text)
            case Restarted(attempt=attempt):
                short.append(f"!{attempt}")
            case Progress(settled=settled, total=total):
                short.append(f"{settled}/{total}")
            case Final(job=ended):
                short.append(str(ended["status"]))
    return short
