"""The same world with a clock: everybody is prompt, the sweep comes at its period, and what that promises is measured.

Time passes when nobody has anything to do at this instant, and then up to the next instant that means anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lambdas.contracts.names import FAILED, FINAL, OPEN, PENDING
from tests.simulation.races import properties
from tests.simulation.races.law import Law
from tests.simulation.races.outside import dispatcher, platform, readers, sweep
from tests.simulation.races.record import INVOCATION_S, LIMITS, NONE, Rec, accepted, read
from tests.simulation.races.state import Message, State, Step
from tests.simulation.races.worker import workers
from tests.simulation.races.world import World, repeats

PERIOD_S = LIMITS.sweep_period_s
LEASE_S = INVOCATION_S + 10
BOUND_S = max(LIMITS.grace_s, LEASE_S) + PERIOD_S
SLOW_S = 2_000
SLACK_S = 1  # instants are compared by < and by <=

INSTANTS = ("lease", "not_before", "deadline", "due", "ended")
Begin = Callable[[Law], State]
LEFT_ALONE = "a job is left alone for longer than promised"
BEYOND_DEADLINE = "a job is open for longer than its deadline, a lease and a sweep"
TOLD_LATE = "an end is told later than promised"
NEVER_TRIED = "a job fails at its deadline though workers were free and its message was on its way"
BEGINS_LATE = "a job for later begins later than a sweep after its time"


def seconds(rec: Rec) -> Rec:
    """The clock of the hours: instants as they are."""
    return rec


def as_accepted(law: Law) -> State:
    return _state(read(accepted(), law.clock), stream=(_image(0),))


def for_later(law: Law) -> State:
    """A wait that no message can hold back: nobody sends but the sweep."""
    rec = read(accepted(), law.clock)._replace(not_before=1_000, deadline=1_000 + LIMITS.deadline_s)
    due = 1_000 + LIMITS.grace_s if "a long wait has the grace" in law.flags else 1_000
    return _state(rec._replace(due=due), stream=(_image(1_000),))


def out_of_a_backlog(law: Law) -> State:
    """It waits for an hour; its look was pushed an hour ahead, as its message may still come. It comes now."""
    rec = read(accepted(), law.clock)._replace(not_before=-3_600, due=3_600, deadline=2 * 3_600)
    return _state(rec, queue=(Message("hint", 0),))


def near_its_deadline(law: Law) -> State:
    """It waits for most of an hour, and is looked at now; its message was lost, and its deadline is near."""
    rec = read(accepted(), law.clock)._replace(not_before=-3_000, due=-1, deadline=600)
    return _state(rec, queue=())


def behind_a_slow_queue(law: Law) -> State:
    """Each message takes most of an hour to come to a worker."""
    return as_accepted(law)._replace(stream=(), queue=(Message("hint", 0, SLOW_S),))


STARTS = (as_accepted, for_later, out_of_a_backlog, near_its_deadline, behind_a_slow_queue)

PHASES = (PERIOD_S, 1, 131)  # seconds to the first sweep


def _image(not_before: int) -> Rec:
    return Rec(PENDING, shard=True, due=0, not_before=not_before)


def _state(rec: Rec, **more: object) -> State:
    return State(rec, (), sweep_in=PERIOD_S)._replace(**more)  # type: ignore[arg-type]


@dataclass
class Hours(World):
    """`begin`: how it stands at first. The sweep's phase: `first_s` seconds to the first one."""

    begin: Begin = as_accepted
    first_s: int = PERIOD_S
    prompt: bool = True
    queue_max: int = 9

    def start(self) -> State:
        budget = World(self.law, self.faults).start().budget
        return self.begin(self.law)._replace(budget=budget, sweep_in=self.first_s)

    def steps(self, s: State) -> Iterator[Step]:
        idle = True
        for actor in (dispatcher, workers, readers, platform, repeats):
            for step in actor(self, s):
                idle = idle and step.fault
                yield self._timed(s, step)
        if s.sweep_in == 0 and idle:  # after everybody else at this instant: it is the last resort
            for step in self._swept(s):
                yield self._timed(s, step)
        elif idle:
            yield from self._passes(s)

    def _swept(self, s: State) -> Iterator[Step]:
        for step in sweep(self, s):
            if "killed" not in step.label:  # that costs a period, and is no promise
                yield step._replace(state=step.state._replace(sweep_in=PERIOD_S))
        if not (s.rec.shard and s.rec.due < 0):
            yield Step("sweep", s._replace(sweep_in=PERIOD_S))

    def tidy(self, s: State) -> State:
        """A message is as good as two. In a slow queue a new one comes late; by a wrong rule it outdates the others."""
        queue = set(s.queue)
        if self.begin is behind_a_slow_queue:
            new = {message for message in queue if message == Message("hint", message.attempt)}
            slow = {message._replace(in_s=SLOW_S) for message in new}
            if new and "older messages are dropped" in self.law.flags:
                queue = {message._replace(kind="outdated") for message in queue - new} | slow
            else:
                queue = (queue - new) | slow
        return super().tidy(s._replace(queue=tuple(sorted(queue))))

    def _timed(self, s: State, step: Step) -> Step:
        """From when on a job is alone: its holder dies, or word of it is lost. If a sweep has sent that word, the next
        look is a wait later, by intent: that is not measured."""
        new, alone = step.state, s.alone
        looked_for = 0 if new.rec.due <= LEASE_S else NONE
        word_lost = step.label == "a message dies" or ("lost" in step.label and alone == NONE)
        if step.fault and step.label.startswith("crash"):
            alone = 0
        elif step.fault and word_lost:
            alone = looked_for
        elif _begun(s.rec, new.rec) or new.rec.status in FINAL:
            alone = NONE
        wrong = NEVER_TRIED if self.begin is behind_a_slow_queue and _given_up_untried(new.rec) else step.wrong
        return step._replace(state=new._replace(alone=alone), wrong=wrong)

    def _passes(self, s: State) -> Iterator[Step]:
        rec = s.rec
        if properties.is_settled(rec) and not s.queue:
            return
        instants = [*(message.in_s for message in s.queue), s.sweep_in, rec.not_before, rec.deadline, rec.due]
        instants += [rec.lease + SLACK_S] if rec.held else []
        by = min(at for at in instants if at > 0)
        later = rec._replace(**{name: getattr(rec, name) - by for name in INSTANTS if getattr(rec, name) != NONE})
        over = not rec.held or later.lease < 0
        rows = tuple(row._replace(over=True) if over and row.status == "open" else row for row in s.rows)
        counts = s.alone != NONE and (rec.status != PENDING or rec.not_before <= 0)
        alone = s.alone + by if counts else s.alone
        queue = tuple(sorted(message._replace(in_s=max(0, message.in_s - by)) for message in s.queue))
        new = s._replace(rec=later, rows=rows, alone=alone, sweep_in=s.sweep_in - by, queue=queue)
        yield Step(f"{by} s pass", new, self._late(new))

    def _late(self, s: State) -> str:
        rec = s.rec
        if s.alone > BOUND_S + SLACK_S and self.begin is not behind_a_slow_queue:
            return LEFT_ALONE
        if rec.status in OPEN and rec.deadline < -BOUND_S - SLACK_S:
            return BEYOND_DEADLINE
        if rec.status in FINAL and not rec.handed and rec.ended < -BOUND_S - SLACK_S:
            return TOLD_LATE
        if self.begin is for_later and not self.faults and rec.not_before < -PERIOD_S - SLACK_S:
            return BEGINS_LATE
        return ""


def _begun(old: Rec, new: Rec) -> bool:
    return new.held and new.attempt > old.attempt


def _given_up_untried(rec: Rec) -> bool:
    return rec.status == FAILED and rec.attempt == 0
