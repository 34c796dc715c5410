"""Stand-ins for what workflows need of the world: the executions of state machines, on a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from lambdas.contracts.workflows import Workflow, parse
from lambdas.core import ids, times
from lambdas.core.ports import Unavailable
from lambdas.core.sweeping.machines import Machines
from lambdas.core.times import Instant
from lambdas.core.workflows.ports import AlreadyExists, EndedBadly, Execution, Running
from tests.builders import JOB_ID, NOW, held_record, later
from tests.fakes import Trouble, Troubles

WORKFLOW = "analyze"
BRANCHES = ("summary", "entities", "flags")


def any_workflow(type_: str = WORKFLOW, branches: tuple[str, ...] = BRANCHES, **over: object) -> Workflow:
    """Its branches side by side; `over`: what its declaration says besides."""
    return parse(type_, {"description": "Tests.", "stages": [list(branches)], **over}, {"input": {"type": "object"}})


def parts(*states: str, branches: tuple[str, ...] = BRANCHES) -> dict[str, Any]:
    """What became of each of these branches; of those that are not named nothing did. Each a second after the other."""
    told: dict[str, Any] = {branch: {"state": "open"} for branch in branches}
    for n, (branch, state) in enumerate(zip(branches, states, strict=False)):
        why = {"error": {"code": "MODEL_PERMANENT", "message": "no"}} if state in ("failed", "again") else {}
        used = {"used": 1} if state == "again" else {}
        told[branch] = {"state": state, "by": f"try {n}", "at": times.text(later(n)), **used, **why}
    return told


def workflow_record(*states: str, **over: Any) -> dict[str, Any]:
    """A job whose workflow was prepared for its first run, and is held."""
    run = over.get("run", 0)
    return held_record(**{"type": WORKFLOW, "parts": parts(*states), "parts_run": run, "booked_by": {}, **over})


def name_of(pk: str = JOB_ID, run: int = 0) -> tuple[str, str]:
    """Which execution is this job's."""
    return WORKFLOW, ids.execution_name(pk, run)


class FakeExecutions:
    """The Executions port. `standing`: by (type, name), what is to be told of each; `types`: the machines that are
    deployed, None for any. Each call is kept, and has the troubles that are added under its name. `before`: called with
    the name of each call; what it raises, the caller feels, and nothing is done."""

    def __init__(
        self,
        types: tuple[str, ...] | None = None,
        now: Callable[[], datetime] = lambda: NOW,
        before: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.types, self.now, self.before = types, now, before
        self.standing: dict[tuple[str, str], Execution] = {}
        self.inputs: dict[tuple[str, str], str] = {}
        self.calls: list[tuple[str, str, str]] = []  # what, type, name
        self.troubles = Troubles()

    def start(self, type_: str, name: str, written_input: str) -> Instant:
        trouble = self._called("start", type_, name)
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, "start")
        found = self.standing.get((type_, name))
        if found is None:
            found = self.standing[type_, name] = Running(self.now())
            self.inputs[type_, name] = written_input
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "start")
        if isinstance(found, Running) and self.inputs.get((type_, name), written_input) == written_input:
            return found.since
        raise AlreadyExists(name)

    def describe(self, type_: str, name: str) -> Execution | None:
        trouble = self._called("describe", type_, name)
        if trouble:
            raise _raised(trouble, "describe")
        return self.standing.get((type_, name))

    def stop(self, type_: str, name: str, why: str) -> None:
        trouble = self._called("stop", type_, name)
        if trouble in (Trouble.REFUSED, Trouble.UNSENT):
            raise _raised(trouble, "stop")
        if isinstance(self.standing.get((type_, name)), Running):
            self.standing[type_, name] = EndedBadly("aborted")
        if trouble is Trouble.UNHEARD:
            raise _raised(trouble, "stop")

    def called(self, what: str) -> list[str]:
        """The names of the executions that were asked for so."""
        return [name for call, _, name in self.calls if call == what]

    def _called(self, what: str, type_: str, name: str) -> Trouble | None:
        self.calls.append((what, type_, name))
        self.before(what)
        if self.types is not None and type_ not in self.types:
            raise KeyError(type_)
        return self.troubles.take(what)


def machines(
    executions: FakeExecutions | None = None, *workflows: Workflow, draw: Callable[[], float] = lambda: 0.5
) -> Machines:
    """What a sweep asks: nothing is deployed unless it is named."""
    known: Mapping[str, Workflow] = {one.type: one for one in workflows}
    return Machines(executions or FakeExecutions(), known, draw)


def _raised(trouble: Trouble, what: str) -> Unavailable:
    return Unavailable(f"{what}: {trouble.value}", unknown=trouble is not Trouble.REFUSED)
