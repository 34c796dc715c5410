"""A small world for random walks: a table with its stream, a queue that repeats and loses, workers that die.

Everything that acts in it is the real core; only time, messages and deaths are played."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import DELETED, DUE_SHARD, FINAL, HEARD
from lambdas.core import claiming, times
from lambdas.core.batch import Delivery
from lambdas.core.dispatching import dispatch
from lambdas.core.envelope import Hint, ReturnedLetter, read
from lambdas.core.execution import Try, Worker, execute
from lambdas.core.job import Job, from_record
from lambdas.core.lifecycle import Office
from lambdas.core.outcomes import ModelError, NotReady, OutOfTime, Permanent, Rejected
from lambdas.core.policy import Limits, RetryPolicy
from lambdas.core.ports import Message
from lambdas.core.routing import changed
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import Stuck
from lambdas.core.tasks import Context
from tests.builders import TENANT, any_record, any_task, later
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
    Troubles,
    drawing,
)
from tests.fakes_workflows import FakeExecutions, machines

MAX_TRIES = 3
LIMITS = Limits(deadline_s=4 * 3_600, retry=RetryPolicy(max_attempts=MAX_TRIES, base_s=2, cap_s=60))
INVOCATION_S = 120
VISIBILITY_S = 720
MAX_RECEIVES = 5
ENDINGS = (
    "done",
    "error",
    "permanent",
    "not ready",
    "rejected",
    "unusable",
    "out of time",
    "throttled",
    "billed and throttled",
)


class Killed(BaseException):
    """The platform ended whoever was running; nothing it does from now on has an effect."""


@dataclass
class Queued:
    body: str
    visible_at: Any
    receives: int = 0


@dataclass
class Holding:
    """A worker in the midst of its task."""

    job: Job
    ends: Any
    message: Queued


@dataclass
class World:
    """`jobs` records to begin with. After each step look at `store.images`: every change of a record, in order."""

    jobs: int = 2
    clock: FakeClock = field(default_factory=FakeClock)
    queue: list[Queued] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    handled: int = 0  # images of the stream that the dispatcher is done with
    holding: dict[str, Holding | None] = field(default_factory=lambda: {"w1": None, "w2": None})
    ending: str = "done"
    calls_to_live: int | None = None
    invocations: int = 0
    refusals: int = 0  # so many of the next sends are not accepted
    runs: list[tuple[str, int]] = field(default_factory=list)
    billed: list[tuple[str, int]] = field(default_factory=list)  # (job, opening) of each call paid for nothing

    def __post_init__(self) -> None:
        self.executions = FakeExecutions()
        self.store = FakeJobStore(before=self._called)
        self.results, self.answers = FakeObjects(), FakeAnswers()
        self.tasks = {"summarize": any_task(self._task)}
        for n in range(self.jobs):
            deadline = later(LIMITS.deadline_s)
            self.store.create(any_record(pk=f"job-{n}", deadline_at=deadline, due_at=later(120)))

    # --- the platform ------------------------------------------------------------------------------
    def _called(self, name: str) -> None:
        if self.calls_to_live is not None:
            if self.calls_to_live <= 0:
                raise Killed
            self.calls_to_live -= 1

    def _task(self, task_input: Any, ctx: Context) -> Any:
        self.runs.append((ctx.job_id, ctx.attempt))
        match self.ending:
            case "error":
                raise ValueError("oops")
            case "permanent":
                raise Permanent("no")
            case "not ready":
                raise NotReady("later", retry_after=30)
            case "rejected":
                raise Rejected("no good")
            case "unusable":
                raise ModelError("truncated", "max_tokens", "cut")
            case "out of time":
                raise OutOfTime("9 s left")
            case "throttled":
                raise ModelError("throttled", "ThrottlingException", "slow down")
            case "billed and throttled":
                self.billed.append((ctx.job_id, self.store.records[ctx.job_id]["run"]))
                ctx.model.ask("Q")
        return {"made by": [ctx.job_id, ctx.attempt]}

    def _worker(self) -> Worker:
        billed = ModelError("throttled", "ThrottlingException", "half-way", maybe_billed=True)
        model = FakeModel(billed if self.ending == "billed and throttled" else ValueError())
        return Worker(
            store=self.store,
            inputs=FakeObjects(),
            uploads=FakeUploaded(),
            results=self.results,
            answers=self.answers,
            effects=FakeEffects(),
            mailer=FakeMailer(),
            model=model,
            model_id="us.amazon.nova-lite-v1:0",
            chunks=FakeChunks(),
            tasks=self.tasks,
            limits=LIMITS,
            now=self.clock,
            draw=drawing(),
        )

    # --- the outbox --------------------------------------------------------------------------------
    def _refused(self, name: str, messages: Sequence[Message]) -> set[int]:
        self._called(name)
        self.refusals -= 1
        return set(range(len(messages))) if self.refusals >= 0 else set()

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        if refused := self._refused("send", messages):
            return refused
        self.queue += [Queued(m.body, times.after(self.clock(), m.delay_s)) for m in messages]
        return set()

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        if refused := self._refused("letter", messages):
            return refused
        self.letters += [message.body for message in messages]
        return set()

    def publish(self, messages: Sequence[Message]) -> set[int]:
        if refused := self._refused("publish", messages):
            return refused
        self.events += [json.loads(message.body)["event_id"] for message in messages]
        return set()

    def depth(self) -> int:
        return len(self.queue)

    # --- who acts ----------------------------------------------------------------------------------
    def dispatch_next(self, count: int, *, again: bool = False) -> None:
        """The dispatcher gets the next images; killed or told `again`, it gets them once more later."""
        images = self.store.images[self.handled : self.handled + count]
        heard = [new for old, new in images if new["status"] in HEARD and DUE_SHARD in new and changed(old, new)]
        jobs = [from_record(record) for record in heard]
        sent = dispatch(
            jobs,
            now=self.clock(),
            outbox=self,
            store=self.store,
            executions=self.executions,
            notice=lambda *a, **k: None,
        )
        if not sent.failed and not again:
            self.handled += len(images)

    def visible(self) -> list[Queued]:
        return [message for message in self.queue if message.visible_at <= self.clock()]

    def receive(self, worker: str, message: Queued) -> None:
        """A worker takes a message, and perhaps its job."""
        message.receives += 1
        message.visible_at = times.after(self.clock(), VISIBILITY_S)
        if message.receives > MAX_RECEIVES:
            self.queue.remove(message)
            self.letters.append(message.body)
            return
        self.invocations += 1
        delivery = Delivery(f"m{id(message)}", "", message.body, message.receives, f"r{self.invocations}")
        self._meant(worker, message, delivery)

    def _meant(self, worker: str, message: Queued, delivery: Delivery) -> None:
        now, ends = self.clock(), times.after(self.clock(), INVOCATION_S)
        match read(message.body):
            case Hint() as hint:
                outcome = claiming.claim(
                    hint,
                    claim_id=f"{delivery.request_id}/{delivery.message_id}",
                    invocation_ends=ends,
                    now=now,
                    max_tries=MAX_TRIES,
                    store=self.store,
                    limits=LIMITS,
                )
            case ReturnedLetter() as letter:
                was = self.store.records[letter.job_id]
                outcome = claiming.reopen(letter, now=now, store=self.store, limits=LIMITS)
                assert self.store.records[letter.job_id] == was or was["attempt"] == letter.attempt
            case other:
                raise AssertionError(other)
        match outcome:
            case claiming.Claimed(job):
                self.holding[worker] = Holding(job, ends, message)
            case claiming.Early(wait_s):
                message.visible_at = times.after(now, wait_s + 1)
            case _:
                self.ack(message)

    def ack(self, message: Queued) -> None:
        self.queue = [other for other in self.queue if other is not message]

    def finish(self, worker: str, ending: str) -> str:
        """The worker's task comes to an end, in time or long after its lease."""
        held, self.holding[worker] = self.holding[worker], None
        assert held is not None
        self.ending = ending
        left = INVOCATION_S  # it was enough when the call was started
        was = self.store.records[held.job.id]
        how = execute(Try(held.job, self._worker(), lambda: left, lambda *a, **k: None))
        assert how == "fenced_out" or (was["attempt"], was["claim_id"]) == (held.job.attempt, held.job.claim_id)
        self.ack(held.message)
        return how

    def sweep(self) -> None:
        Stuck(
            store=self.store,
            outbox=self,
            queue=self,
            limits=LIMITS,
            now=self.clock,
            max_tries=lambda job: MAX_TRIES,
            notice=lambda *a, **k: None,
            workers=FakeWorkers(),
            machines=machines(self.executions),
        ).run(Report("sweep", "stuck"), FakeTurn())

    def user(self, act: Callable[[str, str, Office], object], job_id: str) -> None:
        """The tenant cancels a job, starts it again or deletes it, whatever its state."""
        objects = FakeObjects(), self.results, FakeUploads(), FakeChunks()
        act(TENANT, job_id, Office(self.store, *objects, LIMITS, self.clock))

    # --- until nothing moves any more --------------------------------------------------------------
    def calm_down(self) -> None:
        """No more faults: the schedule, the stream and the workers go on until every job is final and handed over."""
        self.calls_to_live, self.refusals = None, 0
        self.store.troubles = Troubles()
        for _ in range(LIMITS.deadline_s // LIMITS.sweep_period_s + 20):
            if self.quiet():
                return
            self._one_round()
            self.clock.advance(LIMITS.sweep_period_s)

    def _one_round(self) -> None:
        for worker, held in self.holding.items():
            if held:
                self.finish(worker, "done")
        self.dispatch_next(len(self.store.images))
        self.sweep()
        for message in self.visible():
            self.receive("w1", message)
            if self.holding["w1"]:
                self.finish("w1", "done")

    def quiet(self) -> bool:
        records = self.store.records.values()
        return all(record["status"] in (*FINAL, DELETED) and DUE_SHARD not in record for record in records)
