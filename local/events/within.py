"""An invocation that somebody waits for no longer than he may."""

from __future__ import annotations

import queue
import threading
from typing import Any

from local.compute.environments import Functions
from local.compute.invocation import Invocation


def within(functions: Functions, timeout_s: float, role: str, event: Any) -> Invocation | None:
    """The outcome, or None when the integration's time is over; the function goes on then, as on AWS."""
    outcomes: queue.SimpleQueue[Invocation | None] = queue.SimpleQueue()

    def invoke() -> None:
        outcome = None
        try:
            outcome = functions.invoke(role, event, wait_s=timeout_s)
        finally:
            outcomes.put(outcome)

    threading.Thread(target=invoke, name=f"gateway-{role}", daemon=True).start()
    try:
        return outcomes.get(timeout=timeout_s)
    except queue.Empty:
        return None
