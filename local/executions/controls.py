"""`/_local/executions*`: what a test or a curious developer may see of executions and do to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.executions.execution import Execution
from local.executions.executions import Executions
from local.faults import BadRequestError, whole_number

Body = dict[str, Any]


class ExecutionControls:
    """A part of the runtime's controls."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions

    @property
    def known(self) -> dict[str, Callable[[Body], Any]]:
        """By method and path below /_local/."""
        return {
            "GET executions": lambda _: {"executions": [_shown(one) for one in self._executions.all()]},
            "POST executions/stop": self._stop,
            "POST executions/history": self._history,
            "POST executions/events": self._lose,
            "GET executions/events": lambda _: {"lost": self._executions.lost_events},
            "DELETE executions/events": self._heed,
        }

    def _stop(self, body: Body) -> Any:
        execution = self._find(body)
        self._executions.abort(execution, None, None)
        return _shown(execution)

    def _history(self, body: Body) -> Any:
        execution = self._find(body)
        return {**_shown(execution), "events": execution.history()}

    def _lose(self, body: Body) -> Any:
        match = body.get("match", "")
        if not isinstance(match, str) or not set(body) <= {"lose", "match"}:
            raise BadRequestError('{"lose": n, "match": part of a name}; without n, all of them')
        count = whole_number(body, "lose", None) if "lose" in body else None
        self._executions.lose_events(count, match)
        return {"lost": []}

    def _heed(self, _: Body) -> Any:
        self._executions.heed_events()
        return {}

    def _find(self, body: Body) -> Execution:
        try:
            return self._executions.find(str(body.get("name")))
        except LookupError as error:
            raise BadRequestError(str(error)) from error


def _shown(execution: Execution) -> dict[str, Any]:
    return {**execution.describe(), "transitions": execution.transitions}
