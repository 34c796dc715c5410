"""Ten jobs in one invocation, and one of them struck at one of its calls: it recovers, and so do its nine mates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.simulation import plays
from tests.simulation.expectations import assert_completed, assert_ends_right, assert_settled
from tests.simulation.plays import Evidence, Play, Scenario
from tests.simulation.points import HAND_OVER, KILLS, SEND, WORKER
from tests.simulation.stage import Stage

pytestmark = pytest.mark.slow

WORKERS = [Scenario(point, strike) for point in WORKER for strike in (*KILLS, "refused")]
DISPATCHERS = [Scenario(point, strike) for point in (SEND, *HAND_OVER) for strike in ("crash_before", "crash_after")]
STRUCK = 4  # neither the first nor the last of its batch


@dataclass
class Batch:
    """Ten jobs; the faults of the scenario are armed for one of them."""

    scenario: Scenario
    jobs: list[Play] = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = [Play(self.scenario) for _ in range(10)]

    @property
    def struck(self) -> Play:
        return self.jobs[STRUCK]


@dataclass(frozen=True)
class Outcome:
    """What the struck one and the others left behind; `together`: how many of them its invocation was about."""

    struck: Evidence
    mates: list[Evidence]
    together: int


def play_worker(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Outcome]:
    """All batches lie in the queue before the first is received: each receive takes ten."""
    plays.begin(stage)
    stage.batches_of(10, 100)
    stage.runtime.functions.pause("worker")
    batches = [Batch(scenario) for scenario in scenarios]
    for batch in batches:
        batch.struck.arm(stage)
        submit(stage, batch)
    stage.runtime.meter.reset()
    stage.runtime.functions.history.clear()
    stage.disable("dispatch")  # until each batch has met its worker
    stage.runtime.functions.resume("worker")
    stage.quiet()
    workers = sum(one.function == "worker" for one in stage.runtime.functions.history)
    assert workers + len(stage.frozen("worker")) == len(batches)
    together = [claimed_with(stage, batch) for batch in batches]
    stage.enable("dispatch")
    return outcomes(stage, batches, together)


def play_dispatcher(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Outcome]:
    """Nobody listens to the stream until there are ten records of a kind in it."""
    plays.begin(stage)
    stage.batches_of(10, 10)
    batches = [Batch(scenario) for scenario in scenarios]
    for batch in batches:
        stage.disable("dispatch")
        stage.runtime.functions.pause("worker")
        submit(stage, batch)
        batch.struck.arm(stage)
        stage.enable("dispatch")
        stage.quiet()
        stage.disable("dispatch")
        stage.runtime.functions.resume("worker")
        stage.quiet()
        stage.enable("dispatch")
        stage.quiet()
    return outcomes(stage, batches, [10] * len(batches))


def submit(stage: Stage, batch: Batch) -> None:
    for job in batch.jobs:
        job.submit(stage)
    stage.quiet()


def claimed_with(stage: Stage, batch: Batch) -> int:
    """How many of the batch the invocation had to do with that called for the struck one's fault."""
    ids = {job.job_id: job for job in batch.jobs}
    invocations: dict[str, set[str]] = {}
    for call in stage.runtime.meter.calls():
        if call.function == "worker" and call.subject in ids:
            invocations.setdefault(call.request_id, set()).add(call.subject)
    return max(map(len, invocations.values()), default=0)


def outcomes(stage: Stage, batches: Sequence[Batch], together: Sequence[int]) -> dict[Scenario, Outcome]:
    evidence = iter(plays.finished(stage, [job for batch in batches for job in batch.jobs]))
    found = {}
    for batch, number in zip(batches, together, strict=True):
        of_batch = [next(evidence) for _ in batch.jobs]
        found[batch.scenario] = Outcome(of_batch.pop(STRUCK), of_batch, number)
    return found


@pytest.fixture(scope="module")
def played(module_stage: Stage) -> Callable[[Scenario], Outcome]:
    found: dict[Scenario, Outcome] = {}
    groups = [(play_worker, WORKERS), (play_dispatcher, DISPATCHERS)]

    def look(scenario: Scenario) -> Outcome:
        group = next((group for group in groups if scenario in group[1]), None)
        if group is not None:
            groups.remove(group)
            play, scenarios = group
            found.update(play(module_stage, scenarios))
        assert scenario in found, "its group broke off; see the first of its failures"
        return found[scenario]

    return look


@pytest.mark.parametrize("scenario", WORKERS, ids=str)
def test_a_struck_job_and_its_nine_mates_end_right(scenario: Scenario, played: Callable[[Scenario], Outcome]) -> None:
    outcome = played(scenario)
    assert_ends_right(scenario, outcome.struck)
    killed = scenario.strike in KILLS
    assert outcome.together >= 9 or killed  # calls that were refused or came after the kill are not counted
    for mate in outcome.mates:
        assert_settled(mate)
        assert_completed(mate)
        assert 1 <= mate.calls <= 1 + killed
        assert mate.record["crashes"] <= killed
        assert mate.record["tries"] == 1 + mate.record["crashes"]


@pytest.mark.parametrize("scenario", DISPATCHERS, ids=str)
def test_ten_records_of_a_struck_dispatcher_are_all_sent(
    scenario: Scenario, played: Callable[[Scenario], Outcome]
) -> None:
    outcome = played(scenario)
    assert_ends_right(scenario, outcome.struck)
    for mate in outcome.mates:
        assert_settled(mate)
        assert_completed(mate)
        assert (mate.calls, mate.record["tries"]) == (1, 1)
