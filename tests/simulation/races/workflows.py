"""Rows 13 and 14: a job whose work is an execution of a state machine, named by the run: nobody starts two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, OPEN, PENDING, PROCESSING
from lambdas.core import times
from lambdas.core.changes import error
from lambdas.core.conditions import both, equal
from lambdas.core.job import from_record, history_with
from lambdas.core.ports import Applied
from lambdas.core.protocol import Change, Rule
from tests.builders import NOW, later
from tests.simulation.races import outside, worker
from tests.simulation.races.ahead import ROWS, RULES_AHEAD, THIS_RUN
from tests.simulation.races.law import Law, Ran, Store
from tests.simulation.races.outside import platform, readers
from tests.simulation.races.record import JOB, LIMITS, LONG, MAX_TRIES, Rec
from tests.simulation.races.state import CALLED, HELD, IDLE, State, Step, Worker
from tests.simulation.races.world import World, repeats, replaced, time

TWO_AT_ONCE = "two executions of one opening run at once"
DONE_AND_FAILED = "a job fails though an execution has done its work"
UNHEEDED = "a job is given up while its execution runs"
FOREIGN_LEASE = "the lease of one claim is written over another's"
OTHER_RUN = "a job is completed by an execution of another run"

RUNNING, SUCCEEDED, ENDED_BADLY, STOPPED = "running", "succeeded", "ended badly", "stopped"
NOT_TAKEN = "ended badly, its work done"


def adopt(store: Store, held: Rec) -> str:
    """The execution is killed before this lease ends: nobody need renew it."""
    job = from_record(store.law.record(held))
    fence = {"attempt": job.attempt, "claim_id": job.claim_id}
    sets = {"lease_until": times.text(later(LONG))}
    return _said(store.apply(JOB, Change(ROWS["adopt"], fence, sets=sets)), "adopted")


def extend(store: Store) -> str:
    """The sweep finds that it runs."""
    job = from_record(store.read(JOB) or {})
    seen = {"seen_status": job.status, "seen_attempt": job.attempt}
    sets = {"lease_until": times.text(later(LONG)), "due_at": times.text(min(later(LONG), job.deadline_at))}
    return _said(store.apply(JOB, Change(ROWS["extend"], seen, sets=sets)), "extended")


def collect(store: Store, run: int) -> str:
    job = from_record(store.record)
    sets = {"status": COMPLETED, "result_key": f"run {run}", **_ended(), **history_with(job)}
    return _said(store.apply(JOB, Change(ROWS["collect"], {"run": run}, sets=sets)), "collected")


def ended_badly(store: Store, run: int) -> str:
    """As an ordinary failure: again while there are tries, and under a new name."""
    job = from_record(store.record)
    params = {"run": run, "next_run": run + 1}
    if job.tries >= MAX_TRIES:
        sets = {"status": FAILED, "error": error("EXECUTION", ""), **_ended(), **history_with(job)}
        return _said(store.apply(JOB, Change(ROWS["give_up"], params, sets=sets, adds={"run": 1})), "given up")
    due = min(later(LIMITS.grace_s), job.deadline_at)
    sets = {"status": PENDING, "not_before": times.text(NOW), "due_at": times.text(due), **history_with(job)}
    change = Change(ROWS["run_again"], params, sets=sets, adds={"run": 1}, removes=("claim_id",))
    return _said(store.apply(JOB, change), "again")


def _ended() -> dict[str, object]:
    return {"finished_at": times.text(NOW), "expires_at": 1}


def _said(outcome: object, word: str) -> str:
    return word if isinstance(outcome, Applied) else "refused"


@dataclass
class Workflows(World):
    """Workers start executions; `more` has them, by name. Retry and redrive begin another opening."""

    def steps(self, s: State) -> Iterator[Step]:
        for actor in (_dispatcher, _workers, _machine, _sweep, readers, platform, repeats, time):
            for step in actor(self, s):
                failed = step.state.rec.status == FAILED != s.rec.status and NOT_TAKEN in dict(step.state.more).values()
                yield step._replace(wrong=step.wrong or (DONE_AND_FAILED if failed else ""))

    def outlasts(self, s: State) -> bool:
        return s.rec.lease >= LONG and self.find(s, s.rec) == RUNNING

    def is_end(self, s: State) -> bool:
        return super().is_end(s) and all(how != RUNNING for _, how in s.more)

    def name(self, rec: Rec) -> str:
        return f"{rec.attempt if 'named by attempt' in self.law.flags else rec.run}"

    def find(self, s: State, rec: Rec) -> str:
        return dict(s.more).get(self.name(rec), "")

    def same_opening(self) -> bool:
        return not any(self.faults.get(fault) for fault in ("retry", "redrive", "delete", "resubmit"))


def _set(s: State, name: str, how: str) -> State:
    return s._replace(more=tuple(sorted({**dict(s.more), name: how}.items())))


# --- the worker ----------------------------------------------------------------------------------------


def _workers(world: Workflows, s: State) -> Iterator[Step]:
    free = next((w for w in s.workers if w.phase == IDLE), None)
    if free is not None:
        for message in set(s.queue):
            yield from worker.receives(world, s, free, message)
    for w in s.workers:
        if w.phase == HELD:
            yield from _starts(world, s, w)
        elif w.phase == CALLED:
            ran = world.law.run(adopt, s.rec, w.job)
            foreign = ran.writes and s.rec.claim != w.job.claim
            wrong = FOREIGN_LEASE if foreign else ""
            yield from world.after(f"its lease: {ran.said}", replaced(s, w, Worker()), ran, by=w, wrong=wrong)
        if w.phase != IDLE and s.left("crash"):
            yield from worker.crashes(world, s, w)


def _starts(world: Workflows, s: State, w: Worker) -> Iterator[Step]:
    """`ExecutionAlreadyExists` is no success by itself: what became of it is asked."""
    name, started = world.name(w.job), replaced(s, w, w._replace(phase=CALLED))
    match dict(s.more).get(name):
        case None:
            yield Step(f"execution {name} starts", world.tidy(_set(started, name, RUNNING)), _repeated(world, s))
        case "running":
            yield Step(f"execution {name} is there", world.tidy(started))
        case "succeeded":
            yield from _finishes(world, replaced(s, w, Worker()), world.law.run(collect, s.rec, w.job.run), w)
        case _:
            yield from _finishes(world, replaced(s, w, Worker()), world.law.run(ended_badly, s.rec, w.job.run), w)


def _repeated(world: Workflows, s: State) -> str:
    if not world.same_opening():
        return ""
    return TWO_AT_ONCE if RUNNING in dict(s.more).values() else ""


def _finishes(world: Workflows, s: State, ran: Ran, by: Worker | None = None) -> Iterator[Step]:
    yield from world.after(f"the execution is described: {ran.said}", s, ran, by=by)


# --- the state machine ---------------------------------------------------------------------------------


def _machine(world: Workflows, s: State) -> Iterator[Step]:
    for name, how in s.more:
        if how == RUNNING:
            yield from _collects(world, s, name)
            if s.left("execution fails"):
                failed = _set(s, name, ENDED_BADLY)._replace(budget=s.spent("execution fails"))
                yield Step(f"execution {name} ends badly", failed, fault=True)
        elif how in (ENDED_BADLY, NOT_TAKEN) and name == world.name(s.rec):
            ran = world.law.run(ended_badly, s.rec, s.rec.run)
            yield from world.after(f"the end of {name} is heard: {ran.said}", s, ran)


def _collects(world: Workflows, s: State, name: str) -> Iterator[Step]:
    """Refused is success: somebody else has ended the job. A collector that an open job refuses fails its execution."""
    run = s.rec.run if "named by attempt" in world.law.flags else int(name)
    ran = world.law.run(collect, s.rec, run)
    refused = ran.said == "refused" and s.rec.status in OPEN and run == s.rec.run
    wrong = OTHER_RUN if ran.writes and run != s.rec.run else ""
    yield from world.after(
        f"execution {name}: {ran.said}", _set(s, name, NOT_TAKEN if refused else SUCCEEDED), ran, wrong=wrong
    )  # fmt: skip


def _dispatcher(world: Workflows, s: State) -> Iterator[Step]:
    """A cancelled job's execution is stopped: a side effect of the image."""
    for step in outside.dispatcher(world, s):
        image = s.stream[0]
        name = world.name(image)
        if image.status == CANCELLED and "is dispatched" in step.label and dict(s.more).get(name) == RUNNING:
            yield step._replace(state=_set(step.state, name, STOPPED))
        else:
            yield step


# --- the sweep -----------------------------------------------------------------------------------------


def _sweep(world: Workflows, s: State) -> Iterator[Step]:
    """It asks what became of the execution before it reaps or gives up."""
    rec = s.rec
    if not (rec.shard and rec.due < 0) or rec.status not in OPEN:
        yield from outside.sweep(world, s)
        return
    how = "" if "the sweep does not describe" in world.law.flags else world.find(s, rec)
    if how == RUNNING and rec.held:
        yield from world.after("the sweep finds it running", s, world.law.run(extend, rec))
    elif how == SUCCEEDED:
        yield from _finishes(world, s, world.law.run(collect, rec, rec.run))
    elif how in (ENDED_BADLY, NOT_TAKEN, STOPPED) and rec.held:
        yield from _finishes(world, s, world.law.run(ended_badly, rec, rec.run))
    else:
        running = world.find(s, rec) == RUNNING
        for step in outside.sweep(world, s):
            gone = running and step.state.rec.status == FAILED and rec.deadline > 0
            yield step._replace(wrong=step.wrong or (UNHEEDED if gone else ""))


def world(faults: Mapping[str, int], **more: object) -> Workflows:
    return Workflows(law(**more), {"execution fails": 1, **faults})


def law(**more: object) -> Law:
    return Law(**{"rules": RULES_AHEAD, **more})  # type: ignore[arg-type]


def processing_alone() -> Mapping[str, Rule]:
    """The collector's condition as it was at first."""
    only = equal("status", PROCESSING)
    rule = RULES_AHEAD["collect"]
    return {**RULES_AHEAD, "collect": replace(rule, condition=both(only, THIS_RUN))}
