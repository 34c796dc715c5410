"""Processes that end with whoever started them, and everything that they started in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE_S = 10.0


class EndedError(Exception):
    """A step that had to succeed did not. Says which, and with what it ended."""


@contextmanager
def running(
    *words: str | Path, env: Mapping[str, str], cwd: Path, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which ends with the block. It writes to `log`, else to where we write."""
    out = log.open("wb") if log else None
    process = subprocess.Popen(words, env=env, cwd=cwd, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        _end(process)
        if out:
            out.close()


def run(*words: str | Path, env: Mapping[str, str], cwd: Path, log: Path | None = None) -> None:
    """One step, to its end. Raises EndedError unless that is 0."""
    with running(*words, env=env, cwd=cwd, log=log) as process:
        status = process.wait()
    if status != 0:
        raise EndedError(f"{' '.join(map(str, words[:6]))} … ended with {status}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """First by asking. Its group may outlive it, and is not asked."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
    with suppress(ProcessLookupError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


def eventually(look: Callable[[], object], *, patience_s: float) -> None:
    """Wait until `look()` is true. Raises TimeoutError."""
    until = time.monotonic() + patience_s
    while not look():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {patience_s:.0f} s")
        time.sleep(0.2)
