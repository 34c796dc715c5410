"""Asynchronous invocations, against a function that is told what to answer: when its retries are due, by the clock."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from local.clock import VirtualClock
from local.compute.invocation import Invocation
from local.events.asynchronous import AsyncInvoker, AsyncSettings
from local.events.bells import Bell
from local.events.lineage import Lineages
from tests.integration.local_toys import eventually


class FailingFunction:
    """Stands for local.compute's Functions."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.begun_s: list[float] = []
        self.ended_s: list[float] = []
        self.skip_s = 0.0

    def definition(self, role: str) -> Any:
        return SimpleNamespace(
            arn="arn:aws:lambda:us-east-1:123456789012:function:toy",
            execution_role_arn="arn:aws:iam::123456789012:role/toy",
        )

    def invoke(self, role: str, event: Any, **_: Any) -> Invocation:
        self.begun_s.append(self._now())
        outcome = Invocation(role, "r", error={"errorType": "ValueError"}, ended_s=self._now())
        self.ended_s.append(outcome.ended_s)
        if self.skip_s:
            self.clock.advance(self.skip_s)  # by a test that has seen the end before its invoker has
        return outcome

    def _now(self) -> float:
        return self.clock.now().timestamp()


class Bench:
    def __init__(self, clock: VirtualClock, **settings: Any) -> None:
        self.function = FailingFunction(clock)
        self.letters: list[dict[str, Any]] = []
        self.invoker = AsyncInvoker(
            self.function,  # type: ignore[arg-type]
            {"toy": AsyncSettings(on_failure="queue", **settings)},
            Bell(clock),
            lambda _, message, __: self.letters.append(json.loads(message)),
            Lineages(),
        )


Make = Callable[..., Bench]


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


@pytest.fixture
def made(clock: VirtualClock) -> Iterator[Make]:
    """Makes benches, and ends their threads."""
    benches: list[Bench] = []

    def make(**settings: Any) -> Bench:
        benches.append(Bench(clock, **settings))
        return benches[-1]

    yield make
    for bench in benches:
        bench.invoker.stop()


def test_a_retry_is_due_so_long_after_the_end_however_late_its_invoker_hears_of_it(made: Make) -> None:
    bench = made(retries=2)
    bench.function.skip_s = 121
    bench.invoker.submit("toy", {"number": 1})
    (letter,) = eventually(lambda: bench.letters, 100)  # less than the waits of 60 and 120 s together
    assert letter["requestContext"]["condition"] == "RetriesExhausted"
    assert len(bench.function.begun_s) == 3


def test_a_retry_does_not_come_before_its_minute(made: Make, clock: VirtualClock) -> None:
    bench = made(retries=1)
    bench.invoker.submit("toy", {})
    (ended_s,) = eventually(lambda: bench.function.ended_s)
    clock.advance(50)
    time.sleep(0.1)  # for one that would not wait so long
    clock.advance(10.1)
    eventually(lambda: bench.letters)
    _, begun_s = bench.function.begun_s
    assert begun_s - ended_s >= 60


def test_an_event_that_has_grown_too_old_is_given_up_without_its_last_tries(made: Make) -> None:
    bench = made(retries=2, oldest_s=60)
    bench.function.skip_s = 61
    bench.invoker.submit("toy", {})
    (letter,) = eventually(lambda: bench.letters)
    assert letter["requestContext"]["condition"] == "EventAgeExceeded"
    assert len(bench.function.begun_s) == 1
