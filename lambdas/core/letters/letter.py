"""What lies in a queue of dead letters: which kind of letter, about what, whether it still means something."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lambdas.contracts import names
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import envelope_check
from lambdas.core import envelope, ids, times
from lambdas.core.canonical import sha256, sha256_of
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.ports import Found, JobStore, Message
from lambdas.core.times import Instant
from lambdas.core.webhooks import messages

WORK, URGENT, INBOX, DELIVERIES = QUEUES = ("work", "urgent", "inbox", "deliveries")

Kind = Literal["job", "hint", "unreadable", "event", "delivery", "foreign"]
Standing = Literal["due", "stale", "unknown"]

NOT_ACKNOWLEDGED = "NOT_ACKNOWLEDGED"
NEWER_SCHEMA = "NEWER_SCHEMA"
SENT_HERE = "SENT_HERE"
SPOILT = "UNREADABLE"  # no status of a job: its record holds what no writer of ours puts there

ERROR_CHARS = 120  # a record cuts its error at 200 bytes, ids and all: where that was must not split a cause
_BESIDE = ("reason", "detail")  # what ingest puts beside an event that is too large for a letter
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")  # goes into a URL, and into the ledger
_VARYING = re.compile(r"\b(?=[\w-]*\d)[\w-]{8,}\b|\d+")  # ids, hashes, times, counts: what differs for one cause


@dataclass(frozen=True)
class Letter:
    """One letter. `kind`: `job` buries a FAILED job at `attempt`; `hint` is a work message that SQS moved; `event` an
    event from outside that no job was made of; `delivery` one that no delivery was made of, or the hint of one;
    `unreadable` tells of a message that was no good; `foreign`: the rest.
    `body` and `attributes` are those of the message that it is about. `tries`: None when nobody has said."""

    id: str
    queue: str
    kind: Kind
    found: Found
    reason: str
    detail: str
    at: Instant
    body: str
    attributes: Mapping[str, str]
    task: str | None = None
    schema: int | None = None
    job_id: str | None = None
    attempt: int = 0
    tries: int | None = None
    cost: int = 0

    @property
    def error(self) -> str:
        """The detail without what differs from one letter of a cause to the next."""
        return _VARYING.sub("#", " ".join(self.detail.split()))[:ERROR_CHARS]

    @property
    def group(self) -> str:
        return sha256_of([self.queue, self.reason, self.error, self.task, self.schema])[:16]

    @property
    def subject(self) -> str:
        """Of the message that it is about: the same in every letter about it, whoever has written the letter."""
        value = parsed(self.body)
        return sha256_of(value) if value is not None else sha256(self.body.encode("utf-8", "replace").decode())

    @property
    def is_malformed(self) -> bool:
        """Somebody has to repair or discard it: bringing it back as it is may not help."""
        return self.kind in ("unreadable", "foreign", "event")


def read(queue: str, found: Found) -> Letter:
    """What this message is. In the inbox strangers write: a message with the attribute `source` is an event, whatever
    its body says, as ingest takes it too."""
    value = parsed(found.body)
    ours = queue != INBOX or names.INBOX_SOURCE not in found.attributes
    if isinstance(value, dict) and ours and envelope_check()(value) is None:
        match value["event_type"], envelope.read(found.body):
            case envelope.UNREADABLE, _ if isinstance(value["payload"].get("body"), str):
                return _unreadable(queue, found, value)
            case _ if queue == INBOX:
                return _event(found)
            case _ if queue == DELIVERIES:
                return _delivery(found, value)
            case envelope.DEAD_LETTERED, envelope.ReturnedLetter(job_id, attempt):
                return _about_job(queue, found, value, job_id, attempt)
            case envelope.DISPATCHED, envelope.Hint(job_id, attempt, _):
                return _hint(queue, found, job_id, attempt)
    return _event(found) if queue == INBOX else _foreign(queue, found, value)


def _about_job(queue: str, found: Found, value: Mapping[str, Any], job_id: str, attempt: int) -> Letter:
    payload = value["payload"]
    return Letter(
        id=_named(ids.event_id(job_id, attempt, names.FAILED), found),
        queue=queue,
        kind="job",
        found=found,
        reason=payload["reason"],
        detail=_text(payload, "detail"),
        at=times.instant(value["timestamp"]),
        body=found.body,
        attributes=found.attributes,
        task=_text(payload, "type") or found.attributes.get("type"),
        schema=value["schema"],
        job_id=job_id,
        attempt=attempt,
        tries=_number(payload, "tries"),
        cost=_number(payload, "cost_micros") or 0,
    )


def _hint(queue: str, found: Found, job_id: str, attempt: int) -> Letter:
    return Letter(
        id=_digest(found),
        queue=queue,
        kind="hint",
        found=found,
        reason=NOT_ACKNOWLEDGED if found.moved else SENT_HERE,
        detail="no worker has acknowledged it" if found.moved else "somebody has sent it to the dead letters",
        at=found.sent_at,
        body=found.body,
        attributes=found.attributes,
        task=found.attributes.get("type"),
        schema=envelope.SCHEMA,
        job_id=job_id,
        attempt=attempt,
    )


def _unreadable(queue: str, found: Found, value: Mapping[str, Any]) -> Letter:
    payload, body = value["payload"], envelope.original(found.body)
    inner = parsed(body)
    fields = inner if isinstance(inner, dict) else {}
    known = payload.get("attributes")
    attributes = {str(name): str(text) for name, text in known.items()} if isinstance(known, dict) else {}
    job_id = fields.get("run_id")
    return Letter(
        id=_named(value["event_id"], found),
        queue=queue,
        kind="unreadable",
        found=found,
        reason=_text(payload, "reason") or "UNKNOWN",
        detail=_text(payload, "detail"),
        at=times.instant(value["timestamp"]),
        body=body,
        attributes=attributes,
        task=found.attributes.get("type"),
        schema=fields["schema"] if type(fields.get("schema")) is int else None,
        job_id=job_id if isinstance(job_id, str) and 0 < len(job_id) <= 128 else None,
    )


def _event(found: Found) -> Letter:
    """An event or a notification as it came. One that was too large for a letter around it has its reason beside it."""
    attributes = {name: text for name, text in found.attributes.items() if name not in _BESIDE}
    source = attributes.get(names.INBOX_SOURCE, names.UPLOADS)
    detail = f"of {source}: nobody has made a job of it" if found.moved else f"of {source}, sent to the dead letters"
    return Letter(
        id=_digest(found),
        queue=INBOX,
        kind="event",
        found=found,
        reason=found.attributes.get("reason") or (NOT_ACKNOWLEDGED if found.moved else SENT_HERE),
        detail=found.attributes.get("detail") or detail,
        at=found.sent_at,
        body=found.body,
        attributes=attributes,
    )


def _delivery(found: Found, value: Mapping[str, Any]) -> Letter:
    """An event of ours, or a hint: whichever, and whoever put it here, it is harmless to bring it back."""
    if isinstance(messages.read(found.body), envelope.Newer | envelope.Unreadable):
        return _foreign(DELIVERIES, found, value)
    elsewhere = "SNS could not deliver it, or somebody has sent it to the dead letters"
    return Letter(
        id=_digest(found),
        queue=DELIVERIES,
        kind="delivery",
        found=found,
        reason=NOT_ACKNOWLEDGED if found.moved else SENT_HERE,
        detail="deliver has not acknowledged it" if found.moved else elsewhere,
        at=found.sent_at,
        body=found.body,
        attributes=found.attributes,
        task=value["event_type"],
        schema=value["schema"],
        job_id=value["run_id"],
        attempt=value["step_index"],
    )


def _foreign(queue: str, found: Found, value: Any) -> Letter:
    schema = value.get("schema") if isinstance(value, dict) else None
    version = schema if type(schema) is int else None
    reason, detail = NOT_ACKNOWLEDGED if found.moved else SENT_HERE, "no message of ours"
    if version is not None and version > envelope.SCHEMA:
        reason, detail = NEWER_SCHEMA, "a worker of this version does not read it"
    return Letter(
        id=_digest(found),
        queue=queue,
        kind="foreign",
        found=found,
        reason=reason,
        detail=detail,
        at=found.sent_at,
        body=found.body,
        attributes=found.attributes,
        schema=version,
    )


def standing(letter: Letter, record: Mapping[str, Any] | None) -> Standing:
    """Whether it would still do something, by its job's record (of a consistent read, if anything is to be removed).
    `stale`: the record has certainly gone on. `unknown`: no record, a broken one, or one that is behind the letter (it
    was restored): nobody but an operator may throw that letter away."""
    if letter.kind not in ("job", "hint"):
        return "due"
    if record is not None and record.get("status") == names.DELETED:
        return "stale"
    job = job_of(record)
    if job is None:
        return "unknown"
    if letter.kind == "hint":
        return "stale" if job.is_final else "due"
    if job.attempt > letter.attempt:
        return "stale"
    return "due" if job.status == names.FAILED and job.attempt == letter.attempt else "unknown"


def had_no_attempt(letter: Letter, job: Job | None) -> bool:
    """It died without one real try: workers were throttled, or could not start."""
    if letter.kind == "hint":
        return job is not None and not job.tries
    if letter.kind in ("event", "delivery"):
        return letter.found.moved
    return letter.kind == "job" and letter.tries == 0


def record_of(job_id: str | None, store: JobStore) -> Mapping[str, Any] | None:
    """The job's record, by a consistent read. One that cannot be read is a record all the same, of no job: what it
    holds is for the operator, and it must not end the work on the letters beside it. Raises Unavailable."""
    try:
        return store.read(job_id) if job_id else None
    except UnreadableRecord:
        return {"pk": job_id, "status": SPOILT}


def job_of(record: Mapping[str, Any] | None) -> Job | None:
    try:
        return from_record(record) if record is not None else None
    except UnreadableRecord:
        return None


def message_of(letter: Letter) -> Message:
    """What goes to the queue that it belongs to: a letter about a job as it is, else the message that it is about."""
    group = letter.found.group or letter.attributes.get("tenant") or letter.queue
    return Message(letter.body, letter.attributes, group, urgent=letter.queue == URGENT)


def parsed(body: str) -> Any:
    """The value; None for what is no JSON as we take it."""
    try:
        return parse(body.encode("utf-8", "surrogatepass"))
    except Malformed:
        return None


def _named(name: str, found: Found) -> str:
    return name if _PLAIN_ID.fullmatch(name) else _digest(found)


def _digest(found: Found) -> str:
    return sha256(found.body.encode("utf-8", "replace").decode())


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _number(payload: Mapping[str, Any], name: str) -> int | None:
    value = payload.get(name)
    return value if type(value) is int and value >= 0 else None
