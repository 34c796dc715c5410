"""The client's time in its tests: it passes by the client's own pauses, and a server that is slow is waited for."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import httpx
import pytest

PATIENT_S = 100.0  # real seconds, for a server that does answer


def passing(patch: pytest.MonkeyPatch, *modules: str) -> list[float]:
    """Gives these modules of the client a clock that passes by pauses alone, which take no time, and a little by each
    look at it. Answers the pauses."""
    made: list[float] = []
    looks = itertools.count()

    def now() -> float:
        look = next(looks)
        assert look < 100_000, "it waits for ever"
        return sum(made) + look / 1_000

    clock = SimpleNamespace(sleep=made.append, monotonic=now)
    for module in modules:
        patch.setattr(f"neverdrop_client.{module}.time", clock)
    patch.setattr("neverdrop_client.closing.Closing.pause", lambda _self, seconds: made.append(seconds))
    return made


def patient_requests(patch: pytest.MonkeyPatch) -> None:
    """Each waits for its answer, also where it has less time than that by the clock that the client sees."""
    patch.setattr("neverdrop_client.http._timeout", lambda _left_s: httpx.Timeout(PATIENT_S))


def patient_sockets(patch: pytest.MonkeyPatch) -> None:
    """A WebSocket is given up for what is said over it, and not because a machine is slow. Its end takes no time."""
    for name in ("OPENING_S", "ANSWER_S", "IDLE_S"):
        patch.setattr(f"neverdrop_client.sockets.{name}", PATIENT_S)
    patch.setattr("neverdrop_client.sockets.CLOSING_S", 0.1)
