"""Where something can happen to a job: a call that a function makes for it, or the two ends of an invocation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from local.faults import HANDLER, INVOKE

MODEL, CONVERSE, CONVERSE_STREAM = "bedrock", "Converse", "ConverseStream"
RECEIVER, POST = "receiver", "Post"
SERIAL = ("sweep",)
"""Functions of which one invocation is about every job there is: their jobs are played one by one."""
TURNLESS = ("push", "socket")
"""Functions of which it is open how many invocations a job takes: what is struck is the first that comes so far."""

_TEXT = re.compile(r"(?P<function>[a-z]+)(\.(?P<turn>\d+))?:(?P<place>[A-Za-z0-9]+(\.[A-Za-z0-9]+)?)(#(?P<nth>\d+))?")
_SHORT = {
    "handler": (HANDLER, INVOKE),
    "model": (MODEL, CONVERSE),
    "stream": (MODEL, CONVERSE_STREAM),
    "receiver": (RECEIVER, POST),
}


@dataclass(frozen=True)
class Boundary:
    """The `nth` call of its kind that names the job, in the function's `turn`-th invocation for the job."""

    function: str
    service: str
    operation: str
    nth: int = 1
    turn: int = 1

    @property
    def at_handler(self) -> bool:
        return self.service == HANDLER

    @property
    def at_model(self) -> bool:
        return self.service == MODEL

    @property
    def in_stream(self) -> bool:
        return self.operation == CONVERSE_STREAM

    @property
    def at_receiver(self) -> bool:
        return self.service == RECEIVER

    @property
    def is_outside(self) -> bool:
        """Whether it is no call to AWS."""
        return self.at_model or self.at_receiver

    @property
    def is_serial(self) -> bool:
        return self.function in SERIAL

    def __str__(self) -> str:
        turn = f".{self.turn}" if self.turn > 1 else ""
        short = next((name for name, place in _SHORT.items() if place == (self.service, self.operation)), None)
        if short is None:
            return f"{self.function}{turn}:{self.service}.{self.operation}#{self.nth}"
        return f"{self.function}{turn}:{short}" + (f"#{self.nth}" if self.nth > 1 else "")


def parse(text: str) -> Boundary:
    """The boundary with this name. ValueError for any other text."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no boundary: function[.turn]:service.Operation[#nth], or :{', :'.join(_SHORT)}")
    service, _, operation = found["place"].partition(".")
    if not operation:
        service, operation = _SHORT[service]
    return Boundary(found["function"], service, operation, int(found["nth"] or 1), int(found["turn"] or 1))
