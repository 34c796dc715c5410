"""Rows 11 and 12: a try that asks people and waits for their decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lambdas.contracts.names import HEARD, PENDING, WAITING
from lambdas.core import times
from lambdas.core.job import Job, from_record, history_with
from lambdas.core.ports import Refused
from lambdas.core.protocol import Change
from tests.builders import NOW, later
from tests.simulation.races import outside, worker
from tests.simulation.races.ahead import ROWS, RULES_AHEAD
from tests.simulation.races.law import Law, Store
from tests.simulation.races.outside import platform, readers
from tests.simulation.races.record import JOB, LIMITS, Rec
from tests.simulation.races.state import HELD, Reader, State, Step, Worker
from tests.simulation.races.world import World, repeats, replaced, time

OTHER_QUESTION = "a decision answers another question than it was made for"
DAY_S = 86_400
EXPIRY_S = 3 * DAY_S


def _seen(job: Job) -> dict[str, object]:
    return {"seen_status": job.status, "seen_attempt": job.attempt}


def ask(store: Store, held: Rec) -> str:
    job = from_record(store.law.record(held))
    change = Change(
        ROWS["ask"],
        {"attempt": job.attempt, "claim_id": job.claim_id},
        sets={
            "status": WAITING,
            "due_at": times.text(later(LIMITS.grace_s)),
            "deadline_at": times.text(later(EXPIRY_S + DAY_S)),
            **history_with(job),
        },
        adds={"step": 1},
    )
    return "fenced out" if isinstance(store.apply(JOB, change), Refused) else "asks"


def tell(store: Store, image: Rec) -> str:
    """Everybody hears of the question; then nobody need look before it expires."""
    job = from_record(store.law.record(image))
    store.told.append((WAITING, job.attempt))
    store.apply(JOB, Change(ROWS["asked"], _seen(job), sets={"due_at": times.text(later(EXPIRY_S))}))
    return "told"


def decide(store: Store, step: int) -> str:
    """The state is read anew; the question is the one that was asked when the decision was made."""
    job = from_record(store.read(JOB) or {})
    change = Change(
        ROWS["decide"],
        {**_seen(job), "step": step},
        sets={
            "status": PENDING,
            "not_before": times.text(NOW),
            "due_at": times.text(min(later(LIMITS.grace_s), job.deadline_at)),
        },
    )
    if job.status != WAITING:
        return "too late"
    return "refused" if isinstance(store.apply(JOB, change), Refused) else "decided"


def law(**more: object) -> Law:
    return Law(**{"rules": RULES_AHEAD, "heard": (*HEARD, WAITING), **more})  # type: ignore[arg-type]


@dataclass
class Approvals(World):
    """Its tries may ask twice. What they ask is decided, sooner or later."""

    def steps(self, s: State) -> Iterator[Step]:
        for actor in (_dispatcher, _workers, _sweep, readers, _people, platform, repeats, time):
            yield from actor(self, s)


def _dispatcher(world: World, s: State) -> Iterator[Step]:
    if not s.stream or s.stream[0].status != WAITING:
        yield from outside.dispatcher(world, s)
        return
    image, rest = s.stream[0], s._replace(stream=s.stream[1:])
    yield from world.after("WAITING is dispatched", rest, world.law.run(tell, s.rec, image))
    if s.left("loss"):
        yield Step("a stream record is lost", rest._replace(budget=s.spent("loss")), fault=True)


def _workers(world: World, s: State) -> Iterator[Step]:
    yield from worker.workers(world, s)
    if s.left("ask"):
        for w in s.workers:
            if w.phase == HELD:
                ran = world.law.run(ask, s.rec, w.job)
                done = replaced(s, w, Worker())
                yield from world.after(f"needs a decision: {ran.said}", done, ran, fault="ask", by=w)


def _sweep(world: World, s: State) -> Iterator[Step]:
    waits = s.rec.status == WAITING and s.rec.due < 0 < s.rec.deadline
    if waits and "nobody asks again" not in world.law.flags:
        yield from world.after("the sweep asks again", s, world.law.run(tell, s.rec, s.rec))
    elif not waits:
        yield from outside.sweep(world, s)


def _people(world: World, s: State) -> Iterator[Step]:
    asked = s.rec.status == WAITING and (WAITING, s.rec.attempt) in s.told
    thinking = any(reader.what == "decide" for reader in s.readers)
    if asked and world.can_read(s) and (not thinking or s.left("dup")):
        more = s._replace(budget=s.spent("dup")) if thinking else s
        yield Step("somebody decides", world.reads(more, Reader("decide", s.rec, s.rec.step)), fault=thinking)
    for reader in s.readers:
        if reader.what == "decide":
            others = list(s.readers)
            others.remove(reader)
            free = s._replace(readers=tuple(others))
            yield from _decides(world, free, reader, None)
            yield from _decides(world, free, reader, reader.seen)


def _decides(world: World, s: State, reader: Reader, seen: Rec | None) -> Iterator[Step]:
    if seen is None and s.rec.status != WAITING:
        yield Step("decided too late", s)
        return
    ran = world.law.run(decide, s.rec, reader.attempt, seen=seen)
    wrong = OTHER_QUESTION if ran.writes and s.rec.step != reader.attempt else ""
    yield from world.after(f"the decision comes: {ran.said}", s, ran, wrong=wrong)


def world(faults: Mapping[str, int], **more: object) -> Approvals:
    return Approvals(law(**more), {"ask": 2, **faults})
