"""A worker that streams a job's text is killed at each of its calls to AWS, or the table is away for a moment: whoever
watched starts again, and has in the end, to the byte, what is stored.

The scenarios run side by side on one stack; each test looks at what one of them left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lambdas.core.asking import answer_key
from lambdas.core.job import from_record
from lambdas.core.ports import ModelRequest
from lambdas.tasks.reply.task import SYSTEM
from tests.simulation import plays
from tests.simulation.expectations import assert_completed, assert_settled
from tests.simulation.plays import BLANK, TENANT, Evidence, Play, Scenario
from tests.simulation.points import CLAIM, COMPLETE, GUARD, KILLS, RESULT, SAVE, Point
from tests.simulation.stage import Stage

pytestmark = pytest.mark.slow

CHUNKS = tuple(Point("worker", f"chunk {n}", "dynamodb", "PutItem", nth=n) for n in (1, 2, 3))
LAST_CHUNK = Point("worker", "last chunk", "dynamodb", "PutItem", nth=4)
WORKER = (CLAIM, GUARD, *CHUNKS, SAVE, LAST_CHUNK, RESULT, COMPLETE)
STRIKES = [
    *((point, strike) for point in WORKER for strike in ("crash_before", "crash_after")),
    *((point, strike) for point in (CHUNKS[1], LAST_CHUNK) for strike in ("throttle", "lost_reply")),
]
SCENARIOS = [Scenario(point, strike, "streamed") for point, strike in STRIKES]
# the answer was given, and nothing durable holds it
PAID_TWICE = {
    *((chunk, strike) for chunk in CHUNKS for strike in KILLS),
    (SAVE, "crash_before"),
}


@dataclass
class Streamed(Play):
    """A job that streams its message, in three chunks while it is said and one after its answer is saved."""

    @property
    def said(self) -> list[str]:
        return [*(f"{self.key} {n} ".ljust(2_048, "x") for n in range(3)), f"and {self.key}"]

    def submit(self, stage: Stage) -> None:
        stage.submit("reply", {"text": self.key}, key=self.key, tenant=TENANT, stream=True)

    def answer_key(self, stage: Stage) -> str:
        model = stage.runtime.functions.definition("worker").environment["MODEL_ID"]
        request = ModelRequest(model, SYSTEM, f"<transcript>\n{self.key}\n</transcript>", 1_500)
        return answer_key(from_record(BLANK | {"pk": self.job_id, "type": "reply"}), request, shared=True)


@dataclass(frozen=True)
class Ended:
    """`told`: each answer of the route that a reader without a socket asks, from its first look at attempt 1 on."""

    play: Streamed
    evidence: Evidence
    told: list[dict[str, Any]]


def play(stage: Stage, scenarios: list[Scenario]) -> dict[Scenario, Ended]:
    plays.begin(stage)
    jobs = [Streamed(scenario) for scenario in scenarios]
    stage.script(*({"match": one.key, "deltas": one.said} for one in jobs))
    for one in jobs:
        one.arm(stage)
        one.submit(stage)
    found = plays.finish(stage, jobs)
    return {one.scenario: Ended(one, found[one.scenario], read(stage, one.job_id)) for one in jobs}


def read(stage: Stage, job_id: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [stage.get(f"/jobs/{job_id}/chunks?attempt=1", TENANT).json()]
    while not told[-1]["final"]:
        assert len(told) < 10, told
        where = f"from={told[-1]['next']}&attempt={told[-1]['attempt']}"
        told.append(stage.get(f"/jobs/{job_id}/chunks?{where}", TENANT).json())
    return told


@pytest.fixture(scope="module")
def played(module_stage: Stage) -> Callable[[Scenario], Ended]:
    found: dict[Scenario, Ended] = {}
    begun: list[bool] = []

    def look(scenario: Scenario) -> Ended:
        if not begun:
            begun.append(True)
            found.update(play(module_stage, SCENARIOS))
        assert scenario in found, "the play broke off; see the first of its failures"
        return found[scenario]

    return look


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_what_is_shown_of_a_struck_job_is_in_the_end_what_is_stored(
    scenario: Scenario, played: Callable[[Scenario], Ended]
) -> None:
    ended = played(scenario)
    evidence, record = ended.evidence, ended.evidence.record
    assert evidence.struck
    assert_settled(evidence)
    assert_completed(evidence)
    shown = "".join(text for answer in ended.told for text in answer["texts"])
    assert shown == "".join(ended.play.said) == json.loads(evidence.result_bytes)["text"]
    assert [answer["attempt"] for answer in ended.told] == [record["attempt"]] * len(ended.told)
    assert ended.told[0]["restarted"] is (record["attempt"] > 1)
    assert evidence.calls == (2 if (scenario.point, scenario.strike) in PAID_TWICE else 1)


def test_these_are_all_the_calls_that_are_made_for_a_streamed_job(stage: Stage) -> None:
    plays.begin(stage)
    one = Streamed(Scenario(CLAIM, "throttle", "streamed"))
    stage.script({"match": one.key, "deltas": one.said})
    one.submit(stage)
    stage.quiet()
    made = [(call.service, call.operation) for call in stage.runtime.meter.calls() if call.function == "worker"]
    assert made == [(point.service, point.operation) for point in WORKER]
    plays.empty_queues(stage)
