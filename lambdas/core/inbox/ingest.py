"""One message of the inbox: an event, a notification about objects, or a letter that came back; settled as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote_plus

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core.inbox import uploads, webhooks
from lambdas.core.inbox.message import Buried, Ignored, Incoming, Outcome, letter, unless_refused, unwrapped
from lambdas.core.inbox.uploads import Yard
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.intake import Accepted
from lambdas.core.ports import Notice, Sender, Stored, Unavailable

_CREATED = "ObjectCreated:"


@dataclass(frozen=True)
class Ingest:
    """What the inbox is emptied with."""

    reception: Reception
    yard: Yard
    letters: Sender


def ingest(message: Incoming, using: Ingest, notice: Notice) -> None:
    """Settle everything that one message brings; it may be acknowledged then. What it brought is a job, or a letter,
    which was sent before this returns. Raises Unavailable: then it stays, and what was settled already is settled again
    to no harm."""
    incoming = unwrapped(message)
    settled = list(_settle(incoming, using))
    buried = [(about, outcome) for about, outcome in settled if isinstance(outcome, Buried)]
    now = using.yard.door.now()
    if buried and using.letters.send([letter(about, why, now) for about, why in buried]):
        raise Unavailable("a letter could not be sent")
    for _, outcome in settled:
        _tell(incoming, outcome, notice)


def _settle(incoming: Incoming, using: Ingest) -> Iterator[tuple[Incoming, Outcome]]:
    if incoming.source:
        yield incoming, webhooks.take(incoming, using.reception)
        return
    found = _notified(incoming)
    if not isinstance(found, list):
        yield incoming, found
        return
    for record in found:
        alone = replace(incoming, body=json.dumps({"Records": [record]}))  # of several, each has its own letter
        yield alone, _object(record, incoming, using.yard)


def _notified(incoming: Incoming) -> list[Any] | Ignored | Buried:
    """The records of a notification, or what else it is."""
    try:
        found = parse(incoming.body.encode("utf-8", "surrogatepass"))
    except Malformed as error:
        return Buried("MALFORMED_MESSAGE", f"{error.pointer or '/'}: {error.detail}")
    if isinstance(found, dict) and found.get("Event") == "s3:TestEvent":
        return Ignored("S3's test event")
    records = found.get("Records") if isinstance(found, dict) else None
    if not isinstance(records, list) or not records:
        return Buried("MALFORMED_MESSAGE", "neither an event of a declared source nor a notification of S3")
    return records


def _object(record: Any, incoming: Incoming, yard: Yard) -> Outcome:
    try:
        name, bucket, stored = _read(record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return Buried("MALFORMED_MESSAGE", f"not a record of S3 about an object: {type(error).__name__}: {error}"[:300])
    if not name.startswith(_CREATED):
        return Ignored(f"{name[:64]} is no new object")
    if bucket != yard.bucket:
        return Buried("FOREIGN_BUCKET", f"an object in {bucket[:64]!r}, which is not where uploads lie")
    place = uploads.place_of(stored.key)
    whose = ("", "") if isinstance(place, str) else (place.tenant, place.type)
    return unless_refused(lambda: uploads.take(stored, incoming.received_at, yard), *whose)


def _read(record: Any) -> tuple[str, str, Stored]:
    """Event name, bucket and object of a record in a notification. A key is encoded there, once."""
    if record["eventSource"] != "aws:s3":
        raise ValueError(f"eventSource is {str(record['eventSource'])[:40]!r}")
    told: Mapping[str, Any] = record["s3"]["object"]
    version = told.get("versionId") or ""
    stored = Stored(
        key=unquote_plus(told["key"], errors="strict"),
        version="" if version == "null" else version,
        etag=str(told.get("eTag") or "").strip('"'),
        bytes=int(told.get("size") or 0),
    )
    return str(record["eventName"]), str(record["s3"]["bucket"]["name"]), stored


def _tell(incoming: Incoming, outcome: Outcome, notice: Notice) -> None:
    source = incoming.source or "uploads"
    match outcome:
        case Accepted(job_id, new, tenant, type_, trace_id):
            notice(
                "accepted", job_id=job_id, tenant=tenant, trace_id=trace_id, type=type_, attempt=0, new=new,
                source=source,
            )  # fmt: skip
        case Ignored(why, job_id):
            notice("ignored", job_id=job_id, reason=why, source=source)
        case Buried(reason, detail, tenant, type_):
            notice("buried", tenant=tenant, type=type_, reason=reason, detail=detail, source=source)
