"""All executions of a stack: started, looked at and ended, by the API or by a test."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from local.aws.lock import MOTO
from local.clock import VirtualClock
from local.events.rules import Rules
from local.executions import definition
from local.executions.calls import Caller
from local.executions.execution import ABORTED, FAILED, RUNNING, SUCCEEDED, TIMED_OUT, Execution, Machine
from local.executions.limits import CAUSE_CHARACTERS, written
from local.executions.status_change import status_change
from local.executions.timekeeping import Timekeeper
from local.stack.stack import Stack

if TYPE_CHECKING:
    from types import ModuleType

_log = logging.getLogger(__name__)
_JOIN_S = 60.0
_KEPT = 1_000
"""Histories of executions that have ended."""
_SEALS = {
    SUCCEEDED: "ExecutionSucceeded",
    FAILED: "ExecutionFailed",
    TIMED_OUT: "ExecutionTimedOut",
    ABORTED: "ExecutionAborted",
}


class AlreadyExistsError(Exception):
    """There is, or was, another one of that name."""


class Executions:
    """Everything may be called from any thread. Whoever wants two answers of one moment holds moto's lock."""

    def __init__(self, stack: Stack, clock: VirtualClock, caller: Caller, rules: Rules) -> None:
        """`rules` hear of each change of a status."""
        self.machines = {machine.arn: machine for machine in machines(stack)}
        self.rules = rules
        self.changed: Callable[[Execution], object] = lambda execution: None
        """Hears of each start and each end."""
        self._executions: dict[str, Execution] = {}
        self._ended: deque[Execution] = deque()
        self._keeper = Timekeeper(clock)
        self._caller = caller
        self._threads: set[threading.Thread] = set()
        self._interpreter: ModuleType | None = None
        self._installing = threading.Lock()

    def forget(self) -> None:
        """What happens from now on is nobody's fault: the functions are being stopped."""
        self._keeper.stop()

    def stop_all(self) -> None:
        """End every thread; the functions have been stopped."""
        self._keeper.stop()
        for execution in self.all():
            if execution.play is not None:
                execution.play.end()
        for thread in list(self._threads):
            thread.join(_JOIN_S)
        if self._interpreter is not None:
            for name in self._interpreter.join(_JOIN_S):
                _log.warning("%s is still alive", name)
            self._interpreter.remove()
            self._interpreter = None

    # --- for tests, and for the curious -----------------------------------------------------------------------

    def all(self) -> list[Execution]:
        """In the order in which they were started."""
        with MOTO:
            return list(self._executions.values())

    def find(self, name: str) -> Execution:
        """By its name, or ARN. LookupError if there is none."""
        for execution in reversed(self.all()):
            if name in (execution.name, execution.arn):
                return execution
        raise LookupError(f"no execution {name}; there are {[one.name for one in self.all()]}")

    def history(self, name: str) -> list[dict[str, Any]]:
        """Its events, oldest first."""
        return self.find(name).history()

    def transitions(self, name: str) -> int:
        """How many it is billed for until now."""
        return self.find(name).transitions

    def stop(self, name: str, error: str | None = None, cause: str | None = None) -> None:
        """As StopExecution does."""
        self.abort(self.find(name), error, cause)

    def lose_events(self, count: int | None = None, match: str = "") -> None:
        """Lose the next `count` status changes that a rule waits for (None: all of them), of executions whose name
        contains `match`."""
        self.rules.lose(count, match)

    def heed_events(self) -> None:
        """Lose none any more."""
        self.rules.heed()

    @property
    def lost_events(self) -> list[dict[str, Any]]:
        """Those that were lost since they are being lost."""
        return self.rules.lost

    # --- what the API does --------------------------------------------------------------------------------------

    def get(self, arn: str) -> Execution | None:
        """By its ARN."""
        return self._executions.get(arn)

    def start(self, machine: Machine, name: str, text: str) -> Execution:
        """The new one; or the one of that name that runs with the same input. AlreadyExistsError for any other.

        `text`: JSON. Texts are compared, not values: nobody has said what AWS does, and this is the stricter of both.
        """
        with MOTO:
            known = self._executions.get(machine.execution_arn(name))
            if known is not None:
                if known.running and known.input == text:
                    return known
                raise AlreadyExistsError(known.arn)
            execution = Execution(machine, name, text, round(self._keeper.now(), 3))
            self._executions[execution.arn] = execution
            self._tell(execution)
            thread = threading.Thread(
                target=self._perform, args=(execution,), name=f"execution-{name[:16]}", daemon=True
            )
            self._threads.add(thread)
            thread.start()
        return execution

    def abort(self, execution: Execution, error: str | None, cause: str | None) -> None:
        """No state begins any more. One that has ended stays as it is."""
        self._close(execution, ABORTED, error=error, cause=cause)

    # --------------------------------------------------------------------------------------------------------------

    def _perform(self, execution: Execution) -> None:
        try:
            play = self._play(execution)
            with MOTO:
                if not execution.running or self._keeper.stopping:
                    return
                execution.play = play
                play.begin()
            play.run()
        except Exception as error:
            _log.exception("execution %s", execution.arn)
            self._close(execution, FAILED, error="States.Runtime", cause=f"{type(error).__name__}: {error}")
        finally:
            self._threads.discard(threading.current_thread())

    def _play(self, execution: Execution) -> Any:
        interpreter = self._get_interpreter()
        machine = execution.machine
        facts = interpreter.Facts(
            arn=execution.arn,
            name=execution.name,
            input=json.loads(execution.input),
            role_arn=machine.role_arn,
            machine_arn=machine.arn,
            machine_name=machine.name,
            started_at=_iso(execution.started_s),
        )
        return interpreter.Play(
            machine.definition,
            facts,
            execution.started_s + machine.timeout_s,
            keeper=self._keeper,
            caller=self._caller,
            over=lambda status, **how: self._close(execution, status, **how),
        )

    def _get_interpreter(self) -> ModuleType:
        with self._installing:
            if self._interpreter is None:
                from local.executions import interpreter  # noqa: PLC0415 (a second, for who starts an execution)

                interpreter.install()
                self._interpreter = interpreter
            return self._interpreter

    def _close(
        self,
        execution: Execution,
        status: str,
        *,
        output: Any = None,
        error: str | None = None,
        cause: str | None = None,
    ) -> None:
        with MOTO:
            if not execution.running or self._keeper.stopping:
                return
            execution.status = status
            execution.stopped_s = self._stop_date(execution, status)
            execution.output = written(output) if status == SUCCEEDED else None
            execution.error = "States.Timeout" if status == TIMED_OUT else error or None
            execution.cause = cause[:CAUSE_CHARACTERS] if cause else None
            if execution.play is not None:
                execution.play.history.seal(_SEALS[status], _how(execution))
                execution.play.end()
            self._tell(execution)
            self._ended.append(execution)
            if len(self._ended) > _KEPT:
                self._ended.popleft().play = None

    def _stop_date(self, execution: Execution, status: str) -> float:
        """One that times out does so at its time, whenever it is noticed."""
        if status == TIMED_OUT:
            return round(execution.started_s + execution.machine.timeout_s, 3)
        return round(self._keeper.now(), 3)

    def _tell(self, execution: Execution) -> None:
        self.changed(execution)
        self.rules.take(status_change(execution))


def machines(stack: Stack) -> list[Machine]:
    """TemplateError, with the logical id, for one that is not played here."""
    return [_machine(resource.properties, resource) for resource in stack.of_type("AWS::StepFunctions::StateMachine")]


def _machine(properties: Any, resource: Any) -> Machine:
    text = definition.text_of(properties)
    return Machine(
        logical_id=resource.logical_id,
        arn=resource.attributes["Arn"],
        name=resource.attributes["Name"],
        role_arn=properties["RoleArn"],
        definition=text,
        timeout_s=float(definition.read(text).get("TimeoutSeconds", "inf")),
    )


def _how(execution: Execution) -> dict[str, Any]:
    if execution.status == SUCCEEDED:
        return {"output": execution.output, "outputDetails": {"truncated": False}}
    told = {"error": execution.error, "cause": execution.cause}
    return {name: value for name, value in told.items() if value is not None}


def _iso(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


__all__ = ["RUNNING", "AlreadyExistsError", "Executions", "machines"]
