"""The virtual clock moves everybody's wall clock, and nobody's patience."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from moto.core.utils import utcnow

from local.clock import VirtualClock

SLOW_S = 600
"""What a slow machine may need at most between two lines; skips are far longer."""


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as running:
        yield running


def test_every_reading_of_the_time_skips_together(clock):
    real = datetime.now(UTC)
    clock.advance(36_000)
    expected = real + timedelta(hours=10)
    readings = [
        clock.now(),
        datetime.now(UTC),
        datetime.fromtimestamp(time.time(), UTC),
        datetime.fromtimestamp(time.time_ns() / 1e9, UTC),
        utcnow().replace(tzinfo=UTC),
    ]
    assert all(timedelta(0) <= reading - expected < timedelta(seconds=SLOW_S) for reading in readings)
    assert clock.offset_s == 36_000


def test_monotonic_time_stays_real(clock):
    started = time.monotonic()
    clock.advance(86400)
    assert time.monotonic() - started < SLOW_S


def test_the_clock_ticks_between_skips(clock):
    first = clock.now()
    time.sleep(0.01)
    assert clock.now() > first


def test_callbacks_hear_of_every_skip(clock):
    heard: list[float] = []
    clock.on_advance(heard.append)
    clock.advance(10)
    clock.advance(2.5)
    assert heard == [10, 12.5]


def test_the_clock_does_not_go_back(clock):
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)


def test_a_clock_that_was_not_started_cannot_skip():
    with pytest.raises(RuntimeError, match="not started"):
        VirtualClock().advance(1)


def test_stopping_gives_the_real_time_back():
    before = time.time()
    with VirtualClock() as clock:
        clock.advance(10_000)
    assert time.time() - before < SLOW_S


def test_another_process_starts_ahead_and_catches_up():
    real = time.time()
    with VirtualClock(offset_s=10_000) as child:
        assert 10_000 <= time.time() - real < 10_000 + SLOW_S
        child.synchronise(25_000)
        assert 25_000 <= time.time() - real < 25_000 + SLOW_S
        child.synchronise(20_000)
        assert child.offset_s == 25_000


def test_a_clock_is_right_from_the_start_though_its_thread_has_stood_still(monkeypatch):
    """Between a reading of the real time and one of its own."""
    real, read = time_machine.escape_hatch.time.time, list[float]()

    def slowly() -> float:
        read.append(real())
        if len(read) == 1:
            time.sleep(0.3)
        return read[-1]

    monkeypatch.setattr(time_machine.escape_hatch.time, "time", slowly)
    with VirtualClock():
        before, shown, after = real(), time.time(), real()
    assert before - 0.1 < shown < after + 0.1


def test_starting_and_stopping_twice_does_no_harm():
    before, clock = time.time(), VirtualClock()
    clock.start()
    clock.start()
    clock.advance(10_000)
    clock.stop()
    clock.stop()
    assert time.time() - before < SLOW_S
    assert time.time_ns() / 1e9 - before < SLOW_S


def test_the_time_zone_of_the_process_is_left_alone():
    before = time.tzname
    with VirtualClock():
        assert time.tzname == before
