"""Two blows in one case: the second strikes what the first has left."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from tests.simulation.proof.cases import Blow, Case


def pairs_of(cases: Sequence[Case]) -> Iterator[Case]:
    """Every two blows of a scenario at two of its boundaries, in the order of the trace. Without mates: who shares a
    batch after the first blow is left to chance."""
    blows = [case.blows[0] for case in cases if not case.has_mate]
    for first, second in combinations(blows, 2):
        if first.boundary != second.boundary:
            yield Case(cases[0].scenario, (first, second))


def sample_of_pairs(cases: Sequence[Case], count: int, seed: object) -> list[Case]:
    """So many of them, drawn without making them all. They may be fewer: none is drawn twice."""
    blows: list[Blow] = [case.blows[0] for case in cases if not case.has_mate]
    draw = random.Random(str(seed))
    found: dict[Case, None] = {}
    for _ in range(20 * count):
        if len(found) == count:
            break
        first, second = sorted(draw.sample(range(len(blows)), 2))
        if blows[first].boundary != blows[second].boundary:
            found[Case(cases[0].scenario, (blows[first], blows[second]))] = None
    return list(found)
