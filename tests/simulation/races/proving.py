"""The large sets, on two processes, and every counter-example: what `make prove-races` prints."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.simulation.races import deliveries, hours, workflows
from tests.simulation.races.explore import explore, fault_sets, spelled
from tests.simulation.races.law import Law
from tests.simulation.races.reviewed import REVIEWED, Needed, wrong_without
from tests.simulation.races.state import RACES
from tests.simulation.races.world import World
from tests.simulation.races.wrong import WRONG, Wrong
from tests.simulation.races.wrong_ahead import WORLDS, WRONG_AHEAD, WrongAhead
from tests.simulation.races.wrong_deliveries import WRONG_DELIVERIES, WrongDelivery
from tests.simulation.races.wrong_workflows import REVIEWED_WORK, WRONG_WORKFLOWS, WrongWorkflow, work_without

LIMIT = 400_000
PROGRESS_S = 10.0


@dataclass
class Row:
    """One line of the table. `cut`: sets of which not every state was seen."""

    name: str
    sets: int = 0
    states: int = 0
    largest: int = 0
    cut: int = 0
    broken: list[str] = field(default_factory=list)
    seconds: float = 0.0


@cache
def _law(clock: bool) -> Law:
    return Law(clock=hours.seconds) if clock else Law()


def _races(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    world = World(_law(False), faults, weak=weak, attempts=3 if weak else 4)
    return _explored(world, faults)


def _hours(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    states, whole, broken = 0, True, list[str]()
    for begin in hours.STARTS:
        for first_s in hours.PHASES:
            world = hours.Hours(_law(True), faults, begin=begin, first_s=first_s)
            more, all_seen, found = _explored(world, faults)
            states, whole, broken = states + more, whole and all_seen, broken + found
    return states, whole, broken


def _ahead(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    states, whole, broken = 0, True, list[str]()
    for make in WORLDS:
        more, all_seen, found = _explored(make(faults), faults)
        states, whole, broken = states + more, whole and all_seen, broken + found
    return states, whole, broken


def _deliveries(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    return _explored(deliveries.world(faults, weak=weak), faults)


def _workflows(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    return _explored(workflows.world(faults), faults)


def _branches(faults: Mapping[str, int], weak: bool) -> tuple[int, bool, list[str]]:
    return _explored(workflows.pair(faults), faults)


def _explored(world: World, faults: Mapping[str, int]) -> tuple[int, bool, list[str]]:
    found = explore(world, limit=LIMIT)
    return found.states, found.whole, [f"{spelled(faults)}: {found.line(name)}" for name in found.broken]


Play = Callable[[Mapping[str, int], bool], tuple[int, bool, list[str]]]
PLAYS: tuple[tuple[str, Play, int, bool], ...] = (
    ("one fault", _races, 1, False),
    ("two faults", _races, 2, False),
    ("three faults", _races, 3, False),
    ("no fault, a worker outlives its lease", _races, 0, True),
    ("one fault, a worker outlives its lease", _races, 1, True),
    ("one fault, with a clock", _hours, 1, False),
    ("two faults, with a clock", _hours, 2, False),
    ("one fault, a delivery", _deliveries, 1, False),
    ("two faults, a delivery", _deliveries, 2, False),
    ("no fault, a delivery, a worker outlives its lease", _deliveries, 0, True),
    ("one fault, a delivery, a worker outlives its lease", _deliveries, 1, True),
    ("one fault, a workflow", _workflows, 1, False),
    ("two faults, a workflow", _workflows, 2, False),
    ("one fault, a workflow of two branches", _branches, 1, False),
    ("no fault, rows that are not built yet", _ahead, 0, False),
    ("one fault, rows that are not built yet", _ahead, 1, False),
    ("two faults, rows that are not built yet", _ahead, 2, False),
)

AMONG: Mapping[Play, Sequence[str]] = {
    _deliveries: deliveries.FAULTS_OF_IT,
    _workflows: workflows.FAULTS_OF_IT,
    _branches: workflows.FAULTS_OF_IT,
}


def _one(task: tuple[int, dict[str, int]]) -> tuple[int, int, bool, list[str]]:
    number, faults = task
    _, play, _, weak = PLAYS[number]
    return (number, *play(faults, weak))


def _tasks(most: int, only: str) -> Iterator[tuple[int, dict[str, int]]]:
    for number, (name, play, faults, _) in enumerate(PLAYS):
        if faults <= most and only in name:
            yield from ((number, chosen) for chosen in fault_sets(faults, AMONG.get(play, RACES)))


def proved(most: int, only: str, nth: int) -> list[Row]:
    rows = [Row(name) for name, *_ in PLAYS]
    tasks, begun, said = list(_tasks(most, only))[::nth], time.monotonic(), 0.0
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for done, (number, states, whole, broken) in enumerate(pool.imap_unordered(_one, tasks, chunksize=4), 1):
            row = rows[number]
            row.sets, row.states = row.sets + 1, row.states + states
            row.largest, row.cut = max(row.largest, states), row.cut + (not whole)
            row.broken += broken
            row.seconds = time.monotonic() - begun
            if time.monotonic() - said > PROGRESS_S:
                said = time.monotonic()
                _say(f"{done} of {len(tasks)} sets, {sum(r.states for r in rows):,} states, {said - begun:.0f} s")
    return [row for row in rows if row.sets]


def counter_examples() -> tuple[int, list[str]]:
    """How many wrong protocols there are, and those that do not break as they should."""
    needed = [wrong_without(name) for name, review in REVIEWED.items() if isinstance(review, Needed)]
    work = [work_without(name) for name, review in REVIEWED_WORK.items() if isinstance(review, Needed)]
    protocols: list[Wrong | WrongAhead | WrongDelivery | WrongWorkflow] = [
        *WRONG, *WRONG_AHEAD, *WRONG_DELIVERIES, *WRONG_WORKFLOWS, *needed, *work,
    ]  # fmt: skip
    missing = []
    for wrong in protocols:
        found = explore(wrong.world(), until=wrong.breaks, limit=LIMIT)
        if wrong.breaks in found.broken:
            print(f"{wrong.name}\n    {found.line(wrong.breaks)}")  # noqa: T201
        else:
            missing.append(f"{wrong.name}: `{wrong.breaks}` was not broken in {found.states:,} states")
    return len(protocols), missing


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def table(rows: list[Row]) -> str:
    head = ["| explored | sets | states | largest | cut | broken |", "|---|---|---|---|---|---|"]
    lines = [
        f"| {r.name} | {r.sets:,} | {r.states:,} | {r.largest:,} | {r.cut} | {len(r.broken)} |" for r in rows
    ]  # fmt: skip
    return "\n".join([*head, *lines])
