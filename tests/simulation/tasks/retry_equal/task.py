"""Fails each time; its tries are equal jitter apart, 40 seconds at most."""

from __future__ import annotations

from typing import Any

from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task


@task("retry-equal", retry=RetryPolicy(max_attempts=7, base_s=10, cap_s=40, jitter="equal"))
def retry_equal(task_input: dict[str, Any], ctx: Context) -> Any:
    raise ValueError("no")
