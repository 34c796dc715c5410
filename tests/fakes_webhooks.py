"""Stand-ins for the ports of `lambdas.core.webhooks.ports`, and the records that its tests begin with."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lambdas.contracts.names import CHUNK_SK, COMPLETED, FAILED, PROCESSING
from lambdas.core import times
from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import Change
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits
from lambdas.core.webhooks.endpoint import Endpoint
from lambdas.core.webhooks.places import Places
from lambdas.core.webhooks.ports import Answer, Key, Undelivered
from tests.builders import CLAIM, JOB_ID, NOW, TENANT, later
from tests.fakes import FakeEndpoints, Trouble, Troubles, _must_be_storable, _raised

Record = Mapping[str, Any]
URL = "https://hooks.example.com/jobs"
ENDPOINT = endpoints.endpoint_id(TENANT, URL)
EVENT_ID = f"{JOB_ID}.1.COMPLETED"
LIMITS = DeliveryLimits()


def any_endpoint(**over: Any) -> Endpoint:
    values: dict[str, Any] = {"id": ENDPOINT, "tenant": TENANT, "url": URL, "events": (), "enabled": True}
    return Endpoint(**{**values, "secret_version": 1, "created_at": later(days=-1), **over})


def any_delivery_record(**over: Any) -> dict[str, Any]:
    """A PENDING one, just planned. Instants are written as text; a field that is None is left out."""
    named = {"pk": JOB_ID, "tenant": TENANT, "endpoint": ENDPOINT, "event_id": EVENT_ID}
    named |= {name: over[name] for name in named if name in over}
    fresh = deliveries.new_record(
        **named, event_type="job.completed", sequence=1, body='{"schema":1}', now=NOW, limits=LIMITS
    )
    record = {**fresh, **over}
    written = {name: times.text(value) if isinstance(value, datetime) else value for name, value in record.items()}
    return {name: value for name, value in written.items() if value is not None}


def held_delivery_record(**over: Any) -> dict[str, Any]:
    """One that is PROCESSING: claimed at NOW, held for 70 seconds."""
    held = {"status": PROCESSING, "attempt": 1, "tries": 1, "claim_id": CLAIM, "claimed_at": NOW}
    return any_delivery_record(**{**held, "lease_until": later(70), **over})


def final_delivery_record(status: str = COMPLETED, **over: Any) -> dict[str, Any]:
    """One that ended at NOW: nobody need look at it again."""
    ended = {"status": status, "finished_at": NOW, "due_at": None, "due_shard": None}
    more = {"error": {"code": "HTTP_404", "message": "not found"}} if status == FAILED else {}
    return held_delivery_record(**{**ended, **more, "expires_at": int(later(days=90).timestamp()), **over})


def any_delivery(**over: Any) -> Delivery:
    return deliveries.read(any_delivery_record(**over))


def held_delivery(**over: Any) -> Delivery:
    return deliveries.read(held_delivery_record(**over))


def final_delivery(status: str = COMPLETED, **over: Any) -> Delivery:
    return deliveries.read(final_delivery_record(status, **over))


class FakeRecords:
    """Items by key, written under the protocol's conditions. `images`: the stream, (old, new) of what changed."""

    def __init__(self, *records: Record) -> None:
        self.records: dict[Key, dict[str, Any]] = {(one["pk"], one["sk"]): dict(one) for one in records}
        self.images: list[tuple[Record | None, Record]] = []
        self.calls: list[str] = []
        self.troubles = Troubles()

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        self.calls.append(change.rule.name)
        trouble = self.troubles.take(change.rule.name, "apply")
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, change.rule.name)
        if trouble in (Trouble.LOST_REPLY, Trouble.UNHEARD):
            self._apply(key, change)
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, change.rule.name)
        return self._apply(key, change)

    def _apply(self, key: Key, change: Change) -> Applied | Refused:
        _must_be_storable(change.params)
        found = self.records.get(key)
        if change.may(found):
            self._put(change.applied_to({**(found or {}), "pk": key[0], "sk": key[1]}))
            return Applied(copy.deepcopy(self.records[key]))
        if found is not None and change.is_own_effect(found):
            return Applied(copy.deepcopy(found))
        return Refused(copy.deepcopy(found))

    def _put(self, record: Record) -> None:
        _must_be_storable(record)
        key = record["pk"], record["sk"]
        old, new = self.records.get(key), copy.deepcopy(dict(record))
        self.records[key] = new
        if old != new:
            self.images.append((copy.deepcopy(old), copy.deepcopy(new)))

    def read(self, key: Key) -> Record | None:
        self.calls.append("read")
        trouble = self.troubles.take("read")
        if trouble:
            raise _raised(trouble, "read")
        return copy.deepcopy(self.records.get(key))


class FakeDeliveries(FakeRecords):
    """The DeliveryStore port in memory."""

    def create(self, record: Record) -> Record | None:
        self.calls.append("create")
        trouble = self.troubles.take("create")
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, "create")
        standing = self.records.get((record["pk"], record["sk"]))
        if standing is None:
            self._put(record)
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "create")
        return copy.deepcopy(dict(record) if trouble is Trouble.LOST_REPLY else standing)

    def beside(self, job_id: str) -> list[Record]:
        self.calls.append("beside")
        trouble = self.troubles.take("beside")
        if trouble:
            raise _raised(trouble, "beside")
        mine = [key for key in sorted(self.records) if key[0] == job_id and not key[1].startswith(CHUNK_SK)]
        return [copy.deepcopy(self.records[key]) for key in mine]

    def due(self, shard: str, before: datetime, after: tuple[str, Key] | None, limit: int) -> list[tuple[str, Key]]:
        self.calls.append("due")
        trouble = self.troubles.take(f"due {shard}", "due")
        if trouble:
            raise _raised(trouble, "due")
        at = times.text(before)
        rows = [(one["due_at"], key) for key, one in self.records.items() if one.get("due_shard") == shard]
        return [row for row in sorted(rows) if row[0] < at and (after is None or row > after)][:limit]


def registered(*some: Endpoint) -> FakeEndpoints:
    """A store in which these endpoints are."""
    return FakeEndpoints(*(endpoints.record_of(one) for one in some))


class FakeCircuits(Places):
    """The Circuits port over rows in memory: `rows` has their troubles, too."""

    def __init__(self, places: int = 2) -> None:
        self.rows = FakeRecords()
        super().__init__(self.rows, places)


@dataclass(frozen=True)
class Posted:
    """One attempt, as the endpoint would have seen it."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_s: float


def answered(status: int = 200, retry_after: str = "", excerpt: str = "", ms: int = 31) -> Answer:
    return Answer(status, retry_after, excerpt, ms)


@dataclass
class FakePoster:
    """The Poster port: answers what the script says, one line a call, and then the last one for ever. `during`: called
    in the middle of each attempt."""

    script: deque[Answer | Exception] = field(default_factory=lambda: deque([answered()]))
    posted: list[Posted] = field(default_factory=list)
    during: Callable[[], None] = lambda: None

    @classmethod
    def saying(cls, *script: int | Answer | Exception) -> FakePoster:
        return cls(deque(answered(one) if isinstance(one, int) else one for one in script))

    def post(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> Answer:
        self.posted.append(Posted(url, dict(headers), body, timeout_s))
        self.during()
        said = self.script.popleft() if len(self.script) > 1 else self.script[0]
        if isinstance(said, Exception):
            raise said
        return said


def no_answer(why: Any = "timeout", detail: str = "no answer in the time for one attempt") -> Undelivered:
    return Undelivered(why, detail)


class FakeSigner:
    """The Signer port: says what was signed, with what."""

    def sign(self, secrets: Sequence[str], message_id: str, at: datetime, body: str) -> str:
        return " ".join(f"v1,{secret}|{message_id}|{int(at.timestamp())}|{len(body)}" for secret in secrets)
