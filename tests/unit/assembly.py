"""A bench for jobs that are made of several tasks: started, worked on branch by branch, collected; all with fakes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.batch import Desk
from lambdas.core.execution import Try
from lambdas.core.job import Job
from lambdas.core.tasks import Context, Task, most_tries
from lambdas.core.times import after
from lambdas.core.workflows.branching import Branching, run
from lambdas.core.workflows.collecting import Collecting, collect
from lambdas.core.workflows.hearing import Hearing, hear
from lambdas.core.workflows.parts import Part, all_open, parts_of
from lambdas.core.workflows.starting import Starter
from lambdas.core.workflows.told import Ask, TransientError, WaitError
from tests.builders import JOB_ID, TENANT, any_task, held_record
from tests.fakes import FakeModel, drawing
from tests.fakes_workflows import BRANCHES, WORKFLOW, FakeExecutions, any_workflow
from tests.unit.bench import Bench

NAME = ids.execution_name(JOB_ID, 0)
TRIES, WAITS = 3, 11  # as the state machine calls a branch: after a TransientError, after a WaitError

Run = Callable[[Any, Context], Any]


def asking(type_: str) -> Run:
    """A task of this type that asks the model one question of its own."""
    return lambda task_input, ctx: {"said": ctx.model.ask(f"{type_}: {task_input['text']}").text}


def raising(error: BaseException) -> Run:
    def run(task_input: Any, ctx: Context) -> Any:
        raise error

    return run


def started_record(*branches: str, **over: Any) -> dict[str, Any]:
    """A workflow's job whose execution runs, as the worker leaves it."""
    parts = {"parts": all_open(branches or BRANCHES), "parts_run": over.get("run", 0), "booked_by": {}}
    return held_record(**{"type": WORKFLOW, "run": 0, **parts, **over})


class Assembly(Bench):
    """`workflow`: the one that is deployed; each of its tasks asks the model, unless another is given."""

    def __init__(
        self,
        record: dict[str, Any] | None = None,
        *tasks: Task,
        workflow: Workflow | None = None,
        model: FakeModel | None = None,
        **more: Any,
    ) -> None:
        self.workflow = workflow or any_workflow()
        given: dict[str, Task] = {task.type: task for task in tasks}
        types = dict.fromkeys(branch.task for branch in self.workflow.branches)
        own = [given.pop(type_) if type_ in given else any_task(asking(type_), type_=type_) for type_ in types]
        names = [branch.name for branch in self.workflow.branches]
        super().__init__(record or started_record(*names), *own, *given.values(), model=model, **more)
        self.workflows = {self.workflow.type: self.workflow}
        self.executions = FakeExecutions(now=self.clock)
        self.invocations = itertools.count(1)
        self.lost: list[int] = []
        self.pauses: list[float] = []

    def desk(self, *, ends: Any = None) -> Desk:
        bound = most_tries(self.tasks, self.limits.retry)
        return Desk(self.worker, self.letters, ends or after(self.clock(), self.left_s), bound, self.starter)

    @property
    def starter(self) -> Starter:
        return Starter(self.workflows, self.executions)

    def start(self, job: Job | None = None) -> str:
        """What the worker does with a claimed job, as its record stands."""
        return self.starter.run(Try(job or self.job(), self.worker, lambda: self.left_s, self.notices))

    def branch(self, name: str, *, run_: int = 0, by: str | None = None) -> str:
        """One invocation."""
        answer = run(
            Ask(JOB_ID, run_, name),
            Branching(self.worker, self.workflows),
            by=by or f"invocation-{next(self.invocations)}",
            remaining_s=lambda: self.left_s,
            notice=self.notices,
            about=lambda job: None,
        )
        assert answer["branch"] == name
        return answer["state"]

    def collect(self, *, run_: int = 0) -> dict[str, Any]:
        desk = Collecting(self.store, self.results, self.workflows, self.limits, self.clock, self.notices)
        return collect(Ask(JOB_ID, run_), desk, lambda job: None, self.lost.append)

    def play(self, *, run_: int = 0) -> dict[str, Any]:
        """A whole execution: every branch called as often as its state machine would, then the collector."""
        for branch in self.workflow.branches:
            self.called_until_it_ends(branch.name, run_=run_)
        return self.collect(run_=run_)

    def called_until_it_ends(self, name: str, *, run_: int = 0) -> str:
        """How the branch ended for the state machine: what it returned, or the error that was caught."""
        tries, waits = 0, 0
        while True:
            try:
                return self.branch(name, run_=run_)
            except TransientError as error:
                tries, caught = tries + 1, error
            except WaitError as error:
                waits, caught = waits + 1, error  # type: ignore[assignment]
            if tries == TRIES or waits == WAITS:
                return f"{type(caught).__name__}: {caught}"

    def hear(self, **over: Any) -> str:
        """The bus tells that the execution has ended badly."""
        return hear(ended_event(**over), self.hearing, lambda job: None)

    @property
    def hearing(self) -> Hearing:
        return Hearing(
            self.store, self.executions, self.workflows, self.limits, self.clock, drawing(), self.notices,
            self.pauses.append,
        )  # fmt: skip

    def part(self, name: str) -> Part:
        return parts_of(self.job())[name]

    def result(self, *, run_: int = 0) -> Any:
        own = ids.run_results(TENANT, JOB_ID, run_)
        (body,) = [body for key, body in self.results.objects.items() if key.startswith(own)]
        return json.loads(body)

    @property
    def asked(self) -> list[str]:
        """The questions that the model has heard."""
        return [request.prompt for request in self.model.requests]


def ended_event(run_: int = 0, status: str = "FAILED", **detail: Any) -> dict[str, Any]:
    """As Step Functions tells the default bus."""
    name = ids.execution_name(JOB_ID, run_)
    return {
        "source": "aws.states",
        "detail-type": "Step Functions Execution Status Change",
        "detail": {
            "executionArn": f"arn:aws:states:us-east-1:111122223333:execution:Analyze:{name}",
            "stateMachineArn": "arn:aws:states:us-east-1:111122223333:stateMachine:Analyze",
            "name": name,
            "status": status,
            "input": json.dumps({"job": JOB_ID, "run": run_}),
            "inputDetails": {"included": True},
            "output": None,
            **detail,
        },
    }
