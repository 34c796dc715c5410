"""What a run has shown, for people: one line for each scenario, and one that repeats each violation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.proof.cases import parse


@dataclass
class Line:
    """One scenario's."""

    scenario: str
    boundaries: int = 0
    cases: int = 0
    seconds: float = 0.0
    faults: set[str] = field(default_factory=set)
    violations: list[dict[str, str]] = field(default_factory=list)

    def add(self, name: str, violations: Sequence[dict[str, str]]) -> None:
        """A case and what is wrong with it."""
        self.cases += 1
        self.faults |= {blow.fault for blow in parse(name).blows}
        self.violations += violations


HEAD = ("scenario", "boundaries", "faults", "cases", "violations", "seconds")


def written(lines: Sequence[Line], seconds: float) -> str:
    """The table. Seconds of a scenario are those of its processes, added up; in the last line they are the clock's."""
    rows = [
        (one.scenario, one.boundaries, len(one.faults), one.cases, len(one.violations), round(one.seconds))
        for one in lines
    ]
    faults = {fault for one in lines for fault in one.faults}
    total = (
        "all",
        sum(one.boundaries for one in lines),
        len(faults),
        sum(one.cases for one in lines),
        sum(len(one.violations) for one in lines),
        round(seconds),
    )
    texts = [HEAD, *(tuple(map(str, row)) for row in (*rows, total))]
    widths = [max(len(text[column]) for text in texts) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join([text[0].ljust(widths[0]), *(text[n].rjust(widths[n]) for n in range(1, len(HEAD)))])
        for text in texts
    )


def shown(violation: dict[str, str]) -> str:
    """An invariant that does not hold, why, and how to see it again."""
    case = violation["case"].removesuffix(" (its mate)")
    return f"{violation['case']}\n  {violation['invariant']}: {violation['why']}\n  make prove CASE={shlex.quote(case)}"
