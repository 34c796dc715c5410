"""Alarms over virtual time: which state each is in, and when it came to it.

Nothing waits for them: they are evaluated when somebody asks, minute by minute from where they stood.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from local.metrics.alarm import Alarm
from local.metrics.store import MINUTE_S, Metric, Store
from local.metrics.verdict import INSUFFICIENT, verdict

_SLACK_S = 3_600  # beyond what alarms look at: an invocation of a quarter of an hour is reported as late as that
_KEPT_S = 8 * 86_400
"""Alarms that nobody has asked for are evaluated for so long a time at most, the latest; for longer, if one looks back
further."""


@dataclass(frozen=True)
class Transition:
    """From one state to another, at a moment of virtual time. `series`: what was looked at, the oldest first."""

    at_s: int
    before: str
    state: str
    series: tuple[float | None, ...]

    def described(self) -> dict[str, Any]:
        return {"at": _text(self.at_s), "from": self.before, "to": self.state, "looked_at": list(self.series)}


@dataclass
class _Standing:
    alarm: Alarm
    state: str = INSUFFICIENT
    transitions: list[Transition] = field(default_factory=list)

    def evaluate(self, store: Store, at_s: int) -> None:
        series = self.alarm.series(store, at_s)
        state = verdict(self.alarm.rule, series, self.state)
        if state != self.state:
            self.transitions.append(Transition(at_s, self.state, state, tuple(series)))
            self.state = state


class Alarms:
    """All of a stack's. May be used from any thread."""

    def __init__(self, alarms: Sequence[Alarm], store: Store, since_s: float) -> None:
        self._store = store
        self._standing = {alarm.logical_id: _Standing(alarm) for alarm in alarms}
        self._kept_s = max(_KEPT_S, _SLACK_S + max((one.looks_back_s for one in alarms), default=0))
        self._done_s = int(since_s // MINUTE_S) * MINUTE_S
        self._lock = threading.Lock()

    @property
    def alarms(self) -> list[Alarm]:
        return [one.alarm for one in self._standing.values()]

    def evaluate(self, now_s: float) -> None:
        """Until now; datapoints that nobody looks at any more are forgotten."""
        with self._lock:
            self._done_s = max(self._done_s, int((now_s - self._kept_s) // MINUTE_S) * MINUTE_S)
            for at_s in range(self._done_s + MINUTE_S, int(now_s) + 1, MINUTE_S):
                for one in self._standing.values():
                    if at_s % one.alarm.step_s == 0:
                        one.evaluate(self._store, at_s)
                self._done_s = at_s
            self._forget()

    def forget(self, now_s: float) -> None:
        """What is too old to be evaluated ever."""
        for about in self._store.metrics():
            self._store.forget(about, int(now_s) - self._kept_s)

    def metrics(self) -> set[Metric]:
        """All that any of them looks at."""
        return {source.about for alarm in self.alarms for source in alarm.sources.values()}

    def states(self) -> dict[str, str]:
        """By logical id."""
        with self._lock:
            return {name: one.state for name, one in self._standing.items()}

    def transitions(self, logical_id: str) -> list[Transition]:
        with self._lock:
            return list(self._standing[logical_id].transitions)

    def never_fed(self) -> list[str]:
        """Alarms on a metric of which nobody has ever reported a value, by logical id: nothing has happened yet that
        would be reported, or it is named wrongly."""
        return [one.logical_id for one in self.alarms if not min(self._reported(one).values())]

    def describe(self) -> list[dict[str, Any]]:
        """For the controls."""
        with self._lock:
            return [
                {
                    "alarm": one.alarm.logical_id,
                    "name": one.alarm.name,
                    "description": one.alarm.description,
                    "state": one.state,
                    "reported": self._reported(one.alarm),
                    "transitions": [transition.described() for transition in one.transitions],
                }
                for one in self._standing.values()
            ]

    def _reported(self, alarm: Alarm) -> dict[str, int]:
        """How many values there ever were, by metric."""
        return {str(source.about): self._store.fed(source.about) for source in alarm.sources.values()}

    def _forget(self) -> None:
        asked: dict[Metric, int] = {}
        for alarm in self.alarms:
            for source in alarm.sources.values():
                asked[source.about] = max(asked.get(source.about, 0), alarm.looks_back_s)
        for about in self._store.metrics():
            self._store.forget(about, self._done_s - asked.get(about, 0) - _SLACK_S)


def _text(moment_s: int) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat()
