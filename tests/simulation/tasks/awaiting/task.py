"""Reads a context object that may not be there yet, and asks the model then."""

from __future__ import annotations

from typing import Any

from lambdas.core.tasks import Context, task


@task("awaiting")
def awaiting(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.fetch(task_input["key"])
    return {"text": ctx.model.ask(task_input["text"], system="Say what this is about.", max_tokens=2_000).text}
