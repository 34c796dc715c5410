"""What one delivered message leads to: buried, claimed and run, put off, or left on the queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from lambdas.core import claiming, ids
from lambdas.core.envelope import Hint, Newer, ReturnedLetter, Unreadable, letter_about_message, original, read, written
from lambdas.core.execution import Try, Worker
from lambdas.core.job import Job, UnreadableRecord
from lambdas.core.ports import Message, Notice, Unavailable
from lambdas.core.times import Instant, seconds_between
from lambdas.core.workflows.starting import Starter


@dataclass(frozen=True)
class Delivery:
    """One message as SQS handed it over. `receives` counts this time too."""

    message_id: str
    receipt_handle: str
    body: str
    receives: int
    request_id: str


@dataclass(frozen=True)
class Done:
    """To be acknowledged: the record says what happens next."""

    how: str


@dataclass(frozen=True)
class Early:
    """To be hidden for this long and reported."""

    wait_s: float


@dataclass(frozen=True)
class Failed:
    """To be reported: SQS shall keep it."""

    why: str


class Letters(Protocol):
    def send(self, messages: list[Message]) -> set[int]: ...


@dataclass(frozen=True)
class Desk:
    """What a batch is worked on with. `ends`: when the platform ends this invocation. `starter`: who begins a job, by
    what its work is."""

    worker: Worker
    letters: Letters
    ends: Instant
    max_tries: int
    starter: Starter = field(default_factory=Starter)

    def remaining_s(self) -> float:
        return seconds_between(self.worker.now(), self.ends)


def is_suspect(delivery: Delivery) -> bool:
    """It was received before, or its job crashed before: it may be what kills invocations, and runs alone."""
    meaning = read(delivery.body)
    return delivery.receives > 1 or (isinstance(meaning, Hint) and meaning.crashes > 0)


def handle(delivery: Delivery, desk: Desk, *, notice: Notice, about: Callable[[Job], None]) -> Done | Early | Failed:
    """The whole way of one message. Raises nothing that its batch-mates could feel."""
    try:
        match read(delivery.body):
            case Unreadable() as why:
                return _bury(delivery, why, desk, notice)
            case Newer(schema):
                return Failed(f"schema {schema} is newer than this code: a deploy is under way")
            case ReturnedLetter() as letter:
                outcome = claiming.reopen(
                    letter, now=desk.worker.now(), store=desk.worker.store, limits=desk.worker.limits
                )
                return _answered(outcome, delivery, desk, notice, about)
            case Hint() as hint:
                return _work(hint, delivery, desk, notice, about)
    except Unavailable as trouble:
        return Failed(str(trouble))
    except UnreadableRecord as broken:
        return _bury(delivery, Unreadable("UNREADABLE_RECORD", str(broken)), desk, notice)


def _work(
    hint: Hint, delivery: Delivery, desk: Desk, notice: Notice, about: Callable[[Job], None]
) -> Done | Early | Failed:
    worker = desk.worker
    if desk.remaining_s() < worker.limits.start_s:
        notice("no_time_left", job_id=hint.job_id)
        return _answered(claiming.put_off(hint, now=worker.now(), store=worker.store), delivery, desk, notice, about)
    outcome = claiming.claim(
        hint,
        claim_id=ids.claim_id(delivery.request_id, delivery.message_id),
        invocation_ends=desk.ends,
        now=worker.now(),
        max_tries=desk.max_tries,
        store=worker.store,
        limits=worker.limits,
    )
    return _answered(outcome, delivery, desk, notice, about)


def _answered(
    outcome: claiming.Outcome, delivery: Delivery, desk: Desk, notice: Notice, about: Callable[[Job], None]
) -> Done | Early | Failed:
    match outcome:
        case claiming.Claimed(job):
            about(job)
            notice("claimed", tries=job.tries, receives=delivery.receives)
            return Done(desk.starter.run(Try(job, desk.worker, desk.remaining_s, notice)))
        case claiming.Acknowledge(why, job):
            notice("acknowledged", job=job, reason=why)
            return Done(why)
        case claiming.NoSuchJob():
            return _bury(delivery, Unreadable("UNKNOWN_JOB", "there is no record of this job"), desk, notice)
        case claiming.Early(wait_s):
            return Early(wait_s)


def _bury(delivery: Delivery, why: Unreadable, desk: Desk, notice: Notice) -> Done | Failed:
    """Sent first, acknowledged then; the letter's id is the body's hash, so that a crash in between shows as one."""
    letter = letter_about_message(original(delivery.body), why, desk.worker.now())
    attributes = {"event_type": letter["event_type"], "reason": why.reason}
    if desk.letters.send([Message(written(letter), attributes, "unreadable")]):
        return Failed(f"its letter could not be sent: {why.reason}")
    notice("buried", reason=why.reason, detail=why.detail)
    return Done("buried")
