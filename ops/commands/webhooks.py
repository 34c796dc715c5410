"""Commands about a tenant's endpoints: where webhooks go, what signs them, how they are doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from neverdrop_client.registry import Webhooks
from ops.invocation import Invocation

EndpointId = Annotated[str, typer.Argument(metavar="ID", help="The endpoint, or `callback` for callback URLs.")]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", help="Only of those: job.completed, job.failed, job.cancelled; can be repeated."),
]
COLUMNS = ("ENDPOINT", "URL", "EVENTS", "ENABLED", "STATE", "FAILURES", "LAST")


def endpoints(run: Invocation) -> None:
    """List the endpoints and how they are doing. Same as `webhooks` alone."""
    found = run.api.endpoints(lambda webhooks: webhooks.list())
    if run.out.as_json:
        for one in found:
            run.out.json(one)
        return
    run.out.table(COLUMNS, [_row(one) for one in found])


def add(
    run: Invocation,
    receiver: Annotated[str, typer.Argument(metavar="URL", help="https://…, of a public host.")],
    event: Events = None,
    description: Annotated[str | None, typer.Option(help="For people.")] = None,
) -> None:
    """Register an endpoint; prints it with its secret. The same URL once more is the same endpoint."""
    _told(run, lambda webhooks: webhooks.create(receiver, events=event, description=description))


def show(run: Invocation, endpoint_id: EndpointId) -> None:
    """Show an endpoint, its health and its last test."""
    _told(run, lambda webhooks: webhooks.get(endpoint_id))


def secret(run: Invocation, endpoint_id: EndpointId) -> None:
    """Print what its webhooks are signed with."""
    _told(run, lambda webhooks: webhooks.secret(endpoint_id))


def rotate(
    run: Invocation,
    endpoint_id: EndpointId,
    at_once: Annotated[bool, typer.Option("--at-once", help="The old secret signs no more.")] = False,
) -> None:
    """Give it a new secret. The old one signs along for a day."""
    _told(run, lambda webhooks: webhooks.rotate(endpoint_id, at_once=at_once))


def disable(run: Invocation, endpoint_id: EndpointId) -> None:
    """Send it nothing more."""
    _told(run, lambda webhooks: webhooks.disable(endpoint_id))


def enable(run: Invocation, endpoint_id: EndpointId) -> None:
    """Send to it again."""
    _told(run, lambda webhooks: webhooks.enable(endpoint_id))


def ping(run: Invocation, endpoint_id: EndpointId) -> None:
    """Send it a test; `webhooks show` tells how it went."""
    _told(run, lambda webhooks: {"id": endpoint_id, "event_id": webhooks.ping(endpoint_id)})


def remove(run: Invocation, endpoint_id: EndpointId) -> None:
    """Remove it, and its secret."""
    run.api.endpoints(lambda webhooks: webhooks.delete(endpoint_id))
    if run.out.as_json:
        run.out.json({"id": endpoint_id, "status": "REMOVED"})
    else:
        run.out.line("REMOVED")


def _told(run: Invocation, ask: Callable[[Webhooks], Mapping[str, Any]]) -> None:
    answer = run.api.endpoints(ask)
    if run.out.as_json:
        run.out.json(answer)
    else:
        run.out.record({name: value for name, value in answer.items() if name != "links"})


def _row(one: Mapping[str, Any]) -> list[object]:
    health = one.get("health") or {}
    events = " ".join(one.get("events", ()))
    return [
        one.get("id"),
        one.get("url"),
        events,
        one.get("enabled"),
        *(health.get(n) for n in ("state", "failures", "last")),
    ]
