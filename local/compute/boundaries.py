"""Where an invocation begins and ends, for those who want to step in there: local.faults does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Sandbox(Protocol):
    """The execution environment that an invocation has: local.compute.environment."""

    def kill(self, reason: str) -> None:
        """End it at once."""

    def freeze(self, outlives: bool) -> None:
        """Stop it, until its deadline or, with `outlives`, beyond."""

    def stand_still(self) -> bool:
        """Freeze it beyond its deadline and wait; False when it is gone and was not thawed."""


class Boundary(Protocol):
    """The two ends of one invocation."""

    refused: bool
    """Whether there is to be no invocation: the function is throttled."""

    def opens(self, sandbox: Sandbox) -> bool:
        """Whether the handler may run; asked before its first line, and may take its time."""

    def closes(self, sandbox: Sandbox, hear: Callable[[], None]) -> None:
        """The handler has returned: `hear` lets its answer be heard. Called on the reading thread, must not wait."""

    def over(self) -> None:
        """The invocation has ended, one way or the other, and its source does not know yet."""


class Boundaries(Protocol):
    """Asked at every invocation and for every batch of stream records."""

    def at(self, role: str, event: Any, trace_id: str) -> Boundary:
        """Of one invocation that is about to begin."""

    def kept(self, role: str, records: list[Any]) -> list[Any]:
        """Those of a stream's records that reach the function."""


class _Open:
    refused = False

    def opens(self, sandbox: Sandbox) -> bool:
        return True

    def closes(self, sandbox: Sandbox, hear: Callable[[], None]) -> None:
        hear()

    def over(self) -> None:
        return


class OpenBoundaries:
    """Nobody steps in."""

    def at(self, role: str, event: Any, trace_id: str) -> Boundary:
        """Everything passes."""
        return _Open()

    def kept(self, role: str, records: list[Any]) -> list[Any]:
        """All of them."""
        return records
