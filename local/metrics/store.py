"""Datapoints as CloudWatch keeps them: a statistic set for each minute, and since when it could be seen.

The second is not the first: Lambda reports under the time at which an invocation began, when it has ended.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

MINUTE_S = 60


@dataclass(frozen=True, order=True)
class Metric:
    """What one series of datapoints is named by: another dimension is another metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value}" for name, value in self.dimensions)
        return f"{self.namespace} {self.name} ({said})"


def metric(namespace: str, name: str, dimensions: Mapping[str, str]) -> Metric:
    return Metric(namespace, name, tuple(sorted(dimensions.items())))


@dataclass
class Statistics:
    """Of several values."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, value: float) -> None:
        self.merge(Statistics(1, value, value, value))

    def merge(self, other: Statistics) -> None:
        self.count += other.count
        self.total += other.total
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)

    def value(self, statistic: str) -> float | None:
        """None where there is no value at all: missing, also for SampleCount."""
        if not self.count:
            return None
        return float(
            {
                "SampleCount": self.count,
                "Sum": self.total,
                "Average": self.total / self.count,
                "Minimum": self.least,
                "Maximum": self.most,
            }[statistic]
        )


STATISTICS = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")
_Key = tuple[int, int]  # the minute it belongs to, and the minute from which on it is seen


class Store:
    """All datapoints that somebody may still ask about. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._order: defaultdict[Metric, list[_Key]] = defaultdict(list)
        self._sets: defaultdict[Metric, dict[_Key, Statistics]] = defaultdict(dict)
        self._fed: defaultdict[Metric, int] = defaultdict(int)

    def put(self, about: Metric, value: float, at_s: float, seen_s: float | None = None) -> None:
        """A value of the moment `at_s`, reported at `seen_s`."""
        minute = int(at_s // MINUTE_S) * MINUTE_S
        seen = -int(-max(at_s, at_s if seen_s is None else seen_s) // MINUTE_S) * MINUTE_S
        key = (minute, max(seen, minute))
        with self._lock:
            self._fed[about] += 1
            found = self._sets[about].get(key)
            if found is None:
                found = self._sets[about][key] = Statistics()
                insort(self._order[about], key)
            found.add(value)

    def statistics(self, about: Metric, since_s: int, until_s: int, seen_by_s: int) -> Statistics:
        """Of the minutes from `since_s` on and before `until_s`, as they looked at `seen_by_s`."""
        found = Statistics()
        with self._lock:
            order = self._order.get(about, [])
            for key in order[bisect_left(order, (since_s, 0)) : bisect_left(order, (until_s, 0))]:
                if key[1] <= seen_by_s:
                    found.merge(self._sets[about][key])
        return found

    def fed(self, about: Metric) -> int:
        """How many values were ever reported under that name."""
        with self._lock:
            return self._fed.get(about, 0)

    def metrics(self) -> list[Metric]:
        """Everything that anybody has ever reported."""
        with self._lock:
            return sorted(self._fed)

    def forget(self, about: Metric, before_s: int) -> None:
        """What lies before that is not asked about any more."""
        with self._lock:
            order = self._order.get(about, [])
            old = bisect_left(order, (before_s, 0))
            for key in order[:old]:
                del self._sets[about][key]
            del order[:old]
