"""What queue and stream mappings have in common: whom they serve, and how they are switched off and on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from collections.abc import Mapping as Properties
from typing import Any

from local.compute.environments import Functions
from local.events.bells import Bell

_LOG = logging.getLogger(__name__)

PARTIAL = "ReportBatchItemFailures"
EVENT_LIMIT_BYTES = 6 * 1024 * 1024


class Mapping:
    """One event source mapping, working on a thread of its own between `start` and `stop`."""

    kind = ""
    asked_first: tuple[str, ...] = ()
    """What Lambda does on the source before it reads."""

    def __init__(self, logical_id: str, properties: Properties[str, Any], functions: Functions, bell: Bell) -> None:
        self.logical_id = logical_id
        self.properties = properties
        self.role = functions.role(properties["FunctionName"])
        self.source_arn: str = properties["EventSourceArn"]
        self.enabled = bool(properties.get("Enabled", True))
        self.partial = PARTIAL in properties.get("FunctionResponseTypes", [])
        self.exercise: Callable[[str, str], object] = lambda action, resource: None
        """Hears what Lambda does in the name of the function's role: an action, and the resource."""
        self._functions = functions
        self._bell = bell
        self._stopping = threading.Event()
        self._between_looks = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"{self.kind}-{self.role}", daemon=True)

    def start(self) -> None:
        """Begin to serve the function."""
        for action in self.asked_first:
            self.exercise(action, self.source_arn)
        self._thread.start()

    def stop(self) -> None:
        """Look for no more work; what is under way is not waited for."""
        self._stopping.set()
        self._bell.ring()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def enable(self) -> None:
        """Serve the function again."""
        self.enabled = True
        self._bell.ring()

    def disable(self) -> None:
        """Serve the function no more; when this returns, no invocation is about to begin."""
        self.enabled = False
        if self._between_looks.acquire(timeout=30):
            self._between_looks.release()

    def describe(self) -> dict[str, Any]:
        """For the controls. `busy`: it hands something over, or has something to hand over; what lies in a queue is
        seen there."""
        described = {"function": self.role, "kind": self.kind, "source": self.source_arn, "enabled": self.enabled}
        return {**described, "busy": self._is_busy()}

    def _is_busy(self) -> bool:
        """May be asked from any thread."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._between_looks:
                idle_s = self._safe_look() if self.enabled else 0.2
            if idle_s:
                self._bell.wait(idle_s)

    def _safe_look(self) -> float:
        """One look; whatever it raises must not silence this source for ever."""
        try:
            return self._look()
        except Exception:
            _LOG.exception("the %s mapping of %s failed, and looks again", self.kind, self.role)
            return 1.0

    def _look(self) -> float:
        """Look for work once; returns how many seconds to wait before looking again, if nobody rings."""
        raise NotImplementedError
