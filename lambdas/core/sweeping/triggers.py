"""What a notification or a webhook would have done, done for the one that never came."""

from __future__ import annotations

from collections.abc import Callable

from lambdas.core import ids
from lambdas.core.inbox import uploads, webhooks
from lambdas.core.inbox.listing import Event
from lambdas.core.inbox.message import Buried, Ignored, Refusal, unless_refused
from lambdas.core.inbox.message import Outcome as Taken
from lambdas.core.inbox.uploads import Yard
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.intake import Accepted
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import JobStore, ObjectVersion, Stored, Unavailable
from lambdas.core.sweeping.accounts import Known, Missed, Outcome, Triggered, Unusable


def of_uploads(yard: Yard) -> Callable[[ObjectVersion, bool], Outcome]:
    """By the very use case of the inbox; its conditional put is the second look at the record."""

    def trigger(found: ObjectVersion, dry_run: bool) -> Outcome:
        stored = Stored(found.key, found.version, found.etag, found.bytes)
        if dry_run:
            return _dry(lambda: uploads.job_id_of(stored, yard), yard.door.store)
        taken = unless_refused(lambda: uploads.take(stored, found.modified, yard))
        return _meaning(taken, yard.door.store)

    return trigger


def of_events(source: str, reception: Reception) -> Callable[[Event, bool], Outcome]:
    """As its webhook would do, but for the signature: the source itself has told us."""

    def trigger(event: Event, dry_run: bool) -> Outcome:
        if dry_run:
            return _dry(lambda: listed_job_id(source, reception)(event.id), reception.door.store)
        return _meaning(webhooks.take_listed(source, event, reception), reception.door.store)

    return trigger


def listed_job_id(source: str, reception: Reception) -> Callable[[str], str]:
    tenant = reception.sources[source].tenant
    return lambda event_id: ids.job_id_from_key(tenant, webhooks.METHOD, f"{webhooks.ROUTE}{source}", event_id)


def _meaning(taken: Taken, store: JobStore) -> Outcome:
    match taken:
        case Accepted(job_id, new=True):
            return Triggered(job_id)
        case Accepted(job_id) | Ignored(_, job_id):
            known = _known(job_id, store)
            if known is None:
                raise Unavailable(f"the record of {job_id} was there a moment ago, and is no more")
            return known
        case Buried(reason, detail):
            return Unusable(f"{reason}: {detail}")


def _dry(job_id_of: Callable[[], str], store: JobStore) -> Outcome:
    try:
        job_id = job_id_of()
    except Refusal as refused:
        return Unusable(str(refused))
    return _known(job_id, store) or Missed(job_id)


def _known(job_id: str, store: JobStore) -> Known | None:
    """Raises Unavailable, also for a record that cannot be read: that event is not settled, and the others are."""
    try:
        record = store.read(job_id) if job_id else None
    except UnreadableRecord as broken:
        raise Unavailable(f"the record of {job_id} cannot be read: {broken}") from broken
    return Known(job_id, str(record.get("status"))) if record is not None else None
