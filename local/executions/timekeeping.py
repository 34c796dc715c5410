"""Waiting in virtual time: for a moment, or for something that happens before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from local.clock import VirtualClock

_LONGEST_S = 60.0  # real seconds; a skip of the clock and a ring end it anyway


class Rung(Protocol):
    def ring(self) -> None:
        """Look again."""


class Timekeeper:
    """One for all executions: it wakes them when the clock skips, and when everything stops."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: set[Rung] = set()
        self.stopping = False
        clock.on_advance(lambda _: self.ring())

    def now(self) -> float:
        """Virtual time, in epoch seconds."""
        return self._clock.now().timestamp()

    def enter(self, one: Rung) -> None:
        """Have it rung for."""
        with self._lock:
            self._waiting.add(one)

    def leave(self, one: Rung) -> None:
        with self._lock:
            self._waiting.discard(one)

    def ring(self) -> None:
        """Wake everybody."""
        with self._lock:
            waiting = list(self._waiting)
        for one in waiting:
            one.ring()

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self.stopping = True
        self.ring()


class Waiting:
    """Where the threads of one execution wait."""

    def __init__(self, keeper: Timekeeper) -> None:
        self._keeper = keeper
        self._changed = threading.Condition()

    def ring(self) -> None:
        """Let everybody here look again."""
        with self._changed:
            self._changed.notify_all()

    def until(self, moment_s: float, ready: Callable[[], bool]) -> bool:
        """Until it is ready, or the clock shows that moment; whether it is. `ready` must not wait."""
        with self._changed:
            while not ready():
                left = moment_s - self._keeper.now()
                if left <= 0:
                    return False
                self._changed.wait(min(left, _LONGEST_S))
        return True

    def briefly(self, real_s: float, ready: Callable[[], bool]) -> None:
        """Until it is ready, or so many real seconds have passed."""
        with self._changed:
            self._changed.wait_for(ready, real_s)
