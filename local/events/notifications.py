"""What S3 tells queues about new objects, and what may go wrong with it: lost, doubled, late, in another order.

AWS promises each notification at least once, in no order. Here each comes once and in order, unless somebody asks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from local.aws.patches.s3_notifications import OUTLET, Notice, deliver
from local.faults import BadRequestError

KINDS = ("drop", "duplicate", "delay", "reorder")
KEPT = 1_000


@dataclass
class _Rule:
    """What happens to the next `left` notifications of keys that contain `match`."""

    kind: str
    left: int
    match: str


class Notifications:
    """Stands between S3 and the queues while started. Everything may be called from any thread."""

    def __init__(self, ring: Callable[[], None]) -> None:
        """`ring` is called whenever a queue has got something."""
        self._ring = ring
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._held: list[tuple[Notice, str]] = []
        self._dropped: deque[Notice] = deque(maxlen=KEPT)
        self._delivered = 0

    def start(self) -> None:
        """Step in between."""
        OUTLET.step_in(self._take)

    def stop(self) -> None:
        """Step out; what is held back is lost."""
        OUTLET.step_out()

    # --- what may go wrong ---------------------------------------------------------------------------------

    def drop(self, count: int = 1, match: str = "") -> None:
        """Lose the next `count` notifications of keys that contain `match`."""
        self._add("drop", count, match)

    def duplicate(self, count: int = 1, match: str = "") -> None:
        """Deliver them twice."""
        self._add("duplicate", count, match)

    def delay(self, count: int = 1, match: str = "") -> None:
        """Hold them back until `release`."""
        self._add("delay", count, match)

    def reorder(self, count: int = 2, match: str = "") -> None:
        """Hold them back until `release`, which delivers the last first."""
        self._add("reorder", count, match)

    def release(self) -> int:
        """Deliver what was held back: what was delayed in its order, then what is reordered in reverse; how many."""
        with self._lock:
            held, self._held = self._held, []
        notices = [notice for notice, kind in held if kind == "delay"]
        notices += [notice for notice, kind in reversed(held) if kind == "reorder"]
        self._deliver(notices)
        return len(notices)

    def clear(self) -> None:
        """Let everything pass again; forget what was dropped, and lose what is held back."""
        with self._lock:
            self._rules.clear()
            self._held.clear()
            self._dropped.clear()
            self._delivered = 0

    def describe(self) -> dict[str, Any]:
        """What is still to go wrong, what is held back, and what became of the rest."""
        with self._lock:
            return {
                "pending": [asdict(rule) for rule in self._rules],
                "held": [_shown(notice) | {"kind": kind} for notice, kind in self._held],
                "dropped": [_shown(notice) for notice in self._dropped],
                "delivered": self._delivered,
            }

    def command(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What POST /_local/notifications says. BadRequestError for what is not understood."""
        asked = [kind for kind in KINDS if kind in body]
        match = body.get("match", "")
        known = set(body) <= {*KINDS, "match", "release"} and isinstance(match, str)
        if not known or not (asked or body.get("release") is True):
            raise BadRequestError(
                'one of {"drop": n}, {"duplicate": n}, {"delay": n}, {"reorder": n}, with "match": part of a key, or '
                '{"release": true}'
            )
        counts = {kind: _count(kind, body[kind]) for kind in asked}
        for kind, count in counts.items():
            self._add(kind, count, match)
        released = self.release() if body.get("release") is True else 0
        return {"released": released, **self.describe()}

    # -------------------------------------------------------------------------------------------------------

    def _add(self, kind: str, count: int, match: str) -> None:
        with self._lock:
            self._rules.append(_Rule(kind, count, match))

    def _take(self, notice: Notice) -> None:
        """Called by S3 for each notification. The lock is let go before a queue is touched: moto's comes first."""
        with self._lock:
            kind = self._struck_by(notice)
            if kind == "drop":
                self._dropped.append(notice)
            elif kind in ("delay", "reorder"):
                self._held.append((notice, kind))
        if kind in ("", "duplicate"):
            self._deliver([notice] * (2 if kind else 1))

    def _struck_by(self, notice: Notice) -> str:
        rule = next((rule for rule in self._rules if rule.match in notice.key), None)
        if rule is None:
            return ""
        rule.left -= 1
        if rule.left == 0:
            self._rules.remove(rule)
        return rule.kind

    def _deliver(self, notices: list[Notice]) -> None:
        for notice in notices:
            deliver(notice)
        with self._lock:
            self._delivered += len(notices)
        self._ring()


def _shown(notice: Notice) -> dict[str, str]:
    return {"bucket": notice.bucket, "key": notice.key, "event": notice.event}


def _count(kind: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequestError(f"{kind} must be a whole number from 1 on")
    return value
