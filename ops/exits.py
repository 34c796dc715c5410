"""How a command ends: the exit codes that scripts can rely on, and the failure that carries one."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes. docs/operations.md and `--help` list them."""

    OK = 0
    BAD = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    FORBIDDEN = 6
    INTERRUPTED = 130
    PIPE = 141


MEANINGS = {
    Exit.OK: "all right",
    Exit.BAD: "it was done or looked at, and what was asked about ended badly",
    Exit.USAGE: "the command or the request is wrong",
    Exit.NOT_FOUND: "there is no such thing, or it was deleted",
    Exit.REFUSED: "its state forbids that",
    Exit.UNREACHABLE: "the API cannot be reached, or gives no answer of its own",
    Exit.FORBIDDEN: "not permitted",
    Exit.INTERRUPTED: "interrupted",
    Exit.PIPE: "whoever read the output has gone",
}


class Failure(Exception):
    """A command cannot go on. The message says why and, where there is one, the way out."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code


def usage(message: str) -> Failure:
    return Failure(Exit.USAGE, message)
