"""Faults that hit one job at one of its boundaries, whatever else goes on beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local.aws.calls import Call
from local.faults import HANDLER, Fault
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
        return self.run.is_about_it(call) and self.run.turn(self.function, call.caller.request_id) == self.turn

    def fits_event(self, role: str, event: Any) -> bool:
        assert self.run is not None
        return self.at_handler and role == self.function and self.run.is_event_about_it(role, event)


def strikes(run: Run, blow: Blow) -> list[Strike]:
    """Those that a blow takes: one for each call in a row. The model's are none: see Run."""
    boundary, fault = blow.boundary, blow.kind
    attempts = min(fault.calls, 2 if boundary.function == "accept" else PATIENCE)
    first = boundary.turn if boundary.service == HANDLER else boundary.nth
    return [
        Strike(
            boundary.function, fault.kind, fault.when, nth=first + number, service=boundary.service,
            operation=boundary.operation, run=run, blow=blow,
            turn=boundary.turn,
        )
        for number in range(attempts)
    ]  # fmt: skip
