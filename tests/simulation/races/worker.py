"""The workers: from a message to a claim, a paid answer, a stored result and the write that ends the try."""

from __future__ import annotations

from collections.abc import Iterator

from lambdas.contracts.names import FAILED
from lambdas.core.asking import answer_key
from lambdas.core.job import from_record
from lambdas.core.ports import ModelRequest
from tests.simulation.races import acts, properties
from tests.simulation.races.law import Ran
from tests.simulation.races.state import (
    ANSWERED,
    CALLED,
    HELD,
    IDLE,
    STORED,
    Message,
    Reader,
    Row,
    State,
    Step,
    Worker,
)
from tests.simulation.races.world import World, replaced, without

QUESTION = ModelRequest("m", "", "Q", 1, None)


def workers(world: World, s: State) -> Iterator[Step]:
    free = next((w for w in s.workers if w.phase == IDLE), None)
    if free is not None:
        for message in {message for message in s.queue if message.in_s == 0}:
            yield from receives(world, s, free, message)
    for w in s.workers:
        if w.phase != IDLE:
            yield from PHASES[w.phase](world, s, w)
            if s.left("crash"):
                yield from crashes(world, s, w)


# --- messages ------------------------------------------------------------------------------------------


def receives(world: World, s: State, free: Worker, message: Message) -> Iterator[Step]:
    acked = s._replace(queue=without(s.queue, message))
    if message.kind == "letter":
        if world.can_read(s):
            yield Step("a letter is read", world.reads(acked, Reader("letter", s.rec, message.attempt)))
        return
    ran = world.law.run(acts.claim, s.rec, message.attempt)
    if message.kind == "outdated":
        yield Step("an older message is dropped", acked)
    elif s.rec.status == FAILED and "any message reopens" in world.law.flags:
        ran = world.law.run(acts.reopen_by_letter, s.rec, s.rec.attempt)
        yield from world.after("an ordinary message reopens", acked, ran, wrong=properties.ORDINARY)
    elif ran.said == "claimed":
        yield from _claims(world, acked, free, message, ran)
    elif ran.said != "early":
        yield from world.after(f"a message is {ran.said}", acked, ran)
    if s.left("put off"):
        ran = world.law.run(acts.put_off, s.rec, message.attempt)
        if ran.said != "early":
            yield from world.after("no time left to start", acked, ran, fault="put off")


def _claims(world: World, s: State, free: Worker, message: Message, ran: Ran) -> Iterator[Step]:
    claimed = any(write.rule == "claim" for write in ran.writes)
    wrong = "" if claimed else properties.NOT_HELD
    job = ran.rec if claimed else ran.rec._replace(claim=acts.next_claim(s.rec))
    held = Worker(HELD, job, message)
    yield from world.after("claim", replaced(s, free, held), ran, by=held, wrong=wrong)


def crashes(world: World, s: State, w: Worker) -> Iterator[Step]:
    back = (*s.queue, w.message) if len(s.queue) < world.queue_max else s.queue
    gone = replaced(s, w, Worker())._replace(queue=tuple(sorted(back)), budget=s.spent("crash"))
    yield Step(f"crash when {WORDS[w.phase]}", world.tidy(gone), fault=True)


# --- the try -------------------------------------------------------------------------------------------


def key_of(world: World, w: Worker) -> str:
    """The real key of the answer; a flag gives that of a simpler rule."""
    job = w.job._replace(run=0) if "samples are shared" in world.law.flags else w.job
    return str(world.law.derived(_answer_key, job))


def _answer_key(record: object) -> str:
    return answer_key(from_record(record), QUESTION, shared=True)[:8]  # type: ignore[arg-type]


def _row(s: State, key: str) -> Row | None:
    return next((row for row in s.rows if row.key == key), None)


def _put(s: State, row: Row) -> State:
    return s._replace(rows=tuple(sorted([other for other in s.rows if other.key != row.key] + [row])))


def _free(world: World, s: State, w: Worker) -> State:
    """A failed call frees its row."""
    key = key_of(world, w)
    mine = "rows have no holder" in world.law.flags
    rows = tuple(
        row for row in s.rows if row.key != key or not (mine or (row.by == w.job.claim and row.status == "open"))
    )
    return s._replace(rows=rows)


def _asks(world: World, s: State, w: Worker) -> Iterator[Step]:
    key = key_of(world, w)
    row = _row(s, key)
    if row is not None and row.status == "done":
        wrong = "" if key in s.kept else properties.SERVED_AGAIN
        yield Step("reuse", replaced(s, w, w._replace(phase=ANSWERED, value=row.by)), wrong)
    elif row is None or row.over:
        wrong = properties.CALLED_AGAIN if key in s.kept else ""
        called = w._replace(phase=CALLED, value=w.job.claim, cost=1)
        asked = _put(replaced(s, w, called), Row(key, "open", w.job.claim))
        yield Step("CALL", world.tidy(asked._replace(called=world.may("reject"))), wrong)
    else:
        yield from ends(world, s, w, "pending")
    if s.left("stall"):
        yield from ends(world, s, w, "not ready", fault="stall")


def _called(world: World, s: State, w: Worker) -> Iterator[Step]:
    key = key_of(world, w)
    row = _row(s, key)
    has = replaced(s, w, w._replace(phase=ANSWERED))
    mine = row is not None and row.by == w.job.claim and row.status == "open"
    if mine or "rows have no holder" in world.law.flags:
        yield Step("save", world.tidy(_put(has, Row(key, "done", w.job.claim))._replace(kept=s.kept | {key})))
    else:
        yield Step("save, fenced out", world.tidy(has))
    freed = _free(world, s, w)
    if s.left("fail"):
        yield from ends(world, freed, w._replace(cost=0), "failed", fault="fail", was=w)
    if s.left("waste"):
        yield from ends(world, freed, w, "throttled", fault="waste", wasted=True)
    if s.left("unusable"):
        yield from ends(world, freed, w, "unusable", fault="unusable")


def _answered(world: World, s: State, w: Worker) -> Iterator[Step]:
    if "completed before it is stored" in world.law.flags:
        yield from _completes(world, s, w)
        return
    key = world.result_key(w.job)
    stored = {**dict(s.stored), key: w.value}
    wrong = ""
    if s.rec.status == "COMPLETED" and s.rec.result == key and stored != dict(s.stored):
        wrong = properties.CHANGED_RESULT
    put = replaced(s, w, w._replace(phase=STORED))._replace(stored=tuple(sorted(stored.items())))
    yield Step("the result is stored", world.tidy(put), wrong)
    if s.left("reject"):
        yield from _rejects(world, s, w)
    if s.left("permanent"):
        yield from ends(world, s, w, "permanent", fault="permanent")


def _rejects(world: World, s: State, w: Worker) -> Iterator[Step]:
    """First the record; then its row, if it still holds that answer. A kill in between leaves the row."""
    for step in ends(world, s, w, "rejected", fault="reject"):
        recorded = step.state.rec != s.rec
        failed = step.state.rec.status == FAILED
        wrong = properties.STALE_ANSWER if recorded and failed and not s.called else ""
        if recorded and w.job.sample == 0 and "rejected answers stay" not in world.law.flags:
            if step.state.left("crash"):
                yield step._replace(
                    label="rejected, and killed", state=step.state._replace(budget=step.state.spent("crash"))
                )
            yield step._replace(state=_forget(world, step.state, w), wrong=step.wrong or wrong)
        else:
            kept = step.state.kept - {key_of(world, w)} if recorded else step.state.kept
            yield step._replace(state=step.state._replace(kept=kept), wrong=step.wrong or wrong)


def _forget(world: World, s: State, w: Worker) -> State:
    key = key_of(world, w)
    rows = tuple(row for row in s.rows if row != Row(key, "done", w.value, row.over))
    return s._replace(rows=rows, kept=s.kept - {key})


def _completes(world: World, s: State, w: Worker) -> Iterator[Step]:
    there = dict(s.stored).get(world.result_key(w.job)) == w.value
    for step in ends(world, s, w, "done"):
        lacks = step.state.rec.status == "COMPLETED" != s.rec.status and not there
        yield step._replace(wrong=step.wrong or (properties.NO_RESULT if lacks else ""))


def ends(
    world: World, s: State, w: Worker, verdict: str, *, fault: str = "", wasted: bool = False, was: Worker | None = None
) -> Iterator[Step]:
    ran = world.law.run(acts.end, s.rec, w.job, verdict, w.cost, wasted)
    booked = sum(write.booked for write in ran.writes)
    mine = (s.rec.attempt, s.rec.claim) == (w.job.attempt, w.job.claim)
    wrong = ""
    if ran.writes and s.rec.life != w.job.life:
        wrong = properties.STRANGE_RESULT
    elif ran.said in acts.ENDS.values() and not ran.writes:
        wrong = properties.MISTAKEN
    elif mine and w.cost > booked:
        wrong = properties.UNPAID
    elif wasted and ran.writes and ran.rec.tries < s.rec.tries:
        wrong = properties.REFUNDED
    done = replaced(s, was or w, Worker())
    yield from world.after(f"{verdict}: {ran.said}", done, ran, fault=fault, by=w, wrong=wrong)


PHASES = {HELD: _asks, CALLED: _called, ANSWERED: _answered, STORED: _completes}
WORDS = {HELD: "claimed", CALLED: "called", ANSWERED: "answered", STORED: "stored"}
