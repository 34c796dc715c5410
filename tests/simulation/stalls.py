"""Holds a worker at one of its calls, for as long as a test likes: its process stopped, its call in the wire."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from local.aws.calls import Call, Refusal, Response
from local.compute.environment import Environment
from local.faults import Fault
from tests.simulation.stage import Stage

CLOCK_S = 0.2  # a process that was stopped is told the time as soon as it runs, on a thread of its own


class Stall:
    """A call at which its caller is frozen and outlives its deadline: `before` it arrives, or `after` its effect but
    before its reply."""

    def __init__(self, fault: Fault) -> None:
        """`fault` says which call, and when; its kind plays no part."""
        self._fault = fault
        self._over = threading.Event()
        self._counts: defaultdict[str, int] = defaultdict(int)
        self.holds: Environment | None = None

    def wants(self, call: Call) -> bool:
        """Whether this is the call; asked once for each."""
        if self.holds is not None or call.caller is None or not self._fault.fits(call):
            return False
        self._counts[call.caller.request_id] += 1
        return self._counts[call.caller.request_id] == self._fault.nth

    def hold(self, environment: Environment) -> None:
        """Until `end`."""
        environment.freeze(outlives=True)
        self.holds = environment
        self._over.wait()

    @property
    def when(self) -> str:
        return self._fault.when

    def thaw(self) -> None:
        """Its process runs again, and hears what time it is; its call is still in the wire."""
        if self.holds is not None:
            self.holds.thaw()

    def end(self) -> None:
        """The call arrives, or its reply."""
        self._over.set()


class Stalls:
    """A gate of the AWS server, in front of all others."""

    def __init__(self, stage: Stage, stalls: list[Stall]) -> None:
        self._functions = stage.runtime.functions
        self._stalls = stalls
        self._later: dict[int, Stall] = {}

    def before(self, call: Call) -> Refusal | None:
        for stall in self._stalls:
            if stall.wants(call):
                if stall.when == "before":
                    self._hold(stall, call)
                else:
                    self._later[id(call)] = stall
        return None

    def after(self, call: Call, response: Response) -> Response:
        stall = self._later.pop(id(call), None)
        if stall is not None:
            self._hold(stall, call)
        return response

    def _hold(self, stall: Stall, call: Call) -> None:
        assert call.caller is not None
        environment = self._functions.environment_of(call.caller.request_id)
        if environment is not None:
            stall.hold(environment)


def end(stalls: list[Stall]) -> None:
    """All go on as if no time had passed for them, but with clocks that are right, as on any machine."""
    for stall in stalls:
        stall.thaw()
    time.sleep(CLOCK_S)
    for stall in stalls:
        stall.end()


@contextmanager
def stalled(stage: Stage, faults: list[Fault]) -> Iterator[list[Stall]]:
    """Have them happen within the block; at its end all go on."""
    stalls = [Stall(fault) for fault in faults]
    gate = Stalls(stage, stalls)
    stage.runtime._aws.gates.insert(0, gate)
    try:
        yield stalls
    finally:
        end(stalls)
        stage.runtime._aws.gates.remove(gate)
