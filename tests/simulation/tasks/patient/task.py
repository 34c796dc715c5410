"""Asks the model, and has the patience for an outage of an hour."""

from __future__ import annotations

from typing import Any

from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task


@task("patient", retry=RetryPolicy(max_attempts=12, base_s=600, cap_s=600, jitter="equal"))
def patient(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {"text": ctx.model.ask(task_input["prompt"]).text}
