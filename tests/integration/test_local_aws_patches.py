"""What stock moto's interpreter of state machines would do: as long as it does, the patches are needed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state import state
from moto.stepfunctions.parser.asl.component.state.exec import execute_state
from moto.stepfunctions.parser.asl.component.state.exec.state_parallel import branches_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_parallel.branch_worker import BranchWorker
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils, state_task_lambda
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service
from moto.stepfunctions.parser.asl.utils import boto_client

from local.aws.patches import stepfunctions
from local.clock import VirtualClock
from local.executions.calls import Begins, FailedError
from local.executions.limits import DATA_BYTES, fits
from local.executions.timekeeping import Timekeeper
from tests.integration.local_plays import FUNCTION, Script, Watched, task
from tests.integration.local_toys import eventually


@pytest.fixture
def keeper() -> Iterator[Timekeeper]:
    stepfunctions.install()
    with VirtualClock() as clock:
        yield Timekeeper(clock)
    stepfunctions.remove()


@contextmanager
def stock(owner: Any, name: str) -> Iterator[None]:
    """moto's own, while all other patches stay."""
    (patch,) = [one for one in stepfunctions.PATCHES if one.owner is owner and one.name == name]
    patch.remove()
    try:
        yield
    finally:
        patch.install()


def test_it_runs_to_its_end(keeper: Timekeeper) -> None:
    script = Script({"b": 2})
    assert Watched(keeper, task(), script).run() == ("SUCCEEDED", {"b": 2}, None)
    assert script.payloads == [{"a": 1}]


def test_stock_calls_moto_s_lambda(keeper: Timekeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(**named: Any) -> Any:
        asked.append(named["service"])
        raise ConnectionError

    monkeypatch.setattr(lambda_eval_utils, "boto_client_for", refuse)
    assert vars(boto_client)["boto_client_for"] is not refuse
    with stock(lambda_eval_utils, "execute_lambda_function_integration"):
        assert Watched(keeper, task(), Script({})).run()[0] == "FAILED"
    assert asked == ["lambda"]


def test_stock_waits_for_a_retry_by_the_real_clock(keeper: Timekeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    retry = [{"ErrorEquals": ["E"], "IntervalSeconds": 7, "MaxAttempts": 1}]
    with stock(retrier_decl, "time"):
        ended = Watched(keeper, task(Retry=retry), Script(FailedError("E", "c"), "ok")).run()
    assert ended[0] == "SUCCEEDED"
    assert slept == [7]


def test_stock_keeps_the_time_of_a_state_by_the_real_clock(keeper: Timekeeper) -> None:
    with stock(execute_state, "threading"):
        assert vars(execute_state)["threading"] is threading
        assert Watched(keeper, task(), Script("ok")).run()[0] == "SUCCEEDED"


def test_stock_names_no_error_of_lambda_s_own(keeper: Timekeeper) -> None:
    failed = FailedError("Lambda.TooManyRequestsException", "c")
    assert Watched(keeper, task(), Script(failed)).run()[2] == "Lambda.TooManyRequestsException"
    with stock(state_task_lambda.StateTaskLambda, "_from_error"):
        assert Watched(keeper, task(), Script(failed)).run()[2] == "Exception"


def test_stock_has_states_all_take_everything(keeper: Timekeeper) -> None:
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "c"}]
    definition = task(Catch=catch)
    definition["States"]["c"] = {"Type": "Pass", "End": True}
    too_long = FailedError("States.DataLimitExceeded", "c")
    assert Watched(keeper, definition, Script(too_long)).run()[2] == "States.DataLimitExceeded"
    assert Watched(keeper, definition, Script(FailedError("E", "c"))).run()[0] == "SUCCEEDED"
    with stock(ErrorEqualsDecl, "_eval_body"):
        assert Watched(keeper, definition, Script(too_long)).run()[0] == "SUCCEEDED"


def test_stock_loses_the_name_of_a_branch_s_error(keeper: Timekeeper) -> None:
    definition = {"StartAt": "p", "States": {"p": {"Type": "Parallel", "Branches": [task()], "End": True}}}
    too_long = FailedError("States.DataLimitExceeded", "c")
    assert Watched(keeper, definition, Script(too_long)).run()[2] == "States.DataLimitExceeded"
    with stock(branches_decl, "CustomErrorName"):
        assert Watched(keeper, definition, Script(too_long)).run()[2] == "States.Runtime"


@pytest.mark.parametrize("module", [state, state_task_lambda, state_task_service])
def test_stock_measures_json_with_blanks_and_escapes(keeper: Timekeeper, module: Any) -> None:
    umlauts, exactly = ["ü" * 70_000], "x" * (DATA_BYTES - 2)
    measures: Callable[[Any], bool] = module.is_within_size_quota
    assert measures(umlauts)
    assert measures(exactly)
    assert not measures(exactly + "x")
    with stock(module, "is_within_size_quota"):
        assert not module.is_within_size_quota(umlauts)
    assert fits(exactly)


def test_stock_writes_what_fails_into_the_log(keeper: Timekeeper, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        Watched(keeper, task(), Script(FailedError("E", "secret"))).run()
        assert "secret" not in caplog.text
        with stock(EvalComponent, "_log_failure_event_exception"):
            Watched(keeper, task(), Script(FailedError("E", "secret"))).run()
        assert "secret" in caplog.text


def test_stock_stops_a_branch_without_telling_who_waits(keeper: Timekeeper) -> None:
    """A branch that waits for its retry is gone at once when another one fails."""
    retry = [{"ErrorEquals": ["Again"], "IntervalSeconds": 900, "MaxAttempts": 3}]
    waits = task(Retry=retry)
    fails = {"StartAt": "u", "States": {"u": {"Type": "Task", "Resource": f"{FUNCTION}-fails", "End": True}}}
    parallel = {"Type": "Parallel", "Branches": [waits, fails], "End": True}
    definition = {"StartAt": "p", "States": {"p": parallel}}

    class Both(Script):
        def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
            raise FailedError("E" if function.endswith("-fails") else "Again", "c")

    watched = Watched(keeper, definition, Both())
    assert watched.run()[2] == "E"
    eventually(lambda: not [one for one in _branches() if one.is_alive()])
    assert vars(BranchWorker)["stop"] is not stepfunctions._stock_stop


def _branches() -> list[Any]:
    return [one for one in threading.enumerate() if one.name.startswith("BranchWorker")]


def test_every_name_that_aws_reserves_is_known() -> None:
    for name in ("States.Timeout", "States.DataLimitExceeded", "States.Runtime"):
        assert isinstance(stepfunctions._named(name), StatesErrorName)
        assert StatesErrorNameType.from_name(name).to_name() == name
