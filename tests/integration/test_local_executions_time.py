"""Whose time is over first, a function's or its state's: by the virtual clock, however late a thread hears of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.aws.patches import stepfunctions
from local.clock import VirtualClock
from local.executions.calls import Begins, FailedError
from local.executions.timekeeping import Timekeeper
from tests.integration.local_plays import Script, Watched, task

STATE_S, FUNCTION_S = 1_000, 200


class Skipping(Script):
    """A function during which the clock skips past both times; then it ends as it is told."""

    def __init__(self, clock: VirtualClock, ends: Callable[[], Any], *, outlives: bool) -> None:
        super().__init__()
        self.clock, self.ends, self.outlives = clock, ends, outlives

    def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
        assert begins(FUNCTION_S, lambda: self.outlives)
        self.clock.advance(STATE_S + FUNCTION_S)
        return self.ends()


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    stepfunctions.install()
    with VirtualClock() as clock:
        yield clock
    stepfunctions.remove()


def error_of(clock: VirtualClock, script: Script) -> str | None:
    return Watched(Timekeeper(clock), task(TimeoutSeconds=STATE_S), script).run()[2]


def test_a_function_that_was_killed_at_its_deadline_is_waited_for_until_its_state_has_heard_of_it(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = stepfunctions._Event.set

    def late(event: Any) -> None:
        time.sleep(0.3)
        tell(event)

    def killed() -> Any:
        raise FailedError("Sandbox.Timedout", "c")

    monkeypatch.setattr(stepfunctions._Event, "set", late)
    assert error_of(clock, Skipping(clock, killed, outlives=False)) == "Sandbox.Timedout"


def test_a_function_that_outlives_its_deadline_is_not_waited_for(clock: VirtualClock) -> None:
    go_on = threading.Event()
    assert error_of(clock, Skipping(clock, lambda: go_on.wait(300), outlives=True)) == "States.Timeout"
    go_on.set()


def test_the_time_of_a_state_counts_from_when_its_task_begins(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees the function at work may skip the clock before the state's own thread has come to its wait."""
    go_on, wait = threading.Event(), stepfunctions._Event.wait

    def late(event: Any, timeout: float) -> bool:
        clock.advance(STATE_S + 1)
        return wait(event, timeout)

    class Working(Script):
        def call(self, role_arn: str, function: str, payload: Any, begins: Begins) -> Any:
            assert begins(2 * STATE_S, lambda: False)
            go_on.wait(300)

    monkeypatch.setattr(stepfunctions._Event, "wait", late)
    assert error_of(clock, Working()) == "States.Timeout"
    go_on.set()
