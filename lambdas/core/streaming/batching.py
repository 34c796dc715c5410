"""When text that is heard becomes a chunk: there is so much of it, or the oldest of it has waited so long."""

from __future__ import annotations

from lambdas.core.streaming.text import fitting
from lambdas.core.times import Instant, seconds_between


class Batch:
    """What was heard and is in no chunk yet."""

    def __init__(self, most_bytes: int, most_ms: int) -> None:
        self._most_bytes, self._most_s = most_bytes, most_ms / 1000
        self._pieces: list[str] = []
        self._bytes = 0
        self._since: Instant | None = None  # when the oldest of it was heard

    def hear(self, piece: str, at: Instant) -> list[str]:
        """The texts of the chunks that are due now: one, unless this was more than one may hold."""
        if not piece:
            return []
        self.hold(piece)
        self._since = self._since or at
        waited_s = seconds_between(self._since, at)
        return self.rest() if self._bytes >= self._most_bytes or waited_s >= self._most_s else []

    def hold(self, piece: str) -> None:
        """Until somebody asks for the rest."""
        self._pieces.append(piece)
        self._bytes += len(piece.encode())

    def rest(self) -> list[str]:
        """All that is left, due or not."""
        text = "".join(self._pieces)
        self._pieces, self._bytes, self._since = [], 0, None
        return list(fitting(text))
