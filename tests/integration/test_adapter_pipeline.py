"""The Workers port on threads: in order, bounded, no thread left behind, and a pace that gives way to throttles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from lambdas.adapters.pipeline import AHEAD, QUEUE, REPEATS, SLOWEST, Pace, Pipeline
from lambdas.core.ports import Unavailable
from tests.fakes import FakeWorkers

WIDTH = 4


class Time:
    """Time that passes only by sleeping, in any thread."""

    def __init__(self) -> None:
        self.at = 1_000.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.at += seconds


def a_pace(time: Time, rate: float = 10_000) -> Pace:
    return Pace(rate, now=time.now, sleep=time.sleep)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pipeline(time: Time) -> Pipeline:
    return Pipeline(WIDTH, a_pace(time))


@pytest.fixture(params=["threads", "fake"])
def workers(request: pytest.FixtureRequest, time: Time) -> Pipeline | FakeWorkers:
    """The port twice: so that the fake of the unit tests cannot lie."""
    return FakeWorkers() if request.param == "fake" else Pipeline(WIDTH, a_pace(time))


def threads() -> int:
    return sum(thread.name.startswith("sweep") for thread in threading.enumerate())


# --- what both promise -------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_items_and_nothing_is_done_for_those_that_need_nothing(
    workers: Pipeline | FakeWorkers,
) -> None:
    acted: list[int] = []

    def act(number: int) -> int:
        acted.append(number)
        return number * number

    found = list(workers.each(range(100), act, needs=lambda number: number % 3 == 0))
    assert found == [(number, number * number if number % 3 == 0 else None) for number in range(100)]
    assert sorted(acted) == list(range(0, 100, 3))


def test_a_trouble_is_the_answer_of_its_item_and_the_others_have_theirs(workers: Pipeline | FakeWorkers) -> None:
    def act(number: int) -> int:
        if number == 2:
            raise Unavailable("two")
        return number

    found = dict(workers.each(range(4), act))
    assert isinstance(found.pop(2), Unavailable)
    assert found == {0: 0, 1: 1, 3: 3}


def test_any_other_error_is_raised(workers: Pipeline | FakeWorkers) -> None:
    def act(number: int) -> int:
        raise ZeroDivisionError(number)

    with pytest.raises(ZeroDivisionError):
        list(workers.each(range(4), act))
    assert threads() == 0


def test_when_there_are_no_more_items_because_a_store_has_failed_what_was_begun_is_told_first(
    workers: Pipeline | FakeWorkers,
) -> None:
    def items() -> Iterator[int]:
        yield from range(10)
        raise Unavailable("the listing")

    told: list[int] = []
    walk = workers.each(items(), told.append)
    with pytest.raises(Unavailable, match="the listing"):
        list(walk)
    assert sorted(told) == list(range(10))


# --- bounds --------------------------------------------------------------------------------------------
def test_items_are_acted_on_at_once_but_no_more_than_there_are_threads(pipeline: Pipeline) -> None:
    meeting, lock, most, here = threading.Barrier(WIDTH, timeout=60), threading.Lock(), [0], [0]

    def act(number: int) -> None:
        with lock:
            here[0] += 1
            most[0] = max(most[0], here[0])
        meeting.wait()
        with lock:
            here[0] -= 1

    list(pipeline.each(range(3 * WIDTH), act))
    assert most[0] == WIDTH


@pytest.mark.parametrize(
    ("needs", "bound"), [(lambda number: True, WIDTH * AHEAD), (lambda number: number == 0, QUEUE)]
)
def test_items_are_taken_only_a_little_ahead_of_the_slowest(
    pipeline: Pipeline, needs: Callable[[int], bool], bound: int
) -> None:
    gate, taken = threading.Event(), [0]

    def items() -> Iterator[int]:
        for number in range(10_000):
            taken[0] = number + 1
            yield number

    walk = pipeline.each(items(), lambda number: gate.wait(300), needs=needs)
    first = threading.Thread(target=lambda: next(walk))
    first.start()
    try:
        while taken[0] < bound and first.is_alive():
            gate.wait(0.001)
        first.join(0.05)
        assert first.is_alive()
        assert taken[0] <= bound + 1
    finally:
        gate.set()
    first.join(60)
    assert not first.is_alive()
    walk.close()  # type: ignore[attr-defined]
    assert threads() == 0


def test_no_thread_is_left_behind_when_the_caller_stops_in_the_middle(pipeline: Pipeline) -> None:
    walk = pipeline.each(range(1_000), lambda number: number)
    next(walk)
    walk.close()  # type: ignore[attr-defined]
    assert threads() == 0


# --- pace ----------------------------------------------------------------------------------------------
def test_acts_are_no_faster_than_the_rate(time: Time) -> None:
    began = time.now()
    list(Pipeline(1, a_pace(time, rate=50)).each(range(101), lambda number: number))
    assert time.now() - began == pytest.approx(2.0)


def test_a_throttled_act_is_repeated_at_half_the_pace_and_the_pace_recovers(time: Time) -> None:
    pace, refusals = a_pace(time, rate=100), iter([True, True])

    def act(number: int) -> int:
        if next(refusals, False):
            raise Unavailable("slow down", throttled=True)
        return number

    pipeline = Pipeline(1, pace)
    assert list(pipeline.each([1], act)) == [(1, 1)]
    assert pace.rate == 30  # halved twice, and one step up
    list(pipeline.each(range(20), act))
    assert pace.rate == 100


def test_what_is_throttled_again_and_again_is_given_up_and_told(time: Time) -> None:
    tried: list[int] = []

    def act(number: int) -> int:
        tried.append(number)
        raise Unavailable("slow down", throttled=True)

    ((_, trouble),) = list(Pipeline(1, a_pace(time)).each([1], act))
    assert isinstance(trouble, Unavailable)
    assert len(tried) == REPEATS


def test_a_trouble_that_is_no_throttle_is_not_repeated(pipeline: Pipeline) -> None:
    tried: list[int] = []

    def act() -> None:
        tried.append(1)
        raise Unavailable("denied")

    with pytest.raises(Unavailable):
        pipeline.call(act)
    assert len(tried) == 1


def test_the_pace_has_a_floor(time: Time) -> None:
    pace = a_pace(time, rate=100)
    for _ in range(50):
        pace.slower()
    assert pace.rate == SLOWEST
    began = time.now()
    pace.wait()
    assert time.now() - began <= 1 / SLOWEST


def test_all_threads_share_one_pace(time: Time) -> None:
    began = time.now()
    list(Pipeline(WIDTH, a_pace(time, rate=100)).each(range(201), lambda number: number))
    assert time.now() - began >= 1.99
