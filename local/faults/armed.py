"""The faults that were asked for, and the counting that says when each strikes."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

from local.aws.calls import Call
from local.faults.fault import Fault
from local.faults.reading import check


class Armed:
    """May be asked from many threads at once: of two calls that are both the nth, there is only one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._counts: defaultdict[tuple[int, str], int] = defaultdict(int)

    def add(self, fault: Fault) -> None:
        """BadRequestError for one that means nothing."""
        check(fault)
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """No more faults."""
        with self._lock:
            self._faults.clear()
            self._counts.clear()

    def describe(self) -> list[dict[str, Any]]:
        """Each, and how often it has happened."""
        with self._lock:
            return [fault.describe() for fault in self._faults]

    def at_call(self, call: Call) -> list[Fault]:
        """Those that are to strike this call, the nth of its invocation that fits. Each counts as fired when it has
        its `turn`, which one before it may take away."""
        if call.caller is None:
            return []
        with self._lock:
            found = [fault for fault in self._faults if not fault.spent and fault.fits(call)]
            numbers = [(fault, self._count(fault, call.caller.request_id)) for fault in found]
            return [fault for fault, number in numbers if number == fault.nth]

    def at_handler(self, role: str, event: Any, when: str, kinds: tuple[str, ...]) -> list[Fault]:
        """Those that are to strike an invocation with this event: the nth that fits, and the next ones as `times`
        says. Each counts as fired when it has its `turn`."""
        with self._lock:
            fresh = [fault for fault in self._faults if not fault.spent and fault.when == when and fault.kind in kinds]
            found = [fault for fault in fresh if fault.fits_event(role, event)]
            numbers = [(fault, self._count(fault, "")) for fault in found]
            return [fault for fault, number in numbers if number >= fault.nth]

    def turn(self, fault: Fault) -> bool:
        """Asked just before it strikes, which counts from here on: not if it was spent or taken back meanwhile."""
        with self._lock:
            strikes = not fault.spent and fault in self._faults
            fault.fired += strikes
            return strikes

    def _count(self, fault: Fault, request_id: str) -> int:
        self._counts[id(fault), request_id] += 1
        return self._counts[id(fault), request_id]
