"""Queues of dead letters with their jobs and their clock, for tests of whatever is done about dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lambdas.contracts.names import COMPLETED, FAILED
from lambdas.core.letters import redrive
from lambdas.core.letters.letter import INBOX, QUEUES, WORK
from lambdas.core.letters.redrive import Order, Run
from lambdas.core.letters.redriving import Redriver
from lambdas.core.ports import Found
from tests.builders import any_found, any_letter_body, final_record, later
from tests.fakes import FakeClock, FakeDeadLetters, FakeJobStore, FakeLedger, FakeOutbox, FakeSender, Notices

REDRIVE_ID = "d" * 32
OLD = later(-3_600)


def an_id(number: int) -> str:
    return f"{number:032x}"


def failed(number: int, **over: Any) -> dict[str, Any]:
    return final_record(FAILED, pk=an_id(number), **over)


def dead(number: int, attempt: int = 1, reason: str = "TASK_ERROR", **over: Any) -> Found:
    """The letter of that job."""
    return any_found(any_letter_body(an_id(number), attempt, reason), **{"sent_at": OLD, **over})


class Mortuary:
    """`jobs`: as many FAILED jobs, each with its letter among those of the work queue."""

    def __init__(self, jobs: int = 0) -> None:
        self.clock = FakeClock()
        self.store = FakeJobStore(*(failed(number) for number in range(jobs)))
        self.boxes = {name: FakeDeadLetters(now=self.clock) for name in QUEUES}
        self.queues = {name: FakeSender() for name in QUEUES}
        self.outbox = FakeOutbox()
        self.ledger = FakeLedger()
        self.notices = Notices()
        self.started: list[dict[str, Any]] = []
        self.passes: Callable[[], None] = lambda: None  # what happens while somebody waits
        self.ends_at = later(300)
        self.boxes[WORK].add(*(dead(number) for number in range(jobs)))

    @property
    def work(self) -> FakeDeadLetters:
        return self.boxes[WORK]

    @property
    def inbox(self) -> FakeDeadLetters:
        return self.boxes[INBOX]

    def complete(self, number: int, status: str = COMPLETED) -> None:
        record = self.store.records[an_id(number)]
        self.store.records[an_id(number)] = final_record(status, pk=record["pk"], attempt=record["attempt"] + 2, run=1)

    # --- redrive ---------------------------------------------------------------------------------
    def ask(self, **order: Any) -> Run:
        what = Order(redrive_id=REDRIVE_ID, by="arn:aws:iam::1:user/eve", **order)
        return redrive.ask(
            what, now=self.clock(), ledger=self.ledger, start=lambda payload: self.started.append(dict(payload)),
            keep_days=90,
        )  # fmt: skip

    def round(self, number: int = 1, request: str = "request-1", seconds: float = 300) -> Run | None:
        """One invocation."""
        self.ends_at = later((self.clock() - later(0)).total_seconds() + seconds)
        run = redrive.begin(REDRIVE_ID, number, request, now=self.clock(), ledger=self.ledger)
        return self.redriver().go_on(run) if run else None

    def redriver(self) -> Redriver:
        return Redriver(
            ledger=self.ledger,
            store=self.store,
            boxes=self.boxes,
            queues=self.queues,
            now=self.clock,
            sleep=self.sleep,
            time_left_s=self.time_left_s,
            notice=self.notices,
        )

    def time_left_s(self) -> float:
        return (self.ends_at - self.clock()).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.passes()

    def moved(self, queue: str = WORK) -> list[str]:
        return [message.body for message in self.queues[queue].sent]
