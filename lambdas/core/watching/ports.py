"""What watching needs of the world: who is connected and watches what, and a way to reach them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Grant:
    """What a ticket lets its bearer do: watch these jobs, all of one tenant."""

    tenant: str
    job_ids: tuple[str, ...]


@dataclass(frozen=True)
class Connection:
    """An open connection. `expires_at`: epoch seconds at which it is over whatever was heard of it."""

    id: str
    grant: Grant
    expires_at: int


@dataclass(frozen=True)
class Watch:
    """One job watched over one connection: chunk `next` of this attempt is the first that may not have been sent.
    `mark` tells it from an earlier or later watch of the same job over the same connection. `told`: the last of a
    workflow's progress that was sent, as `serving.stage_of` writes it, empty for none."""

    connection_id: str
    job_id: str
    tenant: str
    mark: str
    attempt: int
    next: int
    told: str = ""


class Tickets(Protocol):
    def put(self, digest: str, grant: Grant, expires_at: int) -> None:
        """Only the ticket's digest is ever stored. Epoch seconds. Raises Unavailable."""

    def take(self, digest: str, now: int) -> Grant | None:
        """What it grants, once: whoever comes second, or too late, gets None. Raises Unavailable."""


class Connections(Protocol):
    """All reads are consistent: who has written a watch before a chunk is stored is found by whoever comes after it."""

    def open(self, connection: Connection) -> None:
        """Raises Unavailable."""

    def find(self, connection_id: str) -> Connection | None:
        """Raises Unavailable."""

    def close(self, connection_id: str) -> None:
        """The connection, and all that it watches. Repeating it is harmless. Raises Unavailable."""

    def watch(self, watch: Watch, expires_at: int) -> None:
        """In place of what this connection had of the job. Raises Unavailable."""

    def unwatch(self, watch: Watch) -> None:
        """This very watch: a later one of the same job stays. Raises Unavailable."""

    def advance(self, watch: Watch, attempt: int, next_chunk: int) -> bool:
        """All chunks before this one were sent. Never back, and never for another watch: False when this one is no
        longer there. Raises Unavailable."""

    def tell(self, watch: Watch, told: str) -> None:
        """Progress up to here was sent. Never back, and never for another watch. Raises Unavailable."""

    def watch_of(self, connection_id: str, job_id: str) -> Watch | None:
        """Raises Unavailable."""

    def jobs_of(self, connection_id: str) -> Sequence[str]:
        """The jobs that a connection watches. Raises Unavailable."""

    def watchers_of(self, job_id: str) -> Sequence[Watch]:
        """Raises Unavailable."""


@dataclass(frozen=True)
class Sent:
    """Handed to the connection, behind whatever was sent before."""


@dataclass(frozen=True)
class Gone:
    """The connection is closed for good."""


@dataclass(frozen=True)
class Trouble:
    """It may or may not have arrived; the connection may still be there."""

    reason: str


Posted = Sent | Gone | Trouble


class Postman(Protocol):
    def post(self, connection_id: str, frame: bytes) -> Posted:
        """One short try. Raises nothing."""
