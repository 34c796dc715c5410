"""Takes each safety line of lambdas/ away in turn and lets its tests say so: `python -m tests.mutants`.

Ends with 1 when a line can be taken away without anybody noticing, or when nothing can be said of one."""

from __future__ import annotations

import argparse
import os
import queue
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.catalogue import ALL
from tests.mutants.safety_line import BadAnchor, SafetyLine
from tests.mutants.workshop import ROOT, Fate, Verdict, Workshop

FATES: tuple[Fate, ...] = ("caught", "SURVIVED", "broken")


def main() -> int:
    asked = _arguments()
    lines = chosen(asked)
    if asked.list:
        for line in lines:
            _say(f"{line.path}: {line.name}\n    {line.guards}\n    {' '.join(line.tests)}")
        return 0
    _say(f"{len(lines)} safety lines, {asked.jobs} at a time; each is taken away, and its tests must turn red.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neverdrop-mutants-") as folder:
        troubles, verdicts = Foreman(lines, Path(folder), asked.jobs).work()
    for trouble in troubles:
        _say(f"broken: {trouble}")
    _summary(verdicts, time.monotonic() - began)
    return int(bool(troubles) or len(verdicts) < len(lines) or any(one.fate != "caught" for one in verdicts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="lines whose name has this text in it")
    parser.add_argument("--file", metavar="PATH", help="lines of files whose path has this text in it")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of them, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="copies that work at the same time")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    return parser.parse_args()


def chosen(asked: argparse.Namespace) -> Sequence[SafetyLine]:
    found = [one for one in ALL if (asked.only or "") in one.name and (asked.file or "") in one.path]
    if asked.sample is not None:
        kept = set(random.Random(asked.seed).sample(range(len(found)), min(asked.sample, len(found))))
        found = [one for position, one in enumerate(found) if position in kept]
    if not found:
        sys.exit("no safety line is meant by that")
    for one in found:
        try:
            one.taken_from((ROOT / one.path).read_text(encoding="utf-8"))
        except BadAnchor as drifted:
            sys.exit(str(drifted))
    return found


class Foreman:
    """Hands the lines to so many workshops, and tells what becomes of each."""

    def __init__(self, lines: Sequence[SafetyLine], folder: Path, jobs: int) -> None:
        self._lines, self._folder, self._jobs = lines, folder, max(1, min(jobs, len(lines)))
        self._todo: queue.SimpleQueue[SafetyLine] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self.verdicts: list[Verdict] = []
        self.troubles: list[str] = []

    def work(self) -> tuple[list[str], list[Verdict]]:
        """What is wrong without any mutant, and the verdicts."""
        for line in self._lines:
            self._todo.put(line)
        shares = [self._share(number) for number in range(self._jobs)]
        threads = [
            threading.Thread(target=self._workshop, args=(number, shares[number]), daemon=True)
            for number in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.troubles, self.verdicts

    def _share(self, number: int) -> list[str]:
        """This workshop's part of the tests that are named, whole files to one."""
        tests = sorted({test for line in self._lines for test in line.tests})
        files = sorted({test.partition("::")[0] for test in tests})
        own = set(files[number :: self._jobs])
        return [test for test in tests if test.partition("::")[0] in own]

    def _workshop(self, number: int, unchanged: Sequence[str]) -> None:
        """First the tests on the code as it is: what is red by itself proves nothing."""
        try:
            with Workshop(self._folder / str(number)) as workshop:
                if unchanged:
                    seen = workshop.run(unchanged)
                    reds = [f"{red['test']} is red without any mutant" for red in seen.reds]
                    self._troubled([*reds, *seen.unusable, *([seen.trouble] if seen.trouble else [])])
                while not self.troubles:
                    self._told(workshop.judge(self._todo.get_nowait()))
        except queue.Empty:
            pass
        except Exception as error:
            self._troubled([f"{type(error).__name__}: {error}"])

    def _troubled(self, troubles: list[str]) -> None:
        with self._lock:
            self.troubles += troubles

    def _told(self, verdict: Verdict) -> None:
        with self._lock:
            self.verdicts.append(verdict)
            line, at = verdict.line, f"{len(self.verdicts):3}/{len(self._lines)}"
            _say(f"{at} {verdict.fate:8} {verdict.seconds:5.1f} s  {line.name}  [{line.guards}]  by {verdict.by}")


def _summary(verdicts: Sequence[Verdict], seconds: float) -> None:
    """A row for each file, and the lines that nobody guards."""
    counts: dict[str, Counter[Fate]] = {}
    for one in verdicts:
        counts.setdefault(one.line.path, Counter())[one.fate] += 1
    width = max(map(len, [*counts, "file"]))
    _say(f"\n{'file':{width}}  lines  caught  SURVIVED  broken")
    for path, fates in sorted(counts.items()):
        _say(f"{path:{width}} {fates.total():6} {fates['caught']:7} {fates['SURVIVED']:9} {fates['broken']:7}")
    all_ = Counter(one.fate for one in verdicts)
    _say(f"{'all':{width}} {all_.total():6} {all_['caught']:7} {all_['SURVIVED']:9} {all_['broken']:7}")
    for one in verdicts:
        if one.fate == "SURVIVED":
            _say(f"\nNobody notices that {one.line.path} has lost: {one.line.name}\n    {one.line.guards}")
        elif one.fate == "broken":
            _say(f"\nNothing is said about {one.line.name} in {one.line.path}: {one.by}")
    _say(f"\n{all_['caught']} of {len(verdicts)} safety lines are caught, in {seconds:.0f} s.")


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    sys.exit(main())
