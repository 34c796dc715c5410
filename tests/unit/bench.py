"""One worker with every port faked, and a job for it: what execution, batch and walk tests are run on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from lambdas.core.batch import Delivery, Desk, Done, Early, Failed, handle
from lambdas.core.execution import Try, Worker, execute
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.tasks import Task, most_tries
from lambdas.core.times import after
from tests.builders import JOB_ID, any_delivery, any_task, held_record
from tests.fakes import (
    FakeAnswers,
    FakeChunks,
    FakeClock,
    FakeEffects,
    FakeJobStore,
    FakeLetters,
    FakeMailer,
    FakeModel,
    FakeObjects,
    FakeUploaded,
    Notices,
    drawing,
)

MODEL_ID = "us.amazon.nova-lite-v1:0"
PAID = 180  # micro-dollars of any_reply(): 1,000 tokens in, 500 out


class Bench:
    """`order`: which of store, inputs, results and answers was called, one after the other."""

    def __init__(
        self,
        record: dict[str, Any] | None = None,
        *tasks: Task,
        model: FakeModel | None = None,
        limits: Limits | None = None,
        remaining_s: float = 120,
    ) -> None:
        self.order: list[str] = []
        self.clock = FakeClock()
        self.store = FakeJobStore(*([] if record is None else [record]), before=self.order.append)
        self.inputs, self.results = FakeObjects(), FakeObjects(order=self.order)
        self.uploads = FakeUploaded()
        self.answers, self.model = FakeAnswers(self.order), model or FakeModel()
        self.effects, self.mailer = FakeEffects(), FakeMailer()
        self.chunks = FakeChunks()
        self.letters, self.notices = FakeLetters(), Notices()
        self.tasks = {task.type: task for task in tasks or (any_task(),)}
        self.limits = limits or Limits()
        self.left_s = remaining_s

    @property
    def worker(self) -> Worker:
        return Worker(
            store=self.store,
            inputs=self.inputs,
            uploads=self.uploads,
            results=self.results,
            answers=self.answers,
            effects=self.effects,
            mailer=self.mailer,
            model=self.model,
            model_id=MODEL_ID,
            chunks=self.chunks,
            tasks=self.tasks,
            limits=self.limits,
            now=self.clock,
            draw=drawing(),
        )

    def job(self, job_id: str = JOB_ID) -> Job:
        return from_record(self.store.records[job_id])

    def execute(self, job: Job | None = None) -> str:
        """One try of the job as its record stands."""
        return execute(Try(job or self.job(), self.worker, lambda: self.left_s, self.notices))

    def desk(self, *, ends: datetime | None = None) -> Desk:
        bound = most_tries(self.tasks, self.limits.retry)
        return Desk(self.worker, self.letters, ends or after(self.clock(), self.left_s), bound)

    def handle(
        self, delivery: Delivery | None = None, about: Callable[[Job], None] = lambda job: None, **over: Any
    ) -> Done | Early | Failed:
        return handle(delivery or any_delivery(), self.desk(**over), notice=self.notices, about=about)


def held(*tasks: Task, model: FakeModel | None = None, **over: Any) -> Bench:
    """A bench whose one job is held by it; keywords change the record."""
    return Bench(held_record(**over), *tasks, model=model)
