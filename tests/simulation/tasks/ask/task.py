"""Asks the model and gives what it said; told so, it waits when the answer was cut off at its limit."""

from __future__ import annotations

from typing import Any

from lambdas.core.outcomes import ModelError, NotReady
from lambdas.core.tasks import Context, task


@task("ask")
def ask(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    try:
        return {"text": ctx.model.ask(task_input["prompt"], max_tokens=200).text}
    except ModelError as error:
        if error.kind == "truncated" and task_input.get("waits_when_cut"):
            raise NotReady("the model will say more later", retry_after=30) from error
        raise
