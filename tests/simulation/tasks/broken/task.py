"""A task that cannot be imported."""

from __future__ import annotations

from typing import Any

import a_module_that_nobody_ships  # type: ignore[import-not-found]

from lambdas.core.tasks import Context, task


@task("broken")
def broken(task_input: dict[str, Any], ctx: Context) -> Any:
    return a_module_that_nobody_ships.run(task_input)
