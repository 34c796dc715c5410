"""The world of one job: what each actor may do next. Every order of it is possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from lambdas.contracts.names import DELETED, FAILED, OPEN
from lambdas.core import ids
from lambdas.core.protocol import RULES
from tests.builders import TENANT
from tests.simulation.races import acts, properties
from tests.simulation.races.law import Law, Ran
from tests.simulation.races.record import JOB, NONE, PAST, Rec, accepted, read
from tests.simulation.races.state import (
    FAULTS,
    IDLE,
    STORED,
    Message,
    Pending,
    Reader,
    State,
    Step,
    Worker,
)

STREAM_MAX, READERS_MAX = 4, 2
# they end the work itself, whoever holds the job
OVERRULE = ("cancel", "collect", "fall_short", "run_again", "give_up")
KNOWN_AGAIN = {name for name, rule in RULES.items() if rule.effect is not None}
ENDS = ("complete", "retry", "park", "fail", "book_late")


@dataclass
class World:
    """`weak`: a worker may outlive its lease (a frozen sandbox); else the platform kills it before. `prompt`: there is
    a clock, and nobody dawdles. `attempts`: what comes after so many is not looked at."""

    law: Law = field(default_factory=Law)
    faults: Mapping[str, int] = field(default_factory=dict)
    weak: bool = False
    prompt: bool = False
    attempts: int = 4
    queue_max: int = 3
    actors: tuple[Callable[[World, State], Iterator[Step]], ...] = ()

    def start(self) -> State:
        rec = read(accepted(), self.law.clock)
        budget = tuple(self.faults.get(name, 0) for name in FAULTS)
        return State(rec, budget, stream=(Rec("PENDING", shard=True, due=0),))

    def steps(self, s: State) -> Iterator[Step]:
        for actor in self.actors:
            yield from actor(self, s)

    def may(self, fault: str) -> bool:
        return self.faults.get(fault, 0) > 0

    def beyond(self, s: State) -> bool:
        """Not gone on with: more attempts than the model has numbers for."""
        return s.rec.attempt > self.attempts

    def is_end(self, s: State) -> bool:
        return properties.is_settled(s.rec)

    def outlasts(self, s: State) -> bool:
        """Whether something else than a worker holds the job for as long as its lease says."""
        return False

    def can_read(self, s: State) -> bool:
        return len(s.readers) < READERS_MAX

    def reads(self, s: State, reader: Reader) -> State:
        return s._replace(readers=tuple(sorted((*s.readers, reader))))

    # --- what a run of the core leads to ---------------------------------------------------------------

    def after(
        self,
        label: str,
        s: State,
        ran: Ran,
        *,
        fault: str = "",
        by: Worker | None = None,
        wrong: str = "",
        heard: bool = True,
    ) -> Iterator[Step]:
        """The state after a run, and the same once more for each way in which its writes can come twice.
        `s`: with everything changed already that is not the run's own doing. `by`: the worker that acted."""
        if fault:
            s = s._replace(budget=s.spent(fault))
        found = self._after(s, ran)
        if found is None:
            return  # a queue is full: somebody else first
        wrong = wrong or self._wrong(s, ran, found, by)
        yield Step(label, found, wrong, bool(fault))
        if s.pending is None and ran.writes:
            yield from self._twice(label, found, ran, by, heard)

    def _twice(self, label: str, s: State, ran: Ran, by: Worker | None, heard: bool) -> Iterator[Step]:
        write = ran.writes[-1]
        if write.rule == "accept":
            return
        held, cost = (by.job, by.cost) if by and write.rule in ENDS else (Worker().job, 0)
        pending = Pending(write.number, write.rule, write.after, True, held, cost)
        if s.left("unheard") and heard:
            yield Step(f"{label}, unheard", s._replace(pending=pending, budget=s.spent("unheard")), fault=True)
        if s.left("ghost"):
            ghost = pending._replace(heard=False, held=Worker().job, cost=0, after=Worker().job)
            yield Step(f"{label}, and late again", s._replace(pending=ghost, budget=s.spent("ghost")), fault=True)

    def _after(self, s: State, ran: Ran) -> State | None:
        queue = (*s.queue, *(Message(*hint) for hint in ran.hints))
        stream = (*s.stream, *ran.images)
        if (ran.hints and len(queue) > self.queue_max) or (ran.images and len(stream) > STREAM_MAX):
            return None
        letters = s.letters
        if self.may("redrive"):
            letters = tuple(sorted({*s.letters, *(Message(*letter) for letter in ran.letters)}))
        told = s.told | set(ran.told) | {("letter", attempt) for _, attempt in ran.letters}
        reopened = any(write.rule == "reopen" for write in ran.writes)
        return self.tidy(
            s._replace(
                rec=ran.rec, queue=tuple(sorted(queue)), stream=stream, letters=letters, told=told,
                called=s.called and not reopened,
            )
        )  # fmt: skip

    def tidy(self, s: State) -> State:
        """Without what nobody will ever look at again: states that differ in nothing else are one."""
        rec = s.rec
        told = frozenset(one for one in s.told if one[1] == rec.attempt and one[0] in (rec.status, "letter"))
        names = {rec.result} | {self.result_key(w.job) for w in s.workers if w.phase == STORED}
        stored = tuple(one for one in s.stored if one[0] in names)
        return s._replace(told=told, stored=stored, workers=tuple(sorted(s.workers)))

    def result_key(self, job: Rec) -> str:
        return "one" if "one result per job" in self.law.flags else ids.result_key(TENANT, JOB, job.attempt)

    # --- what must hold --------------------------------------------------------------------------------

    def _wrong(self, s: State, ran: Ran, found: State, by: Worker | None) -> str:
        for write in ran.writes:
            if wrong := properties.broken_by(write):
                return wrong
            if self._evicts(s, write.before, write.after, write.rule, by):
                return properties.EVICTED
            if write.rule in ("hand_over", "delete") and not self._is_told(s, ran, write.before):
                return properties.UNTOLD
        return ""

    def _evicts(self, s: State, before: Rec, after: Rec, rule: str, by: Worker | None) -> bool:
        gone = not after.held or (after.attempt, after.claim) != (before.attempt, before.claim)
        if not before.held or before.lease <= 0 or not gone or rule in OVERRULE:
            return False
        return any(
            w.phase != IDLE and w != by and (w.job.attempt, w.job.claim) == (before.attempt, before.claim)
            for w in s.workers
        )

    def _is_told(self, s: State, ran: Ran, rec: Rec) -> bool:
        told = s.told | set(ran.told) | {("letter", attempt) for _, attempt in ran.letters}
        wanted = [(rec.status, rec.attempt)] + ([("letter", rec.attempt)] if rec.status == FAILED else [])
        return rec.status == DELETED or all(one in told for one in wanted)


def holder(s: State) -> bool:
    """Whether whoever claimed the record last is alive."""
    return any(w.phase != IDLE and w.job.claim == s.rec.claim for w in s.workers)


def replaced(s: State, old: Worker, new: Worker) -> State:
    workers = list(s.workers)
    workers[workers.index(old)] = new
    return s._replace(workers=tuple(workers))


def without(messages: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
    left = list(messages)
    left.remove(message)
    return tuple(left)


# --- time, and what comes again --------------------------------------------------------------------------


def time(world: World, s: State) -> Iterator[Step]:
    """Instants come, one at a time and in any order, but for what the platform promises: no holder outlives its lease,
    and an answer's window ends with its caller's invocation."""
    rec = s.rec
    if rec.not_before > 0 and rec.status in OPEN:
        yield Step("its time comes", s._replace(rec=rec._replace(not_before=PAST)))
    if rec.due > 0:
        yield Step("due", s._replace(rec=rec._replace(due=PAST)))
    if rec.lease > 0 and (world.weak or not holder(s)) and not world.outlasts(s):
        rows = tuple(row._replace(over=True) if row.by == rec.claim else row for row in s.rows)
        yield Step("the lease ends", s._replace(rec=rec._replace(lease=PAST), rows=rows))
    if s.left("deadline") and rec.deadline > 0 and rec.due != NONE:
        late = rec._replace(deadline=PAST)
        yield Step("the deadline passes", s._replace(rec=late, budget=s.spent("deadline")), fault=True)
    yield from _windows(s, world.weak)


def _windows(s: State, weak: bool) -> Iterator[Step]:
    alive = {w.job.claim for w in s.workers if w.phase != IDLE}
    for row in s.rows:
        if row.status == "open" and not row.over and (weak or row.by not in alive):
            rows = tuple(other._replace(over=True) if other == row else other for other in s.rows)
            yield Step("the window of a call ends", s._replace(rows=rows))


def repeats(world: World, s: State) -> Iterator[Step]:
    """A write comes once more: sent again by the SDK, whose caller waits, or late out of the network."""
    pending = s.pending
    if pending is None:
        return
    bare = s._replace(pending=None)
    ran = world.law.again(s.rec, pending.number)
    label = f"{pending.rule} comes again: {ran.said}"
    twice = any(write.booked for write in ran.writes)
    wrong = properties.PAID_TWICE if twice else ""
    if not pending.heard:
        yield from world.after(label, bare, ran, wrong=wrong)
        return
    if ran.said == "own" and not properties.as_written(pending.rule, s.rec, pending.after):
        wrong = properties.MISTAKEN
    if ran.said == "refused" and s.rec == pending.after and pending.rule in KNOWN_AGAIN:
        wrong = properties.NOT_RECOGNISED
    if ran.said == "refused" and pending.rule in ENDS[:4]:
        late = world.law.run(acts.book_late, s.rec, pending.held, pending.cost)
        wrong = wrong or (properties.PAID_TWICE if any(write.booked for write in late.writes) else "")
        yield from world.after(label, bare, late, wrong=wrong)
        return
    yield from world.after(label, bare, ran, wrong=wrong)
