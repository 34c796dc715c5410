"""Ends its own process, when those beside it have begun."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from lambdas.core.tasks import Context, task


@task("lethal")
def lethal(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    time.sleep(0.3)
    if task_input["how"] == "exit":
        os._exit(1)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
