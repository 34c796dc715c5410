"""One question, one answer. A second try never comes at once, so that what it meets does not depend on luck."""

from __future__ import annotations

from typing import Any

from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task

SYSTEM = "Say what this is about."
MAX_TOKENS = 2_000


@task("steady", retry=RetryPolicy(base_s=8, jitter="equal"))
def steady(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {"text": ctx.model.ask(task_input["text"], system=SYSTEM, max_tokens=MAX_TOKENS).text}
