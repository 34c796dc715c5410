"""One virtual clock for a whole process: moto, Powertools, botocore and our own code read it without knowing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType

import time_machine


class VirtualClock:
    """Wall-clock time that can skip ahead; `time.monotonic` stays real, so that waiting takes as long as it takes.

    One traveller per process, because time-machine replaces the clock of the whole process.
    A child process starts its own and is told the offset (`synchronise`).
    """

    def __init__(self, offset_s: float = 0.0) -> None:
        """A clock that, once started, runs `offset_s` seconds ahead of the real one."""
        self._offset_s = offset_s
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[float], None]] = []
        self._before: list[Callable[[float], None]] = []
        self._travel: time_machine.travel | None = None
        self._traveller: time_machine.Traveller | None = None

    @property
    def offset_s(self) -> float:
        """How many seconds this clock is ahead of the real one."""
        return self._offset_s

    def start(self) -> None:
        """Take over the process's clock; does nothing when already started."""
        with self._lock:
            if self._travel is not None:
                return
            # A timestamp, not a datetime: a datetime with a zone would change TZ for the whole process.
            self._travel = time_machine.travel(time.time() + self._offset_s, tick=True)
            self._traveller = self._travel.start()
            time.time()  # time-machine's clock stands still until somebody first looks at it
            self._catch_up()

    def _catch_up(self) -> None:
        """Starting took a moment: without it, each process would be late by another one, and effects precede causes.

        Both clocks are read several times, because a thread may stand still between two readings."""
        assert self._traveller is not None
        real = time_machine.escape_hatch.time.time
        readings = [(real(), time.time(), real()) for _ in range(5)]
        before, shown, _ = min(readings, key=lambda one: one[2] - one[0])
        self._traveller.shift(before + self._offset_s - shown)

    def stop(self) -> None:
        """Give the real clock back; does nothing when not started."""
        with self._lock:
            if self._travel is None:
                return
            self._travel.stop()
            self._travel = self._traveller = None

    def advance(self, seconds: float) -> None:
        """Skip `seconds` ahead and tell everybody who asked.

        Raises ValueError for a negative number: leases and message ids rely on time that does not go back.
        """
        if seconds < 0:
            raise ValueError("the clock only goes forward")
        for notice in list(self._before):
            notice(float(seconds))
        with self._lock:
            if self._traveller is None:
                raise RuntimeError("the clock is not started")
            self._traveller.shift(float(seconds))
            self._offset_s += seconds
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback(self._offset_s)

    def synchronise(self, offset_s: float) -> None:
        """Catch up with another process's clock; an offset that is behind is ignored."""
        if offset_s > self._offset_s:
            self.advance(offset_s - self._offset_s)

    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return datetime.now(UTC)

    def before_advance(self, callback: Callable[[float], None]) -> None:
        """Call `callback(seconds)` before every skip, on the thread that advances the clock."""
        with self._lock:
            self._before.append(callback)

    def on_advance(self, callback: Callable[[float], None]) -> None:
        """Call `callback(offset_s)` after every skip, on the thread that advanced the clock."""
        with self._lock:
            self._callbacks.append(callback)

    def __enter__(self) -> VirtualClock:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
