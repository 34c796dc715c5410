"""The one shape of every message, and how a reader tells what is meant for it from what it must bury."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import Violation, envelope_check
from lambdas.core import ids, times
from lambdas.core.canonical import sha256, sha256_of
from lambdas.core.job import Job
from lambdas.core.times import Instant

SCHEMA = 1
READABLE = (SCHEMA,)  # this version and the one before it, once there is one

LETTER_BODY_BYTES = 980_000  # as JSON text; SQS takes 1 MiB, and a letter says more than its body

DISPATCHED = "job.dispatched"
DEAD_LETTERED = "job.dead_lettered"
UNREADABLE = "job.unreadable"


@dataclass(frozen=True)
class Hint:
    """An ordinary message: this job may be claimable. Nothing in it is believed but the id and the attempt."""

    job_id: str
    attempt: int
    crashes: int


@dataclass(frozen=True)
class ReturnedLetter:
    """A dead letter that somebody moved back to the work queue: reopen its job, if it still is dead at that attempt."""

    job_id: str
    attempt: int


@dataclass(frozen=True)
class Newer:
    """Written by a later version of this code: a deploy is under way. To be left for redelivery."""

    schema: int


@dataclass(frozen=True)
class Unreadable:
    """No message of ours. To be buried at once, with this reason."""

    reason: str
    detail: str


def envelope(job: Job, event_type: str, payload: Mapping[str, Any], now: Instant) -> dict[str, Any]:
    """The message that says what happened to this job; the same fact has the same event id, whoever says it."""
    return {
        "schema": SCHEMA,
        "event_id": ids.event_id(job.id, job.attempt, job.status),
        "event_type": event_type,
        "trace_id": job.trace_id,
        "run_id": job.id,
        "step_index": job.attempt,
        "idempotency_key": ids.event_id(job.id, job.attempt, job.status),
        "tenant_id": job.tenant,
        "timestamp": times.text(now),
        "payload": dict(payload),
    }


def read(body: str) -> Hint | ReturnedLetter | Newer | Unreadable:
    """What a message on the work queue asks for."""
    found = opened(body)
    return found if isinstance(found, Newer | Unreadable) else _meaning(found)


def opened(body: str) -> Mapping[str, Any] | Newer | Unreadable:
    """The envelope in a message on one of our queues. A letter about a message that was moved back stands for its
    message, which so has another chance after a fix."""
    try:
        found = parse(original(body).encode("utf-8", "surrogatepass"))
    except Malformed as error:
        return Unreadable("MALFORMED_MESSAGE", error.detail)
    schema = found.get("schema") if isinstance(found, dict) else None
    if type(schema) is int and schema > SCHEMA:
        return Newer(schema)
    if type(schema) is int and schema not in READABLE:
        return Unreadable("UNSUPPORTED_SCHEMA", f"schema {schema} is no longer read")
    wrong = envelope_check()(found) or _fraction(found)
    if wrong:
        return Unreadable("INVALID_ENVELOPE", f"{wrong.pointer or '/'}: {wrong.detail}")
    sound: Mapping[str, Any] = found
    return sound


def _fraction(found: Mapping[str, Any]) -> Violation | None:
    """JSON Schema takes 1.0 for an integer; a record does not."""
    numbers = {"/schema": found["schema"], "/step_index": found["step_index"]}
    numbers |= {f"/payload/{name}": found["payload"].get(name, 0) for name in ("attempt", "crashes")}
    return next(
        (Violation("must be a whole number", at) for at, number in numbers.items() if type(number) is not int), None
    )


def _meaning(found: Mapping[str, Any]) -> Hint | ReturnedLetter | Unreadable:
    payload = found["payload"]
    match found["event_type"]:
        case "job.dispatched":
            return Hint(found["run_id"], payload["attempt"], payload["crashes"])
        case "job.dead_lettered":
            return ReturnedLetter(found["run_id"], payload["attempt"])
        case other:
            return Unreadable("FOREIGN_EVENT", f"{other} is not for the work queue")


def original(body: str) -> str:
    """The message that a letter is about, when this is such a letter; else the message itself."""
    try:
        found = parse(body.encode("utf-8", "surrogatepass"))
    except Malformed:
        return body
    if isinstance(found, dict) and found.get("event_type") == UNREADABLE and isinstance(found.get("payload"), dict):
        inner = found["payload"].get("body")
        return original(inner) if isinstance(inner, str) else body
    return body


def letter_about_message(
    body: str,
    unreadable: Unreadable,
    now: Instant,
    *,
    tenant: str = "unknown",
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A letter for what is no message of ours. Its id is the hash of the body, and of what is told `about` it, so that
    a repeat shows as one. The body is whole unless the letter would be larger than SQS takes."""
    clean = body.encode("utf-8", "replace").decode()
    digest = (sha256_of([clean, about]) if about else sha256(clean))[:32]
    return {
        "schema": SCHEMA,
        "event_id": f"message.{digest}",
        "event_type": UNREADABLE,
        "trace_id": "",
        "run_id": f"message.{digest}",
        "step_index": 0,
        "idempotency_key": f"message.{digest}",
        "tenant_id": tenant,
        "timestamp": times.text(now),
        "payload": {"reason": unreadable.reason, "detail": unreadable.detail, "body": _fitting(body), **(about or {})},
    }


def _fitting(body: str) -> str:
    return body if len(json.dumps(body)) <= LETTER_BODY_BYTES else body[:10_000]


def written(message: Mapping[str, Any]) -> str:
    """Plain ASCII JSON: control characters, which SQS and SNS refuse, are escaped."""
    return json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
