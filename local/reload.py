"""Notices that the functions' code has changed, and has it imported anew."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path

from local.compute.environments import Functions

_PERIOD_S = 0.5


class Reloader:
    """Looks at the files' times twice a second, on a thread of its own."""

    def __init__(self, folder: Path, functions: Functions, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._functions = functions
        self._say = say
        self._seen = self._look()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_PERIOD_S):
            seen = self._look()
            if seen != self._seen:
                changed = [path for path in {*seen, *self._seen} if seen.get(path) != self._seen.get(path)]
                self._seen = seen
                self._say(f"changed: {', '.join(sorted(path.name for path in changed))}")
                for path in changed:
                    _forget_bytecode(path)
                self._functions.reload()

    def _look(self) -> dict[Path, int]:
        found: dict[Path, int] = {}
        for path in self._folder.rglob("*"):
            if path.suffix in (".py", ".json", ".txt", ".md"):
                try:
                    found[path] = path.stat().st_mtime_ns
                except FileNotFoundError:  # an editor replaces a file by moving another over it
                    continue
        return found


def _forget_bytecode(path: Path) -> None:
    """Python tells by whole seconds and size whether bytecode is stale: two quick edits may escape it."""
    if path.suffix == ".py":
        Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
