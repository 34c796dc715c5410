"""One process's share of a run: it is told on stdin what to prove, and tells on stdout, line by line, what it found."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from tests.simulation.proof.cases import Case, parse
from tests.simulation.proof.pairs import pairs_of, sample_of_pairs
from tests.simulation.proof.proving import Prover, Verdict, proving, sample, way_of

Order = dict[str, Any]
PARTS = {"side by side": 2, "alone": 3, "in pairs": 1}


def orders(scenarios: Sequence[str], chosen: Sequence[str], how: Order) -> list[Order]:
    """The pieces of a run, the longest kind first; each is proven by one process in one go."""
    if chosen:
        return [{"cases": list(chosen)}]
    return [
        {"scenario": scenario, "way": way, "part": part, "parts": parts, **how}
        for scenario in scenarios
        for way, parts in PARTS.items()
        for part in range(parts)
    ]


def serve(orders_in: IO[str], told_to: IO[str]) -> None:
    """Until there are no more orders."""
    logging.disable(logging.WARNING)  # that records are given up is no news where nobody listens to the stream

    def tell(**what: Any) -> None:
        told_to.write(json.dumps(what) + "\n")
        told_to.flush()

    with tempfile.TemporaryDirectory() as folder, proving(Path(folder)) as prover:
        tell(ready=True)
        for line in orders_in:
            began = time.monotonic()
            order = json.loads(line)
            cases = _cases(prover, order)
            for scenario in dict.fromkeys(case.scenario for case in cases):
                tell(scenario=scenario, boundaries=len(prover.trace(scenario)))

            def heard(verdict: Verdict) -> None:
                nonlocal began
                now = time.monotonic()
                found = [asdict(one) for one in verdict.violations]
                tell(case=str(verdict.case), scenario=verdict.case.scenario, violations=found, seconds=now - began)
                began = now

            prover.prove(cases, heard)
            tell(ready=True)


def _cases(prover: Prover, order: Order) -> list[Case]:
    if "cases" in order:
        return [parse(name) for name in order["cases"]]
    scenario, share, seed = order["scenario"], order["sample"], f"{order['seed']}/{order['scenario']}"
    every = prover.cases(scenario)
    if order["pairs"]:
        blows = sum(not case.has_mate for case in every)
        count = round(share * blows * (blows - 1) / 2)
        chosen = list(pairs_of(every)) if share >= 1 else sample_of_pairs(every, max(1, count), seed)
    else:
        chosen = sample(every, share, seed)
    return [case for case in chosen if way_of(case) == order["way"]][order["part"] :: order["parts"]]


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
