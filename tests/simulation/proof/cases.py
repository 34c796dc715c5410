"""A case: a scenario, and what strikes it where. All cases of a trace, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.proof import boundaries
from tests.simulation.proof.boundaries import Boundary

PATIENCE = 3  # attempts that the SDK makes; at the door two


@dataclass(frozen=True)
class FaultKind:
    """What strikes. `calls`: so many in a row. `mate`: the job has an innocent one beside it in its batch."""

    kind: str
    when: str
    calls: int = 1
    mate: bool = False


AT_CALLS: dict[str, FaultKind] = {
    "crash_before": FaultKind("crash", "before"),
    "crash_after": FaultKind("crash", "after"),
    "timeout_before": FaultKind("timeout", "before"),
    "timeout_after": FaultKind("timeout", "after"),
    "throttle": FaultKind("throttle", "before"),
    "refused": FaultKind("throttle", "before", PATIENCE),  # for good, as far as this invocation is concerned
    "lost_reply": FaultKind("lost_reply", "after"),
    "unheard": FaultKind("lost_reply", "after", PATIENCE),
    "freeze_before": FaultKind("freeze", "before"),
    "freeze_after": FaultKind("freeze", "after"),
    "ghost": FaultKind("ghost", "after"),
    "mate_before": FaultKind("crash", "before", mate=True),
    "mate_after": FaultKind("crash", "after", mate=True),
}
AT_HANDLERS: dict[str, FaultKind] = {
    "crash_before": FaultKind("crash", "before"),
    "crash_after": FaultKind("crash", "after"),
    "timeout_before": FaultKind("timeout", "before"),
    "timeout_after": FaultKind("timeout", "after"),
    "throttle": FaultKind("throttle", "before"),
    "freeze_before": FaultKind("freeze", "before"),
    "freeze_after": FaultKind("freeze", "after"),
    "duplicate": FaultKind("duplicate", "after"),
    "late": FaultKind("late", "after"),
    "drop": FaultKind("drop", "before"),
    "mate_before": FaultKind("crash", "before", mate=True),
    "mate_after": FaultKind("crash", "after", mate=True),
}
AT_MODEL: dict[str, FaultKind] = {
    "crash": FaultKind("crash", "during"),
    "timeout": FaultKind("timeout", "during"),
    "freeze": FaultKind("freeze", "during"),
    "throttle": FaultKind("throttle", "before"),
    "unavailable": FaultKind("unavailable", "before"),
    "lost_reply": FaultKind("lost_reply", "after"),
    "mate": FaultKind("crash", "during", mate=True),
}
IN_STREAMS: dict[str, FaultKind] = AT_MODEL | {
    "cut": FaultKind("cut", "during"),
    "corrupt": FaultKind("corrupt", "during"),
    "broken": FaultKind("broken", "during"),
    "throttle_midway": FaultKind("throttle_midway", "during"),
}  # "during": after the first piece of its text
AT_RECEIVERS: dict[str, FaultKind] = {
    "crash": FaultKind("crash", "during"),
    "timeout": FaultKind("timeout", "during"),
    "freeze": FaultKind("freeze", "during"),
    "lost_reply": FaultKind("lost_reply", "after"),
}
KILLS = ("crash", "timeout", "freeze")
BATCHES = ("worker", "dispatch")
STREAMS = ("dispatch", "push")
# a schedule's event is never repeated so
DELIVERED_AGAIN = ("accept", "control", "deliver", "dispatch", "ingest", "push", "socket", "worker")
READS = ("Get", "Query", "List", "Head", "Receive", "Scan", "BatchGet")


@dataclass(frozen=True)
class Blow:
    """A fault at a boundary."""

    boundary: Boundary
    fault: str

    @property
    def kind(self) -> FaultKind:
        return kinds_at(self.boundary)[self.fault]

    @property
    def blocks(self) -> bool:
        """A stream waits for its function: whatever comes behind this record stands still with it."""
        return self.boundary.function in STREAMS and self.kind.kind in ("timeout", "freeze")

    @property
    def stops_push(self) -> bool:
        return self.blocks and self.boundary.function == "push"

    @property
    def cuts_off(self) -> bool:
        """Nobody hears of what the struck invocation did or knew, or only when it is too late."""
        return self.kind.kind in KILLS or self.kind.calls >= PATIENCE

    def __str__(self) -> str:
        return f"{self.boundary}/{self.fault}"


@dataclass(frozen=True)
class Case:
    """A scenario with its blows: one, or a pair."""

    scenario: str
    blows: tuple[Blow, ...]

    @property
    def is_serial(self) -> bool:
        """Whether others beside it would be held up, or struck in its place."""
        return any(blow.boundary.is_serial or blow.blocks for blow in self.blows)

    @property
    def has_mate(self) -> bool:
        return any(blow.kind.mate for blow in self.blows)

    def __str__(self) -> str:
        return f"{self.scenario}@{'+'.join(map(str, self.blows))}" if self.blows else self.scenario


def kinds_at(boundary: Boundary) -> dict[str, FaultKind]:
    if boundary.at_handler:
        return AT_HANDLERS
    if boundary.at_model:
        return IN_STREAMS if boundary.in_stream else AT_MODEL
    return AT_RECEIVERS if boundary.at_receiver else AT_CALLS


def faults_at(boundary: Boundary) -> list[str]:
    """Those that mean something there."""
    return [name for name, fault in kinds_at(boundary).items() if _means_something(boundary, fault)]


def _means_something(boundary: Boundary, fault: FaultKind) -> bool:
    if fault.mate:
        return boundary.function in BATCHES
    if fault.kind == "ghost":
        return not boundary.operation.startswith(READS)
    if fault.kind == "drop":
        return boundary.function in STREAMS
    if fault.kind in ("duplicate", "late"):
        return boundary.function in DELIVERED_AGAIN
    return True


def cases_of(scenario: str, trace: Sequence[Boundary], given: Sequence[Blow] = ()) -> list[Case]:
    """Every boundary with every fault that means something there, and that `given` ones have not forestalled."""
    blows = [Blow(boundary, fault) for boundary in trace for fault in faults_at(boundary)]
    return [Case(scenario, (blow,)) for blow in blows if not any(_forestalls(one, blow) for one in given)]


def _forestalls(given: Blow, blow: Blow) -> bool:
    """Whether what is struck in any case never comes to be struck by this one: it is the same, or its end."""
    if blow.boundary == given.boundary:
        return True
    same = (blow.boundary.function, blow.boundary.turn) == (given.boundary.function, given.boundary.turn)
    return same and blow.boundary.at_handler and blow.kind.kind in KILLS and blow.kind.when == "after"


def parse(name: str) -> Case:
    """The case with this name. ValueError for any other text."""
    scenario, at, rest = name.partition("@")
    blows = tuple(parse_blow(part) for part in rest.split("+")) if at and rest else ()
    if not scenario:
        raise ValueError(f"{name!r} is no case: scenario@boundary/fault")
    return Case(scenario, blows)


def parse_blow(text: str) -> Blow:
    place, _, fault = text.rpartition("/")
    boundary = boundaries.parse(place)
    if fault not in faults_at(boundary):
        raise ValueError(f"{fault!r} means nothing at {boundary}; there are {faults_at(boundary)}")
    return Blow(boundary, fault)
