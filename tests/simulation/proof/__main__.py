"""`python -m tests.simulation.proof`: proves all cases, or some, on several processes; exit 1 for a violation."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any

from tests.simulation.proof import share
from tests.simulation.proof.scenarios import SCENARIOS
from tests.simulation.proof.table import Line, shown, written

EVERY_S = 15.0


class Proof:
    """What the processes are still to do, and what they have told."""

    def __init__(self, orders: list[share.Order]) -> None:
        self.lines: dict[str, Line] = {}
        self._orders = orders
        self._lock = threading.Lock()
        self._said = time.monotonic()

    def next(self, known: Collection[str]) -> share.Order | None:
        """A piece for a process that has recorded these scenarios: one of those, if any is left."""
        with self._lock:
            if not self._orders:
                return None
            at = next((n for n, order in enumerate(self._orders) if order.get("scenario") in known), 0)
            return self._orders.pop(at)

    def hear(self, told: dict[str, Any]) -> None:
        if "scenario" not in told:
            return
        with self._lock:
            line = self.lines.setdefault(told["scenario"], Line(told["scenario"]))
            line.boundaries = told.get("boundaries", line.boundaries)
            if "case" in told:
                line.add(told["case"], told["violations"])
                line.seconds += told["seconds"]
                for violation in told["violations"]:
                    _say(shown(violation))
            self._say_how_far()

    def _say_how_far(self) -> None:
        if time.monotonic() - self._said >= EVERY_S:
            self._said = time.monotonic()
            done = sum(line.cases for line in self.lines.values())
            wrong = sum(len(line.violations) for line in self.lines.values())
            _say(f"{done} cases, {wrong} violations, {len(self._orders)} pieces left")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _serve(proof: Proof, failed: list[int]) -> None:
    """One process, fed as long as there are orders."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.simulation.proof.share"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    known = set[str]()
    assert process.stdin is not None
    assert process.stdout is not None
    for line in process.stdout:
        told = json.loads(line)
        proof.hear(told)
        if told.get("ready"):
            order = proof.next(known)
            if order is None:
                process.stdin.close()
                break
            known.add(str(order.get("scenario")))
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
    process.stdout.close()
    failed.append(process.wait())


def prove(orders: list[share.Order], shares: int) -> Proof:
    """By so many processes at once. RuntimeError if one of them ended badly: then nothing is proven."""
    proof, failed = Proof(orders), list[int]()
    threads = [threading.Thread(target=_serve, args=(proof, failed)) for _ in range(shares)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(failed) or len(failed) < shares:
        raise RuntimeError(f"a process ended with {failed}: not everything was proven")
    return proof


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.proof", description=__doc__)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this one; may be repeated")
    parser.add_argument("--case", nargs="+", default=[], help="only these, by name: plain@worker:model/crash")
    parser.add_argument("--sample", type=float, default=1.0, help="a share of the cases, from 0 to 1")
    parser.add_argument("--seed", default="neverdrop", help="of the sample")
    parser.add_argument("--pairs", action="store_true", help="two faults in each case")
    parser.add_argument("--shares", type=int, default=2, help="processes, a stack each")
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    how = {"sample": asked.sample, "seed": asked.seed, "pairs": asked.pairs}
    orders = share.orders(asked.scenario or list(SCENARIOS), asked.case, how)
    proof = prove(orders, min(asked.shares, len(orders)))
    lines = [proof.lines[name] for name in SCENARIOS if name in proof.lines]
    sys.stdout.write(written(lines, time.monotonic() - began) + "\n")
    return int(any(line.violations for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
