"""What came of one invocation of a function."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from typing import Any

from local.compute.boundaries import Boundary

THROTTLED = "TooManyRequestsException"
TIMED_OUT = "Sandbox.Timedout"
EXITED = "Runtime.ExitError"
LIVE_THREAD = "Local.LiveThread"
_LONG_RESULT = 2000
_LAST_LINES = 50


@dataclass(frozen=True)
class Order:
    """An event for a function, and what it is handed over with."""

    event: Any
    trace_id: str
    request_id: str
    """Of an invocation that is repeated; else empty, and it gets a new one."""
    boundary: Boundary


@dataclass(frozen=True)
class Invocation:
    """A result or an error, never both; `error` is Lambda's {"errorType", "errorMessage", …}."""

    function: str
    request_id: str
    result: Any = None
    error: dict[str, Any] | None = None
    started_at: str = ""
    duration_s: float = 0.0
    ended_s: float = 0.0
    """When it ended, in epoch seconds of virtual time; 0: it never began."""
    timed_out: bool = False
    crashed: bool = False
    logs: tuple[str, ...] = ()
    environment: str = ""
    reason: str = ""
    """Why the runtime ended it, if it did: timeout, memory, a fault's name."""

    @property
    def ok(self) -> bool:
        """Whether the handler returned."""
        return self.error is None

    def brief(self) -> Invocation:
        """The same for keeping: without a long result, and with logs only where something went wrong."""
        long = self.result is not None and len(json.dumps(self.result)) > _LONG_RESULT
        logs = () if self.ok else self.logs[-_LAST_LINES:]
        return replace(self, result=None if long else self.result, logs=logs)

    @property
    def throttled(self) -> bool:
        """Whether the function was never started."""
        return self.error is not None and self.error["errorType"] == THROTTLED


def throttled(function: str, why: str) -> Invocation:
    """An invocation that never was, because there was no room for it."""
    return Invocation(function, "", error={"errorType": THROTTLED, "errorMessage": f"Rate exceeded: {why}"})


def obituary(request_id: str, reason: str, timeout_s: float, status: int) -> dict[str, Any]:
    """The error of an invocation whose process is gone; `status` is negative for a signal."""
    if reason == "timeout":
        kind, message = TIMED_OUT, f"Task timed out after {timeout_s:.2f} seconds"
    elif status < 0:
        kind, message = EXITED, f"Runtime exited with error: signal: {signal.Signals(-status).name}"
    elif status == 0:
        kind, message = EXITED, "Runtime exited without providing a reason"
    else:
        kind, message = EXITED, f"Runtime exited with error: exit status {status}"
    return {"errorType": kind, "errorMessage": f"RequestId: {request_id} Error: {message}"}
