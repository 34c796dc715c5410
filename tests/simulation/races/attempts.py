"""The workers of a delivery: from a hint to a claim, a place, a call, and the write that says what came of it.

The one place there is may be another delivery's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lambdas.contracts.names import COMPLETED, DUE_SHARD, HEARD
from lambdas.core import times
from lambdas.core.routing import changed
from tests.builders import later
from tests.simulation.races import post, record
from tests.simulation.races.record import Rec
from tests.simulation.races.state import ANSWERED, CALLED, HELD, IDLE, STORED, Message, Row, State, Step, Worker
from tests.simulation.races.world import World, replaced, without

TOLD_AGAIN = "a delivery makes its job's end be told again"
CALLED_LATER = "an endpoint is called by whoever began after it had taken it"
CROWDED = "more attempts at once than an endpoint has places"
KEPT_FOR_EVER = "a place is not free though its time is over"

PLACE, OTHERS = "place", -1  # whose a place is: a claim's, or another delivery's
BUSY, LAPSES = "busy", "open"  # somebody is in it; whoever was in it is dead, and its lease runs out


# --- places ----------------------------------------------------------------------------------------------


def _place(s: State) -> Row | None:
    return next((row for row in s.rows if row.key == PLACE), None)


def _row(world: World, row: Row | None) -> Mapping[str, object] | None:
    if row is None:
        return None
    return post.place_row(row.by, over=row.over and "a place is no lease" not in world.law.flags)


def neighbours(world: World, s: State) -> Iterator[Step]:
    """Another delivery of this endpoint: it takes the place, and leaves it or dies in it."""
    row = _place(s)
    if s.left("busy") and post.enters(_row(world, row), OTHERS):
        taken = s._replace(rows=(Row(PLACE, BUSY, OTHERS),), budget=s.spent("busy"))
        yield Step("another delivery takes the place", taken, fault=True)
    if row == Row(PLACE, BUSY, OTHERS):
        yield Step("the other one leaves the place", s._replace(rows=()))
        if s.left("crash"):
            dead = s._replace(rows=(Row(PLACE, LAPSES, OTHERS),), budget=s.spent("crash"))
            yield Step("the other one dies in its place", dead, fault=True)


def _enters(world: World, s: State, w: Worker) -> Iterator[Step]:
    row = _place(s)
    if post.enters(_row(world, row), w.job.claim) or "places are not counted" in world.law.flags:
        inside = any(other.phase == CALLED for other in s.workers) or (row is not None and row.status == BUSY)
        mine = s._replace(rows=(Row(PLACE, BUSY, w.job.claim),))
        in_it = replaced(mine, w, w._replace(phase=CALLED))
        yield Step("it takes a place", world.tidy(in_it), CROWDED if inside and not world.weak else "")
    else:
        for step in _writes(world, s, w, "busy"):
            yield step._replace(wrong=KEPT_FOR_EVER if row is not None and row.over else step.wrong)


def _leaves(world: World, s: State, w: Worker) -> Iterator[Step]:
    row = _place(s)
    free = row is not None and post.leaves(_row(world, row), w.job.claim)
    left = s._replace(rows=()) if free else s
    yield Step("it leaves its place", world.tidy(replaced(left, w, Worker())))


# --- attempts --------------------------------------------------------------------------------------------


def workers(world: World, s: State) -> Iterator[Step]:
    free = next((w for w in s.workers if w.phase == IDLE), None)
    if free is not None:
        for message in set(s.queue):
            yield from _receives(world, s, free, message)
    for w in s.workers:
        if w.phase != IDLE:
            yield from PHASES[w.phase](world, s, w)
            if s.left("crash"):
                yield _killed(world, s, w)


def _receives(world: World, s: State, free: Worker, message: Message) -> Iterator[Step]:
    acked = s._replace(queue=without(s.queue, message))
    ran = world.law.run(post.claim, s.rec, message.attempt)
    if ran.said == "claimed":
        held = Worker(HELD, ran.rec, message, cost=int(s.rec.status == COMPLETED))
        yield from world.after("claim", replaced(acked, free, held), ran, by=held)
    elif ran.said != "early":
        yield from world.after("a hint is acknowledged", acked, ran)
    if s.left("put off"):
        ran = world.law.run(post.claim, s.rec, message.attempt, 1)
        if ran.said != "early":
            yield from world.after("no time left to start", acked, ran, fault="put off")


def _calls(world: World, s: State, w: Worker) -> Iterator[Step]:
    """What its endpoint does. An answer that is lost: it has it all the same."""
    wrong = CALLED_LATER if w.cost else ""
    for came, fault in ((post.TAKEN, ""), (post.LATER, "fail"), (post.GONE, "permanent"), (post.LOST, "answer lost")):
        if fault and not s.left(fault):
            continue
        value = COMES.index(came)
        called = replaced(s, w, w._replace(phase=ANSWERED, value=value))
        if came in (post.TAKEN, post.LOST) and "written before it is sent" not in world.law.flags:
            called = called._replace(told=s.told | {(post.TAKEN, w.job.run)})
        if fault:
            called = called._replace(budget=s.spent(fault))
        yield Step(f"POST: {came}", world.tidy(called), wrong, bool(fault))


def _settles(world: World, s: State, w: Worker) -> Iterator[Step]:
    yield from _writes(world, s, w, COMES[w.value])


def _writes(world: World, s: State, w: Worker, came: str) -> Iterator[Step]:
    ran = world.law.run(post.end, s.rec, w.job, came)
    after = Worker() if came == "busy" else w._replace(phase=STORED)
    for step in world.after(f"{came}: {ran.said}", replaced(s, w, after), ran, by=after):
        yield _noted(world, step)


def _killed(world: World, s: State, w: Worker) -> Step:
    back = (*s.queue, w.message) if len(s.queue) < world.queue_max else s.queue
    rows = tuple(row._replace(status=LAPSES) if row.by == w.job.claim else row for row in s.rows)
    dead = replaced(s, w, Worker())._replace(queue=tuple(sorted(back)), rows=rows, budget=s.spent("crash"))
    return Step(f"killed, {WORDS[w.phase]}", world.tidy(dead), fault=True)


COMES = (post.TAKEN, post.LATER, post.GONE, post.LOST)
PHASES = {HELD: _enters, CALLED: _calls, ANSWERED: _settles, STORED: _leaves}
WORDS = {HELD: "claimed", CALLED: "before the POST", ANSWERED: "behind the POST", STORED: "with its place"}


def _noted(world: World, step: Step) -> Step:
    """By a wrong rule each try is kept in the record of the job, which is final and would be due again."""
    if "on the job" not in world.law.flags:
        return step
    ended = Rec(COMPLETED, 1, 1, 1, due=120, shard=True, ended=0, expires=True, result="r")
    old = record.written(ended)
    new = {**old, "not_before": times.text(later(30))}
    told = changed(old, new) and new["status"] in HEARD and DUE_SHARD in new
    return step._replace(wrong=TOLD_AGAIN if told else step.wrong)
