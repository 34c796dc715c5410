"""What Lambda reports of each function; under the time at which an invocation began, when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from local.compute.invocation import Invocation
from local.metrics.store import Store, metric

NAMESPACE = "AWS/Lambda"
NAMES = ("Invocations", "Errors", "Throttles", "Duration", "IteratorAge")


class FunctionMetrics:
    """`names` gives a function's name, by its role."""

    def __init__(self, store: Store, names: Callable[[str], str], now_s: Callable[[], float]) -> None:
        self._store = store
        self._names = names
        self._now_s = now_s

    def ended(self, outcome: Invocation) -> None:
        """An invocation, or one that was refused. A function that answered an error of its own has not failed."""
        now_s = self._now_s()
        if outcome.throttled:
            self._put(outcome.function, "Throttles", 1, now_s, now_s)
            return
        began_s = min(now_s, datetime.fromisoformat(outcome.started_at).timestamp()) if outcome.started_at else now_s
        told = {"Invocations": 1, "Errors": int(not outcome.ok), "Throttles": 0, "Duration": outcome.duration_s * 1000}
        for name, value in told.items():
            self._put(outcome.function, name, value, began_s, now_s)

    def batch_ended(self, role: str, age_s: float) -> None:
        """A batch of stream records, done with or not. `age_s`: of the last one in it."""
        now_s = self._now_s()
        self._put(role, "IteratorAge", max(0.0, age_s) * 1000, now_s, now_s)

    def _put(self, role: str, name: str, value: float, at_s: float, seen_s: float) -> None:
        self._store.put(metric(NAMESPACE, name, {"FunctionName": self._names(role)}), value, at_s, seen_s)
