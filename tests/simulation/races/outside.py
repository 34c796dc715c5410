"""Everybody else: dispatcher, sweep, tenant and operator, and a platform that repeats and loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, OPEN
from tests.simulation.races import acts
from tests.simulation.races.law import Ran
from tests.simulation.races.properties import MISTAKEN, NOT_READ, REFUSED
from tests.simulation.races.record import NONE, Rec
from tests.simulation.races.state import Message, Reader, State, Step
from tests.simulation.races.world import World, without

Requests = dict[str, tuple[Callable[..., str], tuple[str, ...]]]
REQUESTS: Requests = {
    "cancel": (acts.cancel, OPEN),
    "retry": (acts.retry, (FAILED, CANCELLED)),
    "delete": (acts.delete, (COMPLETED, FAILED, CANCELLED)),
}
DONE = {"cancel": (CANCELLED,), "retry": OPEN, "delete": (DELETED,)}  # what stands when it is done already


def dispatcher(world: World, s: State) -> Iterator[Step]:
    if not s.stream:
        return
    image, rest = s.stream[0], s._replace(stream=s.stream[1:])
    ran = world.law.run(acts.dispatch, s.rec, image)
    label = f"{image.status} is dispatched"
    yield from world.after(label, rest, ran)
    if s.left("crash"):
        for lives in range(1, ran.calls):
            killed = world.law.run(acts.dispatch, s.rec, image, lives=lives)
            yield from world.after(f"{label}, and killed", s, killed, fault="crash", heard=False)
    if s.left("loss"):
        yield Step("a stream record is lost", rest._replace(budget=s.spent("loss")), fault=True)


def sweep(world: World, s: State) -> Iterator[Step]:
    """It looks only at what is due. `slow`: at what was, by a read that is some time old."""
    if s.rec.shard and s.rec.due < 0 and "no sweep" not in world.law.flags:
        ran = world.law.run(acts.sweep, s.rec)
        if world.prompt or not useless(s, ran.hints):
            yield from world.after("sweep", s, ran)
        if s.left("crash"):
            for lives in range(1, ran.calls):
                killed = world.law.run(acts.sweep, s.rec, lives=lives)
                yield from world.after("sweep, and killed", s, killed, fault="crash", heard=False)
        if s.left("slow") and world.can_read(s):
            slow = world.reads(s._replace(budget=s.spent("slow")), Reader("sweep", s.rec))
            yield Step("a slow sweep reads", slow, fault=True)


def useless(s: State, hints: tuple[tuple[str, int], ...]) -> bool:
    """One more copy of a message that is there: `dup` has that, and in any number it would fill every queue."""
    return bool(hints) and all(Message(*hint) in s.queue for hint in hints)


def readers(world: World, s: State) -> Iterator[Step]:
    """Requests of the tenant, and whoever acts on what was read: each reads, and writes some time later."""
    for what, (_, states) in REQUESTS.items():
        if s.left(what) and world.can_read(s) and s.rec.status in states:
            asked = world.reads(s._replace(budget=s.spent(what)), Reader(what, s.rec))
            yield Step(f"{what} reads", asked, fault=True)
    if s.left("resubmit"):
        yield from world.after("the same key again", s, world.law.run(acts.accept, s.rec), fault="resubmit")
    for reader in s.readers:
        if reader.what in REQUESTS or reader.what in ("letter", "sweep"):
            yield from _acts(world, s, reader)


def _acts(world: World, s: State, reader: Reader) -> Iterator[Step]:
    others = list(s.readers)
    others.remove(reader)
    free = s._replace(readers=tuple(others))
    if reader.what == "letter":
        ran = world.law.run(acts.reopen_by_letter, s.rec, reader.attempt, seen=reader.seen)
    elif reader.what == "sweep":
        ran = world.law.run(acts.sweep, s.rec, seen=reader.seen)
    else:
        ran = world.law.run(REQUESTS[reader.what][0], s.rec, seen=reader.seen)
    for step in world.after(f"{reader.what}: {ran.said}", free, ran):
        yield step._replace(wrong=step.wrong or _misunderstood(reader, s.rec, ran))


def _misunderstood(reader: Reader, before: Rec, ran: Ran) -> str:
    """Undone for another end than the one that was read; or answered as if it were done, or could not be."""
    if reader.what in ("letter", "retry", "delete") and ran.writes:
        asked = reader.attempt if reader.what == "letter" else reader.seen.attempt
        return NOT_READ if asked != before.attempt else ""
    if ran.said == "done" and not ran.writes and ran.rec.status not in DONE[reader.what]:
        return MISTAKEN
    if ran.said == "refused" and reader.seen == before and before.status in REQUESTS[reader.what][1]:
        return "" if reader.what == "delete" and before.due != NONE else REFUSED
    return ""


def platform(world: World, s: State) -> Iterator[Step]:
    for message in set(s.queue):
        if s.left("dup") and len(s.queue) < world.queue_max:
            twice = tuple(sorted((*s.queue, message)))
            yield Step("a message comes twice", s._replace(queue=twice, budget=s.spent("dup")), fault=True)
        if s.left("drop"):
            letters = tuple(sorted({*s.letters, message})) if world.may("redrive") else ()
            gone = s._replace(queue=without(s.queue, message), letters=letters, budget=s.spent("drop"))
            yield Step("a message dies", gone, fault=True)
    if s.left("redrive") and len(s.queue) < world.queue_max:
        for letter in s.letters:
            back = s._replace(
                queue=tuple(sorted((*s.queue, letter))), letters=without(s.letters, letter), budget=s.spent("redrive")
            )
            yield Step("a letter is redriven", back, fault=True)
