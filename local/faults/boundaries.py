"""Faults where an invocation begins and ends, which no call shows: the handler has not run yet, or has returned."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.compute.boundaries import Sandbox
from local.compute.environments import Functions
from local.faults import strikes
from local.faults.armed import Armed
from local.faults.fault import AFTER, BEFORE, Fault

_GLANCE_S = 0.02
_PATIENCE_S = 30.0  # one that waits for the clock goes on by itself


@dataclass(frozen=True)
class Delivery:
    """An event, and what it was handed over with."""

    role: str
    event: Any
    trace_id: str


class Boundaries:
    """What the functions ask at each invocation."""

    def __init__(self, armed: Armed, functions: Functions) -> None:
        self.armed = armed
        self.functions = functions
        self.delivering: set[str] = set()
        """Request ids of late deliveries under way, whose outcome no source waits for."""
        self._late: list[Delivery] = []
        self._lock = threading.Lock()

    def at(self, role: str, event: Any, trace_id: str) -> Boundary:
        """Of one invocation that is about to begin."""
        return Boundary(self, Delivery(role, event, trace_id))

    def kept(self, role: str, records: list[Any]) -> list[Any]:
        """The records of a stream that are not lost on their way to the function."""
        return [record for record in records if not self.armed.at_handler(role, record, BEFORE, ("drop",))]

    def hold_back(self, delivery: Delivery) -> None:
        """Keep for `deliver_late`."""
        with self._lock:
            self._late.append(delivery)

    def forget(self) -> None:
        """Nothing will be delivered late."""
        with self._lock:
            self._late.clear()

    def deliver_late(self) -> int:
        """Deliver once more what was held back, one after the other, each to its end or until its process stands
        still. How many; what was throttled is still held back."""
        with self._lock:
            late, self._late = self._late, []
        throttled = [delivery for delivery in late if not self._deliver(delivery)]
        for delivery in throttled:
            self.hold_back(delivery)
        return len(late) - len(throttled)

    def _deliver(self, delivery: Delivery) -> bool:
        request_id = str(uuid.uuid4())
        refused = threading.Event()

        def deliver() -> None:
            try:
                outcome = self.functions.invoke(
                    delivery.role, delivery.event, trace_id=delivery.trace_id, request_id=request_id
                )
            finally:
                self.delivering.discard(request_id)
            if outcome.throttled:
                refused.set()

        self.delivering.add(request_id)
        thread = threading.Thread(target=deliver, name=f"late-{delivery.role}", daemon=True)
        thread.start()
        ends = time.monotonic() + _PATIENCE_S
        while thread.is_alive() and time.monotonic() < ends and not self._stands(request_id):
            thread.join(_GLANCE_S)
        return not refused.is_set()

    def _stands(self, request_id: str) -> bool:
        environment = self.functions.environment_of(request_id)
        return environment is not None and environment.frozen


class Boundary:
    """The two ends of one invocation."""

    def __init__(self, boundaries: Boundaries, delivery: Delivery) -> None:
        self._boundaries = boundaries
        self._delivery = delivery
        self.refused = bool(self._struck(BEFORE, "throttle"))

    def opens(self, sandbox: Sandbox) -> bool:
        """Whether the handler may run; this may take its time."""
        return all(strikes.strike(fault, sandbox) for fault in self._struck(BEFORE, *strikes.KINDS))

    def closes(self, sandbox: Sandbox, hear: Callable[[], None]) -> None:
        """The handler has returned: let it be heard, now, later or never. Does not wait."""
        struck = self._struck(AFTER, *strikes.KINDS)
        if not struck:
            hear()
            return

        def hold() -> None:
            if all(strikes.strike(fault, sandbox) for fault in struck):
                hear()

        threading.Thread(target=hold, name=f"after-{self._delivery.role}", daemon=True).start()

    def over(self) -> None:
        """The invocation has ended, one way or the other: the event comes again, at once or late."""
        for fault in self._struck(AFTER, "duplicate", "late"):
            if fault.kind == "late":
                self._boundaries.hold_back(self._delivery)
            else:
                self._boundaries.functions.invoke(
                    self._delivery.role, self._delivery.event, trace_id=self._delivery.trace_id
                )

    def _struck(self, when: str, *kinds: str) -> list[Fault]:
        return self._boundaries.armed.at_handler(self._delivery.role, self._delivery.event, when, kinds)
