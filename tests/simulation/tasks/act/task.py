"""Has side effects that the test can see: lines in a file outside, each with its payload and its key."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task

UNSTORABLE: dict[str, Any] = {"a set": {1}, "a lot": "x" * 9_000, "half a letter": "\ud800", "nan": float("nan")}
SHAPES: dict[str, Any] = {"a tuple": (1, 2), "numbered": {1: "one"}}


@task("act", retry=RetryPolicy(max_attempts=3, base_s=1, cap_s=2))
def act(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """`says` is what the effect gives or raises, `then` what the task does afterwards, each in the first try only."""
    first = ctx.attempt == 1
    payload = UNSTORABLE.get(task_input.get("payload", ""), {"words": f"as of try {ctx.attempt}"})
    found = [
        ctx.effect(
            name, payload, lambda payload, key: _happen(task_input, payload, key, first),
            once=task_input.get("once", False),
        )
        for name in task_input.get("names", ["deed"])
    ]  # fmt: skip
    if first and "then" in task_input:
        raise RuntimeError(task_input["then"])
    return {"found": found, "kinds": [type(one).__name__ for one in found]}


def _happen(task_input: dict[str, Any], payload: Any, key: str, first: bool) -> Any:
    says = task_input.get("says", "") if first else ""
    if says == "not done":
        raise NotDone("they were closed")
    if says == "permanent":
        raise Permanent("they said no", "THEY_SAID_NO")
    with Path(task_input["place"]).open("a", encoding="utf-8") as outside:
        outside.write(json.dumps({"payload": payload, "key": key}) + "\n")
    if says == "raise":
        raise ConnectionError("cut")
    if says == "die":
        outside.close()
        os._exit(1)
    return UNSTORABLE.get(says, SHAPES.get(says, {"id": key[:8]}))
