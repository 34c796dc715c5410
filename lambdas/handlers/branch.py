"""Step Functions calls it for each branch of a workflow: runs the branch's task, and writes down what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.log import StepLog
from lambdas.adapters.working import Working, working
from lambdas.contracts import workflows
from lambdas.core import ids
from lambdas.core.workflows.branching import Branching, run
from lambdas.core.workflows.told import TransientError, WaitError, ask_of
from lambdas.tasks import load


@dataclass(frozen=True)
class Parts:
    working: Working
    desk: Branching
    log: StepLog


def build(environment: Environment) -> Parts:
    log = StepLog("branch")
    tasks, broken = load()
    declared, wrong = workflows.load()
    for type_, why in (*broken.items(), *wrong.items()):
        log.trouble("broken_task", type=type_, detail=why)
    made = working(environment, tasks)
    return Parts(made, Branching(made.worker, declared), log)


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, str]:
    own = parts()
    own.log.started(context)
    own.working.invocation_started(context)
    ask = ask_of(event, of_branch=True)
    try:
        return run(
            ask,
            own.desk,
            by=ids.claim_id(context.aws_request_id, ask.branch),
            remaining_s=lambda: float(context.get_remaining_time_in_millis()) / 1000,
            notice=own.log.notice,
            about=own.log.about,
        )
    except (TransientError, WaitError) as again:
        own.log.notice("called_again", branch=ask.branch, how=type(again).__name__, reason=str(again))
        raise
    except Exception:
        own.log.crashed("branch_error", branch=ask.branch, job_id=ask.job_id)
        raise TransientError("BRANCH_ERROR") from None  # its own text may quote what no history should keep
