"""A refusal at the door, as RFC 9457 wants it told: which rule, where it is broken, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TYPE_BASE = "urn:neverdrop:problem:"


@dataclass(frozen=True)
class Problem:
    """`kind` is stable and for programs; `detail` is for people; `pointer` is a JSON pointer into the body."""

    status: int
    kind: str
    title: str
    detail: str
    pointer: str | None = None
    job_id: str | None = None
    cause: str = ""  # for the log alone

    def body(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "type": TYPE_BASE + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.pointer is not None:
            told["errors"] = [{"pointer": self.pointer, "detail": self.detail}]
        if self.job_id:
            told["job_id"] = self.job_id
        return told


def bad_request(detail: str, pointer: str | None = None) -> Problem:
    return Problem(400, "bad-request", "The request cannot be read", detail, pointer)


def unprocessable(detail: str, pointer: str | None = None) -> Problem:
    return Problem(422, "invalid-input", "The request is well formed but wrong", detail, pointer)


def not_found() -> Problem:
    return Problem(404, "no-such-job", "No such job", "There is no job with this id for this tenant.")


def wrong_state(job_id: str, detail: str) -> Problem:
    return Problem(409, "wrong-state", "The job's state forbids it", detail, job_id=job_id)


def gone(job_id: str) -> Problem:
    return Problem(
        410,
        "deleted",
        "The job was deleted",
        "Its data is gone; send the event under another key.",
        None,
        job_id,
    )


def unreadable() -> Problem:
    detail = "Somebody changed the record of this job by hand; the operators find it in the log."
    return Problem(503, "unreadable", "The record cannot be read", detail)


def forbidden(detail: str) -> Problem:
    return Problem(403, "no-tenant", "No tenant for this identity", detail)
