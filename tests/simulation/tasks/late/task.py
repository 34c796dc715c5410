"""A task whose code comes later than its type: a deploy that is under way."""

from __future__ import annotations

from typing import Any

from lambdas.core.tasks import Context, task


@task("late")
def late(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {"polls": task_input["polls"]}
