"""The virtual clock moves everybody's wall clock, and nobody's patience."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from moto.core.utils import utcnow

from local.clock import VirtualClock


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as running:
        yield running


def test_every_reading_of_the_time_skips_together(clock):
    real = datetime.now(UTC)
    clock.advance(3600)
    expected = real + timedelta(hours=1)
    readings = [
        clock.now(),
        datetime.now(UTC),
        datetime.fromtimestamp(time.time(), UTC),
        datetime.fromtimestamp(time.time_ns() / 1e9, UTC),
        utcnow().replace(tzinfo=UTC),
    ]
    assert all(timedelta(0) <= reading - expected < timedelta(seconds=5) for reading in readings)
    assert clock.offset_s == 3600


def test_monotonic_time_stays_real(clock):
    started = time.monotonic()
    clock.advance(86400)
    assert time.monotonic() - started < 5


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
    assert time.time() - before < 5


def test_another_process_starts_ahead_and_catches_up():
    real = time.time()
    with VirtualClock(offset_s=100) as child:
        assert 100 <= time.time() - real < 105
        child.synchronise(250)
        assert 250 <= time.time() - real < 255
        child.synchronise(200)
        assert child.offset_s == 250


def test_starting_and_stopping_twice_does_no_harm():
    clock = VirtualClock()
    clock.start()
    clock.start()
    clock.stop()
    clock.stop()
    assert abs(time.time() - time.time_ns() / 1e9) < 1


def test_the_time_zone_of_the_process_is_left_alone():
    before = time.tzname
    with VirtualClock():
        assert time.tzname == before
