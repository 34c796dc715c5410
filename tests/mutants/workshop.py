"""Copies of the repository in which one safety line at a time is taken away and its tests are run."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from types import TracebackType
from typing import Any, Literal

from tests.mutants.remembered import FOLDER
from tests.mutants.safety_line import SafetyLine
from tests.mutants.witness import MARK, MODULE, REPORT

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".*", "cdk.out", "__pycache__", "node_modules")
COMPILED = ("lambdas", "local", "infra", "tests")
ASSEMBLIES, WITNESSED, LOG = ".assemblies", ".witness.json", ".session.log"
SESSION_S = 300
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "pytest_socket")
PLUGINS = ("-p", "tests.mutants.witness", "-p", "tests.mutants.remembered")

# What a mutant that cannot run raises: it proves nothing.
CANNOT_RUN = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError"})
NO_EXPRESSION = "(ValidationException) when calling"  # nor does a condition that DynamoDB does not take

Fate = Literal["caught", "SURVIVED", "broken"]


@dataclass(frozen=True)
class Seen:
    """What the witness of one session told."""

    reds: Sequence[dict[str, str]] = ()
    unusable: Sequence[str] = ()
    passed: int = 0
    mark: str | None = None
    file: str | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; `by`: the test that caught it, or why nothing can be said."""

    fate: Fate
    by: str
    seconds: float
    line: SafetyLine = field(repr=False)


class Workshop:
    """One copy of the repository, and a process in it that runs sessions of pytest. That what is imported there is the
    mutant is not assumed: `judged` holds every session to it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._forge: subprocess.Popen[str] | None = None

    def __enter__(self) -> Workshop:
        """Bytecode is checked by the hash of its source, so that no mutant is taken for the text before it."""
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        (self.root / ASSEMBLIES).mkdir(exist_ok=True)
        for folder in COMPILED:
            compileall.compile_dir(self.root / folder, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._forge = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.forge"],
            cwd=self.root,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._forge is not None
        assert self._forge.stdin is not None
        self._forge.stdin.close()
        self._forge.wait()

    def judge(self, line: SafetyLine) -> Verdict:
        """Take the line away, run its tests, and put it back."""
        began, path = time.monotonic(), self.root / line.path
        source = path.read_text(encoding="utf-8")
        try:
            path.write_text(f'{line.taken_from(source)}\n{MARK} = "{line.name}"\n', encoding="utf-8")
            seen = self.run(line.tests, line.module)
        finally:
            path.write_text(source, encoding="utf-8")
        fate, by = judged(line, seen, path)
        return Verdict(fate, by, time.monotonic() - began, line)

    def run(self, tests: Sequence[str], module: str = "", *options: str) -> Seen:
        """One session of pytest on the copy as it stands."""
        report, log = self.root / WITNESSED, self.root / LOG
        report.unlink(missing_ok=True)
        asked = {
            "arguments": [*PYTEST, *PLUGINS, *options, "--rootdir", str(self.root), *tests],
            "variables": {REPORT: str(report), MODULE: module, FOLDER: str(self.root / ASSEMBLIES)},
            "seconds": SESSION_S,
            "log": str(log),
        }
        code = self._ask(asked)
        if not report.exists():
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            return Seen(trouble=f"the session ended with {code}: {''.join(last)[:200]}")
        seen: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return Seen(**seen)

    def _ask(self, asked: dict[str, Any]) -> int:
        assert self._forge is not None
        assert self._forge.stdin is not None
        assert self._forge.stdout is not None
        print(json.dumps(asked), file=self._forge.stdin, flush=True)
        return int(json.loads(self._forge.stdout.readline()))


def judged(line: SafetyLine, seen: Seen, path: Path) -> tuple[Fate, str]:
    """Red counts only if the tests ran on the mutant, and failed for what it does rather than for being no program."""
    if seen.trouble or seen.unusable:
        return "broken", seen.trouble or seen.unusable[0]
    if seen.mark != line.name or seen.file is None or Path(seen.file).resolve() != path:
        return "broken", f"the tests never imported the changed {line.path}"
    for red in seen.reds:
        if red["error"] in CANNOT_RUN or NO_EXPRESSION in red["said"]:
            return "broken", f"{red['error']} in {red['test']}: {red['said'][:200]}"
        if red["when"] == "call":
            return "caught", red["test"]
    if seen.reds:
        return "broken", f"{seen.reds[0]['error']} in the {seen.reds[0]['when']} of {seen.reds[0]['test']}"
    return ("SURVIVED", "nobody") if seen.passed else ("broken", "no test was run")
