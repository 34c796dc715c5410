"""moto's interpreter of state machines, put on the runtime's clock and on its functions, within AWS's limits.

Not among the other patches: importing the interpreter takes a second, so it is only done where a template has a state
machine. While installed, programs run only as part of a Play (`local.executions.interpreter`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state import state
from moto.stepfunctions.parser.asl.component.state.exec import execute_state
from moto.stepfunctions.parser.asl.component.state.exec.state_parallel import branches_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_parallel.branch_worker import BranchWorker
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils, state_task_lambda
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service_lambda import (
    StateTaskServiceLambda,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task_lambda import StateTaskLambda
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.environment import Environment

from local.aws.patches.patch import Patch
from local.executions.calls import FailedError
from local.executions.limits import CAUSE_CHARACTERS, fits

Going = Callable[[], bool]
"""Whether whoever waits is still part of the execution: it has not ended, nor has this branch of it."""


class Play(Protocol):
    """An execution, for the interpreter."""

    def pause(self, seconds: float, going: Going, after: int) -> None:
        """Before a retry: so many virtual seconds after that event. Abandoned when it goes on no more."""

    def rest(self, seconds: float, going: Going, after: int) -> None:
        """The same, in a state that waits."""

    def now(self) -> float:
        """Virtual time, in epoch seconds."""

    def wait(self, done: Callable[[], bool], moment_s: float, going: Going) -> bool:
        """Until `done`, at most until that moment; whether it is. Abandoned when it goes on no more."""

    def call(self, function: str, payload: Any, going: Going) -> Any:
        """What a function answers. FailedError, NobodyWaitsError."""

    def told(self) -> None:
        """A task has come to its end, on the thread that has done it."""

    def ring(self) -> None:
        """Something that somebody waits for may have come."""


class Abandoned(BaseException):
    """Leaves a program whose execution has ended. No Exception: those are errors of its states."""


class NobodyWaitsError(Exception):
    """An answer that came when its state was over."""


_HERE = threading.local()
"""`env`: of the program that runs on this thread."""


def _play(env: Environment) -> Play:
    play: Play = env.event_manager.play  # type: ignore[attr-defined]  # interpreter.History
    return play


# --- time ------------------------------------------------------------------------------------------------------


def _eval_program(program: Program, env: Environment) -> None:
    """Stock waits for it on another thread, as long as it may take by the real clock. Here the Play keeps the time."""
    if env.program_state() is not None and not env.is_running():
        return
    _HERE.env = env
    env.next_state_name = program.start_at.start_at_name
    try:
        EvalComponent.eval(program, env)
    except Abandoned:
        return


class _Event:
    """What a state waits for while its task is done on another thread."""

    def __init__(self) -> None:
        self._env: Environment = _HERE.env
        self._began_s = _play(self._env).now()  # before the task, which may be seen before anybody waits for it
        self._happened = False

    def set(self) -> None:
        self._happened = True
        _play(self._env).told()

    def wait(self, timeout: float) -> bool:
        return _play(self._env).wait(lambda: self._happened, self._began_s + timeout, self._env.is_running)


def _pause(seconds: float) -> None:
    env: Environment = _HERE.env
    _play(env).pause(seconds, env.is_running, env.event_history_context.source_event_id)


def _wait_interval(function: WaitFunction, env: Environment, wait_seconds: int) -> None:
    _play(env).rest(wait_seconds, env.is_running, env.event_history_context.source_event_id)


_stock_stop: Any = vars(BranchWorker)["stop"]


def _stop_branch(branch: BranchWorker, *args: Any, **kwargs: Any) -> None:
    _stock_stop(branch, *args, **kwargs)
    _play(branch.env).ring()


_ANSWER = {"ExecutedVersion": "$LATEST", "Payload": None, "StatusCode": 200}

# --- functions ---------------------------------------------------------------------------------------------------


def _call_function(env: Environment, parameters: dict[str, Any], region: str, state_credentials: Any) -> None:
    """Stock asks moto's Lambda, which would start a container."""
    payload = json.loads(parameters.get("Payload") or b"{}")
    answer = _play(env).call(str(parameters["FunctionName"]), payload, env.is_running)
    env.stack.append({**_ANSWER, "Payload": answer})


def _named(error_name: str | None) -> ErrorName:
    """Stock cannot tell one of AWS's own names from another's, and fails at it."""
    if error_name is not None and error_name.startswith("States."):
        return StatesErrorName.from_name(error_name)
    return CustomErrorName(error_name)


_stock_error_of_function: Any = vars(StateTaskLambda)["_from_error"]
_stock_error_of_invoke: Any = vars(StateTaskServiceLambda)["_from_error"]


def _error_of_function(task: StateTaskLambda, env: Environment, ex: Exception) -> FailureEvent:
    """Stock calls every error of Lambda's own "Exception"."""
    if not isinstance(ex, FailedError):
        failure: FailureEvent = _stock_error_of_function(task, env, ex)
        return failure
    return _failed(env, ex, HistoryEventType.LambdaFunctionFailed, "lambdaFunctionFailedEventDetails")


def _error_of_invoke(task: StateTaskServiceLambda, env: Environment, ex: Exception) -> FailureEvent:
    if not isinstance(ex, FailedError):
        failure: FailureEvent = _stock_error_of_invoke(task, env, ex)
        return failure
    where = {"resource": "invoke", "resourceType": "lambda"}
    return _failed(env, ex, HistoryEventType.TaskFailed, "taskFailedEventDetails", **where)


def _failed(env: Environment, ex: FailedError, kind: HistoryEventType, key: str, **where: str) -> FailureEvent:
    details: Any = {key: {"error": ex.error, "cause": ex.cause[:CAUSE_CHARACTERS], **where}}
    return FailureEvent(env=env, error_name=_named(ex.error), event_type=kind, event_details=details)


# --- errors and limits ---------------------------------------------------------------------------------------------

_TERMINAL = ("States.DataLimitExceeded", "States.Runtime")
_stock_equals: Any = vars(ErrorEqualsDecl)["_eval_body"]


def _equals(rule: ErrorEqualsDecl, env: Environment) -> None:
    """States.ALL takes everything but two: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html"""
    named: ErrorName | None = env.stack[-1]
    _stock_equals(rule, env)
    everything = any(one.error_name == "States.ALL" for one in rule.error_names)
    if everything and named is not None and named.error_name in _TERMINAL:
        env.stack[-1] = False


def _answer_fits(value: Any) -> bool:
    """Of a function's answer the payload counts. The same is asked of the state's output."""
    answer = isinstance(value, dict) and value.keys() == _ANSWER.keys()
    return fits(value["Payload"] if answer else value)


def _silent(component: EvalComponent, *_: Any, **__: Any) -> None:
    """Stock writes the whole component and its data into the log, for each level that an error passes."""


PATCHES = (
    Patch(Program, "eval", _eval_program),
    Patch(execute_state, "threading", SimpleNamespace(Event=_Event)),
    Patch(retrier_decl, "time", SimpleNamespace(sleep=_pause)),
    Patch(WaitFunction, "_wait_interval", _wait_interval),
    Patch(BranchWorker, "stop", _stop_branch),
    Patch(lambda_eval_utils, "execute_lambda_function_integration", _call_function),
    Patch(StateTaskLambda, "_from_error", _error_of_function),
    Patch(StateTaskServiceLambda, "_from_error", _error_of_invoke),
    Patch(branches_decl, "CustomErrorName", _named),
    Patch(ErrorEqualsDecl, "_eval_body", _equals),
    # stock counts JSON with blanks and escapes, and refuses the very last byte
    Patch(state, "is_within_size_quota", fits),
    Patch(state_task_service, "is_within_size_quota", _answer_fits),
    Patch(state_task_lambda, "is_within_size_quota", _answer_fits),
    Patch(EvalComponent, "_log_failure_event_exception", _silent),
    Patch(EvalComponent, "_log_exception", _silent),
)


def install() -> None:
    for patch in PATCHES:
        patch.install()


def remove() -> None:
    for patch in reversed(PATCHES):
        patch.remove()
