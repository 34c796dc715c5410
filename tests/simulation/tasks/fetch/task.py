"""Reads a context object from the inputs bucket."""

from __future__ import annotations

from typing import Any

from lambdas.core.tasks import Context, task


@task("fetch")
def fetch(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {"text": ctx.fetch(task_input["key"]).decode()}
