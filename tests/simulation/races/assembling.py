"""What the functions of a workflow do to the record: the core's own, with the model's store and executions behind."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.asking import Bill
from lambdas.core.canonical import canonical
from lambdas.core.dispatching import dispatch as core_dispatch
from lambdas.core.execution import Try
from lambdas.core.job import from_record
from lambdas.core.ports import Applied
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import Stuck
from lambdas.core.workflows import changes, following, told
from lambdas.core.workflows.collecting import Collecting
from lambdas.core.workflows.collecting import collect as core_collect
from lambdas.core.workflows.hearing import Hearing
from lambdas.core.workflows.hearing import hear as core_hear
from lambdas.core.workflows.parts import Part
from lambdas.core.workflows.ports import EndedBadly, Execution, Running, Succeeded
from lambdas.core.workflows.recording import recorded
from tests.builders import NOW
from tests.fakes import FakeObjects, FakeTurn, FakeWorkers
from tests.fakes_workflows import FakeExecutions, any_workflow, machines
from tests.simulation.races.acts import WHY
from tests.simulation.races.law import Store
from tests.simulation.races.record import JOB, LIMITS, LONG, MAX_TRIES, Rec, Work
from tests.simulation.races.state import Limb

TYPE = "summarize"  # of every job of the model
BRANCHES = ("a", "b")
RUNNING, COLLECTED, SHORT, REFUSED = "running", "collected", "has fallen short", "was refused"
ENDED_BADLY, STOPPED = "ended badly", "stopped"
WORKFLOWS: dict[tuple[tuple[str, ...], int], Workflow] = {
    (names, runs): any_workflow(TYPE, names, timeout_s=LONG, max_runs=runs)
    for names in (BRANCHES[:1], BRANCHES)
    for runs in (1, 2)
}
TOLD: dict[str, Execution] = {
    RUNNING: Running(NOW),
    COLLECTED: Succeeded(canonical(told.completed("k", 1, False))),
    SHORT: Succeeded(canonical(told.failed(WHY))),
    REFUSED: Succeeded(canonical(told.refused())),
    ENDED_BADLY: EndedBadly("timed out"),
    STOPPED: EndedBadly("aborted"),
}


class _Stored(FakeObjects):
    """Whatever is asked for is there."""

    def get(self, key: str) -> bytes:
        return b"{}"


def _workflow(store: Store, names: tuple[str, ...]) -> Workflow:
    return WORKFLOWS[names, 1 if "one run" in store.law.flags else 2]


def executions(run: int, how: str) -> FakeExecutions:
    """`how`: what became of this run's, empty for one that was never started."""
    found = FakeExecutions()
    if how:
        found.standing[TYPE, ids.execution_name(JOB, run)] = TOLD[how]
    return found


def prepare(store: Store, held: Rec, names: tuple[str, ...]) -> str:
    change = changes.prepare(from_record(store.law.record(held)), names)
    return "prepared" if isinstance(store.apply(JOB, change), Applied) else "fenced out"


def follow(store: Store, held: Rec, how: str, names: tuple[str, ...]) -> str:
    """Of a claim that has found its execution: adopted, or ended as it has ended."""
    job, found = from_record(store.law.record(held)), TOLD[how]
    if isinstance(found, Running):
        change = changes.adopt(job, now=NOW, lease=changes.lease_of(found.since, LONG))
    else:
        change = following.ended(
            job, found, workflow=_workflow(store, names), now=NOW, draw=lambda: 0.5, limits=LIMITS
        )  # fmt: skip
    return change.rule.name if isinstance(store.apply(JOB, change), Applied) else "fenced out"


def record(store: Store, limb: Limb, state: str) -> str:
    """What became of one try of a branch."""
    standing, branch, run, seen, cost = store.record, limb.name, limb.run, limb.seen, limb.cost
    before = {**standing.get("parts", {}), branch: {"state": "open", **({"by": seen} if seen else {})}}
    job = from_record({**standing, "status": "PENDING", "run": run, "parts_run": run, "parts": before})
    worker = cast("Any", SimpleNamespace(store=store, now=lambda: NOW))
    attempt = Try(job, worker, lambda: 9, lambda *a, **k: None, Bill(cost=cost, calls=cost))
    return recorded(attempt, branch, Part(state, limb.by, NOW, cost, "s" if state == "done" else "", error=WHY))


def collect(store: Store, run: int, names: tuple[str, ...]) -> str:
    desk = Collecting(store, _Stored(), {TYPE: _workflow(store, names)}, LIMITS, lambda: NOW, lambda *a, **k: None)
    answer = core_collect(told.Ask(JOB, run), desk, lambda job: None, lambda number: None)
    return {"COMPLETED": COLLECTED, "FAILED": SHORT}.get(answer["status"], REFUSED)


def hear(store: Store, run: int, how: str, names: tuple[str, ...]) -> str:
    """The bus tells that it ended badly."""
    desk = Hearing(
        store,
        executions(run, how),
        {TYPE: _workflow(store, names)},
        LIMITS,
        lambda: NOW,
        lambda: 0.5,
        lambda *a, **k: None,
        lambda seconds: None,
    )
    detail = {"name": ids.execution_name(JOB, run), "input": json.dumps({"job": JOB, "run": run})}
    return core_hear({"detail": detail}, desk, lambda job: None)


def dispatch(store: Store, image: Rec, how: str) -> str:
    standing = executions(image.run, how)
    core_dispatch(
        [from_record(store.law.record(image))], now=NOW, outbox=store, store=store, executions=standing,
        notice=lambda *a, **k: None,
    )  # fmt: skip
    return "stopped" if any(what == "stop" for what, *_ in standing.calls) else "sent"


def sweep(store: Store, run: int, how: str, names: tuple[str, ...]) -> str:
    """It asks what became of the execution before it takes a job for dead."""
    known = () if "the sweep does not describe" in store.law.flags else (_workflow(store, names),)
    Stuck(
        store=store, outbox=store, queue=store, limits=LIMITS, now=lambda: NOW, max_tries=lambda job: MAX_TRIES,
        notice=lambda *a, **k: None, workers=FakeWorkers(), machines=machines(executions(run, how), *known),
    ).run(Report("sweep", "stuck"), FakeTurn())  # fmt: skip
    return "swept"


def prepared(run: int) -> Work:
    return Work(run, parts=(("a", "open", ""),))
