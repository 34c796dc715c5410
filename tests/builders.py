"""Makes any job, record, message or request that a test needs; a test names only what it is about."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.contracts.validation import compile_schema
from lambdas.core import ids, times
from lambdas.core.batch import Delivery
from lambdas.core.canonical import canonical, sha256
from lambdas.core.envelope import Unreadable, letter_about_message, written
from lambdas.core.job import Job, from_record
from lambdas.core.policy import RetryPolicy
from lambdas.core.ports import Found
from lambdas.core.tasks import Context, Declaration, Task

NOW = datetime(2026, 11, 29, 15, 30, 44, 123_000, tzinfo=UTC)
JOB_ID = "0123456789abcdef0123456789abcdef"
TENANT = "acme"
CLAIM = "claim-of-the-holder"


def later(seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
    """An instant that long after NOW (before it when negative)."""
    return NOW + timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)


def any_record(**over: Any) -> dict[str, Any]:
    """A PENDING record just accepted. Instants are written as text; a field that is None is left out."""
    pk = over.get("pk", JOB_ID)
    tenant = over.get("tenant", TENANT)
    text = '{"text":"Houston, we have had a problem."}'
    record = {
        "pk": pk,
        "sk": "job",
        "tenant": tenant,
        "tenant_shard": ids.tenant_shard(tenant, pk),
        "type": "summarize",
        "status": PENDING,
        **dict.fromkeys(("attempt", "tries", "crashes", "run", "sample", "cost"), 0),
        "created_at": NOW,
        "not_before": NOW,
        "deadline_at": later(days=1),
        "due_at": later(120),
        "due_shard": ids.due_shard(pk),
        "body_sha": sha256(canonical({"type": "summarize", "input": json.loads(text)})),
        "trace_id": pk,
        "input": text,
        "history": [{"at": times.text(NOW), "what": "accepted", "attempt": 0}],
        **over,
    }
    written = {name: times.text(value) if isinstance(value, datetime) else value for name, value in record.items()}
    return {name: value for name, value in written.items() if value is not None}


def held_record(**over: Any) -> dict[str, Any]:
    """A record that is PROCESSING: claimed at NOW, held for 130 seconds."""
    held = {
        "status": PROCESSING,
        "attempt": 1,
        "tries": 1,
        "claim_id": CLAIM,
        "claimed_at": NOW,
        "lease_until": later(130),
    }
    return any_record(**{**held, **over})


def final_record(status: str = COMPLETED, **over: Any) -> dict[str, Any]:
    """A record that ended at NOW and was not handed over yet."""
    more: dict[str, Any] = {}
    if status == COMPLETED:
        more = {"result_key": ids.result_key(over.get("tenant", TENANT), over.get("pk", JOB_ID), 1), "result_bytes": 42}
    if status == FAILED:
        more = {"error": {"code": "TASK_ERROR", "message": "ValueError: no"}}
    ended = {"status": status, "finished_at": NOW, "expires_at": int(later(days=90).timestamp())}
    return held_record(**{**ended, **more, **over})


def handed_over(status: str = COMPLETED, **over: Any) -> dict[str, Any]:
    return final_record(status, **{"due_at": None, "due_shard": None, "handed_over_at": NOW, **over})


def any_job(**over: Any) -> Job:
    return from_record(any_record(**over))


def held_job(**over: Any) -> Job:
    return from_record(held_record(**over))


def final_job(status: str = COMPLETED, **over: Any) -> Job:
    return from_record(final_record(status, **over))


FINALS: tuple[str, ...] = (COMPLETED, FAILED, CANCELLED)


# --- messages ------------------------------------------------------------------------------------
def any_envelope(**over: Any) -> dict[str, Any]:
    """The hint that the dispatcher sends for a fresh job; `payload` adds to the payload."""
    payload = over.pop("payload", {})
    payload = {"attempt": 0, "crashes": 0, **payload} if isinstance(payload, dict) else payload
    return {
        "schema": 1,
        "event_id": f"{JOB_ID}.0.PENDING",
        "event_type": "job.dispatched",
        "trace_id": JOB_ID,
        "run_id": JOB_ID,
        "step_index": 0,
        "idempotency_key": f"{JOB_ID}.0.PENDING",
        "tenant_id": TENANT,
        "timestamp": times.text(NOW),
        "payload": payload,
        **over,
    }


def any_hint_body(job_id: str = JOB_ID, attempt: int = 0, crashes: int = 0, **over: Any) -> str:
    return json.dumps(any_envelope(run_id=job_id, payload={"attempt": attempt, "crashes": crashes}, **over))


def any_letter_body(job_id: str = JOB_ID, attempt: int = 1, reason: str = "TASK_ERROR") -> str:
    payload = {"attempt": attempt, "reason": reason}
    return json.dumps(any_envelope(run_id=job_id, event_type="job.dead_lettered", payload=payload))


def any_event_body(job_id: str = JOB_ID, status: str = COMPLETED, attempt: int = 1, **over: Any) -> str:
    """What the dispatcher publishes of a job that has ended, as the deliveries queue gets it."""
    payload = {"status": status, "attempt": attempt, "type": "summarize", **over.pop("payload", {})}
    event_id = ids.event_id(job_id, attempt, status)
    told = {"event_id": event_id, "idempotency_key": event_id, "step_index": attempt, "run_id": job_id}
    told |= {"event_type": f"job.{status.lower()}", **over}
    return json.dumps({**any_envelope(**told), "payload": payload})


def any_delivery_hint_body(job_id: str = JOB_ID, endpoint: str = "e1", attempt: int = 0, crashes: int = 0) -> str:
    payload = {"endpoint": endpoint, "event_id": f"{job_id}.1.COMPLETED", "attempt": attempt, "crashes": crashes}
    return json.dumps(any_envelope(run_id=job_id, event_type="delivery.dispatched", payload=payload))


def any_delivery(body: str | None = None, **over: Any) -> Delivery:
    values: dict[str, Any] = {
        "message_id": "message-1",
        "receipt_handle": "receipt-1",
        "body": any_hint_body() if body is None else body,
        "receives": 1,
        "request_id": "request-1",
        **over,
    }
    return Delivery(**values)


_FOUND = itertools.count(1)


def any_found(body: str | None = None, **over: Any) -> Found:
    """A letter as it lies in a queue of dead letters: by default that of a FAILED job."""
    number = next(_FOUND)
    values: dict[str, Any] = {
        "message_id": f"message-{number}",
        "receipt": f"receipt of message-{number}",
        "body": any_letter_body() if body is None else body,
        "attributes": {},
        "sent_at": NOW,
        **over,
    }
    return Found(**values)


def unreadable_found(body: str, reason: str = "MALFORMED_MESSAGE", detail: str = "not JSON", **over: Any) -> Found:
    """A letter about a message that was no good, as a worker sends it."""
    letter = letter_about_message(body, Unreadable(reason, detail), NOW)
    return any_found(written(letter), **{"attributes": {"event_type": letter["event_type"]}, **over})


# --- requests ------------------------------------------------------------------------------------
def any_request(**over: Any) -> dict[str, Any]:
    """A body of POST /jobs as a value; a field that is None is left out."""
    request = {"type": "summarize", "input": {"text": "Houston, we have had a problem."}, **over}
    return {name: value for name, value in request.items() if value is not None}


def any_body(**over: Any) -> bytes:
    return json.dumps(any_request(**over)).encode()


# --- tasks ---------------------------------------------------------------------------------------
def any_task(
    run: Callable[[Any, Context], Any] = lambda task_input, ctx: {"summary": ctx.model.ask(task_input["text"]).text},
    *,
    type_: str = "summarize",
    retry: RetryPolicy | None = None,
    reuse: Any = "tenant",
    input_: Mapping[str, Any] | None = None,
    output: Mapping[str, Any] | None = None,
) -> Task:
    checks = (compile_schema(schema if schema is not None else {"type": "object"}) for schema in (input_, output))
    return Task(Declaration(type_, retry, reuse), run, *checks)


def item_bytes(value: Any) -> int:
    """Bytes of a record as DynamoDB counts them (its documentation, "DynamoDB item sizes and formats")."""
    match value:
        case bool():
            return 1
        case str():
            return len(value.encode())
        case int():
            return 2 + len(str(abs(value)).rstrip("0")) // 2
        case list() | tuple():
            return 3 + sum(1 + item_bytes(part) for part in value)
        case Mapping():
            return 3 + sum(1 + len(name.encode()) + item_bytes(part) for name, part in value.items())
    raise TypeError(type(value).__name__)


def record_bytes(record: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + item_bytes(value) for name, value in record.items())
