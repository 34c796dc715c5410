"""What a route's function answers, as API Gateway takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from local.compute.environments import Functions
from local.events.within import within
from local.sockets.definition import Route
from local.sockets.shapes import Event

_PASSED_ON = "sec-websocket-protocol"
"""The one header of $connect's answer that a client gets: which of its protocols was chosen."""


@dataclass(frozen=True)
class Answer:
    """A status; `broken` if it is API Gateway's own, because the function gave none."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False

    @property
    def accepted(self) -> bool:
        """Whether $connect lets somebody in by it."""
        return not self.broken and 200 <= self.status < 300


class Integration:
    """Runs functions. May be used from many threads at once."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def run(self, route: Route, event: Event) -> Answer:
        """Its answer, at the latest when the integration's time is over."""
        outcome = within(self._functions, route.timeout_s, self._functions.role(route.function), event)
        if outcome is None:
            return Answer(504, broken=True)
        if outcome.throttled:
            return Answer(500, broken=True)
        return answer_of(outcome.result) if outcome.ok else Answer(502, broken=True)


def answer_of(result: Any) -> Answer:
    """What a function returned; broken without a status: a WebSocket API makes none up."""
    status = result.get("statusCode") if isinstance(result, dict) else None
    if isinstance(status, str) and status.isdigit():
        status = int(status)
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        return Answer(502, broken=True)
    headers = result.get("headers") or {}
    chosen = {name: str(value) for name, value in headers.items() if name.lower() == _PASSED_ON}
    return Answer(status, str(result.get("body") or ""), chosen)
