"""A delivery's record: one event for one endpoint, in its job's partition; it lives by the job's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import CALLBACK, COMPLETED, FAILED, PENDING, PING_PK, PROCESSING
from lambdas.core import ids, times
from lambdas.core.changes import first_look
from lambdas.core.job import UnreadableRecord, entry
from lambdas.core.policy import Limits
from lambdas.core.times import Instant, after
from lambdas.core.webhooks import messages
from lambdas.core.webhooks.ports import Key
from lambdas.core.webhooks.urls import CALLBACK_ID

STATUSES = (PENDING, PROCESSING, COMPLETED, FAILED)
HOUR_S = 3_600


@dataclass(frozen=True)
class DeliveryLimits:
    """The settings that deliveries need. `limits`: those of jobs; grace, period of the sweep and days of a record are
    theirs, too."""

    limits: Limits = field(default_factory=Limits)
    hours: int = 72
    timeout_s: int = 5
    settle_s: int = 5  # kept free at an invocation's end, for the write of what came of it

    @property
    def start_s(self) -> int:
        """No attempt is started with less time left than this."""
        return self.timeout_s + self.settle_s

    def deadline(self, start: Instant) -> Instant:
        return after(start, self.hours * HOUR_S)


@dataclass(frozen=True)
class Delivery:
    """`endpoint`: the id of a registered one, or `callback-…` with its `url`. `body`: the very text that is sent, the
    same at each attempt. `refusals`: answers that did not want it, which are fewer than tries may be.
    `opening`: how often it was opened anew by a human. `registration`: of the endpoint that it is for, which may be
    removed and registered again; empty for a callback, and where nobody has written it."""

    pk: str
    sk: str
    tenant: str
    endpoint: str
    status: str
    attempt: int
    tries: int
    event_type: str
    event_id: str
    sequence: int
    body: str
    created_at: Instant
    not_before: Instant
    deadline_at: Instant
    url: str = ""
    registration: str = ""
    crashes: int = 0
    waits: int = 0
    refusals: int = 0
    opening: int = 0
    claim_id: str | None = None
    claimed_at: Instant | None = None
    lease_until: Instant | None = None
    finished_at: Instant | None = None
    due_at: Instant | None = None
    expires_at: int | None = None
    error: Mapping[str, str] | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    history_left_out: int = 0

    @property
    def key(self) -> Key:
        return self.pk, self.sk

    @property
    def is_final(self) -> bool:
        return self.status in (COMPLETED, FAILED)

    @property
    def is_ping(self) -> bool:
        """A test of its endpoint: no job stands behind it."""
        return self.pk.startswith(PING_PK)

    @property
    def signer(self) -> str:
        """The id of the endpoint that its secret belongs to: one for all callback URLs."""
        return CALLBACK if self.endpoint.startswith(CALLBACK_ID) else self.endpoint


def new_record(
    *,
    pk: str,
    tenant: str,
    endpoint: str,
    event_type: str,
    event_id: str,
    sequence: int,
    body: str,
    now: Instant,
    limits: DeliveryLimits,
    url: str = "",
    registration: str = "",
) -> dict[str, Any]:
    """Row 1 of a delivery. Found PENDING, it is dispatched by the stream as a job is; if that is lost, the sweep finds
    it in the `due` index, in shards of its own."""
    key = messages.key(pk, endpoint, event_id)
    deadline = limits.deadline(now)
    record = {
        "pk": pk,
        "sk": key[1],
        "tenant": tenant,
        "endpoint": endpoint,
        "status": PENDING,
        **dict.fromkeys(("attempt", "tries", "crashes", "waits", "refusals", "opening"), 0),
        "event_type": event_type,
        "event_id": event_id,
        "sequence": sequence,
        "body": body,
        "created_at": times.text(now),
        "not_before": times.text(now),
        "deadline_at": times.text(deadline),
        "due_at": times.text(first_look(now, now, deadline, limits.limits)),
        "due_shard": ids.delivery_shard(*key),
        "history": [entry(now, "planned", 0)],
    }
    where = {"url": url, "registration": registration}
    return {**record, **{name: value for name, value in where.items() if value}}


def correlation(delivery: Delivery) -> dict[str, Any]:
    """For a log line; never the URL, which may carry a secret in its query."""
    return {
        "job_id": delivery.pk,
        "tenant": delivery.tenant,
        "endpoint": delivery.endpoint,
        "event_id": delivery.event_id,
        "attempt": delivery.attempt,
    }


_INSTANTS = (
    "created_at", "not_before", "deadline_at", "claimed_at", "lease_until", "finished_at", "due_at",
)  # fmt: skip
_KINDS: Mapping[type, tuple[str, ...]] = {
    str: ("tenant", "endpoint", "status", "event_type", "event_id", "body", "url", "registration", "claim_id"),
    int: ("attempt", "tries", "crashes", "waits", "refusals", "opening", "sequence", "expires_at", "history_left_out"),
    dict: ("error",),
}  # fmt: skip


def read(record: Mapping[str, Any]) -> Delivery:
    """UnreadableRecord when it is none: nobody may guess what a broken record meant."""
    try:
        values = {name: _plain(record, name, kind) for kind, some in _KINDS.items() for name in some if name in record}
        named = messages.key(record["pk"], record["endpoint"], record["event_id"])
        if (record["pk"], record["sk"]) != named or values["status"] not in STATUSES:
            raise UnreadableRecord(f"not a delivery: {record['pk']}, {record['sk']}, {values['status']}")
        if values["status"] == PROCESSING and "lease_until" not in record:
            raise UnreadableRecord(f"{record['pk']}, {record['sk']}: held by nobody")
        instants: dict[str, Any] = {name: times.instant(record[name]) for name in _INSTANTS if name in record}
        history = tuple(record.get("history", ()))
        return Delivery(pk=record["pk"], sk=record["sk"], history=history, **values, **instants)
    except (KeyError, TypeError, ValueError, AttributeError) as broken:
        raise UnreadableRecord(f"{record.get('pk', '?')}, {record.get('sk', '?')}: {broken!r}") from broken


def _plain(record: Mapping[str, Any], name: str, kind: type) -> Any:
    value = record[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is {value!r}, not {kind.__name__}")
    return value
