"""What crashes, timeouts and freezes do to the process that is struck."""

from __future__ import annotations

from local.compute.boundaries import Sandbox
from local.faults.fault import Fault

KINDS = ("crash", "timeout", "freeze")


def strike(fault: Fault, sandbox: Sandbox) -> bool:
    """Whether the struck process goes on afterwards: only one that was frozen and thawed, for which this waits."""
    if fault.kind == "freeze":
        return sandbox.stand_still()
    if fault.kind == "crash":
        sandbox.kill("crash")
    else:
        sandbox.freeze(outlives=False)  # held as it is; the deadline ends it
    return False
