"""What the API answers, as far as a program reads it. Fields may be added; nothing here is checked at run time."""

from __future__ import annotations

from typing import Any, TypedDict


class Error(TypedDict):
    code: str
    message: str


class Accepted(TypedDict):
    """A job as a request left it."""

    job_id: str
    status: str
    links: dict[str, str]


class JobProgress(TypedDict):
    """The branches of a workflow in the present run, by name. `total`: how many it has."""

    done: list[str]
    failed: list[str]
    total: int


class Job(TypedDict, total=False):
    """A job's record. Times are ISO 8601 in UTC, costs micro-dollars. `partial`: COMPLETED without all of its parts."""

    job_id: str
    type: str
    status: str
    attempt: int
    tries: int
    cost_micros: int
    created_at: str
    not_before: str
    deadline_at: str
    finished_at: str
    handed_over: bool
    result_bytes: int
    partial: bool
    progress: JobProgress
    trace_id: str
    error: Error
    links: dict[str, str]


class Endpoint(TypedDict, total=False):
    """A registered receiver of webhooks. `secret` is in the answer to its registration alone."""

    id: str
    url: str
    events: list[str]
    description: str
    enabled: bool
    disabled_reason: str
    created_at: str
    secret: str
    health: dict[str, Any]
    ping: dict[str, Any]
    links: dict[str, str]


class Secret(TypedDict, total=False):
    """What an endpoint's webhooks are signed with, `previous` until then, too."""

    id: str
    secret: str
    previous: str
    previous_until: str


class Redelivery(TypedDict):
    """What was sent (again), and how it stands with each endpoint."""

    job_id: str
    event_id: str
    deliveries: list[dict[str, str]]


FINAL = ("COMPLETED", "FAILED", "CANCELLED")
