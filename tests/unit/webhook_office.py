"""Everything that one message on the deliveries queue is worked on with, in memory, and a clock that is told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lambdas.core.batch import Done, Early, Failed
from lambdas.core.times import after
from lambdas.core.webhooks import batch
from lambdas.core.webhooks.calling import Courier
from lambdas.core.webhooks.delivery import Delivery, read
from lambdas.core.webhooks.planning import Planner
from lambdas.core.webhooks.ports import Key
from tests.builders import JOB_ID, any_delivery, any_envelope
from tests.fakes import FakeClock, FakeEndpoints, FakeJobStore, FakeSender, Notices
from tests.fakes_webhooks import (
    ENDPOINT,
    EVENT_ID,
    LIMITS,
    FakeCircuits,
    FakeDeliveries,
    FakePoster,
    FakeSigner,
    any_delivery_record,
    any_endpoint,
    registered,
)

KEY: Key = (JOB_ID, f"delivery#{ENDPOINT}#{EVENT_ID}")
MASTERS = ("master",)


@dataclass
class Office:
    """`local`: receivers on this machine. `invocation_s`: how long each invocation has."""

    store: FakeDeliveries = field(default_factory=lambda: FakeDeliveries(any_delivery_record()))
    endpoints: FakeEndpoints = field(default_factory=lambda: registered(any_endpoint()))
    jobs: FakeJobStore = field(default_factory=FakeJobStore)
    circuits: FakeCircuits = field(default_factory=FakeCircuits)
    poster: FakePoster = field(default_factory=FakePoster)
    letters: FakeSender = field(default_factory=FakeSender)
    clock: FakeClock = field(default_factory=FakeClock)
    notices: Notices = field(default_factory=Notices)
    masters: Any = MASTERS
    local: bool = False
    invocation_s: float = 60.0
    drawn: float = 0.0

    @property
    def courier(self) -> Courier:
        return Courier(
            store=self.store,
            endpoints=self.endpoints,
            circuits=self.circuits,
            poster=self.poster,
            signer=FakeSigner(),
            masters=self._masters,
            limits=LIMITS,
            now=self.clock,
            draw=lambda: self.drawn,
            local=self.local,
        )

    def _masters(self) -> tuple[str, ...]:
        if isinstance(self.masters, Exception):
            raise self.masters
        found: tuple[str, ...] = self.masters
        return found

    @property
    def planner(self) -> Planner:
        return Planner(self.jobs, self.store, self.endpoints, LIMITS, self.clock, self.local)

    def take(self, body: str, **over: Any) -> Done | Early | Failed:
        """One message, in an invocation of its own."""
        ends = after(self.clock(), self.invocation_s)
        desk = batch.Desk(self.planner, self.courier, self.letters, ends)
        return batch.handle(any_delivery(body, **over), desk, notice=self.notices)

    def hint(self, attempt: int = 0, *, key: Key = KEY, **over: Any) -> Done | Early | Failed:
        _, endpoint, event_id = key[1].split("#")
        payload = {"endpoint": endpoint, "event_id": event_id, "attempt": attempt, "crashes": 0}
        told = any_envelope(run_id=key[0], event_type="delivery.dispatched")
        return self.take(json.dumps({**told, "payload": payload}), **over)

    def found(self, key: Key = KEY) -> Delivery:
        return read(self.store.records[key])

    def at(self, when: datetime) -> None:
        self.clock.at = when

    def try_until_over(self, key: Key = KEY, most: int = 200) -> list[float]:
        """A hint at each time that its record names, until it has ended; how long each wait was."""
        waits: list[float] = []
        while not (found := self.found(key)).is_final and len(waits) < most:
            begun = self.clock()
            self.at(max(self.clock(), found.not_before))
            waits.append((self.clock() - begun).total_seconds())
            self.hint(found.attempt, key=key)
        return waits
