"""The end of a job, delivered once more because somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CALLBACK, PENDING, PROCESSING
from lambdas.core import routing
from lambdas.core.job import Job
from lambdas.core.lookup import job_of
from lambdas.core.ports import Applied, JobStore, Notice, Now, Refused
from lambdas.core.problems import Problem, wrong_state
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import messages, planning, urls
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, read
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.messages import Event
from lambdas.core.webhooks.planning import Planner, Recipient
from lambdas.core.webhooks.ports import DeliveryStore, EndpointStore, Key
from lambdas.core.webhooks.registry import body_of, not_found


@dataclass(frozen=True)
class Post:
    """What these requests are carried out with."""

    jobs: JobStore
    deliveries: DeliveryStore
    endpoints: EndpointStore
    limits: DeliveryLimits
    now: Now
    notice: Notice
    local: bool = False


@dataclass(frozen=True)
class Redelivery:
    """On its way to each of them, now or before."""

    job_id: str
    event_id: str
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True)
class _Audience:
    """Who is to hear: registered endpoints, and where the job itself asks for it."""

    registered: tuple[Endpoint, ...]
    callback: str = ""

    @property
    def recipients(self) -> Iterator[Recipient]:
        yield from (Recipient(one.id, registration=one.registration) for one in self.registered)
        if self.callback:
            yield Recipient(self.callback)


def redeliver(tenant: str, job_id: str, raw: bytes, post: Post) -> Redelivery | Problem:
    """What was never planned is planned now (an endpoint may be younger than the job's end), what is over is opened
    anew under its old event id, what waits is sent at once. Raises Unavailable, UnreadableRecord."""
    body = body_of(raw, "RedeliverRequest")
    if isinstance(body, Problem):
        return body
    job = job_of(tenant, job_id, post.jobs)
    if isinstance(job, Problem):
        return job
    if not job.is_final:
        return wrong_state(job_id, f"It is {job.status}: there is no end to deliver yet.")
    if not job.is_handed_over:
        return wrong_state(job_id, "Its end is not handed over yet, and is delivered then. Ask again in a moment.")
    event = json.loads(routing.event(job, post.now()).body)
    audience = _audience(job, event, body.get("endpoint", ""), post)
    if isinstance(audience, Problem):
        return audience
    return _send(job, event, audience, post)


def _audience(job: Job, event: dict[str, Any], wanted: str, post: Post) -> _Audience | Problem:
    """All that are enabled and want it, or the one that is named."""
    found = [endpoints.read(record) for record in post.endpoints.of_tenant(job.tenant)]
    where = urls.read(job.callback_url, local=post.local) if job.callback_url else None
    callback = urls.callback_id(where) if isinstance(where, urls.Destination) else ""
    if wanted in (CALLBACK, callback) and wanted:
        found = []
    elif wanted:
        found, callback = [one for one in found if one.id == wanted], ""
        if not found:
            return not_found()
    audience = _Audience(tuple(one for one in found if one.wants(event["event_type"])), callback)
    if not any(audience.recipients):
        what = "this endpoint is disabled, or does not want it" if wanted and found else "nobody is registered for it"
        return wrong_state(job.id, f"There is nowhere to deliver {event['event_type']} to: {what}.")
    return audience


def _send(job: Job, event: dict[str, Any], audience: _Audience, post: Post) -> Redelivery | Problem:
    """An attempt for an endpoint that was registered before this one ends it as that one's, whatever the record says by
    then: nothing is promised meanwhile, and nobody else is sent anything twice because of it."""
    wanted = [(messages.key(job.id, one.endpoint, event["event_id"]), one) for one in audience.recipients]
    seen = {key: _read(key, post) for key, _ in wanted}
    if any(_is_under_way_for_another(seen[key], one) for key, one in wanted):
        return _not_yet(job.id)
    if not audience.callback:
        event["payload"].pop("callback", None)
    planner = Planner(
        jobs=post.jobs,
        deliveries=post.deliveries,
        endpoints=post.endpoints,
        limits=post.limits,
        now=post.now,
        local=post.local,
        known={job.tenant: audience.registered},
    )
    planning.plan(Event(event), planner, notice=post.notice)
    found = [(_again(seen[key] or _read(key, post), one.registration, post), one) for key, one in wanted]
    sent = [(delivery, one) for delivery, one in found if delivery is not None]
    if any(_is_for_another(delivery, one) for delivery, one in sent):
        return _not_yet(job.id)  # it was claimed a moment ago
    return Redelivery(job.id, event["event_id"], tuple(delivery for delivery, _ in sent))


def _read(key: Key, post: Post) -> Delivery | None:
    record = post.deliveries.read(key)
    return None if record is None else read(record)


def _is_under_way_for_another(found: Delivery | None, recipient: Recipient) -> bool:
    return found is not None and found.status == PROCESSING and _is_for_another(found, recipient)


def _is_for_another(delivery: Delivery, recipient: Recipient) -> bool:
    return delivery.registration not in ("", recipient.registration)


def _not_yet(job_id: str) -> Problem:
    detail = "An attempt for an endpoint of the same URL, which was removed, is still under way. Ask again in a minute."
    return wrong_state(job_id, detail)


def _again(found: Delivery | None, registration: str, post: Post) -> Delivery | None:
    """As it is then: opened anew, sent sooner, or on its way already. None when it was removed with its job. It may be
    from a time before its endpoint was removed and registered again: it is for this one now."""
    if found is None:
        return None
    now = post.now()
    if found.is_final:
        change = changes.reopen(found, now=now, limits=post.limits, registration=registration)
    elif found.status == PENDING and (found.not_before > now or found.registration != registration):
        change = changes.hasten(found, now=now, limits=post.limits, registration=registration)
    else:
        return found
    match post.deliveries.apply(found.key, change):
        case Applied(after):
            return read(after)
        case Refused(None):
            return None
        case Refused(stands):
            assert stands is not None
            return read(stands)  # somebody else has done it, or is at it


def told(found: Redelivery) -> dict[str, Any]:
    """For its owner."""
    deliveries = [{"endpoint": one.endpoint, "status": one.status} for one in found.deliveries]
    links = {"events": f"/jobs/{found.job_id}/events"}
    return {"job_id": found.job_id, "event_id": found.event_id, "deliveries": deliveries, "links": links}
