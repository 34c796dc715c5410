"""What a message on the deliveries queue asks for: an event is to be told to endpoints, or a delivery to be tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import DELIVERY_SK
from lambdas.core import envelope
from lambdas.core.envelope import Newer, Unreadable
from lambdas.core.webhooks.endpoint import EVENTS
from lambdas.core.webhooks.ports import Key

DISPATCHED = "delivery.dispatched"


@dataclass(frozen=True)
class Event:
    """What happened to a job, as it was published: the envelope."""

    envelope: Mapping[str, Any]

    @property
    def job_id(self) -> str:
        return str(self.envelope["run_id"])


@dataclass(frozen=True)
class Hint:
    """This delivery may be claimable. Nothing in it is believed but the key and the attempt."""

    key: Key
    attempt: int
    crashes: int


def read(body: str) -> Event | Hint | Newer | Unreadable:
    """What this message means. A letter about a message that was moved back stands for its message."""
    found = envelope.opened(body)
    if isinstance(found, Newer | Unreadable):
        return found
    kind, payload = found["event_type"], found["payload"]
    if kind == DISPATCHED:
        return Hint(
            key(found["run_id"], payload["endpoint"], payload["event_id"]), payload["attempt"], payload["crashes"]
        )
    if kind in EVENTS:
        return Event(found)
    return Unreadable("FOREIGN_EVENT", f"{kind} is not for the deliveries queue")


def key(run_id: str, endpoint: str, event_id: str) -> Key:
    return run_id, f"{DELIVERY_SK}{endpoint}#{event_id}"
