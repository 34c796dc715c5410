"""Asks the model, which is paid for, and then fails as long as nobody has put a context object where it looks."""

from __future__ import annotations

from typing import Any

from lambdas.core.outcomes import NotReady
from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task


@task("mended", retry=RetryPolicy(max_attempts=2, base_s=1, cap_s=2))
def mended(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    text = ctx.model.ask(task_input["prompt"], max_tokens=2_000).text
    try:
        ctx.fetch(task_input["key"])
    except NotReady as missing:
        raise RuntimeError("the customer's address is broken") from missing
    return {"text": text}
