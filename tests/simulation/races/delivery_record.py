"""A delivery's record as the model keeps it, and the law under which it is changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

from lambdas.contracts.names import PENDING
from lambdas.core import times
from lambdas.core.job import from_record
from lambdas.core.policy import Limits
from lambdas.core.routing import event
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import messages, planning
from lambdas.core.webhooks.delivery import DeliveryLimits
from lambdas.core.webhooks.messages import Event
from lambdas.core.webhooks.planning import Planner
from lambdas.core.webhooks.schedule import TRIES_MAX
from tests.builders import NOW, handed_over, later
from tests.fakes import FakeEndpoints, FakeJobStore
from tests.fakes_webhooks import FakeDeliveries, any_endpoint
from tests.simulation.races.law import Law
from tests.simulation.races.record import NONE, Rec

LIMITS = DeliveryLimits(Limits())
JOB = from_record(handed_over())
EVENT = json.loads(event(JOB, NOW).body)
ENDPOINT = any_endpoint()
KEY = messages.key(JOB.id, ENDPOINT.id, EVENT["event_id"])
NOT_YET = Rec("NOT YET")
USED = TRIES_MAX - 2  # so often it has been tried when the model begins: two tries are left


def quiet(*_: object, **__: object) -> None:
    pass


def planner(shelf: Any) -> Planner:
    return Planner(FakeJobStore(handed_over()), shelf, known_endpoints(), LIMITS, lambda: NOW)


def known_endpoints() -> FakeEndpoints:
    return FakeEndpoints(endpoints.record_of(ENDPOINT))


@cache
def planned() -> Mapping[str, Any]:
    shelf = FakeDeliveries()
    planning.plan(Event(EVENT), planner(shelf), notice=quiet)
    return shelf.records[KEY]


def written(rec: Rec) -> dict[str, Any]:
    """`sample`: refusals; `run`: openings."""
    record = {**planned(), "history": [], "status": rec.status, "attempt": rec.attempt, "tries": rec.tries}
    record |= {"refusals": rec.sample, "opening": rec.run}
    for name, attribute in _INSTANTS.items():
        record.pop(attribute, None)
        if (at := getattr(rec, name)) != NONE:
            record[attribute] = times.text(later(at))
    record |= {"claim_id": f"claim {rec.claim}"} if rec.claim != NONE else {}
    record |= {"claimed_at": times.text(NOW)} if rec.held else {}
    record |= {"expires_at": 1} if rec.expires else {}
    if not rec.shard:
        record.pop("due_shard", None)
    return record


_INSTANTS = {
    "lease": "lease_until", "not_before": "not_before", "deadline": "deadline_at", "due": "due_at",
    "ended": "finished_at",
}  # fmt: skip


def read(record: Mapping[str, Any]) -> Rec:
    """At NOW."""
    instants: dict[str, Any] = {
        name: ceil((times.instant(record[attribute]) - NOW).total_seconds()) if attribute in record else NONE
        for name, attribute in _INSTANTS.items()
    }
    return Rec(
        record["status"],
        attempt=record["attempt"],
        tries=record["tries"],
        sample=record["refusals"],
        run=record["opening"],
        claim=int(record["claim_id"].split()[1]) if "claim_id" in record else NONE,
        shard="due_shard" in record,
        expires="expires_at" in record,
    )._replace(**instants)


@dataclass
class PostLaw(Law):
    """The law of a delivery's record."""

    heard: tuple[str, ...] = (PENDING,)

    def record(self, rec: Rec) -> Mapping[str, Any]:
        if rec not in self.records:
            self.records[rec] = {} if rec == NOT_YET else written(rec)
        return self.records[rec]

    def abstract(self, record: Mapping[str, Any]) -> Rec:
        return self.clock(read(record))
