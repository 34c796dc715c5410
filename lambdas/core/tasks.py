"""What a task is: a function and its declaration. A folder under `lambdas/tasks` is the whole plug-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.validation import Check
from lambdas.core.asking import AskingModel, Reuse
from lambdas.core.policy import RetryPolicy
from lambdas.core.ports import Mailer

DECLARATION = "__task__"


@dataclass(frozen=True)
class Context:
    """What a task is given beside its input."""

    job_id: str
    tenant: str
    attempt: int
    model: AskingModel
    """`model.ask(…)`: one question after the other. Where a job's text is streamed, the answers are shown in this order
    while they are said, but for `show=False` (core/asking.py)."""
    fetch: Callable[[str], bytes]
    """`fetch(key)`: bytes of `context/<tenant>/<key>` in the inputs bucket; NotReady when they are not there (yet)."""
    effect: Callable[..., Any]
    """`effect(name, payload, fn, once=False)`: `fn(payload, key)` on a recorded intent (core/effects.py)."""
    mail: Mailer
    """`mail.send(to=, subject=, text=, key=)`: e-mail, where the deployment has a sender; inside an effect, please."""
    remaining_s: Callable[[], float]
    log: Callable[..., None]
    """`log("message", field=1)`: a line that carries this job's ids. No inputs, answers or secrets, please."""


Run = Callable[[Any, Context], Any]


@dataclass(frozen=True)
class Declaration:
    """What the decorator was told. `retry` None: the deployment's own policy."""

    type: str
    retry: RetryPolicy | None
    reuse: Reuse


def task(type_: str, *, retry: RetryPolicy | None = None, reuse: Reuse = "tenant") -> Callable[[Run], Run]:
    """Declares a function as the task of this type: `@task("summarize", retry=RetryPolicy(max_attempts=5))`.

    `reuse="job"`: answers of the model are not shared with the tenant's other jobs."""
    declaration = Declaration(type_, retry, reuse)

    def declare(run: Run) -> Run:
        setattr(run, DECLARATION, declaration)
        return run

    return declare


@dataclass(frozen=True)
class Task:
    """A task ready to run: its function, its declaration, and the checks made from its schema.json."""

    declaration: Declaration
    run: Run
    check_input: Check
    check_output: Check

    @property
    def type(self) -> str:
        return self.declaration.type


Tasks = Mapping[str, Task]


def policy_of(task: Task | None, default: RetryPolicy) -> RetryPolicy:
    """The task's own policy, or the deployment's."""
    return (task.declaration.retry if task else None) or default


def most_tries(tasks: Tasks, default: RetryPolicy) -> int:
    """The claim cannot know the type yet: it is bounded by the most patient task; then the job's own task decides."""
    return max([default.max_attempts, *(policy_of(task, default).max_attempts for task in tasks.values())])
