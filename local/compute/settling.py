"""What sources still do about invocations that have ended, like deleting messages: until then nothing is at rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Settling:
    """May be used from many threads at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._own = threading.local()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """From an invocation on, whose slot its source holds, until the source is done with what came of it."""
        with self._changed:
            self._under_way += 1
        self._own.busy = True
        try:
            yield
        finally:
            self._own.busy = False
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    @property
    def is_mine(self) -> bool:
        """Whether this thread is in the middle of it: what it invokes belongs to what has begun already."""
        return getattr(self._own, "busy", False)

    def wait_until_over(self, end: float) -> bool:
        """Whether nobody is in the middle of it any more, before `time.monotonic` is at `end`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._under_way == 0, max(0.0, end - time.monotonic()))
