"""Proves cases: groups them, plays the groups, judges what they left; whoever broke a group is found by himself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.proof.boundaries import Boundary
from tests.simulation.proof.cases import Case, cases_of, parse_blow
from tests.simulation.proof.evidence import Evidence, is_final
from tests.simulation.proof.invariants import Violation, accounts_balance, violations
from tests.simulation.proof.playing import Player
from tests.simulation.proof.receivers import Receivers
from tests.simulation.proof.scenarios import SCENARIOS
from tests.simulation.proof.trace import boundaries_of
from tests.simulation.stage import Stage, staged

OWN_TASKS = ("steady", "awaiting", "mended")
SIDE_BY_SIDE, ALONE, IN_PAIRS = "side by side", "alone", "in pairs"
SIZES = {SIDE_BY_SIDE: 80, ALONE: 40, IN_PAIRS: 40}


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a case: nothing, if it is as it must be."""

    case: Case
    violations: tuple[Violation, ...]


Heard = Callable[[Verdict], object]


class Prover:
    """A stage of its own, and the traces that were recorded on it."""

    def __init__(self, stage: Stage, receivers: Receivers) -> None:
        self.player = Player(stage, receivers)
        self._traces: dict[str, tuple[Boundary, ...]] = {}
        self._paired: dict[str, set[Boundary]] = {}

    def trace(self, scenario: str) -> tuple[Boundary, ...]:
        """Its boundaries, from a clean run; AssertionError if even that goes wrong."""
        if scenario not in self._traces:
            self._traces[scenario] = self.record(scenario)
        return self._traces[scenario]

    def record(self, scenario: str) -> tuple[Boundary, ...]:
        """The same, from a run of now."""
        (evidence,) = self.player.play([Case(scenario, ())], alone=True)
        found = violations(evidence)
        assert not found, found
        return tuple(boundaries_of(self.player.runs[0]))

    def cases(self, scenario: str) -> list[Case]:
        """All with one blow."""
        given = [*map(parse_blow, SCENARIOS[scenario].given)]
        every = cases_of(scenario, self.trace(scenario), given)
        if not given:
            return every
        beside = self._beside_a_mate(scenario)
        return [case for case in every if not case.has_mate or case.blows[0].boundary in beside]

    def _beside_a_mate(self, scenario: str) -> set[Boundary]:
        """What is struck in any case strikes its mate as well, who then comes back in another way than alone."""
        if scenario not in self._paired:
            self.player.play([Case(scenario, ())], mates=True)
            run = self.player.runs[0]
            became = [one for one in run.chronicle.became if one.job_id == run.job_id]
            over = next(one.number for one in became if is_final(one.record))
            late = {turn for turn, one in enumerate(run.invocations("worker"), 1) if one.number > over}
            met = boundaries_of(run)  # a message that is left over comes in a batch by luck
            self._paired[scenario] = {one for one in met if one.function != "worker" or one.turn not in late}
        return self._paired[scenario]

    def prove(self, cases: Sequence[Case], heard: Heard = lambda verdict: None) -> list[Verdict]:
        """All of them, of whichever scenario. `heard` gets each verdict as soon as it is known."""
        verdicts = []
        for way, group in groups(cases):
            for verdict in self._judged(group, way):
                heard(verdict)
                verdicts.append(verdict)
        return verdicts

    def _judged(self, group: Sequence[Case], way: str) -> Iterator[Verdict]:
        """A case that never met its fault beside the others meets it alone, or shows that it cannot."""
        try:
            seen = self._play(group, way)
        except Exception as error:  # whatever it is, it is a finding
            if len(group) == 1:
                yield Verdict(
                    group[0], (Violation(str(group[0]), "comes_to_rest", f"{type(error).__name__}: {error}"),)
                )
                return
            for case in group:
                yield from self._judged([case], way)
            return
        for case, about in seen.items():
            if len(group) > 1 and not about[0].struck:
                yield from self._judged([case], IN_PAIRS if case.has_mate else ALONE)
            else:
                yield Verdict(case, tuple(one for evidence in about for one in violations(evidence)))

    def _play(self, group: Sequence[Case], way: str) -> dict[Case, list[Evidence]]:
        """What each case left behind, its mate's after its own."""
        evidence = self.player.play(group, mates=way == IN_PAIRS, alone=way == ALONE)
        unbalanced = list(accounts_balance(evidence))
        assert not unbalanced, unbalanced
        share = len(evidence) // len(group)
        return {case: evidence[number * share : (number + 1) * share] for number, case in enumerate(group)}


def way_of(case: Case) -> str:
    if case.has_mate:
        return IN_PAIRS
    return ALONE if case.is_serial else SIDE_BY_SIDE


def groups(cases: Sequence[Case]) -> Iterator[tuple[str, list[Case]]]:
    """Cases that are played together, and how. Those whose batches are disturbed by one another are kept apart."""
    found: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        way = way_of(case)
        apart = case.blows[0].boundary.function if way == IN_PAIRS else ""
        found.setdefault((way, case.scenario, apart), []).append(case)
    for (way, *_), together in found.items():
        size = SIZES[way]
        yield from ((way, together[at : at + size]) for at in range(0, len(together), size))


def sample(cases: Sequence[Case], share: float, seed: object) -> list[Case]:
    """A seeded share of them, at least one, in their order."""
    count = max(1, round(share * len(cases)))
    chosen = set(random.Random(str(seed)).sample(range(len(cases)), min(count, len(cases))))
    return [case for number, case in enumerate(cases) if number in chosen]


@contextmanager
def proving(folder: Path) -> Iterator[Prover]:
    """A stack of its own, its code in `folder`."""
    with staged(folder, *OWN_TASKS) as stage, Receivers() as receivers:
        yield Prover(stage, receivers)
