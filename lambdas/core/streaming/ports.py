"""What streaming needs of the world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lambdas.core.ports import Model, ModelRequest, Reply
from lambdas.core.times import Instant

Heard = Callable[[str], None]  # a piece of text as the model says it


@dataclass(frozen=True)
class Chunk:
    """A piece of one attempt's text. `n` counts from 0, without gaps."""

    attempt: int
    n: int
    text: str


class Chunks(Protocol):
    """Text of a job, kept under the attempt that it was said in: nothing is ever written over."""

    def append(self, job_id: str, chunk: Chunk, expires_at: int) -> None:
        """One short try: who cannot be written to must not hold up the answer. Repeating it is harmless.
        Raises Unavailable."""

    def read(
        self, job_id: str, attempt: int, first: int, most_bytes: int, since: Instant | None = None
    ) -> Sequence[Chunk]:
        """Consistent; from number `first` on, in order; at least one if there is one, then no more than `most_bytes`
        of text. `since`: none that were stored before. Raises Unavailable."""

    def delete_all(self, job_id: str) -> None:
        """Everything beside the record: the chunks of every attempt, and the job's deliveries. Raises Unavailable,
        also when there was more than can be deleted in one call: to ask again goes on."""


class StreamingModel(Model, Protocol):
    def converse_stream(self, request: ModelRequest, heard: Heard) -> Reply:
        """One HTTP attempt within the model timeout; the reply is whole, and its text is what was heard.
        Raises ModelError: also when the stream was cut, whatever was heard before."""
