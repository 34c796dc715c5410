"""One execution: what DescribeExecution tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local.executions.interpreter import Play

RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED = "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"
STATUSES = (RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED)


@dataclass(frozen=True)
class Machine:
    """A state machine of the template."""

    logical_id: str
    arn: str
    name: str
    role_arn: str
    definition: str
    timeout_s: float
    """Infinite if it has none."""

    def execution_arn(self, name: str) -> str:
        return f"{self.arn.replace(':stateMachine:', ':execution:')}:{name}"


@dataclass(eq=False)
class Execution:
    """Changed under the lock of moto's state only, and never after it has ended."""

    machine: Machine
    name: str
    input: str
    """The very text that it was started with."""
    started_s: float
    status: str = RUNNING
    stopped_s: float | None = None
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    play: Play | None = None
    """None until the interpreter is there."""

    @property
    def arn(self) -> str:
        return self.machine.execution_arn(self.name)

    @property
    def running(self) -> bool:
        return self.status == RUNNING

    @property
    def transitions(self) -> int:
        """As Step Functions bills them: the start, each state that was entered, each retry."""
        return 0 if self.play is None else self.play.history.transitions

    def history(self) -> list[dict[str, Any]]:
        """What GetExecutionHistory tells: events with `id`, `previousEventId`, `type`, `timestamp` and details."""
        return [] if self.play is None else self.play.history.events()

    def entered(self) -> list[str]:
        """The states that were entered, in that order."""
        details = (event.get("stateEnteredEventDetails") for event in self.history())
        return [str(one["name"]) for one in details if one is not None]

    def describe(self) -> dict[str, Any]:
        """As DescribeExecution answers; moments in epoch seconds."""
        told = {
            "executionArn": self.arn,
            "stateMachineArn": self.machine.arn,
            "name": self.name,
            "status": self.status,
            "startDate": self.started_s,
            "stopDate": self.stopped_s,
            "input": self.input,
            "inputDetails": {"included": True},
            "output": self.output,
            "outputDetails": None if self.output is None else {"included": True},
            "error": self.error,
            "cause": self.cause,
            "redriveCount": 0,
            "redriveStatus": "NOT_REDRIVABLE",
        }
        return {name: value for name, value in told.items() if value is not None}
