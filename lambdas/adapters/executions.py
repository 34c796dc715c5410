"""Executions of our state machines, in Step Functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.clients import as_unavailable, client, code_of
from lambdas.adapters.environment import Environment
from lambdas.core.outcomes import Permanent
from lambdas.core.times import Instant
from lambdas.core.workflows.ports import AlreadyExists, EndedBadly, Ending, Execution, Running, Succeeded

# Step Functions would say the same to each repeat. What else it refuses (a permission, a quota, a machine that is being
# replaced) the next deploy, or time, may change.
FOR_GOOD = frozenset({"InvalidName", "InvalidExecutionInput", "ValidationException"})
CAUSE_MAX = 2_000

_BADLY: Mapping[str, Ending] = {"FAILED": "failed", "TIMED_OUT": "timed out", "ABORTED": "aborted"}


def executions_of(environment: Environment) -> StepFunctions:
    """With the stores' own patience: a start that is repeated finds the execution that it has started."""
    return StepFunctions(lambda: client("stepfunctions"), environment.state_machines)


class StepFunctions:
    """The Executions port. `client` is made when it is first needed: most jobs are no workflow's. `machines`: the ARN
    of each workflow's state machine, by its type."""

    def __init__(self, client: Callable[[], Any], machines: Mapping[str, str]) -> None:
        self._make, self._machines = client, machines
        self._making = Lock()  # boto3 makes clients in one thread at a time; jobs are worked on in many

    def _client(self) -> Any:
        with self._making:
            return self._make()

    def start(self, type_: str, name: str, written_input: str) -> Instant:
        machine = self._machines[type_]
        with as_unavailable(f"starting an execution of {type_}"):
            try:
                answer = self._client().start_execution(stateMachineArn=machine, name=name, input=written_input)
            except ClientError as error:
                raise _start_refused(error, type_) from error
        since: Instant = answer["startDate"]
        return since

    def describe(self, type_: str, name: str) -> Execution | None:
        arn = execution_arn(self._machines[type_], name)
        with as_unavailable(f"describing an execution of {type_}"):
            try:
                return _meaning(self._client().describe_execution(executionArn=arn))
            except ClientError as error:
                if code_of(error) == "ExecutionDoesNotExist":
                    return None
                raise

    def stop(self, type_: str, name: str, why: str) -> None:
        arn = execution_arn(self._machines[type_], name)
        with as_unavailable(f"stopping an execution of {type_}"):
            try:
                self._client().stop_execution(executionArn=arn, error="Stopped", cause=why[:CAUSE_MAX])
            except ClientError as error:
                if code_of(error) != "ExecutionDoesNotExist":
                    raise


def execution_arn(machine_arn: str, name: str) -> str:
    """`arn:…:stateMachine:<machine>` has executions `arn:…:execution:<machine>:<name>`."""
    service, _, machine = machine_arn.partition(":stateMachine:")
    return f"{service}:execution:{machine}:{name}"


def _start_refused(error: ClientError, type_: str) -> Exception:
    code = code_of(error)
    if code == "ExecutionAlreadyExists":
        return AlreadyExists(str(error))
    if code == "StateMachineDoesNotExist":
        return KeyError(type_)
    return Permanent(str(error), "EXECUTION_REFUSED") if code in FOR_GOOD else error


def _meaning(answer: Mapping[str, Any]) -> Execution:
    status = answer["status"]
    if status == "SUCCEEDED":
        return Succeeded(answer.get("output") or "")
    if status in _BADLY:
        return EndedBadly(_BADLY[status], answer.get("error") or "", answer.get("cause") or "")
    # RUNNING, PENDING_REDRIVE; a redrive has its state machine's whole timeout once more
    return Running(answer.get("redriveDate") or answer["startDate"])
