"""The Executions port on Step Functions: each start, answer and refusal, and what it means to a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.adapters import clients
from lambdas.adapters.environment import Environment
from lambdas.adapters.executions import StepFunctions, execution_arn, executions_of
from lambdas.contracts import names
from lambdas.core import ids
from lambdas.core.outcomes import Permanent
from lambdas.core.ports import Unavailable
from lambdas.core.workflows.ports import AlreadyExists, EndedBadly, Running, Succeeded
from tests.integration.cloud import Cloud
from tests.integration.records import an_id

TYPE = "analyze-document"
INPUT = '{"job":"x","run":0}'


@pytest.fixture
def executions(cloud: Cloud) -> StepFunctions:
    return executions_of(Environment(cloud.environment("worker")))


def a_name() -> str:
    return ids.execution_name(an_id(), 0)


def refusing(code: str, *, status: int = 400) -> StepFunctions:
    """Step Functions as it answers in a case that moto does not know."""

    def refuse(**_: Any) -> Any:
        said = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(said, "StartExecution")  # type: ignore[arg-type]

    return answering(start_execution=refuse, describe_execution=refuse, stop_execution=refuse)


def answering(**calls: Any) -> StepFunctions:
    return StepFunctions(lambda: type("Client", (), {k: staticmethod(v) for k, v in calls.items()}), {TYPE: MACHINE})


MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:Analyze-1x"
SINCE, REDRIVEN = datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)


# --- on the stack ------------------------------------------------------------------------------------
def test_an_execution_is_started_described_and_stopped(executions: StepFunctions):
    name = a_name()
    assert executions.describe(TYPE, name) is None
    since = executions.start(TYPE, name, INPUT)
    assert executions.describe(TYPE, name) == Running(since)
    executions.stop(TYPE, name, "cancelled")
    found = executions.describe(TYPE, name)
    assert isinstance(found, EndedBadly)
    assert found.how == "aborted"


def test_a_start_that_is_repeated_finds_the_execution_that_runs(executions: StepFunctions):
    name = a_name()
    assert executions.start(TYPE, name, INPUT) == executions.start(TYPE, name, INPUT)


def test_sfn_01_the_sdks_own_repeat_of_a_start_whose_reply_was_lost_is_no_second_one(
    executions: StepFunctions, cloud: Cloud
):
    name = a_name()
    cloud.wire.lose("StartExecution")
    since = executions.start(TYPE, name, INPUT)
    assert executions.describe(TYPE, name) == Running(since)
    assert cloud.wire.count("StartExecution") == 2


def test_the_name_of_one_that_has_ended_is_taken(executions: StepFunctions):
    name = a_name()
    executions.start(TYPE, name, INPUT)
    executions.stop(TYPE, name, "cancelled")
    with pytest.raises(AlreadyExists):
        executions.start(TYPE, name, '{"job":"x","run":1}')


def test_what_is_not_there_is_as_good_as_stopped(executions: StepFunctions):
    executions.stop(TYPE, a_name(), "cancelled")


@pytest.mark.parametrize("act", ["start", "describe", "stop"])
def test_a_type_without_a_state_machine_is_told_apart(executions: StepFunctions, act: str):
    more = {"start": (INPUT,), "describe": (), "stop": ("why",)}[act]
    with pytest.raises(KeyError):
        getattr(executions, act)("no-such-type", a_name(), *more)


@pytest.mark.parametrize("operation", ["StartExecution", "DescribeExecution", "StopExecution"])
def test_what_nobody_answers_is_unavailable_and_may_have_happened(
    executions: StepFunctions, cloud: Cloud, operation: str
):
    cloud.wire.cut(operation, times=9)
    acts: dict[str, Callable[[], object]] = {
        "StartExecution": lambda: executions.start(TYPE, a_name(), INPUT),
        "DescribeExecution": lambda: executions.describe(TYPE, a_name()),
        "StopExecution": lambda: executions.stop(TYPE, a_name(), "why"),
    }
    with pytest.raises(Unavailable) as raised:
        acts[operation]()
    assert raised.value.unknown


def test_its_client_is_made_when_a_workflow_comes_and_by_one_thread_at_a_time():
    """boto3's default session makes clients in one thread at a time; a worker's batch has ten."""
    at_work = threading.Lock()

    def make() -> Any:
        assert at_work.acquire(blocking=False), "two at once"
        threading.Event().wait(0.01)
        at_work.release()
        return type("Client", (), {"describe_execution": lambda _, **__: {"status": "RUNNING", "startDate": SINCE}})()

    executions = StepFunctions(make, {TYPE: MACHINE})
    with ThreadPoolExecutor(10) as threads:
        found = list(threads.map(lambda n: executions.describe(TYPE, f"n{n}"), range(10)))
    assert found == [Running(SINCE)] * 10


# --- what it says --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        ({"status": "RUNNING"}, Running(SINCE)),
        ({"status": "PENDING_REDRIVE"}, Running(SINCE)),
        ({"status": "RUNNING", "redriveCount": 1, "redriveDate": REDRIVEN}, Running(REDRIVEN)),
        ({"status": "A_LATER_ONE"}, Running(SINCE)),
        ({"status": "SUCCEEDED", "output": '{"a":1}'}, Succeeded('{"a":1}')),
        ({"status": "SUCCEEDED"}, Succeeded("")),
        ({"status": "FAILED", "error": "TransientError", "cause": "{}"}, EndedBadly("failed", "TransientError", "{}")),
        ({"status": "TIMED_OUT"}, EndedBadly("timed out")),
        ({"status": "ABORTED", "error": None}, EndedBadly("aborted")),
    ],
    ids=lambda value: value.get("status", "") if isinstance(value, dict) else "",
)
def test_each_status_has_one_meaning(answer: dict[str, Any], meaning: Any):
    found = answering(describe_execution=lambda **_: {"startDate": SINCE, **answer})
    assert found.describe(TYPE, "name") == meaning


def test_an_execution_is_asked_for_by_the_arn_of_its_machine_and_its_name():
    assert execution_arn(MACHINE, "n") == "arn:aws:states:us-east-1:111122223333:execution:Analyze-1x:n"
    gov = "arn:aws-us-gov:states:us-gov-west-1:1:stateMachine:stateMachine"
    assert execution_arn(gov, "n") == "arn:aws-us-gov:states:us-gov-west-1:1:execution:stateMachine:n"


@pytest.mark.parametrize("code", ["InvalidName", "InvalidExecutionInput", "ValidationException"])
def test_sfn_03_a_start_that_is_refused_for_what_it_is_is_refused_for_good(code: str):
    with pytest.raises(Permanent) as raised:
        refusing(code).start(TYPE, "a b", INPUT)
    assert raised.value.code == "EXECUTION_REFUSED"


def test_a_machine_that_is_gone_is_one_that_is_not_deployed():
    with pytest.raises(KeyError):
        refusing("StateMachineDoesNotExist").start(TYPE, "n", INPUT)


@pytest.mark.parametrize(
    ("code", "throttled"),
    [
        ("AccessDeniedException", False), ("StateMachineDeleting", False), ("InvalidArn", False),
        ("KmsAccessDeniedException", False), ("InternalServerError", False),
        ("ThrottlingException", True), ("ExecutionLimitExceeded", True), ("TooManyRequestsException", True),
    ],
)  # fmt: skip
def test_what_a_deploy_or_time_may_change_is_waited_for(code: str, throttled: bool):
    for act in (lambda: refusing(code).start(TYPE, "n", INPUT), lambda: refusing(code).describe(TYPE, "n")):
        with pytest.raises(Unavailable) as raised:
            act()
        assert raised.value.throttled is throttled


def test_it_is_asked_as_patiently_as_a_store(cloud: Cloud):
    config = clients.client("stepfunctions").meta.config
    assert (config.retries["total_max_attempts"], config.read_timeout) == (3, 5)


def test_a_deployment_without_workflows_has_no_machines():
    with pytest.raises(KeyError):
        executions_of(Environment({})).start(TYPE, "n", INPUT)
    assert Environment({names.WORKFLOWS: '{"a":"arn"}'}).state_machines == {"a": "arn"}
