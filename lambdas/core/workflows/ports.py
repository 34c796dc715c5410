"""What workflows need of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from lambdas.core.times import Instant

Ending = Literal["failed", "timed out", "aborted"]


class AlreadyExists(Exception):
    """There is an execution of this name, and it has ended or was given another input: ask what became of it."""


@dataclass(frozen=True)
class Running:
    """`since`: when it was started. Its state machine ends it, at the latest, its timeout later."""

    since: Instant


@dataclass(frozen=True)
class Succeeded:
    """It has told the record, or found that it need not. `output`: what its collector answered, as JSON text."""

    output: str


@dataclass(frozen=True)
class EndedBadly:
    """It ended without a word to the record. `code` and `cause` are Step Functions' own, empty where it has none."""

    how: Ending
    code: str = ""
    cause: str = ""


Execution = Running | Succeeded | EndedBadly


class Executions(Protocol):
    """The executions of our state machines. `type_` is the workflow's; `name` is `ids.execution_name`."""

    def start(self, type_: str, name: str, written_input: str) -> Instant:
        """When it was started, by this call or by an earlier one with the same input while it runs.
        Raises AlreadyExists, Unavailable; KeyError for a type that is deployed without a state machine."""

    def describe(self, type_: str, name: str) -> Execution | None:
        """None: there is none of this name, or none any more. Raises Unavailable, KeyError."""

    def stop(self, type_: str, name: str, why: str) -> None:
        """What is not there, or has ended, is as good as stopped. Raises Unavailable, KeyError."""
