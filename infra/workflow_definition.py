"""The state machine of a workflow: its declaration in Amazon States Language, by a pure function.

What goes from state to state is `{"job", "run"}` and nothing else, from the start to the collector: what branches have
to say they write where others can read it. So nothing here grows with documents, answers or error texts, and the 256 KB
that a state may be given are never near.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lambdas.contracts.workflows import Branch, Workflow

STARTING_S = 30  # beyond a function's own timeout, until Step Functions may give up an invocation: a cold start fits in
COLLECT = "Collect"
NAME_MAX = 80  # characters of a state's name

State = dict[str, Any]

# A try was used: the model may have been paid without its answer being kept. So few of them that, with the runs of a
# workflow, no question is paid more often than anybody would call bounded (tests/infrastructure/test_workflows.py).
# All but the first are how a function that was killed, or never answered, is told.
USED = (
    "TransientError",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "Runtime.OutOfMemory",
    "Lambda.Unknown",
    "States.Timeout",
)

# Nothing was paid, or what was paid is kept under its question: the next try finds it, or waits for who is asking.
# After the first, which is ours, what Lambda says when it would rather not, or not yet.
# https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html#API_Invoke_Errors
WAITS = (
    "WaitError",
    "Lambda.TooManyRequestsException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.CodeArtifactUserPendingException",
    "Lambda.ResourceNotReadyException",
    "Lambda.ResourceConflictException",
    "Runtime.ImportModuleError",  # and the next two: it never began; a deploy that is rolled back mends it
    "Runtime.HandlerNotFound",
    "Runtime.UserCodeSyntaxError",
)
GROWING = 8  # waits, until they are as long as they may be
MORE_TRIES = 2  # of a branch, after its first
WAIT_S = 150  # of the longest waits on average, by full jitter: anything from 0 to 300


def definition(
    workflow: Workflow, *, branch_arn: str, collect_arn: str, branch_timeout_s: int, collect_timeout_s: int
) -> dict[str, Any]:
    """As Step Functions takes it. A stage of one branch is a task, one of several is a Parallel over them; a branch
    that has failed is left out, whatever went wrong with it, and the collector judges what is there."""
    ask = {
        "Resource": branch_arn,
        "TimeoutSeconds": branch_timeout_s + STARTING_S,
        "Retry": _retry(MORE_TRIES, patience(workflow)),
    }
    names = [_stage_name(number, stage) for number, stage in enumerate(workflow.stages, start=1)]
    following = [*names[1:], COLLECT]
    states = {
        name: _alone(stage[0], ask, then) if len(stage) == 1 else _side_by_side(stage, ask, then)
        for name, stage, then in zip(names, workflow.stages, following, strict=True)
    }
    collect = {
        "Type": "Task",
        "Resource": collect_arn,
        "TimeoutSeconds": collect_timeout_s + STARTING_S,
        "Parameters": _pointer(),
        "Retry": _retry(2 * MORE_TRIES, 2 * patience(workflow)),  # it pays nothing, and what it gives up is a whole run
        "End": True,
    }
    return {
        "Comment": workflow.description,
        "StartAt": names[0],
        "TimeoutSeconds": workflow.timeout_s,
        "States": {**states, COLLECT: collect},
    }


def patience(workflow: Workflow) -> int:
    """How often a wait is repeated: until time ends the execution, not a count. What ends so is run again, and finds
    what is there; a branch that gave up would be missing for good. A few grow up to the longest. Waits are drawn:
    so many that none of forty branches is through before its time, however short it draws."""
    return 2 * (-(-workflow.timeout_s // WAIT_S) + GROWING) + 24


def _stage_name(number: int, stage: Sequence[Branch]) -> str:
    """No branch is named so: their names have no capitals."""
    return stage[0].name if len(stage) == 1 else f"Stage {number}"


def _alone(branch: Branch, ask: State, then: str) -> State:
    return {**_task(branch, ask, left_out=then), "Next": then}


def _side_by_side(stage: Sequence[Branch], ask: State, then: str) -> State:
    return {"Type": "Parallel", "Branches": [_track(branch, ask) for branch in stage], "ResultPath": None, "Next": then}


def _track(branch: Branch, ask: State) -> State:
    """Caught inside: an error that left the Parallel would end all branches with it."""
    left_out = f"{branch.name}: left out"
    states = {
        branch.name: {**_task(branch, ask, left_out), "End": True},
        left_out: {"Type": "Pass", "End": True},
    }
    return {"StartAt": branch.name, "States": states}


def _task(branch: Branch, ask: State, left_out: str) -> State:
    return {
        "Type": "Task",
        **ask,
        "Parameters": {**_pointer(), "branch": branch.name},
        "ResultPath": None,
        # without the path a cause of 32 KB would go on instead of the pointer
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": left_out}],
    }


def _pointer() -> dict[str, str]:
    return {"job.$": "$.job", "run.$": "$.run"}


def _retry(tries: int, waits: int) -> list[State]:
    """Each counts for itself. Full jitter: forty branches that were throttled together do not come back together."""
    return [
        {
            "ErrorEquals": list(USED),
            "IntervalSeconds": 5,
            "BackoffRate": 3,
            "MaxDelaySeconds": 60,
            "MaxAttempts": tries,
            "JitterStrategy": "FULL",
        },
        {
            "ErrorEquals": list(WAITS),
            "IntervalSeconds": 2,
            "BackoffRate": 2,
            "MaxDelaySeconds": 300,
            "MaxAttempts": waits,
            "JitterStrategy": "FULL",
        },
    ]
