"""What Step Functions reports of a state machine: its executions, when they start and when they end."""

from __future__ import annotations

from collections.abc import Callable

from local.executions.execution import ABORTED, FAILED, RUNNING, SUCCEEDED, TIMED_OUT, Execution
from local.metrics.store import Store, metric

NAMESPACE = "AWS/States"
_NAMES = {
    RUNNING: "ExecutionsStarted",
    SUCCEEDED: "ExecutionsSucceeded",
    FAILED: "ExecutionsFailed",
    TIMED_OUT: "ExecutionsTimedOut",
    ABORTED: "ExecutionsAborted",
}
TIME, THROTTLED = "ExecutionTime", "ExecutionThrottled"
NAMES = (*_NAMES.values(), TIME, THROTTLED)
"""Nothing is ever throttled here: of that there are zeros."""


class ExecutionMetrics:
    """Hears of every start and every end."""

    def __init__(self, store: Store, now_s: Callable[[], float]) -> None:
        self._store = store
        self._now_s = now_s

    def changed(self, execution: Execution) -> None:
        """One that has just got its status."""
        self._put(execution, _NAMES[execution.status], 1)
        if execution.stopped_s is None:
            self._put(execution, THROTTLED, 0)
        else:
            self._put(execution, TIME, (execution.stopped_s - execution.started_s) * 1000)

    def _put(self, execution: Execution, name: str, value: float) -> None:
        about = metric(NAMESPACE, name, {"StateMachineArn": execution.machine.arn})
        self._store.put(about, value, self._now_s())
