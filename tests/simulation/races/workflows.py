"""Rows 13 and 14: a job whose work is an execution of a state machine, named by the run: nobody starts two.

Its branches are worked on at once, each try from what it has read; `assembling` has what is done to the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lambdas.contracts.names import CANCELLED, DELETED, FAILED, OPEN, PENDING, PROCESSING
from lambdas.core.conditions import both, equal
from lambdas.core.protocol import RULES, THIS_RUN, Rule
from tests.simulation.races import assembling, outside, properties, worker
from tests.simulation.races.assembling import BRANCHES, COLLECTED, ENDED_BADLY, REFUSED, RUNNING, STOPPED
from tests.simulation.races.law import Law, Ran, Write
from tests.simulation.races.outside import platform, readers
from tests.simulation.races.record import LONG, Rec
from tests.simulation.races.state import ANSWERED, CALLED, HELD, IDLE, WORK, Limb, Reader, State, Step, Worker
from tests.simulation.races.world import World, repeats, replaced, time

TWO_AT_ONCE = "two executions of one opening run at once"
DONE_AND_FAILED = "a job fails though an execution has done its work"
UNHEEDED = "a job is given up while its execution runs"
FOREIGN_LEASE = "the lease of one claim is written over another's"
OTHER_RUN = "a job is completed by an execution of another run"
UNDONE = "what a branch has come to is forgotten"
PAID_AGAIN = "a part is paid for though it is stored"
FOR_NOTHING = "a branch that is done is told to try again"
NOBODYS = "a branch writes into a run that nobody has prepared"
CUT_SHORT = "a job is reaped or run again while its execution runs"

FAULTS_OF_IT = (
    "crash", "dup", "loss", "drop", "cancel", "retry", "delete", "redrive", "fail", "permanent", "put off", "deadline",
    "slow", "unheard", "ghost", *WORK,
)  # fmt: skip

OVER = ("done", "failed")
NOT_TAKEN = "was refused, its work done"  # how an execution is that has done it for nothing


@dataclass
class Workflows(World):
    """Workers start executions; `more` has them, by name, and `limbs` their branches. Retry and redrive begin another
    opening. `names`: its branches."""

    names: tuple[str, ...] = BRANCHES[:1]

    def steps(self, s: State) -> Iterator[Step]:
        for actor in (_dispatcher, _workers, _machine, _branches, _sweep, readers, _slow, platform, _again, time):
            for step in actor(self, s):
                failed = step.state.rec.status == FAILED != s.rec.status and NOT_TAKEN in dict(step.state.more).values()
                yield step._replace(wrong=step.wrong or (DONE_AND_FAILED if failed else ""))

    def outlasts(self, s: State) -> bool:
        return s.rec.lease >= LONG and self.find(s, s.rec) == RUNNING

    def is_end(self, s: State) -> bool:
        return super().is_end(s) and not s.limbs and all(how != RUNNING for _, how in s.more)

    def name(self, rec: Rec) -> str:
        return f"{rec.attempt if 'named by attempt' in self.law.flags else rec.run}"

    def find(self, s: State, rec: Rec) -> str:
        found = dict(s.more).get(self.name(rec), "")
        return REFUSED if found == NOT_TAKEN else found

    def same_opening(self) -> bool:
        return not any(self.faults.get(fault) for fault in ("retry", "redrive", "delete", "resubmit"))

    def _wrong(self, s: State, ran: Ran, found: State, by: Worker | None) -> str:
        for write in ran.writes:
            if _forgets(write):
                return UNDONE
            if write.rule == "part" and (write.before.work is None or write.before.work.run != write.before.run):
                return NOBODYS
            runs = self.find(found, write.before) == RUNNING and write.before.deadline > 0
            if runs and write.rule == "expire":
                return UNHEEDED
            if runs and write.rule in ("reap", "run_again", "give_up"):
                return CUT_SHORT
        return super()._wrong(s, ran, found, by)


def _forgets(write: Write) -> bool:
    """In one run: what is done stays done."""
    old, new = write.before.work, write.after.work
    if old is None or new is None or old.run != new.run:
        return False
    now = {name: state for name, state, _ in new.parts}
    return any(state in OVER and now.get(name) != state for name, state, _ in old.parts)


def _set(s: State, name: str, how: str) -> State:
    """Tries that are at work go on when their execution is over; none is begun."""
    limbs = s.limbs if how == RUNNING else tuple(one for one in s.limbs if one.execution != name or one.at_work)
    return s._replace(more=tuple(sorted({**dict(s.more), name: how}.items())), limbs=limbs)


# --- the worker ----------------------------------------------------------------------------------------


def _workers(world: Workflows, s: State) -> Iterator[Step]:
    free = next((w for w in s.workers if w.phase == IDLE), None)
    if free is not None:
        for message in set(s.queue):
            yield from worker.receives(world, s, free, message)
    for w in s.workers:
        if w.phase == HELD:
            yield from _prepares(world, s, w)
        elif w.phase == CALLED:
            yield from _starts(world, s, w)
        elif w.phase == ANSWERED:
            ran = world.law.run(assembling.follow, s.rec, w.job, RUNNING, world.names)
            foreign = ran.writes and s.rec.claim != w.job.claim
            wrong = FOREIGN_LEASE if foreign else ""
            yield from world.after(f"its lease: {ran.said}", replaced(s, w, Worker()), ran, by=w, wrong=wrong)
        if w.phase != IDLE and s.left("crash"):
            yield from worker.crashes(world, s, w)


def _prepares(world: Workflows, s: State, w: Worker) -> Iterator[Step]:
    if w.job.work and w.job.work.run == w.job.run:
        yield Step("it is prepared", replaced(s, w, w._replace(phase=CALLED)))
        return
    ran = world.law.run(assembling.prepare, s.rec, w.job, world.names)
    next_ = w._replace(phase=CALLED) if ran.said == "prepared" else Worker()
    yield from world.after(f"the run is {ran.said}", replaced(s, w, next_), ran, by=w)


def _starts(world: Workflows, s: State, w: Worker) -> Iterator[Step]:
    """`ExecutionAlreadyExists` is no success by itself: what became of it is asked."""
    name, started = world.name(w.job), replaced(s, w, w._replace(phase=ANSWERED))
    match dict(s.more).get(name):
        case None:
            limbs = (*started.limbs, *(Limb(name, w.job.run, branch) for branch in world.names))
            running = _set(started._replace(limbs=tuple(sorted(limbs))), name, RUNNING)
            yield Step(f"execution {name} starts", world.tidy(running), _repeated(world, s))
        case "running":
            yield Step(f"execution {name} is there", world.tidy(started))
        case _:
            how = world.find(s, w.job)
            ran = world.law.run(assembling.follow, s.rec, w.job, how, world.names)
            yield from world.after(f"execution {name} {how}: {ran.said}", replaced(s, w, Worker()), ran, by=w)


def _repeated(world: Workflows, s: State) -> str:
    if not world.same_opening():
        return ""
    return TWO_AT_ONCE if RUNNING in dict(s.more).values() else ""


# --- the branches --------------------------------------------------------------------------------------


def _branches(world: Workflows, s: State) -> Iterator[Step]:
    """The SDK's repeat is over in a second: that in this very second the same branch of the next run writes, too, is
    left out. It would book a cost twice."""
    if s.pending and s.pending.heard and s.pending.rule in ("part", "late_part"):
        return
    for limb in s.limbs:
        yield from _ends(world, s, limb) if limb.at_work else _tries(world, s, limb)


def _limb(s: State, limb: Limb, new: Limb | None) -> State:
    left = [other for other in s.limbs if other != limb]
    return s._replace(limbs=tuple(sorted([*left, *([new] if new else [])])))


def _tries(world: Workflows, s: State, limb: Limb) -> Iterator[Step]:
    """It reads the record, looks for what is stored, and pays if there is nothing."""
    work = s.rec.work
    is_open = s.rec.status in (PENDING, PROCESSING) and work is not None and work.run == s.rec.run == limb.run
    state, seen = next(((how, by) for name, how, by in (work.parts if work else ()) if name == limb.name), ("", ""))
    if not is_open or state in OVER:
        yield Step(f"branch {limb.by} has nothing to do", _limb(s, limb, None))
        return
    stored = limb.name in s.kept
    pays = not stored or "does not look at what is stored" in world.law.flags
    wrong = PAID_AGAIN if pays and stored else ""
    at_work = limb._replace(at_work=True, seen=seen, cost=int(pays))
    yield Step(f"branch {limb.by} is tried", _limb(s, limb, at_work), wrong)


def _ends(world: Workflows, s: State, limb: Limb) -> Iterator[Step]:
    stored = s._replace(kept=s.kept | {limb.name})
    yield from _writes(world, stored, limb, "done")
    if s.left("fail"):
        yield from _writes(world, s, limb, "again", "fail")
    if s.left("permanent"):
        yield from _writes(world, s, limb, "failed", "permanent")
    if s.left("crash"):
        gone = _next(stored, limb)
        yield Step(f"branch {limb.by} is killed", gone._replace(budget=s.spent("crash")), fault=True)


def _writes(world: Workflows, s: State, limb: Limb, state: str, fault: str = "") -> Iterator[Step]:
    ran = world.law.run(assembling.record, s.rec, limb, state)
    after = _next(s, limb) if ran.said == "again" else _limb(s, limb, None)
    lost = sum(write.booked for write in ran.writes) < limb.cost and ran.rec.status != DELETED
    wrong = properties.UNPAID if lost else FOR_NOTHING if (state, ran.said) == ("done", "again") else ""
    yield from world.after(f"branch {limb.by} {state}: {ran.said}", after, ran, fault=fault, wrong=wrong)


def _next(s: State, limb: Limb) -> State:
    """Step Functions calls it again, if the execution goes on."""
    runs = dict(s.more).get(limb.execution) == RUNNING
    return _limb(s, limb, Limb(limb.execution, limb.run, limb.name, limb.tries + 1) if runs else None)


# --- the state machine ---------------------------------------------------------------------------------


def _machine(world: Workflows, s: State) -> Iterator[Step]:
    for name, how in s.more:
        if how == RUNNING:
            if all(limb.execution != name for limb in s.limbs):
                yield from _collects(world, s, name)
            if s.left("execution fails"):
                failed = _set(s, name, ENDED_BADLY)._replace(budget=s.spent("execution fails"))
                yield Step(f"execution {name} ends badly", failed, fault=True)
        elif how in (ENDED_BADLY, STOPPED) and s.rec.held and name == world.name(s.rec):
            ran = world.law.run(assembling.hear, s.rec, s.rec.run, how, world.names)
            yield from world.after(f"the end of {name} is heard: {ran.said}", s, ran)
            if s.left("slow") and world.can_read(s):
                slow = world.reads(s._replace(budget=s.spent("slow")), Reader(f"hear {how}", s.rec, s.rec.run))
                yield Step(f"the end of {name} is heard, and the record read", slow, fault=True)


def _collects(world: Workflows, s: State, name: str, seen: Rec | None = None, run: int | None = None) -> Iterator[Step]:
    """Refused is success: somebody else has ended the job. Refused by an open job is an execution for nothing."""
    run = run if run is not None else s.rec.run if "named by attempt" in world.law.flags else int(name)
    ran = world.law.run(assembling.collect, s.rec, run, world.names, seen=seen)
    for_nothing = ran.said == REFUSED and s.rec.status in OPEN and run == s.rec.run
    mistaken = properties.MISTAKEN if ran.said == COLLECTED and run != s.rec.run else ""
    wrong = OTHER_RUN if ran.writes and run != s.rec.run else mistaken
    done = _set(s, name, NOT_TAKEN if for_nothing else ran.said)
    yield from world.after(f"execution {name}: {ran.said}", done, ran, wrong=wrong)
    if seen is None and s.left("crash") and ran.writes:
        killed = s._replace(budget=s.spent("crash"))
        yield from world.after(f"execution {name}: {ran.said}, and killed", killed, ran, wrong=wrong, heard=False)
    if seen is None and s.left("slow") and world.can_read(s):
        slow = world.reads(s._replace(budget=s.spent("slow")), Reader(f"collect {name}", s.rec, run))
        yield Step(f"execution {name} collects, and has read the record", slow, fault=True)


def _slow(world: Workflows, s: State) -> Iterator[Step]:
    """Those that have read some time ago."""
    for reader in s.readers:
        what, _, of = reader.what.partition(" ")
        others = list(s.readers)
        others.remove(reader)
        free = s._replace(readers=tuple(others))
        if what == "collect":
            if dict(s.more).get(of) == RUNNING:
                yield from _collects(world, free, of, reader.seen, reader.attempt)
            else:
                yield Step("the collector was stopped", free)
        elif what == "hear":
            ran = world.law.run(assembling.hear, s.rec, reader.attempt, of, world.names, seen=reader.seen)
            yield from world.after(f"an end is heard late: {ran.said}", free, ran)
        elif what == "swept":
            ran = world.law.run(assembling.sweep, s.rec, reader.attempt, of, world.names, seen=reader.seen)
            foreign = s.rec.run != reader.attempt and any(write.rule == "extend" for write in ran.writes)
            yield from world.after("a slow sweep", free, ran, wrong=FOREIGN_LEASE if foreign else "")


def _dispatcher(world: Workflows, s: State) -> Iterator[Step]:
    """A cancelled job's execution is stopped: a side effect of the image."""
    if not s.stream or s.stream[0].status != CANCELLED or not (how := world.find(s, s.stream[0])):
        yield from outside.dispatcher(world, s)
        return
    image, rest = s.stream[0], s._replace(stream=s.stream[1:])
    prepared = image._replace(prepared=(assembling.prepared(image.run),))
    ran = world.law.run(assembling.dispatch, s.rec, prepared, how)
    stopped = _set(rest, world.name(image), STOPPED) if ran.said == "stopped" and how == RUNNING else rest
    yield from world.after(f"CANCELLED is dispatched: {ran.said}", stopped, ran)
    if s.left("loss"):
        yield Step("a stream record is lost", rest._replace(budget=s.spent("loss")), fault=True)


# --- the sweep -----------------------------------------------------------------------------------------


def _sweep(world: Workflows, s: State) -> Iterator[Step]:
    rec = s.rec
    if not (rec.shard and rec.due < 0) or rec.status not in OPEN:
        yield from outside.sweep(world, s)
        return
    how = world.find(s, rec)
    ran = world.law.run(assembling.sweep, rec, rec.run, how, world.names)
    if not outside.useless(s, ran.hints):
        yield from world.after("sweep", s, ran)
    if s.left("crash"):
        for lives in range(1, ran.calls):
            killed = world.law.run(assembling.sweep, rec, rec.run, how, world.names, lives=lives)
            yield from world.after("sweep, and killed", s, killed, fault="crash", heard=False)
    if s.left("slow") and world.can_read(s):
        slow = world.reads(s._replace(budget=s.spent("slow")), Reader(f"swept {how}", rec, rec.run))
        yield Step("a slow sweep reads", slow, fault=True)


# --- what comes again ----------------------------------------------------------------------------------


def _again(world: Workflows, s: State) -> Iterator[Step]:
    pending = s.pending
    if pending is None or pending.rule not in ("part", "late_part"):
        yield from repeats(world, s)
        return
    ran = world.law.again(s.rec, pending.number)
    wrong = properties.PAID_TWICE if any(write.booked for write in ran.writes) else ""
    if pending.heard and ran.said == "refused" and s.rec.status != DELETED:
        wrong = properties.NOT_RECOGNISED
    yield from world.after(f"{pending.rule} comes again: {ran.said}", s._replace(pending=None), ran, wrong=wrong)


def world(faults: Mapping[str, int], **more: object) -> Workflows:
    return Workflows(Law(**more), faults)  # type: ignore[arg-type]


def pair(faults: Mapping[str, int], **more: object) -> Workflows:
    """Of two branches at once."""
    return Workflows(Law(**more), faults, names=BRANCHES)  # type: ignore[arg-type]


def processing_alone() -> Mapping[str, Rule]:
    """The collector's condition as it was at first."""
    only = equal("status", PROCESSING)
    return {**RULES, "collect": replace(RULES["collect"], condition=both(only, THIS_RUN))}
