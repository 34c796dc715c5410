"""Asynchronous invocations: Lambda's own queue in front of a function, with its retries and failure destination."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.compute.environments import Functions, new_trace_id
from local.compute.invocation import Invocation
from local.events import lineage
from local.events.bells import Bell

_log = logging.getLogger(__name__)
_WAITS_S = (60.0, 120.0)  # before the first and the second retry


@dataclass(frozen=True)
class AsyncSettings:
    """An EventInvokeConfig, or Lambda's defaults."""

    retries: int = 2
    oldest_s: float = 6 * 3600
    on_failure: str | None = None
    on_success: str | None = None


class AsyncInvoker:
    """Takes events and sees them through, each on a thread of its own; waiting is virtual time."""

    def __init__(
        self,
        functions: Functions,
        settings: dict[str, AsyncSettings],
        bell: Bell,
        deliver: Callable[[str, str, str], None],
        lineages: lineage.Lineages,
    ) -> None:
        """`settings` by role; `deliver(destination ARN, message, role ARN)` reaches queues and topics."""
        self._functions = functions
        self._settings = settings
        self._bell = bell
        self._deliver = deliver
        self._lineages = lineages
        self._stopping = threading.Event()
        self._threads: set[threading.Thread] = set()

    def submit(self, role: str, event: Any, history: str = "") -> None:
        """Accept the event; it is dealt with later, at least once. `history`: what has caused it."""
        thread = threading.Thread(
            target=self._see_through, args=(role, event, history, self._bell.now()), name=f"async-{role}", daemon=True
        )
        self._threads.add(thread)
        thread.start()

    def forget(self) -> None:
        """What fails from now on is nobody's fault: the functions are being stopped."""
        self._stopping.set()
        self._bell.ring()

    def stop(self) -> None:
        """Forget what has not been dealt with."""
        self.forget()
        for thread in list(self._threads):
            thread.join(timeout=60)

    def _see_through(self, role: str, event: Any, history: str, accepted_s: float) -> None:
        settings = self._settings.get(role, AsyncSettings())
        arn = self._functions.definition(role).arn
        try:
            if self._lineages.cuts(history, arn):
                _log.warning("%s invokes itself: stopped after %s rounds", role, lineage.LIMIT)
                self._tell(settings.on_failure, event, _stopped(role), "RecursiveLoop", 0)
                return
            trace_id = new_trace_id(lineage.extended(history, arn))
            self._attempts(role, event, settings, trace_id, accepted_s + settings.oldest_s)
        finally:
            self._threads.discard(threading.current_thread())

    def _attempts(self, role: str, event: Any, settings: AsyncSettings, trace_id: str, give_up_at: float) -> None:
        bell = self._bell
        failures = 0
        request_id = str(uuid.uuid4())  # Lambda repeats an event under the request id that it had
        while not self._stopping.is_set():
            outcome = self._functions.invoke(role, event, wait_s=1.0, trace_id=trace_id, request_id=request_id)
            if self._stopping.is_set():
                return
            failures += not outcome.ok and not outcome.throttled
            condition = _end(outcome, failures > settings.retries, bell.now() >= give_up_at)
            if condition is not None:
                destination = settings.on_success if outcome.ok else settings.on_failure
                self._tell(destination, event, outcome, condition, max(failures, 1))
                return
            pause_s = 1.0 if outcome.throttled else _WAITS_S[min(failures, len(_WAITS_S)) - 1]
            # from its end on, not from now: whoever has seen the end may have skipped the clock since
            bell.sleep_until((outcome.ended_s or bell.now()) + pause_s, self._stopping)

    def _tell(self, destination: str | None, event: Any, outcome: Invocation, condition: str, count: int) -> None:
        if not outcome.ok:
            _log.warning("asynchronous invocation of %s is given up: %s", outcome.function, condition)
        if destination is None:
            return
        response = {"statusCode": 200, "executedVersion": "$LATEST"}
        record = {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": {
                "requestId": outcome.request_id or str(uuid.uuid4()),
                "functionArn": f"{self._functions.definition(outcome.function).arn}:$LATEST",
                "condition": condition,
                "approximateInvokeCount": count,
            },
            "requestPayload": event,
            "responseContext": response if outcome.ok else {**response, "functionError": "Unhandled"},
            "responsePayload": outcome.result if outcome.ok else outcome.error,
        }
        role_arn = self._functions.definition(outcome.function).execution_role_arn
        self._deliver(destination, json.dumps(record), role_arn)


def _stopped(role: str) -> Invocation:
    """An invocation that a loop was cut before."""
    message = f"stopped after {lineage.LIMIT} rounds"
    return Invocation(role, "", error={"errorType": "RecursiveInvocationException", "errorMessage": message})


def _end(outcome: Invocation, tried_enough: bool, too_old: bool) -> str | None:
    """How the event's story ends, in Lambda's words; None while it goes on."""
    if outcome.ok:
        return "Success"
    if tried_enough:
        return "RetriesExhausted"
    return "EventAgeExceeded" if too_old else None
