"""One execution on the interpreter, with functions that answer by a script."""

from __future__ import annotations

import json
from typing import Any

from local.executions.calls import Begins
from local.executions.interpreter import Facts, Play
from local.executions.timekeeping import Timekeeper

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:f"
ROLE = "arn:aws:iam::123456789012:role/r"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:m"


class Script:
    """Functions that answer as they are told."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.payloads: list[Any] = []

    def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
        assert begins(60.0, lambda: False)
        self.payloads.append(payload)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Watched:
    """One execution, run to its end."""

    def __init__(self, keeper: Timekeeper, definition: Any, script: Script) -> None:
        self.ends: list[tuple[str, Any, str | None]] = []
        facts = Facts("arn:e", "e", {"a": 1}, ROLE, MACHINE, "m", "2026-01-01T00:00:00.000Z")
        self.play = Play(json.dumps(definition), facts, float("inf"), keeper=keeper, caller=script, over=self._over)

    def run(self) -> tuple[str, Any, str | None]:
        self.play.begin()
        self.play.run()
        (end,) = self.ends
        return end

    def _over(self, status: str, *, output: Any = None, error: str | None = None, cause: str | None = None) -> None:
        self.ends.append((status, output, error))
        self.play.end()


def task(**more: Any) -> dict[str, Any]:
    return {"StartAt": "t", "States": {"t": {"Type": "Task", "Resource": FUNCTION, "End": True, **more}}}
