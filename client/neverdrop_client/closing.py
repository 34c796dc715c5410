"""How a stream is ended from any thread, also while another one waits in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol


class Closed(Exception):
    """The stream was closed: whoever reads it is to stop."""


class Connection(Protocol):
    def close(self) -> None: ...


class Closing:
    """That it was asked to end, and the connection that is open: a reader that waits for its next frame hears nothing
    else than its end."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._open: Connection | None = None

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        """From here on nobody reads. A call under way in another thread ends when its connection has."""
        with self._lock:
            self._asked.set()
            connection = self._open
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def check(self) -> None:
        if self.is_asked:
            raise Closed

    def pause(self, seconds: float) -> None:
        """As `time.sleep`, but it ends with the stream."""
        self._asked.wait(seconds)
        self.check()

    @contextmanager
    def over(self, connection: Connection) -> Iterator[None]:
        """While it is open."""
        with self._lock:
            self._open = connection
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._open = None
