"""What Step Functions refuses to stop, and what that means to a cancelled job."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.adapters.executions import StepFunctions
from lambdas.core.ports import Unavailable

MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:Analyze-1x"


class Refusing:
    def __init__(self, code: str) -> None:
        self._code = code

    def stop_execution(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "StopExecution")


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException", "InternalServerError"])
def test_a_stop_that_is_refused_is_not_taken_for_one(code: str) -> None:
    """Whoever took it for one would tell everybody that the job has ended while its branches go on paying."""
    with pytest.raises(Unavailable):
        StepFunctions(lambda: Refusing(code), {"a": MACHINE}).stop("a", "n", "cancelled")
