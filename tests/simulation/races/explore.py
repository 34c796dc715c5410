"""Every order of events, breadth first: the first counter-example is a shortest one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from tests.simulation.races import properties
from tests.simulation.races.outside import dispatcher, platform, readers, sweep
from tests.simulation.races.state import RACES, State, Step
from tests.simulation.races.worker import workers
from tests.simulation.races.world import World, repeats, time

ACTORS: tuple[Callable[[World, State], Iterator[Step]], ...] = (
    dispatcher, workers, sweep, readers, platform, repeats, time,
)  # fmt: skip
Parents = dict[State, "tuple[State, str] | None"]


@dataclass
class Found:
    """What an exploration came to. `broken`: the first trace to each property that was broken."""

    states: int = 0
    whole: bool = True
    broken: dict[str, list[str]] = field(default_factory=dict)

    def line(self, name: str) -> str:
        return f"{name}: {' > '.join(self.broken[name])}"


@dataclass
class _Search:
    """`before`: from where a state is reached by a step that somebody will take. `ends`: where nothing need follow."""

    world: World
    until: str
    parents: Parents
    found: Found = field(default_factory=Found)
    before: dict[State, list[State]] = field(default_factory=dict)
    ends: list[State] = field(default_factory=list)

    def through(self, limit: int) -> None:
        todo = deque(self.parents)
        while todo and self.until not in self.found.broken:
            s = todo.popleft()
            beyond = self.world.beyond(s)
            if beyond or self.world.is_end(s):
                self.ends.append(s)
            if not beyond:
                self._steps(s, todo)
            if len(self.parents) > limit:
                break
        self.found.whole = not todo
        self.found.states = len(self.parents)

    def _steps(self, s: State, todo: deque[State]) -> None:
        for label, new, wrong, fault in self.world.steps(s):
            if wrong and wrong not in self.found.broken:
                self.found.broken[wrong] = [*trace(self.parents, s), label]
            if not fault:
                self.before.setdefault(new, []).append(s)
            if new not in self.parents:
                self.parents[new] = (s, label)
                todo.append(new)


def explore(world: World, *, limit: int = 1_000_000, until: str = "") -> Found:
    """All states, or those up to the first that breaks `until`; liveness is judged when all have been seen."""
    world.actors = world.actors or ACTORS
    search = _Search(world, until, {world.start(): None})
    search.through(limit)
    if search.found.whole:
        _judge_liveness(search.parents, search.before, search.ends, search.found)
    return search.found


def _judge_liveness(parents: Parents, before: dict[State, list[State]], ends: list[State], found: Found) -> None:
    """From every state an end must be within reach, by steps alone that somebody will take: no faults, no requests."""
    alive, todo = set(ends), list(ends)
    while todo:
        for s in before.get(todo.pop(), ()):
            if s not in alive:
                alive.add(s)
                todo.append(s)
    stuck = next((s for s in parents if s not in alive), None)
    if stuck is not None:
        found.broken[properties.STUCK] = trace(parents, stuck)


def fault_sets(number: int, among: Sequence[str] = RACES) -> list[dict[str, int]]:
    """Every choice of so many faults, the same one more than once included."""
    return [{name: chosen.count(name) for name in chosen} for chosen in combinations_with_replacement(among, number)]


def spelled(faults: Mapping[str, int]) -> str:
    return " + ".join(name if times == 1 else f"{times} {name}" for name, times in faults.items()) or "no fault"


def trace(parents: Parents, s: State) -> list[str]:
    labels = []
    while (come := parents[s]) is not None:
        s, label = come
        labels.append(label)
    return labels[::-1]
