"""What the core needs of the world: each port is fulfilled by one adapter, and by one fake in the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lambdas.core.protocol import Change
from lambdas.core.times import Instant

Now = Callable[[], Instant]
Notice = Callable[..., None]  # notice("claimed", attempt=1): one canonical log line per step


class Unavailable(Exception):
    """A store could not be reached or would not serve. `unknown`: what was asked may have been done all the same.
    `throttled`: it was asked too much of, and will serve who asks more slowly."""

    def __init__(self, what: str, *, unknown: bool = True, throttled: bool = False) -> None:
        super().__init__(what)
        self.unknown = unknown
        self.throttled = throttled


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


@dataclass(frozen=True)
class UploadRow:
    """What the index knows of a job that an object became."""

    key: str
    version: str
    job_id: str
    status: str


@dataclass(frozen=True)
class Completed:
    """A COMPLETED job, and where its result should be."""

    job_id: str
    result_key: str
    finished_at: str


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

    def due(self, shard: str, before: Instant, after: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        """(due_at, job id) of jobs in one shard of the `due` index whose `due_at` has passed, oldest first, behind
        `after`; fewer than the limit are all. May lag behind."""

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        """(created_at, job id) of one shard of a tenant's jobs, newest first, older than `before`."""


class Inventory(Protocol):
    """Many jobs at once, as the table has them; what is found must be read again before anything is done."""

    def uploads(self, shard: str, after: str, limit: int) -> list[UploadRow]:
        """Jobs of one shard that objects became, in the order of `ids.upload_order` and behind it; fewer than the limit
        are all. May lag behind."""

    def completed(self, after: str, limit: int) -> tuple[list[Completed], str]:
        """The COMPLETED ones among the next `limit` items of the whole table, and after which to go on; empty when
        there are no more. May lag behind."""


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


class Objects(Protocol):
    def delete_many(self, keys: Sequence[str]) -> None:
        """At most 1,000; what is not there is as good as gone. Raises Unavailable."""


class Folders(Protocol):
    def delete_folder(self, prefix: str) -> None:
        """Every object whose key begins so; the prefix ends with a slash. Raises Unavailable, perhaps with some of them
        gone."""


class Uploads(Protocol):
    def delete(self, key: str, version: str) -> None:
        """This version of an object; all that there are of it when `version` is empty. Raises Unavailable."""


@dataclass(frozen=True)
class Stored:
    """One version of an object in the uploads bucket. `version`: empty in a bucket without versions."""

    key: str
    version: str
    etag: str
    bytes: int


class TooLarge(Exception):
    """There are more bytes under this key than were asked for."""


class UploadedObjects(Protocol):
    def read(self, key: str, version: str, etag: str, limit: int) -> tuple[str, bytes]:
        """Content type and bytes of this very version. Raises Missing when it is gone or another one is in its place,
        TooLarge above `limit` bytes, Unavailable."""

    def first(self, key: str) -> Stored | None:
        """The oldest version of this object that there is. Raises Unavailable."""


class UploadForms(Protocol):
    def form(self, key: str, content_type: str, most: int, expires_s: int) -> tuple[str, dict[str, str]]:
        """URL and fields of a form with which a stranger may put one object under this key: of this type, of 1 to
        `most` bytes, for `expires_s` seconds."""


class Secrets(Protocol):
    def read(self, name: str, age_s: float) -> tuple[str, ...]:
        """What counts as this secret, as it was no longer ago than that: several while it is changed. Raises
        Unavailable."""


@dataclass(frozen=True)
class ObjectVersion:
    """One version of an object as its bucket lists it; `version` is empty where the bucket keeps none."""

    key: str
    version: str
    etag: str
    bytes: int
    modified: Instant


@dataclass(frozen=True)
class VersionPage:
    """`next`: key and version after which the next page begins, None behind the last."""

    versions: Sequence[ObjectVersion]
    next: tuple[str, str] | None


class Listing(Protocol):
    def versions(self, prefix: str, after: tuple[str, str] | None, limit: int) -> VersionPage:
        """By key, of one key the newest first, without marks of deletion; after a key and a version, or with an empty
        version after all of the key. Raises Unavailable."""


class Probe(Protocol):
    def exists(self, key: str) -> bool:
        """Whether there is an object under this key. Raises Unavailable."""


Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Workers(Protocol):
    """Many small things at once, no faster than allowed, and more slowly while somebody throttles."""

    def each(
        self,
        items: Iterable[Item],
        act: Callable[[Item], Answer],
        *,
        needs: Callable[[Item], bool] = lambda item: True,
    ) -> Iterator[tuple[Item, Answer | Unavailable | None]]:
        """Each item and what `act` answered, or the Unavailable that it raised, in the order of the items; None for
        those that need no act. Items are taken only a little ahead. What else `act` raises is raised here."""

    def call(self, act: Callable[[], Answer]) -> Answer:
        """One call of the caller's own, repeated while it is throttled. Raises Unavailable."""


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


MESSAGE_BYTES = 1_048_576  # SQS takes no larger one, attributes included


@dataclass(frozen=True)
class Message:
    """What is sent: a body (JSON text), string attributes for who reads no JSON, a delay in seconds. `urgent`: by the
    urgent queue and its dead letters."""

    body: str
    attributes: Mapping[str, str]
    group: str
    delay_s: int = 0
    urgent: bool = False

    @property
    def size(self) -> int:
        """Bytes that count against a limit: the body, and name, type and value of each attribute."""
        texts = [self.body, *(part for name, value in self.attributes.items() for part in (name, "String", value))]
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


class Outbox(Protocol):
    """Each call answers the positions of those that were not accepted."""

    def send_work(self, messages: Sequence[Message]) -> set[int]: ...

    def send_letters(self, messages: Sequence[Message]) -> set[int]: ...

    def publish(self, messages: Sequence[Message]) -> set[int]: ...


class WorkQueue(Protocol):
    def depth(self) -> int:
        """Visible, delayed and in flight, as far as SQS knows."""


class Sender(Protocol):
    def send(self, messages: Sequence[Message]) -> set[int]:
        """Positions of those that were not taken, after repeating what was refused. Raises nothing."""


@dataclass(frozen=True)
class Found:
    """A message as it lies among the dead letters. `moved`: SQS itself put it there, after receives that nobody
    acknowledged; else somebody sent it there. `sent_at`: when it was sent, to whatever queue that was."""

    message_id: str
    receipt: str
    body: str
    attributes: Mapping[str, str]
    sent_at: Instant
    moved: bool = False
    group: str = ""


class DeadLetters(Protocol):
    """One queue of dead letters. SQS has no way to look without taking: what is received must be shown again."""

    def receive(self, *, hide_s: int, wait_s: int = 0) -> list[Found]:
        """At most ten, hidden from everybody for so long; fewer or none does not mean that there are no more, unless
        they were waited for. Raises Unavailable."""

    def show(self, receipts: Sequence[str]) -> None:
        """Visible again at once; what cannot be is visible when its time is over."""

    def remove(self, receipts: Sequence[str]) -> set[int]:
        """Positions of those that may still lie there. Raises nothing."""

    def total(self) -> int:
        """Visible, delayed and in flight, as far as SQS knows. Raises Unavailable."""


class Ledger(Protocol):
    """What operations keep beside the jobs, in the same table: leases, runs, reviews. Values as in a record."""

    def take(self, name: str, holder: str, now: Instant, until: Instant) -> Mapping[str, Any] | None:
        """The lease of this name, and what its last holder left ({} at first); None while another one holds it.
        Raises Unavailable."""

    def keep(self, name: str, holder: str, until: Instant, state: Mapping[str, Any]) -> bool:
        """Save where I am, and hold on. False: the lease is somebody else's by now. Raises Unavailable."""

    def give_back(self, name: str, holder: str, state: Mapping[str, Any]) -> bool:
        """The next one may begin at once, from this state. Raises Unavailable."""

    def create(self, pk: str, sk: str, fields: Mapping[str, Any]) -> bool:
        """False when another one is there already; its own effect counts as success. Raises Unavailable."""

    def save(self, pk: str, sk: str, fields: Mapping[str, Any], when: Mapping[str, Any] | None = None) -> bool:
        """Set these fields, if those in `when` are as given (and the item is there), or if this very write was made
        before. Raises Unavailable."""

    def read(self, pk: str, sk: str) -> Mapping[str, Any] | None:
        """Strongly consistent. Raises Unavailable."""

    def page(self, pk: str, after: str, limit: int) -> list[Mapping[str, Any]]:
        """Items of one partition behind this `sk`, in its order. Raises Unavailable."""
