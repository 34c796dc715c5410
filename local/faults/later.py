"""Consequences of faults that are still to come, in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """May be used from many threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[T] = []

    def keep(self, one: T) -> None:
        """Behind the others."""
        with self._lock:
            self._kept.append(one)

    def forget(self) -> None:
        """None of them will come."""
        with self._lock:
            self._kept.clear()

    def come(self, happen: Callable[[T], bool]) -> int:
        """Have each happen, whatever becomes of the others; how many did. What did not is kept for the next time.

        ExceptionGroup, when all had their turn, of what failed: that does not come again."""
        with self._lock:
            due, self._kept = self._kept, []
        count, errors = 0, []
        for one in due:
            try:
                happened = happen(one)
            except Exception as error:
                errors.append(error)
                continue
            count += happened
            if not happened:
                self.keep(one)
        if errors:
            raise ExceptionGroup(f"{len(errors)} of {len(due)} that were to come failed", errors)
        return count
