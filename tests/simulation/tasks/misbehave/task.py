"""Does what no task should do, in the way that its input names."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import Context, task


class Unspeakable(Exception):
    """It fails even at saying why."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class DeadlyToPrint(Exception):
    """Asking it what happened ends the process, if nobody minds."""

    def __str__(self) -> str:
        raise SystemExit(1)


def _raise(error: BaseException) -> Any:
    raise error


def _recurse(depth: int = 0) -> int:
    return 1 + _recurse(depth + 1)


def _grow() -> Any:
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20) * 16))


def _leave_a_thread() -> dict[str, Any]:
    threading.Thread(target=time.sleep, args=(600,), daemon=True, name="left-behind").start()
    return {}


def _print_garbage() -> dict[str, Any]:
    sys.stdout.write('\ud800 {"step": "completed", broken \x00\x1b[31m' + "x" * 100_000)
    sys.stderr.write("%s %d {}\n")
    os.write(1, b"\xff\xfe\n" * 100)
    return {}


def _close_stdout() -> dict[str, Any]:
    sys.stdout.close()
    return {}


def _circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


WAYS: dict[str, Callable[[], Any]] = {
    "exit": lambda: sys.exit(3),
    "recurse": _recurse,
    "set": lambda: {"found": {1, 2}},
    "bytes": lambda: {"found": b"x"},
    "nan": lambda: {"found": float("nan")},
    "surrogate": lambda: {"found": "\ud800"},
    "huge number": lambda: {"found": 10**5_000},
    "circle": lambda: {"found": _circle()},
    "nothing": lambda: None,
    "seven megabytes": lambda: {"found": "x" * 7_000_000},
    "hang": lambda: time.sleep(100_000),
    "grow": _grow,
    "die": lambda: os._exit(1),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leave a thread": _leave_a_thread,
    "print garbage": _print_garbage,
    "close stdout": _close_stdout,
    "unspeakable": lambda: _raise(Unspeakable()),
    "deadly to print": lambda: _raise(DeadlyToPrint()),
    "half a letter": lambda: _raise(ValueError("\ud800\x00\x1b")),
    "a long story": lambda: _raise(ValueError("x" * 10_000_000)),
    "leave the generator": lambda: _raise(GeneratorExit()),
    "interrupt": lambda: _raise(KeyboardInterrupt()),
}


@task("misbehave", retry=RetryPolicy(max_attempts=2, base_s=1, cap_s=2))
def misbehave(task_input: dict[str, Any], ctx: Context) -> Any:
    return WAYS[task_input["how"]]()
