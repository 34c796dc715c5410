"""Each function is killed, held up and starved at each of its calls in turn; each job ends right all the same.

The scenarios of a group run side by side on one stack, one message and one record at a time, each job struck once at a
point of its own; each test looks at what one of them left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lambdas.core.sweeping.batches import CROWD
from tests.simulation import plays
from tests.simulation.expectations import assert_ends_right
from tests.simulation.plays import Evidence, Play, Scenario
from tests.simulation.points import (
    ACCEPT,
    ACCEPT_LARGE,
    ANSWER,
    HAND_OVER,
    INPUT,
    KILLS,
    LETTER,
    MODEL,
    MODEL_STRIKES,
    SAVE,
    SEND,
    STRIKES,
    SWEEP_BEGIN,
    SWEEP_CERTIFY,
    SWEEP_CLOSE,
    SWEEP_DEPTH,
    SWEEP_END,
    SWEEP_EXPIRE,
    SWEEP_GIVE_BACK,
    SWEEP_LETTER,
    SWEEP_LOOK,
    SWEEP_LOOK_BACK,
    SWEEP_MARK,
    SWEEP_OPEN,
    SWEEP_PUBLISH,
    SWEEP_PUSH,
    SWEEP_READ,
    SWEEP_REAP,
    SWEEP_SEND,
    SWEEP_TAKE,
    WORKER,
    WORKER_FAILING,
    WORKER_LARGE,
    Point,
)
from tests.simulation.stage import SWEEP_LEASE_S, Stage

pytestmark = pytest.mark.slow

Evidences = dict[Scenario, Evidence]


def each(situation: str, *points: Point) -> list[Scenario]:
    return [Scenario(point, strike, situation) for point in points for strike in STRIKES]


GROUPS: dict[str, tuple[Callable[[Stage, list[Scenario]], Evidences], list[Scenario]]] = {
    "accept": (plays.play, each("plain", *ACCEPT) + each("large", *ACCEPT_LARGE)),
    "dispatch": (plays.play, each("plain", SEND, *HAND_OVER) + each("failing", LETTER, *HAND_OVER)),
    "worker": (plays.play, each("plain", *WORKER)),
    "worker, large": (plays.play, each("large", INPUT, ANSWER, SAVE)),
    "worker, failing": (plays.play, each("failing", *WORKER_FAILING[2:])),
    "worker, model": (lambda stage, _: plays.play_model(stage), [Scenario(MODEL, strike) for strike in MODEL_STRIKES]),
}
ALL = [scenario for _, scenarios in GROUPS.values() for scenario in scenarios]


@pytest.fixture(scope="module")
def played(module_stage: Stage) -> Callable[[Scenario], Evidence]:
    """What came of a scenario; its group is played when the first of it is asked for."""
    found: Evidences = {}
    begun: set[str] = set()

    def look(scenario: Scenario) -> Evidence:
        name = next(name for name, (_, scenarios) in GROUPS.items() if scenario in scenarios)
        if name not in begun:
            begun.add(name)
            play, scenarios = GROUPS[name]
            found.update(play(module_stage, scenarios))
        assert scenario in found, f"the group {name!r} broke off; see the first of its failures"
        return found[scenario]

    return look


@pytest.mark.parametrize("scenario", ALL, ids=str)
def test_a_struck_job_ends_right(scenario: Scenario, played: Callable[[Scenario], Evidence]) -> None:
    assert_ends_right(scenario, played(scenario))


@pytest.mark.parametrize(
    ("situation", "points"),
    [
        ("plain", (*ACCEPT, SEND, *WORKER, *HAND_OVER)),
        ("large", (*ACCEPT_LARGE, SEND, *WORKER_LARGE, *HAND_OVER)),
        ("failing", (*ACCEPT, SEND, *WORKER_FAILING, LETTER, *HAND_OVER)),
    ],
)
def test_these_are_all_the_calls_that_are_made_for_a_job(
    stage: Stage, situation: str, points: tuple[Point, ...]
) -> None:
    """A call that is added to a function must be added to the points, or nobody strikes it. Who tells watchers and
    endpoints stands beside its way: see the proof's scenarios."""
    plays.begin(stage)
    Play(Scenario(SEND, "throttle", situation)).submit(stage)
    stage.quiet()
    calls = [call for call in stage.runtime.meter.calls() if call.function not in ("push", "deliver")]
    made = [(call.function, call.service, call.operation) for call in calls]
    assert made == [(point.function, point.service, point.operation) for point in points]
    plays.empty_queues(stage)


@pytest.mark.parametrize(
    ("situation", "points"),
    [
        ("lost", (SWEEP_READ, SWEEP_DEPTH, SWEEP_SEND, SWEEP_PUSH)),
        ("crashed", (SWEEP_READ, SWEEP_REAP, SWEEP_DEPTH, SWEEP_SEND)),
        ("finished", (SWEEP_READ, SWEEP_PUBLISH, SWEEP_MARK)),
        ("failed", (SWEEP_READ, SWEEP_LETTER, SWEEP_PUBLISH, SWEEP_MARK)),
        ("late", (SWEEP_READ, SWEEP_EXPIRE)),
    ],
)
def test_these_are_all_the_calls_of_a_sweep_that_finds_a_job(
    stage: Stage, situation: str, points: tuple[Point, ...]
) -> None:
    plays.begin(stage)
    one = Play(Scenario(SWEEP_READ, "throttle", situation))
    plays.bring_about(stage, [one])
    stage.skip(150)
    stage.runtime.meter.reset()
    assert stage.runtime.functions.invoke("sweep", {"parts": ["stuck"]}).ok
    made = [
        (call.service, call.operation)
        for call in stage.runtime.meter.calls()
        if call.function == "sweep" and call.operation != SWEEP_LOOK.operation
    ]
    plays.finish_unheard(stage, [one])
    begin, end = (SWEEP_OPEN, SWEEP_TAKE, SWEEP_BEGIN), (SWEEP_CLOSE, SWEEP_LOOK_BACK, SWEEP_CERTIFY, SWEEP_END)
    known = [(one.service, one.operation) for one in (*begin, *points, *end, SWEEP_GIVE_BACK)]
    assert made == [*known, ("sns", "GetTopicAttributes"), *[("dynamodb", "UpdateItem")] * 2]  # who listens, at the end


def test_a_crowd_is_sent_though_nobody_can_say_how_full_the_queue_is(stage: Stage) -> None:
    """Only a crowd makes the sweep ask; it is killed at that call four times, and refused the fifth time."""
    plays.begin(stage)
    stage.batches_of(10, 100)
    crowd = [Play(Scenario(SWEEP_DEPTH, "refused")) for _ in range(CROWD)]
    stage.disable("dispatch")
    for one in crowd:
        one.submit(stage)
    stage.skip(150)
    for strike in (*KILLS, "refused"):
        faults = [stage.strike(fault) for fault in STRIKES[strike].faults(SWEEP_DEPTH, None)]
        stage.sweep()
        if stage.frozen("sweep"):
            stage.advance(stage.runtime.functions.definition("sweep").timeout_s)
        stage.skip(SWEEP_LEASE_S)
        assert all(fault.spent for fault in faults), strike
    found = stage.records(one.job_id for one in crowd)
    assert [record["status"] for record in found.values()] == ["COMPLETED"] * CROWD
    plays.finish_unheard(stage, crowd[:1])
