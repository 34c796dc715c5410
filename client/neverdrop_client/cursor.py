"""How far a stream has come, and what of all that is said is new: nothing twice, nothing left out, nothing mixed."""

from __future__ import annotations

from collections.abc import Iterator

from neverdrop_client.events import News, Progress, Restarted, Text
from neverdrop_client.messages import Chunks, Ending, Message, Part, RestartedAt, Watching


class Gap(Exception):
    """Something before this is missing. Watch again: everything from the cursor on is said once more."""


class Cursor:
    """The attempt that is followed (None until the first word about it) and the number of its next chunk.

    Messages may be repeated and reordered, and some may be lost: chunks are told apart by their numbers, attempts by
    theirs. An older attempt is passed over; a newer one voids what came."""

    def __init__(self, after: Text | None = None) -> None:
        self.attempt = after.attempt if after else None
        self.next = after.n + 1 if after else 0
        self.asked = 0  # from where it was last asked for
        self.ending: Ending | None = None
        self._settled = -1  # branches of this attempt that are over, as it was told last; -1: nothing was
        self._parts: dict[int, Part] = {}

    def take(self, message: Message) -> Iterator[News]:
        """What is new. Raises Gap; sets `ending` when there is nothing more to come."""
        match message:
            case Chunks():
                yield from self._chunks(message)
            case Watching(attempt=attempt, start=start):
                yield from self._told_from(attempt, start)
            case RestartedAt(attempt=attempt):
                yield from self._told_from(attempt, 0)
            case Progress():
                yield from self._progress(message)
            case Part():
                self._keep(message)
            case Ending():
                yield from self._end(message)

    def result_text(self) -> str | None:
        """The parts of the result as one, if they are all there."""
        parts = [self._parts.get(number) for number in range(len(self._parts))]
        if not parts or any(part is None or part.parts != len(parts) for part in parts):
            return None
        return "".join(part.text for part in parts if part)

    def _told_from(self, attempt: int, start: int) -> Iterator[Restarted]:
        """Who begins before where it was asked to has no such chunks: what is counted here is of something else."""
        if attempt == self.attempt and start < self.asked:
            yield from self._begin(attempt)
        yield from self._follow(attempt, at=start)

    def _follow(self, attempt: int, *, at: int) -> Iterator[Restarted]:
        """This attempt is the current one, and is told from number `at` on."""
        if self.attempt is not None and attempt < self.attempt:
            return
        if self.attempt != attempt:
            if at > 0:
                raise Gap
            yield from self._begin(attempt)
        elif at > self.next:
            raise Gap

    def _begin(self, attempt: int) -> Iterator[Restarted]:
        had_text = self.next > 0
        self.attempt, self.next, self.asked, self._settled = attempt, 0, 0, -1
        self._parts.clear()
        if had_text:
            yield Restarted(attempt)

    def _chunks(self, said: Chunks) -> Iterator[Text | Restarted]:
        if self.attempt is not None and said.attempt < self.attempt:
            return
        yield from self._follow(said.attempt, at=said.start)
        for n, text in enumerate(said.texts, said.start):
            if n == self.next:
                self.next += 1
                yield Text(said.attempt, n, text)

    def _progress(self, said: Progress) -> Iterator[News]:
        """What tells of fewer than were told of already was overtaken."""
        if self.attempt is not None and said.attempt < self.attempt:
            return
        yield from self._follow(said.attempt, at=0)
        if said.settled > self._settled:
            self._settled = said.settled
            yield said

    def _keep(self, part: Part) -> None:
        if part.attempt == self.attempt:
            self._parts[part.part] = part

    def _end(self, ending: Ending) -> Iterator[Restarted]:
        if self.attempt is not None and ending.attempt < self.attempt:
            raise Gap  # an end that was reopened since; after an end nobody is told any more
        yield from self._follow(ending.attempt, at=0 if ending.attempt == self.attempt else ending.chunks)
        if self.next > ending.chunks and ending.job["status"] == "COMPLETED":  # a cancelled one's model may say more
            yield from self._begin(ending.attempt)
            raise Gap
        if self.next < ending.chunks:
            raise Gap
        self.ending = ending
