"""What a stream yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neverdrop_client.shapes import Job


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of one attempt's text; `n` counts them from 0, and none is left out or comes twice."""

    attempt: int
    n: int
    text: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The job was tried again: what came so far is void, and the text of this attempt begins."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a workflow is: the branches that are done and those that have failed, by name, of `total`. Told again as
    more are over; what comes quickly may be told in one."""

    attempt: int
    done: tuple[str, ...]
    failed: tuple[str, ...]
    total: int

    @property
    def settled(self) -> int:
        """How many branches are over."""
        return len(self.done) + len(self.failed)


@dataclass(frozen=True, slots=True)
class Final:
    """The last event: how the job ended, and its result if it is COMPLETED. `chunks`: how many pieces its text has."""

    attempt: int
    chunks: int
    job: Job
    result: Any = None


News = Text | Restarted | Progress
Event = News | Final
