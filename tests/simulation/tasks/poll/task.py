"""Its input is not there yet, so many times."""

from __future__ import annotations

from typing import Any

from lambdas.core.outcomes import NotReady
from lambdas.core.tasks import Context, task


@task("poll")
def poll(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if ctx.attempt <= task_input["polls"]:
        raise NotReady(f"looked {ctx.attempt} times", retry_after=task_input.get("retry_after", 60))
    return {"polls": ctx.attempt - 1}
