"""The calls that the model has seen: what a test counts, and what an operator of the demo looks at."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from datetime import UTC, datetime
from typing import Any, Final

from local.model.requests import ModelRequest

KEPT: Final = 20_000  # the oldest are forgotten, so that a runtime that runs for days does not grow
PROMPT_SHOWN: Final = 200  # characters


class Calls:
    """Thread-safe and bounded; `n` counts on from 1 until the list is cleared."""

    def __init__(self, kept: int = KEPT) -> None:
        self._lock = threading.Lock()
        self._calls: deque[dict[str, Any]] = deque(maxlen=kept)
        self._seen = 0

    def add(self, request: ModelRequest, at: datetime) -> dict[str, Any]:
        """Lists a call whose request has been read; `status` stays null until it is answered."""
        call: dict[str, Any] = {
            "n": 0,
            "at": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "model": request.model,
            "operation": request.operation,
            "prompt": request.conversation[:PROMPT_SHOWN],
            "sha256": request.sha256,
            "max_tokens": request.max_tokens,
            "caller": request.caller,
            "request_id": str(uuid.uuid4()),
            "rule": None,
            "status": None,
            "error": None,
            "stop_reason": None,
            "usage": None,
        }
        with self._lock:
            self._seen += 1
            call["n"] = self._seen
            self._calls.append(call)
        return call

    def update(self, call: dict[str, Any], **fields: Any) -> None:
        with self._lock:
            call.update(fields)

    def listed(self) -> list[dict[str, Any]]:
        """Copies, newest last."""
        with self._lock:
            return [dict(call) for call in self._calls]

    def clear(self) -> int:
        """Forgets all calls and answers how many were listed."""
        with self._lock:
            count, self._seen = len(self._calls), 0
            self._calls.clear()
        return count
