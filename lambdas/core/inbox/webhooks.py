"""An event of a declared source: its signature, its time, its id, its input, and then the job that it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lambdas.contracts.names import INBOX_HEADERS, INBOX_REVIEW, REVIEW_PK, REVIEWED
from lambdas.contracts.sources import TIMESTAMPED, Source
from lambdas.core import ids, times
from lambdas.core.canonical import canonical, sha256
from lambdas.core.inbox import listing
from lambdas.core.inbox.event_inputs import Event, bytes_of, event_of, id_of, input_of, listed_input
from lambdas.core.inbox.message import Buried, Incoming, Outcome, Refusal, on_record, unless_refused
from lambdas.core.inbox.signatures import UnusableSecret, is_signed, time_in
from lambdas.core.intake import Door, Submission, new_record, put_on_record
from lambdas.core.job import entry
from lambdas.core.ports import Secrets, Unavailable
from lambdas.core.times import Instant, seconds_between

METHOD, ROUTE = "POST", "/events/"
KEPT_S = 300.0  # how long a secret that was read is good without another look
DOUBTED_S = 30.0  # and how long when it did not match: it may have been changed since
REVIEW_ID_BYTES = 128  # that of a letter; DynamoDB refuses to look for what is longer than a key
REPAIRED = "repaired"

_SECONDS_MAX = 10**11  # a number above it is milliseconds


class Reviews(Protocol):
    """The part of the Ledger that is asked here."""

    def read(self, pk: str, sk: str) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class Reception:
    """What events are received with."""

    door: Door
    sources: Mapping[str, Source]
    secrets: Secrets
    reviews: Reviews


def take(incoming: Incoming, reception: Reception) -> Outcome:
    """The job of this event, or why it is none. Raises Unavailable."""
    source = reception.sources.get(incoming.source)
    if source is None:
        return _unknown(incoming.source, reception.sources)
    return unless_refused(lambda: _take(incoming, source, reception), source.tenant, source.task)


def take_listed(name: str, event: listing.Event, reception: Reception) -> Outcome:
    """The job of an event that never came, as its source lists it: that needs no signature. Raises Unavailable."""
    source = reception.sources.get(name)
    if source is None:
        return _unknown(name, reception.sources)
    door, past = reception.door, [entry(event.at, "listed", 0)]

    def record() -> Outcome:
        found = listed_input(source, event.body, door.types, door.limits)
        return _record(name, source, event.id, found=found, past=past, door=door)

    return unless_refused(record, source.tenant, source.task)


def _unknown(name: str, sources: Mapping[str, Source]) -> Buried:
    known = ", ".join(sorted(sources)) or "none"
    return Buried("UNKNOWN_SOURCE", f"no source {name[:64]!r} is declared (any more); known: {known}")


def _take(incoming: Incoming, source: Source, reception: Reception) -> Outcome:
    body = bytes_of(incoming.body, incoming.attributes)
    reviewed = _is_reviewed(incoming, reception.reviews)
    if not reviewed:
        _authenticate(incoming, source, reception.secrets, body)
    event, door = event_of(source, incoming.attributes, body), reception.door
    if not reviewed:
        _refuse_the_wrong_hour(event, incoming.received_at)
    event_id, found = id_of(event), input_of(event, door.types, door.limits)
    return _record(incoming.source, source, event_id, found=found, past=_past(incoming, reviewed), door=door)


def _record(
    name: str, source: Source, event_id: str, *, found: Any, past: Sequence[Mapping[str, Any]], door: Door
) -> Outcome:
    job_id = ids.job_id_from_key(source.tenant, METHOD, f"{ROUTE}{name}", event_id)
    request = {"type": source.task, "input": found}
    written = canonical(request)
    submission = Submission(source.tenant, b"")
    record = new_record(submission, request, sha256(written), job_id=job_id, now=door.now(), limits=door.limits)
    record |= {"source": name, "history": [*past, *record["history"]]}
    return on_record(put_on_record(record, written, door))


def _is_reviewed(incoming: Incoming, reviews: Reviews) -> bool:
    """Whether an operator repaired this very event. The attribute alone proves nothing: it might stand in a header that
    breaks out of its quotes on the way into the queue; what proves it is the review on record."""
    review_id = incoming.attributes.get(INBOX_REVIEW, "")
    review = reviews.read(REVIEW_PK, review_id) if 0 < len(review_id.encode()) <= REVIEW_ID_BYTES else None
    if review is None or review.get("status") != REPAIRED:
        return False
    same = all(review.get(name, "") == incoming.attributes.get(name, "") for name in REVIEWED)
    return same and bool(review.get("body_sha") == sha256(incoming.body))


def _authenticate(incoming: Incoming, source: Source, secrets: Secrets, body: bytes) -> None:
    """With the secrets as they were lately; when none matches, with those of now: they may have been rotated."""
    headers = {name: incoming.attributes[name] for name in INBOX_HEADERS if name in incoming.attributes}
    tried: Sequence[str] = ()
    for age_s in (KEPT_S, DOUBTED_S):
        known = secrets.read(source.secret, age_s)
        try:
            if known != tried and is_signed(source, known, headers, body):
                return
        except UnusableSecret as mistake:
            raise Unavailable(f"the secret {source.secret}: {mistake}", unknown=False) from mistake
        tried = known
    raise Refusal(
        "BAD_SIGNATURE", f"no signature in the header {source.header!r} is one of this body and these headers"
    )


def _refuse_the_wrong_hour(event: Event, received_at: Instant) -> None:
    """Against replays: the signed time is compared with the time at the door."""
    source = event.source
    if not source.time and source.scheme != TIMESTAMPED:
        return
    try:
        said = event.at(source.time) if source.time else time_in(source, event.attributes)
        then = _instant(said)
    except (LookupError, ValueError, OverflowError, OSError) as error:
        raise Refusal("NO_EVENT_TIME", "no time stands where the source's declaration says") from error
    age_s = seconds_between(then, received_at)
    if abs(age_s) > source.tolerance_s:
        word = "TIMESTAMP_TOO_OLD" if age_s > 0 else "TIMESTAMP_IN_FUTURE"
        raise Refusal(word, f"its time differs by {abs(age_s):.0f} s from ours; {source.tolerance_s} are allowed")


def _instant(said: Any) -> Instant:
    """Seconds or milliseconds since the epoch, as a number or its digits, or an RFC 3339 text."""
    if isinstance(said, str) and not said.isdecimal():
        return times.instant(said)
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        raise ValueError(f"{said!r} is no time")
    number = float(said)
    return times.of_milliseconds(int(number if number > _SECONDS_MAX else number * 1000))


def _past(incoming: Incoming, reviewed: bool) -> list[dict[str, Any]]:
    lines = [entry(incoming.received_at, "received", 0)]
    return [*lines, entry(incoming.sent_at, REPAIRED, 0, incoming.attributes[INBOX_REVIEW])] if reviewed else lines
