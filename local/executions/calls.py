"""What a state machine asks of Lambda, in the name of its role, and what Step Functions calls the errors.

A function's own error comes under its own name, an exception's class. Of processes that are gone, the developer guide
speaks of `Lambda.Unknown`; what public reports show is `Sandbox.Timedout` and `Runtime.ExitError`, as here. Errors of
Lambda itself are `Lambda.<name>`. https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from local.compute.environments import Functions
from local.compute.invocation import Invocation
from local.executions.limits import fits
from local.stack.stack import Stack

NO_LIMIT = "States.DataLimitExceeded"
NOT_FOUND = "Lambda.ResourceNotFoundException"
FORBIDDEN = "Lambda.AWSLambdaException"
THROTTLED = "Lambda.TooManyRequestsException"
UNKNOWN = "Lambda.Unknown"
_LATEST = ":$LATEST"

Begins = Callable[[float, Callable[[], bool]], bool]
"""Asked when there is room for the invocation: whether it is still wanted. It gets the function's timeout, and what
tells whether the function stands still and outlives it."""
Exercise = Callable[[str, str, str], bool]
"""(role ARN, action, resource): whether it is allowed."""


class FailedError(Exception):
    """The error's name, and its cause: for a function's own error its whole answer, as JSON."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(error)
        self.error = error
        self.cause = cause


class Caller(Protocol):
    """Reaches functions for executions."""

    def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
        """What the function answers. FailedError."""


class LambdaCaller:
    """Our functions, in their environments. There is no queue in front of them but the one that callers wait in."""

    def __init__(self, stack: Stack, functions: Functions, exercise: Exercise) -> None:
        self._functions = functions
        self._exercise = exercise
        self._roles: dict[str, str] = {}
        self._prefix = f"arn:aws:lambda:{stack.region}:{stack.account}:function:"
        for role in functions.roles:
            definition = functions.definition(role)
            for name in (definition.arn, definition.name):
                self._roles[name] = role

    def role(self, function: str) -> str | None:
        """Of the function with this ARN or name."""
        return self._roles.get(function.removesuffix(_LATEST))

    def arn(self, function: str) -> str:
        """What IAM is asked about."""
        return function if function.startswith("arn:") else f"{self._prefix}{function}"

    def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
        """Wait for room, then for the answer."""
        arn = self.arn(function)
        if not fits(payload):
            raise FailedError(NO_LIMIT, "The state's input is larger than the maximum number of bytes service limit.")
        if not self._exercise(role_arn, "lambda:InvokeFunction", arn):
            why = f"User: {role_arn} is not authorized to perform: lambda:InvokeFunction on resource: {arn}"
            raise FailedError(FORBIDDEN, _said(why, 403, "AccessDeniedException"))
        role = self.role(function)
        if role is None:
            raise FailedError(NOT_FOUND, _said(f"Function not found: {arn}", 404, "ResourceNotFoundException"))
        timeout_s = float(self._functions.definition(role).timeout_s)
        request_id = str(uuid.uuid4())
        outcome = self._functions.invoke(
            role, payload, request_id=request_id, wanted=lambda: begins(timeout_s, lambda: self._outlives(request_id))
        )
        if outcome.ok:
            return outcome.result
        raise _failure(outcome)

    def _outlives(self, request_id: str) -> bool:
        environment = self._functions.environment_of(request_id)
        running = None if environment is None else environment.running
        return running is not None and running.outlives


def _failure(outcome: Invocation) -> FailedError:
    error = dict(outcome.error or {})
    if outcome.throttled:
        return FailedError(THROTTLED, _said(str(error["errorMessage"]), 429, "TooManyRequestsException"))
    return FailedError(str(error.get("errorType") or UNKNOWN), json.dumps(error, separators=(",", ":")))


def _said(message: str, status: int, code: str) -> str:
    """As the SDK of Step Functions words an error of Lambda."""
    return (
        f"{message} (Service: AWSLambda; Status Code: {status}; Error Code: {code}; Request ID: {uuid.uuid4()}; "
        "Proxy: null)"
    )
