"""Deliveries to webhooks, which are not built yet: an item for each endpoint and event, under rows 2 to 7, 10 and 15.

The record of this world is such an item. It is created by the event of its job's end, which may come twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lambdas.contracts.names import COMPLETED, DUE_SHARD, HEARD
from lambdas.core import times
from lambdas.core.conditions import holds
from lambdas.core.routing import changed
from tests.builders import later
from tests.simulation.races import worker
from tests.simulation.races.ahead import RULES_AHEAD
from tests.simulation.races.law import Law, Store
from tests.simulation.races.outside import dispatcher, platform, sweep
from tests.simulation.races.record import Rec, accepted, written
from tests.simulation.races.state import FAULTS, HELD, IDLE, State, Step
from tests.simulation.races.world import World, repeats, time

TOLD_AGAIN = "a delivery makes its job's end be told again"

NOT_YET = Rec("NOT YET")
ENDED = Rec(COMPLETED, 1, 1, 1, due=120, shard=True, ended=0, expires=True, result="r")


def create(store: Store) -> str:
    """The item is put if none is there: `delivery#<endpoint>#<event id>` is the same for every copy of the event."""
    there = None if store.rec == NOT_YET else store.record
    if not holds(store.law.rules["accept"].condition, there, {}):
        return "there already"
    store.put("accept", {**accepted(), "body_sha": "life 0"}, -1)
    return "created"


@dataclass
class Deliveries(World):
    """`more`: copies of the event that are under way."""

    def start(self) -> State:
        budget = tuple(self.faults.get(name, 0) for name in FAULTS)
        return State(NOT_YET, budget, more=(("event", ""),))

    def steps(self, s: State) -> Iterator[Step]:
        yield from _events(self, s)
        if s.rec != NOT_YET:
            for actor in (dispatcher, _workers, sweep, platform, repeats, time):
                yield from actor(self, s)

    def is_end(self, s: State) -> bool:
        return super().is_end(s) and not s.more


def _events(world: World, s: State) -> Iterator[Step]:
    if not s.more:
        return
    ran = world.law.run(create, s.rec)
    yield from world.after(f"the event comes: the delivery is {ran.said}", s._replace(more=s.more[1:]), ran)
    if s.left("dup"):
        yield Step("the event comes twice", s._replace(more=(*s.more, s.more[0]), budget=s.spent("dup")), fault=True)


def _workers(world: World, s: State) -> Iterator[Step]:
    """A try is a request to the endpoint; it has the event's id, by which a second one is known as such."""
    free = next((w for w in s.workers if w.phase == IDLE), None)
    if free is not None:
        for message in set(s.queue):
            yield from worker.receives(world, s, free, message)
    for w in s.workers:
        if w.phase != HELD:
            continue
        for verdict, fault in (("done", ""), ("failed", "fail"), ("permanent", "permanent")):
            if not fault or s.left(fault):
                for step in worker.ends(world, s, w, verdict, fault=fault):
                    yield _noted(world, step)
        if s.left("crash"):
            yield from worker.crashes(world, s, w)


def _noted(world: World, step: Step) -> Step:
    """By a wrong rule each try is kept in the record of the job, which is final and would be due again."""
    if "on the job" not in world.law.flags:
        return step
    old = written(ENDED)
    new = {**old, "not_before": times.text(later(30))}
    told = changed(old, new) and new["status"] in HEARD and DUE_SHARD in new
    return step._replace(wrong=TOLD_AGAIN if told else step.wrong)


def world(faults: Mapping[str, int], **more: object) -> Deliveries:
    law = Law(**{"rules": RULES_AHEAD, **more})  # type: ignore[arg-type]
    return Deliveries(law, faults)
