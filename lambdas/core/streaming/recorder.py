"""Keeps the text of one try as chunks while it is said: all that is asked in it is one sequence, without a gap."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from lambdas.core.job import Job
from lambdas.core.policy import DAY_S, Limits
from lambdas.core.ports import Notice, Now, Unavailable
from lambdas.core.streaming.batching import Batch
from lambdas.core.streaming.ports import Chunk, Chunks
from lambdas.core.streaming.text import fitting
from lambdas.core.times import Instant, after, seconds_between

PATIENCE_S, SHARE = 5.0, 0.1  # what storing chunks may take of the model's time: so long, and of a long answer a tenth
REPEATS = 2  # of writes that failed, once the answer is safe


@dataclass
class Recorder:
    """`heard` while the model speaks, then `said` or `broke`. A chunk that was tried keeps its number and its text: to
    store it again is harmless."""

    job: Job
    chunks: Chunks
    limits: Limits
    now: Now
    notice: Notice
    _n: int = 0  # the next number
    _heard: list[str] = field(default_factory=list)  # in this asking
    _missing: deque[Chunk] = field(default_factory=deque)  # made and not stored
    _silent: bool = False  # nothing more is written until the answer is saved
    _torn: bool = False  # text is there that belongs to no answer
    _spent_s: float = 0.0
    _since: Instant | None = None  # when something was asked first

    def __post_init__(self) -> None:
        self._batch = Batch(self.limits.chunk_bytes, self.limits.chunk_ms)

    def begin(self) -> None:
        """Something is asked. Raises Unavailable when the text so far can have no continuation: a new try begins it
        anew."""
        if self._torn:
            raise Unavailable("the text of this try was cut: the next one begins it anew", unknown=False)
        self._heard = []
        self._since = self._since or self.now()

    def heard(self, piece: str) -> None:
        """Trouble with the store is no trouble of the model's: what was not stored is, once the answer is safe."""
        self._heard.append(piece)
        if self._silent:
            self._batch.hold(piece)  # all that comes now is stored at once, in as few chunks as it fits in
            return
        self._make(self._batch.hear(piece, self.now()))
        self._store_quietly()

    def broke(self) -> None:
        """No answer came of it. What was heard is shown as far as that is easily done, and ends this try's text."""
        self._torn = bool(self._heard)
        if not self._silent:
            self._make(self._batch.rest())
            self._store_quietly()

    def said(self, text: str) -> None:
        """This answer is stored. All of it is chunks when this returns. Raises Unavailable."""
        heard = "".join(self._heard)
        self._torn = True
        if heard and heard != text:
            raise Unavailable("another answer was stored than the one that was heard", unknown=False)
        self._make(self._batch.rest() if heard else list(fitting(text)))
        self._store()
        self._torn = self._silent = False
        self.notice("streamed", chunks=self._n)

    def _make(self, texts: list[str]) -> None:
        for text in texts:
            self._missing.append(Chunk(self.job.attempt, self._n, text))
            self._n += 1

    def _store_quietly(self) -> None:
        while self._missing and not self._silent:
            began = self.now()
            try:
                self._append(self._missing[0])
            except Unavailable as trouble:
                self._silent = True
                self.notice("chunk_put_off", n=self._missing[0].n, detail=str(trouble))
                return
            self._missing.popleft()
            now = self.now()
            self._spent_s += seconds_between(began, now)
            if self._spent_s > PATIENCE_S + SHARE * seconds_between(self._since or began, now):
                self._silent = True
                self.notice("chunk_put_off", n=self._n, detail=f"storing took {self._spent_s:.1f} s")

    def _store(self) -> None:
        repeats = REPEATS
        while self._missing:
            try:
                self._append(self._missing[0])
                self._missing.popleft()
            except Unavailable as trouble:
                if not repeats:
                    raise
                repeats -= 1
                self.notice("chunk_repeated", n=self._missing[0].n, detail=str(trouble))

    def _append(self, chunk: Chunk) -> None:
        self.chunks.append(self.job.id, chunk, self._expires_at())

    def _expires_at(self) -> int:
        """Never before the record, which may end as late as its deadline (and a day, for whoever comes to end it)."""
        kept_s = self.limits.deadline_s + (self.limits.record_days + 1) * DAY_S
        return int(after(self.now(), kept_s).timestamp())
