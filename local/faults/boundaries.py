"""Faults where an invocation begins and ends, which no call shows: the handler has not run yet, or has returned."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from local.compute.boundaries import Sandbox
from local.compute.environments import Functions
from local.faults import strikes
from local.faults.armed import Armed
from local.faults.fault import AFTER, BEFORE, Fault
from local.faults.later import Later

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
        self.late: Later[Delivery] = Later()

    def at(self, role: str, event: Any, trace_id: str) -> Boundary:
        """Of one invocation that is about to begin."""
        return Boundary(self, Delivery(role, event, trace_id))

    def kept(self, role: str, records: list[Any]) -> list[Any]:
        """The records of a stream that are not lost on their way to the function."""
        return [record for record in records if next(self.strikes(role, record, BEFORE, "drop"), None) is None]

    def strikes(self, role: str, event: Any, when: str, *kinds: str) -> Iterator[Fault]:
        """Each counts as fired when it is drawn, so that one that ends the invocation leaves the next as they are."""
        return (fault for fault in self.armed.at_handler(role, event, when, kinds) if self.armed.turn(fault))

    def deliver_late(self) -> int:
        """Deliver once more what was held back, one after the other, each to its end or until its process stands
        still. How many; what was throttled is still held back."""
        return self.late.come(self._deliver)

    def _deliver(self, delivery: Delivery) -> bool:
        request_id = str(uuid.uuid4())
        refused = threading.Event()
        errors: list[Exception] = []

        def deliver() -> None:
            try:
                outcome = self.functions.invoke(
                    delivery.role, delivery.event, trace_id=delivery.trace_id, request_id=request_id
                )
                if outcome.throttled:
                    refused.set()
            except Exception as error:
                errors.append(error)
            finally:
                self.delivering.discard(request_id)

        self.delivering.add(request_id)
        thread = threading.Thread(target=deliver, name=f"late-{delivery.role}", daemon=True)
        thread.start()
        ends = time.monotonic() + _PATIENCE_S
        while thread.is_alive() and time.monotonic() < ends and not self._stands(request_id):
            thread.join(_GLANCE_S)
        if errors:
            raise errors[0]
        return not refused.is_set()

    def _stands(self, request_id: str) -> bool:
        environment = self.functions.environment_of(request_id)
        return environment is not None and environment.frozen


class Boundary:
    """The two ends of one invocation."""

    def __init__(self, boundaries: Boundaries, delivery: Delivery) -> None:
        self._boundaries = boundaries
        self._delivery = delivery
        self.refused = next(self._strikes(BEFORE, "throttle"), None) is not None

    def opens(self, sandbox: Sandbox) -> bool:
        """Whether the handler may run; this may take its time."""
        return all(strikes.strike(fault, sandbox) for fault in self._strikes(BEFORE, *strikes.KINDS))

    def closes(self, sandbox: Sandbox, hear: Callable[[], None]) -> None:
        """The handler has returned: let it be heard, now, later or never. Does not wait."""
        faults = self._strikes(AFTER, *strikes.KINDS)
        first = next(faults, None)
        if first is None:
            hear()
            return

        def hold() -> None:
            if all(strikes.strike(fault, sandbox) for fault in chain([first], faults)):
                hear()

        threading.Thread(target=hold, name=f"after-{self._delivery.role}", daemon=True).start()

    def over(self) -> None:
        """The invocation has ended, one way or the other: the event comes again, at once or late."""
        for fault in list(self._strikes(AFTER, "duplicate", "late")):  # none of them is for the duplicate
            if fault.kind == "late":
                self._boundaries.late.keep(self._delivery)
            else:
                self._boundaries.functions.invoke(
                    self._delivery.role, self._delivery.event, trace_id=self._delivery.trace_id
                )

    def _strikes(self, when: str, *kinds: str) -> Iterator[Fault]:
        return self._boundaries.strikes(self._delivery.role, self._delivery.event, when, *kinds)
