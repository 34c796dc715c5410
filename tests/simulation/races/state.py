"""One state of the model's world, and the faults that can still happen in it."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulation.races.record import NONE, Rec

RACES = (
    "crash",  # a worker, or the dispatcher or the sweep before any of its calls
    "dup",  # a message comes twice
    "loss",  # a stream record never reaches the dispatcher
    "drop",  # a message dies natively and lies among the dead letters
    "cancel", "retry", "delete", "resubmit", "redrive",
    "stall",  # the input is not ready
    "fail",  # a try fails and may be repeated
    "permanent", "reject",
    "unusable",  # billed, but no answer to keep; asked anew
    "waste",  # a wait that was billed for nothing
    "put off",  # a message is given back for lack of time
    "deadline",  # it passes
    "slow",  # the sweep acts on what it read some time ago
    "unheard",  # a write lands, its reply is lost, the SDK sends it once more
    "ghost",  # a write is applied a second time later
)  # fmt: skip
AHEAD = (
    "ask",  # a try needs a decision of people
)
WORK = ("execution fails",)
POST = (
    "answer lost",  # an endpoint has taken a delivery, and nobody heard of it
    "busy",  # another delivery takes the endpoint's place
    "redeliver",  # a human wants a delivery once more
)
FAULTS = (*RACES, *AHEAD, *WORK, *POST)
INDEX = {name: position for position, name in enumerate(FAULTS)}

IDLE, HELD, CALLED, ANSWERED, STORED = 0, 1, 2, 3, 4  # how far a worker is
NOBODY = Rec("")


class Message(NamedTuple):
    kind: str  # hint | letter
    attempt: int
    in_s: int = 0  # with a clock: not to be received before


class Worker(NamedTuple):
    """`job`: as its claim returned it. `value`: the call whose answer it has. `cost`: what its bill says."""

    phase: int = IDLE
    job: Rec = NOBODY
    message: Message = Message("", 0)
    value: int = 0
    cost: int = 0


class Row(NamedTuple):
    """A row of the answers table. `status`: "open" or "done"; `over`: its window is. `by`: whose it is, a claim."""

    key: str
    status: str
    by: int
    over: bool = False


class Limb(NamedTuple):
    """A branch of an execution that has not come to its end. `tries`: those that came to nothing. `at_work`: a try has
    read the record, where `seen` had written the branch last; it has cost that much."""

    execution: str
    run: int
    name: str
    tries: int = 0
    at_work: bool = False
    seen: str = ""
    cost: int = 0

    @property
    def by(self) -> str:
        return f"{self.execution}.{self.name}.{self.tries}"


class Reader(NamedTuple):
    """Somebody who has read the record and will act on what was read."""

    what: str
    seen: Rec
    attempt: int = 0


class Pending(NamedTuple):
    """A write that will come once more. `heard`: somebody waits for its outcome (`held`, `cost`: a worker)."""

    number: int
    rule: str
    after: Rec
    heard: bool
    held: Rec = NOBODY
    cost: int = 0


class State(NamedTuple):
    """`told`: what everybody was told of the record as it is. `kept`: questions whose answer is stored and good.
    `called`: whether this opening asked the model. `stored`: results by name, as far as somebody may read them."""

    rec: Rec
    budget: tuple[int, ...]
    queue: tuple[Message, ...] = ()
    letters: tuple[Message, ...] = ()
    stream: tuple[Rec, ...] = ()
    rows: tuple[Row, ...] = ()
    stored: tuple[tuple[str, int], ...] = ()
    workers: tuple[Worker, ...] = (Worker(), Worker())
    readers: tuple[Reader, ...] = ()
    pending: Pending | None = None
    told: frozenset[tuple[str, int]] = frozenset()
    kept: frozenset[str] = frozenset()
    called: bool = False
    more: tuple[tuple[str, str], ...] = ()  # executions of a workflow, by name, and how they are
    limbs: tuple[Limb, ...] = ()  # of those executions
    sweep_in: int = 0  # with a clock: seconds to the next sweep
    alone: int = NONE  # with a clock: for how long nobody has been at work on what somebody should work on

    def left(self, fault: str) -> bool:
        return self.budget[INDEX[fault]] > 0

    def spent(self, fault: str) -> tuple[int, ...]:
        at = INDEX[fault]
        return (*self.budget[:at], self.budget[at] - 1, *self.budget[at + 1 :])


class Step(NamedTuple):
    """`wrong`: the property that this step breaks. `fault`: no system makes it by itself, so liveness may not count on
    it."""

    label: str
    state: State
    wrong: str = ""
    fault: bool = False
