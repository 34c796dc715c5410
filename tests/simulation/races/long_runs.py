"""Longer runs than can be explored, chosen and shortened by Hypothesis: of the core, and of core and model in step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lambdas.contracts.names import FINAL, PENDING
from lambdas.core import claiming, lifecycle, times
from lambdas.core.asking import Bill
from lambdas.core.envelope import Hint, ReturnedLetter
from lambdas.core.execution import Try, Worker, execute
from lambdas.core.job import from_record
from lambdas.core.outcomes import ModelError, NotReady, Permanent, Rejected
from lambdas.core.policy import SKEW_S
from lambdas.core.ports import Message, Unavailable
from lambdas.core.sweeping.plan import HAND_OVER_AGE_S
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import Stuck
from tests.builders import TENANT, any_task
from tests.fakes import (
    FakeAnswers,
    FakeChunks,
    FakeClock,
    FakeEffects,
    FakeJobStore,
    FakeMailer,
    FakeModel,
    FakeObjects,
    FakeTurn,
    FakeUploaded,
    FakeUploads,
    FakeWorkers,
)
from tests.fakes_workflows import machines
from tests.simulation.races import acts
from tests.simulation.races.law import Law
from tests.simulation.races.record import INVOCATION_S, JOB, LIMITS, MAX_TRIES, Rec, accepted, before_or_after, read
from tests.unit.test_walk import Walk
from tests.unit.walk import Killed, World

STEPS = (
    "dispatcher", "worker_receives", "worker_finishes", "time_passes", "sweep", "worker_is_killed",
    "stream_record_is_lost", "message_comes_twice", "message_is_lost", "letter_is_redriven", "user_cancels",
    "user_retries", "user_deletes",
)  # fmt: skip
OFTEN = ("dispatcher", "worker_receives", "worker_finishes", "time_passes", "sweep")


class SeveralJobs(RuleBasedStateMachine):
    """The real core on three jobs, as the random walks know it; what breaks is shortened to its few steps."""

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk(2)  # neither killed in the middle of a step nor troubled: the steps themselves do that
        self.walk.world = World(jobs=3)

    @rule(name=st.sampled_from(STEPS), random=st.randoms(use_true_random=False))
    def anything(self, name: str, random: Random) -> None:
        self._do(name, random)

    @rule(name=st.sampled_from(OFTEN), random=st.randoms(use_true_random=False))
    def work(self, name: str, random: Random) -> None:
        self._do(name, random)

    @rule(name=st.sampled_from(STEPS), random=st.randoms(use_true_random=False), lives=st.integers(0, 3))
    def killed_in_between(self, name: str, random: Random, lives: int) -> None:
        self.walk.crashing = True  # from now on a claim may not have pulled in its look
        self.walk.world.calls_to_live = lives
        with contextlib.suppress(Killed, Unavailable):
            self._do(name, random)
        self.walk.world.calls_to_live = None

    def _do(self, name: str, random: Random) -> None:
        self.walk.random = random
        getattr(self.walk, name)()

    @invariant()
    def what_is_promised_holds(self) -> None:
        self.walk.look()

    def teardown(self) -> None:
        self.walk.end()


ENDINGS: Mapping[str, BaseException | None] = {
    "done": None,
    "not ready": NotReady("later", 30),
    "throttled": ModelError("throttled", "ThrottlingException", "slow down"),
    "failed": ValueError("oops"),
    "permanent": Permanent("no"),
    "rejected": Rejected("no good"),
    "unusable": ModelError("truncated", "max_tokens", "cut"),
}
HALF = 0.5  # no two instants are ever the same


class InStep(RuleBasedStateMachine):
    """The core on a real record, and the model on its abstraction: after each step they say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.law, self.clock = Law(), FakeClock()
        self.store = FakeJobStore({**accepted(), "body_sha": "life 0"})
        self.held: list[dict[str, Any]] = []

    def seen(self, record: Mapping[str, Any] | None = None) -> Rec:
        return read(record or self.store.records[JOB], before_or_after, self.clock())

    def both(self, act: Callable[..., str], *args: Any, really: Callable[[], object]) -> None:
        now, record = times.text(self.clock()), self.store.records[JOB]
        assume(
            now not in (record.get("due_at"), record.get("lease_until"))
        )  # as a look after twice the age may have it
        ran = self.law.run(act, self.seen(), *args)
        really()
        assert self.seen() == ran.rec, act.__name__

    @rule(seconds=st.sampled_from([1, 31, 63, 133, 307, 1_803]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds + HALF)

    @rule(older=st.integers(0, 1))
    def a_hint_comes(self, older: int) -> None:
        record = self.store.records[JOB]
        self._assume_not_just_now(record)
        attempt = max(0, record["attempt"] - older)
        before = self.seen()
        self.both(
            acts.claim,
            attempt,
            really=lambda: claiming.claim(
                Hint(JOB, attempt, 0),
                claim_id=f"claim {acts.next_claim(before)}",
                invocation_ends=times.after(self.clock(), INVOCATION_S),
                now=self.clock(),
                max_tries=MAX_TRIES,
                store=self.store,
                limits=LIMITS,
            ),
        )
        if self.store.records[JOB].get("claim_id") != record.get("claim_id") and self.seen().held:
            self.held.append(dict(self.store.records[JOB]))

    @rule()
    def no_time_is_left_to_start(self) -> None:
        record = self.store.records[JOB]
        self._assume_not_just_now(record)
        hint = Hint(JOB, record["attempt"], 0)
        self.both(acts.put_off, hint.attempt, really=lambda: claiming.put_off(hint, now=self.clock(), store=self.store))

    def _assume_not_just_now(self, record: Mapping[str, Any]) -> None:
        """Within the skew of two clocks a job may start early: the model's instants have come or not."""
        if record["status"] == PENDING:
            assume(not 0 < times.seconds_between(self.clock(), times.instant(record["not_before"])) <= SKEW_S)

    @precondition(lambda self: self.held)
    @rule(verdict=st.sampled_from(sorted(ENDINGS)), cost=st.integers(0, 1), data=st.data())
    def a_try_ends(self, verdict: str, cost: int, data: st.DataObject) -> None:
        held = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        wasted = verdict == "throttled" and cost > 0
        attempt = Try(
            from_record(held), self._worker(verdict), lambda: INVOCATION_S, lambda *a, **k: None,
            Bill(cost=cost, calls=cost, wasted=wasted),
        )  # fmt: skip
        self.both(acts.end, self.seen(held), verdict, cost, wasted, really=lambda: execute(attempt))

    def _worker(self, verdict: str) -> Worker:
        def run(task_input: Any, ctx: Any) -> Any:
            raised = ENDINGS[verdict]
            if raised is not None:
                raise raised
            return {}

        return Worker(
            store=self.store, inputs=FakeObjects(), uploads=FakeUploaded(), results=FakeObjects(),
            answers=FakeAnswers(), effects=FakeEffects(), mailer=FakeMailer(), model=FakeModel(ValueError()),
            model_id="m", chunks=FakeChunks(), tasks={"summarize": any_task(run)}, limits=LIMITS, now=self.clock,
            draw=lambda: 0.5,
        )  # fmt: skip

    @rule(what=st.sampled_from(("cancel", "retry", "delete")))
    def the_tenant_asks(self, what: str) -> None:
        office = lifecycle.Office(
            self.store, FakeObjects(), FakeObjects(), FakeUploads(), FakeChunks(), LIMITS, self.clock
        )  # fmt: skip
        self.both(getattr(acts, what), really=lambda: getattr(lifecycle, what)(TENANT, JOB, office))

    @rule(older=st.integers(0, 1))
    def a_letter_comes_back(self, older: int) -> None:
        letter = ReturnedLetter(JOB, self.store.records[JOB]["attempt"] - older)
        self.both(
            acts.reopen_by_letter,
            letter.attempt,
            really=lambda: claiming.reopen(letter, now=self.clock(), store=self.store, limits=LIMITS),
        )

    @rule()
    def a_sweep_comes(self) -> None:
        record = self.store.records[JOB]
        young = record["status"] in FINAL and (
            times.seconds_between(times.instant(record["finished_at"]), self.clock()) < HAND_OVER_AGE_S
        )
        assume(not young)
        self.both(acts.sweep, really=self._sweep)

    def _sweep(self) -> None:
        Stuck(
            store=self.store, outbox=self, queue=self, limits=LIMITS, now=self.clock, max_tries=lambda job: MAX_TRIES,
            notice=lambda *a, **k: None, workers=FakeWorkers(), machines=machines(),
        ).run(Report("sweep", "stuck"), FakeTurn())  # fmt: skip

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return set()

    send_letters = publish = send_work

    def depth(self) -> int:
        return 0
