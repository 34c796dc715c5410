"""What the core needs of the world: each port is fulfilled by one adapter, and by one fake in the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lambdas.core.protocol import Change
from lambdas.core.times import Instant

Now = Callable[[], Instant]
Notice = Callable[..., None]  # notice("claimed", attempt=1): one canonical log line per step


class Unavailable(Exception):
    """A store could not be reached or would not serve. `unknown`: what was asked may have been done all the same."""

    def __init__(self, what: str, *, unknown: bool = True) -> None:
        super().__init__(what)
        self.unknown = unknown


class Missing(Exception):
    """No object under this key."""


@dataclass(frozen=True)
class Applied:
    """The write is in the record (now, or by an earlier copy of this very write). `record`: as it is then."""

    record: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """The condition did not hold. `record`: as it was found, None when there is none."""

    record: Mapping[str, Any] | None


class JobStore(Protocol):
    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Row 1. None when it was created, else the record that stands there. Raises Unavailable."""

    def apply(self, job_id: str, change: Change) -> Applied | Refused:
        """One conditional write; its own effect counts as applied. Raises Unavailable."""

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        """Independent writes, refused ones included. The jobs whose write failed, each with its trouble."""

    def read(self, job_id: str) -> Mapping[str, Any] | None:
        """Strongly consistent. Raises Unavailable."""

    def read_many(self, job_ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """Those that exist, in the order asked. Raises Unavailable."""

    def due(self, shard: str, before: Instant, limit: int) -> list[str]:
        """Ids of jobs in one shard of the `due` index whose `due_at` has passed, oldest first; may lag behind."""

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        """(created_at, job id) of one shard of a tenant's jobs, newest first, older than `before`."""


class Inputs(Protocol):
    def put(self, key: str, body: bytes) -> None: ...

    def get(self, key: str) -> bytes:
        """Raises Missing, Unavailable."""


class Results(Protocol):
    def put(self, key: str, body: bytes) -> None: ...

    def get(self, key: str) -> bytes:
        """Raises Missing, Unavailable."""

    def link(self, key: str, expires_s: int) -> str:
        """A presigned URL to read it."""


@dataclass(frozen=True)
class ModelRequest:
    """What is asked of a model: everything here is part of the answer's key. `max_tokens` bounds the answer."""

    model: str
    system: str
    prompt: str
    max_tokens: int
    temperature: float | None = None


@dataclass(frozen=True)
class Reply:
    """What a model said. Tokens as the provider counted them."""

    text: str
    stop_reason: str
    input_tokens: int
    output_tokens: int


class Model(Protocol):
    def converse(self, request: ModelRequest) -> Reply:
        """One HTTP attempt within the model timeout. Raises ModelError."""


@dataclass(frozen=True)
class Kept:
    """A stored answer. `by` names the save that stored it; `reused`: it was there already and cost nothing."""

    value: Mapping[str, Any]
    by: str
    reused: bool


class AnswerPending(Exception):
    """Somebody else is getting this very answer, and my time to wait for it is over."""

    def __init__(self, until: Instant) -> None:
        super().__init__("an identical call is under way")
        self.until = until


class AnswerNotStored(Exception):
    """The call was made and may have been billed, but its answer could not be kept."""


class Answers(Protocol):
    def once(
        self, key: str, tenant: str, call: Callable[[], Mapping[str, Any]], *, patience_s: float, look: bool
    ) -> Kept:
        """The stored answer under this key, or that of `call`, made by one caller at a time and stored before it
        is given back. `look`: an earlier caller may have died between its two writes; look for what it left.
        Raises AnswerPending, AnswerNotStored, Unavailable, and whatever `call` raises (then nothing is stored)."""

    def forget(self, key: str, tenant: str, by: str) -> None:
        """The answer leaves the cache, if it still is the one saved by `by`."""


class EffectNotRecorded(Exception):
    """An effect happened, but its end could not be recorded: a later try will repeat it, under the same key."""


class Effects(Protocol):
    def intend(self, name: str, payload: str) -> str:
        """The payload recorded under this name: this one, or what an earlier try recorded. Raises Unavailable."""

    def repeatable(self, key: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `act` gave, now or in an earlier try. One caller at a time; again, if its end was not recorded.
        Raises AnswerPending, EffectNotRecorded, Unavailable, and what `act` raises (then nothing is recorded)."""

    def once(self, key: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `act` gave, now or in an earlier try; never again when a start has no recorded end.
        Raises Permanent (OUTCOME_UNKNOWN), Unavailable, and NotDone when `act` raised it."""


class Mailer(Protocol):
    def send(self, *, to: str, subject: str, text: str, key: str) -> str:
        """The provider's message id. Raises NotDone when it certainly was not sent and may be tried again, Permanent
        when it never will be; anything else means that nobody knows."""


@dataclass(frozen=True)
class Message:
    """What is sent: a body (JSON text), string attributes for who reads no JSON, a delay in seconds."""

    body: str
    attributes: Mapping[str, str]
    group: str
    delay_s: int = 0


class Outbox(Protocol):
    """Each call answers the positions of those that were not accepted."""

    def send_work(self, messages: Sequence[Message]) -> set[int]: ...

    def send_letters(self, messages: Sequence[Message]) -> set[int]: ...

    def publish(self, messages: Sequence[Message]) -> set[int]: ...


class WorkQueue(Protocol):
    def depth(self) -> int:
        """Visible, delayed and in flight, as far as SQS knows."""
