"""From an event to its deliveries: one record for each endpoint that is to hear of it, however often it comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from lambdas.contracts.names import DELETED
from lambdas.core import times
from lambdas.core.envelope import Unreadable, written
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Notice, Now
from lambdas.core.times import Instant
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import urls
from lambdas.core.webhooks.delivery import DeliveryLimits, new_record
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.messages import Event
from lambdas.core.webhooks.ports import DeliveryStore, EndpointStore


@dataclass(frozen=True)
class Recipient:
    """Who is to hear of an event: a registered endpoint as it is registered now, or a `url` that the job itself names
    (`endpoint`: its callback id)."""

    endpoint: str
    registration: str = ""
    url: str = ""


class JobRecords(Protocol):
    """The part of the JobStore that is asked here."""

    def read(self, job_id: str) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class Planner:
    """What deliveries are planned with, for one batch of messages: a tenant's endpoints are read once in it."""

    jobs: JobRecords
    deliveries: DeliveryStore
    endpoints: EndpointStore
    limits: DeliveryLimits
    now: Now
    local: bool = False
    known: dict[str, tuple[Endpoint, ...]] = field(default_factory=dict)
    turns: Lock = field(default_factory=Lock)  # a batch is planned in threads


def plan(event: Event, planner: Planner, *, notice: Notice) -> int | Unreadable:
    """Make a record for each delivery of this event; how many were new. One that is there already, even one that was
    delivered, stays as it is. Of a job that was deleted meanwhile nobody is told, as of one that is deleted a moment
    later. Unreadable when the event is not of the tenant that its job is of. Raises Unavailable, perhaps with some of
    them made: a repeat makes the others."""
    told = event.envelope
    registered = [*_registered(event, planner, notice)]
    callback = told["payload"].get("callback") is True
    if not registered and not callback:
        return _planned(event, 0, 0, notice)
    job = planner.jobs.read(event.job_id) or {}  # {}: its record has expired
    if job and job.get("tenant") != told["tenant_id"]:
        return Unreadable("FOREIGN_TENANT", "the event names another tenant than its job's record")
    if job.get("status") == DELETED:
        return _planned(event, 0, 0, notice)
    url = str(job.get("callback_url", "")) if callback else ""
    recipients = [*registered, *_callback(url, planner, notice)]
    began = _instant(told["payload"].get("created_at"))  # when the job was accepted
    made = sum(_put(_record(event, one, planner), began, planner) for one in recipients)
    return _planned(event, len(recipients), made, notice)


def _planned(event: Event, endpoints: int, made: int, notice: Notice) -> int:
    notice("planned", job_id=event.job_id, tenant=event.envelope["tenant_id"], endpoints=endpoints, new=made)
    return made


def _record(event: Event, recipient: Recipient, planner: Planner) -> dict[str, Any]:
    told = event.envelope
    return new_record(
        pk=event.job_id,
        tenant=told["tenant_id"],
        endpoint=recipient.endpoint,
        url=recipient.url,
        registration=recipient.registration,
        event_type=told["event_type"],
        event_id=told["event_id"],
        sequence=told["step_index"],
        body=body_of(told),
        now=planner.now(),
        limits=planner.limits,
    )


def _put(record: Mapping[str, Any], began: Instant | None, planner: Planner) -> bool:
    """Whether it is new. When a job's record has expired, its key begins another job under the same id, and with the
    same event ids: a delivery that the earlier one has left over makes room."""
    standing = planner.deliveries.create(record)
    if standing is None:
        return True
    made = _instant(standing.get("created_at"))
    if began is None or made is None or not changes.is_left_over(standing, made, began):
        return False
    change = changes.renew(deliveries.read(standing), record)
    return isinstance(planner.deliveries.apply((record["pk"], record["sk"]), change), Applied)


def _instant(written: Any) -> Instant | None:
    """None where nobody has written one."""
    try:
        return times.instant(str(written))
    except ValueError:
        return None


def body_of(envelope: Mapping[str, Any]) -> str:
    """The very text that is signed and sent: the event, with the job's `sequence` in it, which rises with each of its
    attempts: by it a receiver puts events in order that came in another one."""
    return written({**envelope, "payload": {**envelope["payload"], "sequence": envelope["step_index"]}})


def _registered(event: Event, planner: Planner, notice: Notice) -> Iterator[Recipient]:
    tenant = event.envelope["tenant_id"]
    with planner.turns:
        if tenant not in planner.known:
            planner.known[tenant] = tuple(_readable(planner, tenant, notice))
    for one in planner.known[tenant]:
        if one.wants(event.envelope["event_type"]):
            yield Recipient(one.id, registration=one.registration)


def _readable(planner: Planner, tenant: str, notice: Notice) -> Iterator[Endpoint]:
    """A broken record of one endpoint keeps nothing from the others."""
    for record in planner.endpoints.of_tenant(tenant):
        try:
            yield endpoints.read(record)
        except UnreadableRecord as broken:
            notice("unreadable_endpoint", tenant=tenant, detail=str(broken))


def _callback(url: str, planner: Planner, notice: Notice) -> Iterator[Recipient]:
    """It was looked at when the job was accepted; what is no usable URL by now has no origin to be called under."""
    if not url:
        return
    match urls.read(url, local=planner.local):
        case urls.Destination() as destination:
            yield Recipient(urls.callback_id(destination), url=destination.url)
        case urls.UnusableUrl(reason):
            notice("unusable_callback", detail=reason)
