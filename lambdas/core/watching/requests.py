"""What a client may say over its connection. Everything else is answered, too, and does no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core.lookup import ID_MAX

MESSAGE_MAX = 4_096  # bytes; the longest that makes sense has some hundred
NUMBER_MAX = 999_999  # chunks and attempts have six digits
_FIELDS = {"watch": {"job_id", "from", "attempt"}, "unwatch": {"job_id"}, "ping": set[str]()}


@dataclass(frozen=True)
class WatchJob:
    """`attempt`: whose chunks were counted; None for the current one."""

    job_id: str
    start: int
    attempt: int | None


@dataclass(frozen=True)
class UnwatchJob:
    job_id: str


@dataclass(frozen=True)
class Ping:
    """Also: is there anything that I was not sent?"""


@dataclass(frozen=True)
class Refused:
    code: str
    detail: str
    job_id: str = ""


def read(raw: bytes) -> WatchJob | UnwatchJob | Ping | Refused:
    """The request. Never raises."""
    if len(raw) > MESSAGE_MAX:
        return Refused("too_large", f"A message may have {MESSAGE_MAX:,} bytes.")
    try:
        message = parse(raw)
    except Malformed as error:
        return Refused("bad_request", error.detail)
    action = message.get("action") if isinstance(message, dict) else None
    if not isinstance(action, str) or action not in _FIELDS:
        return Refused("unknown_action", f"`action` must be one of {', '.join(_FIELDS)}.")
    unknown = message.keys() - {"action"} - _FIELDS[action]
    if unknown:
        return Refused("bad_request", f"`{min(unknown)[:64]}` is not a field of {action}.")
    if action == "ping":
        return Ping()
    job_id = message.get("job_id")
    if not isinstance(job_id, str) or not 0 < len(job_id) <= ID_MAX:
        return Refused("bad_request", f"`job_id` must be a text of 1 to {ID_MAX} characters.")
    return UnwatchJob(job_id) if action == "unwatch" else _watch(message, job_id)


def _watch(message: Mapping[str, Any], job_id: str) -> WatchJob | Refused:
    for name in ("from", "attempt"):
        number = message.get(name, 0)
        if type(number) is not int or not 0 <= number <= NUMBER_MAX:
            return Refused("bad_request", f"`{name}` must be a whole number from 0 to {NUMBER_MAX}.", job_id)
    return WatchJob(job_id, message.get("from", 0), message.get("attempt"))
