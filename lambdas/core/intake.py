"""Accepts an event: checked, recorded by one conditional put, and only then acknowledged (row 1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import DELETED, JOB_SK, PENDING
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import Check, job_request_check
from lambdas.core import ids, times
from lambdas.core.canonical import canonical, sha256
from lambdas.core.changes import first_look
from lambdas.core.job import UnreadableRecord, entry
from lambdas.core.policy import DAY_S, Limits
from lambdas.core.ports import Inputs, JobStore, Unavailable
from lambdas.core.problems import Problem, bad_request, gone, unprocessable
from lambdas.core.times import Instant, after
from lambdas.core.webhooks import urls

METHOD, ROUTE = "POST", "/jobs"
LATER = ("max_cost",)
KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
TRACE = re.compile(r"00-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True)
class Submission:
    """A request as it came: `key` is the Idempotency-Key header, `traceparent` the W3C header; None when absent."""

    tenant: str
    body: bytes
    key: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True)
class Accepted:
    """Recorded. `new` is False when it was there already: the same event, sent again."""

    job_id: str
    new: bool
    tenant: str
    type: str
    trace_id: str


class ForeignRecord(Exception):
    """Another tenant's record stands under this tenant's job id: the hash of ids is broken. Nothing is answered."""


@dataclass(frozen=True)
class Door:
    """What accepting works with. `types`: the check of each task's input, by job type. `new_id`: 32 hex digits.
    `local`: a `callback_url` may be on this machine, without TLS."""

    store: JobStore
    inputs: Inputs
    types: Mapping[str, Check]
    limits: Limits
    now: Callable[[], Instant]
    new_id: Callable[[], str]
    local: bool = False


def accept(submission: Submission, door: Door) -> Accepted | Problem:
    """The whole way from a body to a durable record. Never raises for what the client can have caused."""
    if submission.key is not None and not KEY.fullmatch(submission.key):
        return bad_request("Idempotency-Key must be 1 to 255 visible ASCII characters.")
    request = _checked(submission.body, door)
    if isinstance(request, Problem):
        return request
    body = canonical(request)
    job_id = (
        ids.job_id_from_key(submission.tenant, METHOD, ROUTE, submission.key)
        if submission.key is not None
        else door.new_id()
    )
    record = new_record(submission, request, sha256(body), job_id=job_id, now=door.now(), limits=door.limits)
    return put_on_record(record, body, door)


def _checked(raw: bytes, door: Door) -> dict[str, Any] | Problem:
    """The request's fields, or what is wrong with them."""
    if len(raw) > 6 * door.limits.input_bytes:
        return _too_large(door.limits)
    try:
        found = parse(raw)
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    for name in LATER:
        if isinstance(found, dict) and name in found:
            return bad_request(f"`{name}` is not supported yet; leave it out.", f"/{name}")
    wrong = job_request_check()(found)
    if wrong:
        return bad_request(wrong.detail, wrong.pointer)
    return _fits(found, door)


def _fits(request: dict[str, Any], door: Door) -> dict[str, Any] | Problem:
    check = door.types.get(request["type"])
    if check is None:
        known = ", ".join(sorted(door.types)) or "none"
        return unprocessable(f"There is no task {request['type'][:64]!r}; known types: {known}.", "/type")
    if len(canonical(request["input"]).encode()) > door.limits.input_bytes:
        return _too_large(door.limits)
    wrong = check(request["input"])
    if wrong:
        return unprocessable(wrong.detail, "/input" + wrong.pointer)
    return _reachable(request, door) or _timely(request, door)


def _reachable(request: Mapping[str, Any], door: Door) -> Problem | None:
    """Where its end is to be delivered, as far as that can be told without looking a name up."""
    found = urls.read(request["callback_url"], local=door.local) if "callback_url" in request else None
    if isinstance(found, urls.UnusableUrl):
        return unprocessable(f"Nothing can be delivered to this URL: {found.reason}.", "/callback_url")
    return None


def _timely(request: dict[str, Any], door: Door) -> dict[str, Any] | Problem:
    if "not_before" in request:
        latest = after(door.now(), door.limits.not_before_s)
        if times.instant(request["not_before"]) > latest:
            days = door.limits.not_before_s // DAY_S
            return unprocessable(f"not_before may be at most {days} days ahead.", "/not_before")
    return request


def _too_large(limits: Limits) -> Problem:
    return Problem(
        413,
        "input-too-large",
        "The input is too large",
        f"An input may have {limits.input_bytes:,} bytes. Split it, or send what the task really needs; larger "
        "documents go through `POST /uploads`: an upload becomes the job.",
        "/input",
    )


def put_on_record(record: Mapping[str, Any], body: str, door: Door) -> Accepted | Problem:
    """A large input first, under a key that no other body has; then the record, which makes it count. An upload lies in
    its own bucket already."""
    try:
        if "input" not in record and "upload" not in record:
            door.inputs.put(ids.input_key(record["tenant"], record["pk"], record["body_sha"]), body.encode())
    except Unavailable as error:
        return _after_trouble(Unavailable(str(error), unknown=False), record, door)  # the record was not tried
    try:
        return _answer(record, door.store.create(record))
    except Unavailable as error:
        return _after_trouble(error, record, door)
    except UnreadableRecord as error:
        return _unknown(record["pk"], str(error))


def new_record(
    submission: Submission, request: Mapping[str, Any], body_sha: str, *, job_id: str, now: Instant, limits: Limits
) -> dict[str, Any]:
    """The record of row 1. A large input is not in it: it lies in S3 under the body's hash."""
    not_before = max(now, times.instant(request["not_before"])) if "not_before" in request else now
    deadline = after(not_before, limits.deadline_s)
    written = canonical(request["input"])
    record: dict[str, Any] = {
        "pk": job_id,
        "sk": JOB_SK,
        "tenant": submission.tenant,
        "tenant_shard": ids.tenant_shard(submission.tenant, job_id),
        "type": request["type"],
        "status": PENDING,
        **dict.fromkeys(("attempt", "tries", "crashes", "run", "sample", "cost"), 0),
        "created_at": times.text(now),
        "not_before": times.text(not_before),
        "deadline_at": times.text(deadline),
        "due_at": times.text(first_look(now, not_before, deadline, limits)),
        "due_shard": ids.due_shard(job_id),
        "body_sha": body_sha,
        "trace_id": _trace(submission.traceparent, job_id),
        "history": [entry(now, "accepted", 0)],
    }
    asked = {name: True for name in ("fresh", "urgent", "stream") if request.get(name)}
    told = {"callback_url": request["callback_url"]} if "callback_url" in request else {}
    inline = {"input": written} if len(written.encode()) <= limits.inline_input_bytes else {}
    return {**record, **asked, **told, **inline}


def _trace(traceparent: str | None, job_id: str) -> str:
    found = TRACE.fullmatch(traceparent or "")
    return found[1] if found else job_id


def _answer(record: Mapping[str, Any], standing: Mapping[str, Any] | None) -> Accepted | Problem:
    job_id = record["pk"]
    found = standing if standing is not None else record
    if found.get("tenant") != record["tenant"]:
        raise ForeignRecord(job_id)
    if found.get("status") == DELETED:
        return gone(job_id)
    if found.get("body_sha") != record["body_sha"]:
        return Problem(
            422, "key-reused", "The Idempotency-Key was used for another request",
            "This key already stands for a job with another body; use a new key for a new event.", None, job_id,
        )  # fmt: skip
    return Accepted(job_id, standing is None, found["tenant"], found["type"], found.get("trace_id", ""))


def _after_trouble(error: Unavailable, record: Mapping[str, Any], door: Door) -> Accepted | Problem:
    """One consistent read decides, if it finds the record. If it finds none, a put whose reply is missing may still
    be under way: that stays unknown."""
    job_id = record["pk"]
    try:
        standing = door.store.read(job_id)
    except (Unavailable, UnreadableRecord):
        standing = None
    if standing is not None:
        return _answer(record, standing)
    if error.unknown:
        return _unknown(job_id, str(error))
    detail = "The event was not accepted: nothing was recorded. Send it again with the same Idempotency-Key."
    return Problem(503, "not-accepted", "The event was not accepted", detail, cause=str(error))


def _unknown(job_id: str, cause: str) -> Problem:
    detail = "It is not known whether the event was recorded. Send it again with the same Idempotency-Key."
    return Problem(503, "unknown", "The outcome is unknown", detail, job_id=job_id, cause=cause)
