"""Step Functions on the local AWS endpoint: what is asked about executions. State machines themselves are moto's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from local.aws.calls import Call, Refusal, Response
from local.aws.errors import render
from local.executions.execution import Execution
from local.executions.executions import AlreadyExistsError, Executions

SERVICE = "states"
_MOST = 1000
_NOT_PLAYED = (
    "StartSyncExecution",
    "RedriveExecution",
    "SendTaskSuccess",
    "SendTaskFailure",
    "SendTaskHeartbeat",
    "GetActivityTask",
    "TestState",
    "UpdateStateMachine",
)

Answer = dict[str, Any] | Refusal


class StatesApi:
    """Operations of the AWS server, each called inside the server's lock."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions

    @property
    def players(self) -> dict[tuple[str, str], Callable[[Call], Callable[[], Response]]]:
        """By service and operation."""
        answers: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
            "StartExecution": self._start,
            "StopExecution": self._stop,
            "DescribeExecution": self._describe,
            "ListExecutions": self._list,
            "GetExecutionHistory": self._history,
            **dict.fromkeys(_NOT_PLAYED, _not_played),
        }
        return {(SERVICE, operation): _playing(answer) for operation, answer in answers.items()}

    def _start(self, asked: Mapping[str, Any]) -> Answer:
        arn, text = str(asked.get("stateMachineArn", "")), asked.get("input", "{}")
        machine = self._executions.machines.get(arn)
        if machine is None:
            return Refusal("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")
        try:
            json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            return Refusal("InvalidExecutionInput", f"Invalid State Machine Execution Input: '{error}'")
        try:
            execution = self._executions.start(machine, asked.get("name") or str(uuid.uuid4()), text)
        except AlreadyExistsError as error:
            return Refusal("ExecutionAlreadyExists", f"Execution Already Exists: '{error}'")
        return {"executionArn": execution.arn, "startDate": execution.started_s}

    def _stop(self, asked: Mapping[str, Any]) -> Answer:
        execution = self._find(asked)
        if isinstance(execution, Refusal):
            return execution
        self._executions.abort(execution, asked.get("error"), asked.get("cause"))
        return {"stopDate": execution.stopped_s}

    def _describe(self, asked: Mapping[str, Any]) -> Answer:
        execution = self._find(asked)
        return execution if isinstance(execution, Refusal) else execution.describe()

    def _history(self, asked: Mapping[str, Any]) -> Answer:
        execution = self._find(asked)
        if isinstance(execution, Refusal):
            return execution
        events = execution.history()
        return _page(asked, "events", events[::-1] if asked.get("reverseOrder") else events)

    def _list(self, asked: Mapping[str, Any]) -> Answer:
        arn, status = str(asked.get("stateMachineArn", "")), asked.get("statusFilter")
        if arn not in self._executions.machines:
            return Refusal("StateMachineDoesNotExist", f"State Machine Does Not Exist: '{arn}'")
        names = ("executionArn", "stateMachineArn", "name", "status", "startDate", "stopDate")
        found = [
            {name: value for name, value in one.describe().items() if name in names}
            for one in reversed(self._executions.all())
            if one.machine.arn == arn and status in (None, one.status)
        ]
        return _page(asked, "executions", found)

    def _find(self, asked: Mapping[str, Any]) -> Execution | Refusal:
        arn = str(asked.get("executionArn", ""))
        if ":execution:" not in arn:
            return Refusal("InvalidArn", f"Invalid Arn: 'Resource type not valid in this context: {arn}'")
        execution = self._executions.get(arn)
        return execution or Refusal("ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")


def _not_played(_: Mapping[str, Any]) -> Answer:
    return Refusal("NotImplemented", "this operation of Step Functions is not played on this machine", 501)


def _page(asked: Mapping[str, Any], name: str, everything: list[dict[str, Any]]) -> Answer:
    token = str(asked.get("nextToken", "0"))
    if not token.isdecimal():
        return Refusal("InvalidToken", "Invalid Token")
    begin, most = int(token), int(asked.get("maxResults") or 100)
    end = begin + min(most, _MOST)
    more = {"nextToken": str(end)} if end < len(everything) else {}
    return {name: everything[begin:end], **more}


def _playing(answer: Callable[[Mapping[str, Any]], Answer]) -> Callable[[Call], Callable[[], Response]]:
    def play(call: Call) -> Callable[[], Response]:
        told = answer(call.parameters)
        if isinstance(told, Refusal):
            response = render(call, told)
        else:
            headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": str(uuid.uuid4())}
            response = Response(200, headers, json.dumps(told).encode())
        return lambda: response

    return play
