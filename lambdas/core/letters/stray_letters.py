"""The sweep's part among the dead letters: what died without anybody's fault goes back by itself, and noise goes.

Nothing is removed before what replaces it stands: the message sent anew, or a record that has gone on (hole 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lambdas.contracts.names import INBOX_RETURNS, PENDING
from lambdas.core.job import Job
from lambdas.core.letters import letter as letters
from lambdas.core.letters.dead_letters import LETTERS_MAX, Boxes, Looking
from lambdas.core.letters.letter import Letter, message_of
from lambdas.core.ports import MESSAGE_BYTES, JobStore, Message, Now, Outbox, Sender, Unavailable
from lambdas.core.routing import work_message
from lambdas.core.times import seconds_between

RETURNS_MAX = 3  # then it stays for the operator: what kills ingest each time does not do so by chance
NOISE_AGE_S = 3_600  # so long a letter that came too late is there to be seen
HIDE_S = 60


class Report(Protocol):
    """Where the part says what it did."""

    dry_run: bool

    def count(self, name: str, n: int = 1) -> None: ...

    def repaired(self, id_: str, n: int = 1) -> None: ...

    def trouble(self, n: int = 1) -> None: ...


@dataclass(frozen=True)
class SendAgain:
    """A work message that SQS moved, of a job that is open and in nobody's hands: sent anew, by the record."""

    job: Job


@dataclass(frozen=True)
class PutBack:
    """What nobody could take, an event from outside or what is to be delivered: back to its queue, and one more return
    on it."""

    message: Message


@dataclass(frozen=True)
class Remove:
    """Its job's record has gone on without it."""


@dataclass(frozen=True)
class Leave:
    """For the operator, or for a later sweep."""


Fate = SendAgain | PutBack | Remove | Leave


@dataclass(frozen=True)
class StrayLetters:
    """The part. `boxes`: the queues of dead letters, by the names in `letters.QUEUES`. `returns`: where what nobody
    could take goes back to, by the same names."""

    boxes: Boxes
    store: JobStore
    outbox: Outbox
    returns: Mapping[str, Sender]
    now: Now

    def run(self, report: Report) -> Iterator[None]:
        """Page by page through all queues; may be closed at each yield. Raises Unavailable when all was done that could
        be: one queue that cannot be read keeps no letter of another."""
        troubles: list[str] = []
        for queue in self.boxes:
            try:
                yield from self._queue(queue, report)
            except Unavailable as trouble:
                report.trouble()
                troubles.append(f"{queue}: {trouble}")
        if troubles:
            raise Unavailable("; ".join(troubles))

    def _queue(self, queue: str, report: Report) -> Iterator[None]:
        with Looking(queue, self.boxes[queue], _always, hide_s=HIDE_S) as looking:
            for page in looking.pages():
                self._page(page, looking, report)
                yield
        if looking.scanned >= LETTERS_MAX:
            report.count("queues_not_read_to_the_end")

    def _page(self, page: Sequence[Letter], looking: Looking, report: Report) -> None:
        report.count("seen", len(page))
        fates = [(letter, self.fate(letter)) for letter in page]
        if report.dry_run:
            for _, fate in fates:
                report.count(f"would_{_NAMES[type(fate)]}")
            return
        gone = [letter for letter, fate in fates if isinstance(fate, Remove)]
        report.count("noise", len(gone))
        gone += self._sent_again([(one, fate.job) for one, fate in fates if isinstance(fate, SendAgain)], report)
        back = [(one, fate.message) for one, fate in fates if isinstance(fate, PutBack)]
        gone += self._put_back(looking.queue, back, report)
        for letter in gone:
            looking.keep(letter)
        report.trouble(len(looking.box.remove([letter.found.receipt for letter in gone])))

    def fate(self, letter: Letter) -> Fate:
        """By a consistent read of the record. Raises Unavailable."""
        if letter.kind in ("event", "delivery"):
            return _of_event(letter)
        if letter.kind not in ("job", "hint") or letter.job_id is None:
            return Leave()
        record = letters.record_of(letter.job_id, self.store)
        standing = letters.standing(letter, record)
        if letter.kind == "job":
            old = seconds_between(letter.at, self.now()) >= NOISE_AGE_S
            return Remove() if standing == "stale" and old else Leave()
        if standing == "stale":
            return Remove()
        job = letters.job_of(record)
        return SendAgain(job) if job and job.status == PENDING and letter.found.moved else Leave()

    def _sent_again(self, found: Sequence[tuple[Letter, Job]], report: Report) -> list[Letter]:
        """Letters whose job has a new message. One that waits for long gets none now: its letter stays until then."""
        jobs = list({job.id: job for _, job in found}.values())
        made = [(job, message) for job in jobs if (message := work_message(job, self.now())) is not None]
        refused = self.outbox.send_work([message for _, message in made])
        sent = {job.id for position, (job, _) in enumerate(made) if position not in refused}
        for job_id in sorted(sent):
            report.repaired(job_id)
        report.count("sent_again", len(sent))
        report.trouble(len(refused))
        return [letter for letter, job in found if job.id in sent]

    def _put_back(self, queue: str, found: Sequence[tuple[Letter, Message]], report: Report) -> list[Letter]:
        refused = self.returns[queue].send([message for _, message in found])
        sent = [letter for position, (letter, _) in enumerate(found) if position not in refused]
        for letter in sent:
            report.repaired(letter.id)
        report.count("put_back", len(sent))
        report.trouble(len(refused))
        return sent


_NAMES: dict[type[Fate], str] = {SendAgain: "send_again", PutBack: "put_back", Remove: "remove", Leave: "leave"}


def _of_event(letter: Letter) -> Fate:
    """Only what SQS itself moved: whatever ingest has judged, or somebody sent here, is for the operator. Of what is
    to be delivered nobody has judged a message that can be read: SNS sends here, too, what it could not deliver."""
    times_back = letter.attributes.get(INBOX_RETURNS, "0")
    returns = (
        int(times_back) if times_back.isdecimal() and len(times_back) < 4 else RETURNS_MAX
    )  # a header may forge it
    judged = letter.kind == "event" and not letter.found.moved
    if judged or returns >= RETURNS_MAX:
        return Leave()
    message = message_of(letter)
    back = Message(message.body, {**message.attributes, INBOX_RETURNS: str(returns + 1)}, message.group)
    return PutBack(back) if back.size <= MESSAGE_BYTES else Leave()  # as large as SQS takes: no room for its returns


def _always() -> bool:
    return True
