"""Deliveries to webhooks: an item for each endpoint and event, under rows 1 to 8 and 15.

The record of this world is such an item. It is created by the event of its job's end, which may come twice; it has two
tries left. `attempts` has its workers, `post` what is done to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lambdas.contracts.names import COMPLETED, FAILED, FINAL, OPEN
from lambdas.core.protocol import RULES
from lambdas.core.webhooks.schedule import TRIES_MAX
from tests.simulation.races import post, properties, record
from tests.simulation.races.attempts import neighbours, workers
from tests.simulation.races.delivery_record import NOT_YET, PostLaw
from tests.simulation.races.law import Ran, Write
from tests.simulation.races.outside import platform
from tests.simulation.races.record import NONE, Rec
from tests.simulation.races.state import FAULTS, POST, Message, Reader, State, Step, Worker
from tests.simulation.races.world import World, repeats, time

UNTAKEN = "said to be delivered, and nobody has taken it"
FAULTS_OF_IT = (
    "crash", "dup", "loss", "drop", "fail", "permanent", "put off", "deadline", "slow", "unheard", "ghost", *POST,
)  # fmt: skip


@dataclass
class Deliveries(World):
    """`more`: copies of the event that are under way. `told`: (taken, opening), what its endpoint has."""

    attempts: int = 5

    def start(self) -> State:
        budget = tuple(self.faults.get(name, 0) for name in FAULTS)
        return State(NOT_YET, budget, more=(("event", ""),))

    def steps(self, s: State) -> Iterator[Step]:
        yield from _events(self, s)
        if s.rec != NOT_YET:
            for actor in (_dispatcher, workers, _sweep, _humans, neighbours, platform, repeats, time):
                yield from actor(self, s)

    def is_end(self, s: State) -> bool:
        return s.rec.status in (COMPLETED, FAILED) and s.rec.due == NONE and not s.more

    def tidy(self, s: State) -> State:
        taken = frozenset(one for one in s.told if one[1] == s.rec.run)
        return s._replace(told=taken, workers=tuple(sorted(s.workers)))

    def _wrong(self, s: State, ran: Ran, found: State, by: Worker | None) -> str:
        for write in ran.writes:
            if wrong := next((name for name, check in CHECKS.items() if check(write)), ""):
                return wrong
            if self._evicts(s, write.before, write.after, write.rule, by):
                return properties.EVICTED
            if write.rule == "complete" and (post.TAKEN, write.after.run) not in s.told:
                return UNTAKEN
        return ""


def _overwritten(write: Write) -> bool:
    old = write.before.status
    return old in FINAL and write.rule != "reopen"


def _undue(write: Write) -> bool:
    return write.after.status in OPEN and (write.after.due == NONE or not write.after.shard)


CHECKS: dict[str, properties.Check] = {
    properties.OVERWRITTEN: _overwritten,
    properties.UNDUE: _undue,
    properties.STILL_DUE: lambda w: w.after.status in FINAL and (w.after.due != NONE or w.after.shard),
    properties.EXPIRES: lambda w: w.after.expires == (w.after.status in OPEN),
    properties.TOO_MANY_TRIES: lambda w: not 0 <= w.after.tries <= TRIES_MAX,
    properties.GIVEN_UP: lambda w: w.rule == "expire" and w.before.tries < TRIES_MAX and w.before.deadline > 0,
    properties.TOO_LATE: lambda w: w.rule == "claim" and w.before.deadline <= 0,
    properties.TOO_EARLY: lambda w: w.rule in ("claim", "leave") and not w.before.held and w.before.not_before > 1,
    properties.REUSED: lambda w: (
        w.before != NOT_YET and w.after.attempt - w.before.attempt != (w.rule in ("claim", "reopen"))
    ),
}


# --- from the event to a hint ----------------------------------------------------------------------------


def _events(world: World, s: State) -> Iterator[Step]:
    if not s.more:
        return
    ran = world.law.run(post.plan, s.rec)
    yield from world.after(f"the event comes: {ran.said}", s._replace(more=s.more[1:]), ran)
    if s.left("crash"):
        killed = s._replace(budget=s.spent("crash"))
        yield from world.after("planned, and killed", killed, ran)
    if s.left("dup"):
        yield Step("the event comes twice", s._replace(more=(*s.more, s.more[0]), budget=s.spent("dup")), fault=True)


def _dispatcher(world: World, s: State) -> Iterator[Step]:
    if not s.stream:
        return
    image, rest = s.stream[0], s._replace(stream=s.stream[1:])
    yield from world.after("dispatched", rest, world.law.run(post.dispatch, s.rec, _whole(image)))
    if s.left("loss"):
        yield Step("a stream record is lost", rest._replace(budget=s.spent("loss")), fault=True)


def _whole(image: Rec) -> Rec:
    """As much of an image as a dispatcher looks at, as a record that can be read."""
    return image._replace(deadline=record.SOON["deadline"], due=record.SOON["due"])


def _sweep(world: World, s: State) -> Iterator[Step]:
    if not s.rec.shard or s.rec.due >= 0 or "no sweep" in world.law.flags:
        return
    ran = world.law.run(post.sweep, s.rec)
    if any(Message(*hint) not in s.queue for hint in ran.hints) or not ran.hints:
        yield from world.after("sweep", s, ran)
    if s.left("crash"):
        for lives in range(1, ran.calls):
            killed = world.law.run(post.sweep, s.rec, lives=lives)
            yield from world.after("sweep, and killed", s, killed, fault="crash", heard=False)
    if s.left("slow") and world.can_read(s):
        slow = world.reads(s._replace(budget=s.spent("slow")), Reader("sweep", s.rec))
        yield Step("a slow sweep reads", slow, fault=True)


def _humans(world: World, s: State) -> Iterator[Step]:
    """Whoever wants it once more, and slow sweeps, act on what they have read."""
    if s.left("redeliver") and world.can_read(s):
        asked = world.reads(s._replace(budget=s.spent("redeliver")), Reader("redeliver", s.rec))
        yield Step("somebody wants it once more, and reads", asked, fault=True)
    for reader in s.readers:
        others = list(s.readers)
        others.remove(reader)
        act = post.sweep if reader.what == "sweep" else post.redeliver
        ran = world.law.run(act, s.rec, seen=reader.seen)
        yield from world.after(f"{reader.what}: {ran.said}", s._replace(readers=tuple(others)), ran)


def world(faults: Mapping[str, int], **more: object) -> Deliveries:
    weak = bool(more.pop("weak", False))
    law = PostLaw(**{"rules": RULES, **more})  # type: ignore[arg-type]
    return Deliveries(law, faults, weak=weak)
