"""Who only waits for time to pass: executions between two tries, asynchronous invocations before the next one."""

from __future__ import annotations

from collections.abc import Iterator

from local.executions.execution import Execution
from local.runtime import Runtime

_OPENS, _CLOSES = ("TaskStateEntered", "ParallelStateEntered"), ("TaskStateExited", "ParallelStateExited")
_BEGUN = "LambdaFunctionScheduled"
_OVER = ("LambdaFunctionSucceeded", "LambdaFunctionFailed", "LambdaFunctionTimedOut")


def moving(runtime: Runtime) -> Iterator[str]:
    """All others of them."""
    for one in runtime.executions.all():
        if one.running and not _rests(one):
            yield f"execution {one.name} goes on"
    invoker = runtime.sources.invoker
    if len(invoker._threads) > len(invoker._bell._changed._waiters):  # type: ignore[attr-defined]
        yield "what was invoked asynchronously goes on"


def _rests(execution: Execution) -> bool:
    """Whether each thread of it waits, for the next try of its function or for one that does."""
    play = execution.play
    if play is None:
        return False
    waiting = len(play._waiting._changed._waiters)  # type: ignore[attr-defined]
    retries = -1 + play.history.transitions
    count = dict.fromkeys((*_OPENS, *_CLOSES, _BEGUN, *_OVER), 0)
    for event in play.history.events():
        retries -= event["type"].endswith("StateEntered")
        if event["type"] in count:
            count[event["type"]] += 1
    tasks = count[_OPENS[0]] - count[_CLOSES[0]]
    open_ = tasks + count[_OPENS[1]] - count[_CLOSES[1]]
    begun = count[_BEGUN]
    tried = begun == count[_OPENS[0]] + retries == sum(count[name] for name in _OVER)
    return tasks > 0 and tried and waiting == open_
