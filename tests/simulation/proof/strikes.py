"""Faults that hit one job at one of its boundaries, whatever else goes on beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local.aws.calls import Call
from local.faults import HANDLER, Fault
from tests.simulation.proof.boundaries import TURNLESS, Boundary
from tests.simulation.proof.cases import PATIENCE, Blow

if TYPE_CHECKING:
    from tests.simulation.proof.run import Run


@dataclass(eq=False)
class Strike(Fault):
    """Counts the calls of one invocation, the `turn`-th that its function has for the job; or those invocations."""

    run: Run | None = field(default=None, repr=False)
    blow: Blow | None = None
    turn: int = 1

    def fits(self, call: Call) -> bool:
        if self.at_handler or not super().fits(call):
            return False
        assert self.run is not None
        assert call.caller is not None
        if not self.run.is_about_it(call):
            return False
        if self.function in TURNLESS:
            return self.run.is_watched(self.function)
        return self.run.turn(self.function, call.caller.request_id) == self.turn

    def fits_event(self, role: str, event: Any) -> bool:
        assert self.run is not None
        if not self.at_handler or role != self.function or not self.run.is_watched(role):
            return False
        return self.run.is_event_about_it(role, event)


def _patience(run: Run, boundary: Boundary) -> int:
    """How often a call is made before its maker gives up. A chunk is stored once while the model speaks, and up to
    three times when the answer is safe."""
    if run.scenario.told and (boundary.function, boundary.operation) == ("worker", "PutItem"):
        return PATIENCE + 1
    return 2 if boundary.function == "accept" else PATIENCE


def strikes(run: Run, blow: Blow) -> list[Strike]:
    """Those that a blow takes: one for each call in a row. The model's and the receiver's are none: see Run."""
    boundary, fault = blow.boundary, blow.kind
    attempts = fault.calls if fault.calls < PATIENCE else _patience(run, boundary)
    first = boundary.turn if boundary.service == HANDLER else boundary.nth
    return [
        Strike(
            boundary.function, fault.kind, fault.when, nth=first + number, service=boundary.service,
            operation=boundary.operation, run=run, blow=blow,
            turn=boundary.turn,
        )
        for number in range(attempts)
    ]  # fmt: skip
