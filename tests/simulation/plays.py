"""Plays scenarios: jobs that are each struck once at a point of their own, side by side on one stack."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lambdas.adapters.fenced_layer import row_id
from lambdas.adapters.idempotency import KEY_PREFIX
from lambdas.contracts.names import FAILED
from lambdas.core.asking import answer_key
from lambdas.core.job import from_record
from lambdas.core.ports import ModelRequest
from local.faults import Fault
from tests.simulation.points import MODEL, MODEL_STRIKES, STRIKES, Point
from tests.simulation.stage import VISIBILITY_S, Stage
from tests.simulation.tasks.steady.task import MAX_TOKENS, SYSTEM

TENANT = "simulated"
LARGE_INPUT, LARGE_ANSWER = "x" * 3_000, "y" * 9_000
FAILING, LENGTHY = "this-is-refused", "at-length"
RULES = ({"match": FAILING, "error": "ValidationException"}, {"match": LENGTHY, "answer": LARGE_ANSWER})


@dataclass(frozen=True)
class Scenario:
    """A job of this kind, struck so at this point. `plain`, `large` (input and answer in S3) or `failing` (for good);
    and what a sweep finds, with nobody listening to the stream: `lost` (no message), `crashed`, `finished` and `failed`
    (not handed over), `late` (past its deadline)."""

    point: Point
    strike: str
    situation: str = "plain"

    def __str__(self) -> str:
        return f"{self.point.function}-{self.situation}-{self.point.name}-{self.strike}"


@dataclass
class Play:
    """A scenario under way: its job, which is known before it is submitted, and the faults that are to strike it."""

    scenario: Scenario
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    faults: list[Fault] = field(default_factory=list)

    @property
    def job_id(self) -> str:
        return Stage.job_id(self.key, TENANT)

    @property
    def text(self) -> str:
        words = {"failing": FAILING, "failed": FAILING, "large": f"{LENGTHY} {LARGE_INPUT}"}
        return f"{self.key} {words.get(self.scenario.situation, '')}"

    def submit(self, stage: Stage) -> None:
        stage.submit("steady", {"text": self.text}, key=self.key, tenant=TENANT)

    def arm(self, stage: Stage) -> None:
        """Have it struck from now on."""
        self.faults = STRIKES[self.scenario.strike].faults(self.scenario.point, self.names(stage, self.scenario.point))
        for fault in self.faults:
            stage.strike(fault)

    def names(self, stage: Stage, point: Point) -> str | None:
        """What the body or path of the call has in it."""
        match point.about:
            case "job":
                return self.job_id
            case "failure":
                return f"{self.job_id}.1.FAILED"
            case "answer" if point.service == "s3":
                return self.answer_key(stage)
            case "answer":
                return self.answer_row(stage)
            case _:
                return None

    def answer_key(self, stage: Stage) -> str:
        """The key of the answer that every job with this text gets."""
        model = stage.runtime.functions.definition("worker").environment["MODEL_ID"]
        request = ModelRequest(model, SYSTEM, self.text, MAX_TOKENS)
        return answer_key(from_record(BLANK | {"pk": self.job_id}), request, shared=True)

    def answer_row(self, stage: Stage) -> str:
        return row_id(KEY_PREFIX, self.answer_key(stage))

    @property
    def struck(self) -> bool:
        return all(fault.spent for fault in self.faults)


_NOW = "2026-01-01T00:00:00.000Z"
BLANK: dict[str, Any] = {
    "sk": "job", "tenant": TENANT, "type": "steady", "status": "PENDING", "attempt": 0, "tries": 0,
    "created_at": _NOW, "not_before": _NOW, "deadline_at": _NOW, "body_sha": "",
}  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """What a job left behind, when nothing moved any more. `calls` of the model: those it did not refuse."""

    record: dict[str, Any]
    calls: int
    events: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    result_status: int
    result_bytes: bytes
    stored_bytes: bytes | None
    struck: bool


def play(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Evidence]:
    """All of them at once, one message and one record at a time, until nothing moves any more."""
    begin(stage)
    plays = [Play(scenario) for scenario in scenarios]
    for one in plays:
        one.arm(stage)
        one.submit(stage)
    return finish(stage, plays)


def play_model(stage: Stage) -> dict[Scenario, Evidence]:
    """The model call is none of AWS's calls that faults reach: its server, or its caller, is struck instead."""
    begin(stage)
    plays = [Play(Scenario(MODEL, strike)) for strike in MODEL_STRIKES]
    how: dict[str, dict[str, Any]] = {
        "crash": {"delay_s": 5_000}, "timeout": {"delay_s": 5_000},
        "lost_reply": {"cut_after": 0}, "throttle": {"error": "ThrottlingException"},
    }  # fmt: skip
    stage.script(*({"match": one.key, "times": 1, **how[one.scenario.strike]} for one in plays))
    for one in plays:
        one.submit(stage)
    for one in plays[:2]:
        holder = stage.calling(one.key)
        if one.scenario.strike == "crash":
            holder.kill("crash")
        else:
            holder.freeze(outlives=False)
    return finish(stage, plays)


def play_sweeps(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Evidence]:
    """Nobody listens to the stream: what the sweep does not do is not done."""
    begin(stage)
    plays = [Play(scenario) for scenario in scenarios]
    bring_about(stage, plays)
    for one in plays:
        one.arm(stage)
    return finish_unheard(stage, plays)


def play_sweeps_one_by_one(stage: Stage, scenarios: Sequence[Scenario]) -> dict[Scenario, Evidence]:
    """For calls that may be about several jobs: one job and one sweep at a time."""
    begin(stage)
    plays = [Play(scenario) for scenario in scenarios]
    for one in plays:
        bring_about(stage, [one])
        one.arm(stage)
        stage.pass_time()
        while stage.frozen("sweep"):
            stage.pass_time()
        stage.sweep()  # what the struck one left undone is still due
        stage.quiet()
        left = stage.record(one.job_id)
        assert left["attempt"] > 0, one.scenario
        assert "handed_over_at" in left or one.scenario.situation in ("lost", "crashed"), one.scenario
    return finish_unheard(stage, plays)


def bring_about(stage: Stage, plays: Sequence[Play]) -> None:
    """What the sweep is to find."""
    known = [one for one in plays if one.scenario.situation in ("crashed", "finished", "failed")]
    stage.runtime.functions.pause("worker")
    if known:
        stage.enable("dispatch")
    for one in known:
        one.submit(stage)
    stage.quiet()
    stage.disable("dispatch")
    for one in plays:
        if one not in known:
            one.submit(stage)
        elif one.scenario.situation == "crashed":
            stage.strike(Fault("worker", "crash", "after", operation="UpdateItem", job_id=one.job_id))
    stage.runtime.functions.resume("worker")
    stage.quiet()
    if any(one.scenario.situation == "late" for one in plays):
        stage.skip(86_400)


def finish_unheard(stage: Stage, plays: Sequence[Play]) -> dict[Scenario, Evidence]:
    evidence = finish(stage, plays)
    stage.enable("dispatch")
    stage.quiet()
    empty_queues(stage)  # of what the dispatcher had to say about it all, hours later
    return evidence


def begin(stage: Stage) -> None:
    stage.reset()
    stage.batches_of(1, 1)
    stage.runtime.functions.set_concurrency("worker", 16)
    stage.script(*RULES)
    empty_queues(stage)


def finish(stage: Stage, plays: Sequence[Play]) -> dict[Scenario, Evidence]:
    return dict(zip((one.scenario for one in plays), finished(stage, plays), strict=True))


def finished(stage: Stage, plays: Sequence[Play]) -> list[Evidence]:
    """Let time pass until all are told, and until every message of theirs has come back and gone for good."""
    ids = [one.job_id for one in plays]
    stage.pass_time_until(lambda: stage.all_handed_over(ids), rounds=10 + 2 * len(plays))
    stage.pass_time_until(lambda: stage.depth() == 0, rounds=VISIBILITY_S // 150 + 3)
    return collect(stage, plays)


def _is_said_again(stage: Stage, job_id: str, letters: Sequence[Mapping[str, Any]]) -> bool:
    """Of a job that earlier plays were about: a call that was repeated may arrive for the first time after all."""
    ending = stage.record(job_id)
    return all((ending["status"], ending["attempt"]) == (FAILED, one["payload"]["attempt"]) for one in letters)


def collect(stage: Stage, plays: Sequence[Play]) -> list[Evidence]:
    events = _by_job(json.loads(message["Body"]) for message in stage.take_all(stage.inbox))
    queues = {name: stage.take_all(url) for name, url in stage.dead_letter_queues.items()}
    letters = _by_job(json.loads(message["Body"]) for message in queues.pop("work"))
    assert not any(queues.values()), queues
    found = stage.records(one.job_id for one in plays)
    seen = [call for call in stage.runtime.model_server.calls.listed() if call["error"] is None]
    evidence = []
    for one in plays:
        record, result = found[one.job_id], stage.get(f"/jobs/{one.job_id}/result", TENANT)
        evidence.append(
            Evidence(
                record=record,
                calls=sum(one.key in call["prompt"] for call in seen),
                events=events.pop(one.job_id, []),
                letters=letters.pop(one.job_id, []),
                result_status=result.status,
                result_bytes=result.body,
                stored_bytes=stage.result_object(record["result_key"]) if "result_key" in record else None,
                struck=one.struck,
            )
        )
    assert all(_is_said_again(stage, *one) for one in letters.items()), letters
    return evidence


def empty_queues(stage: Stage) -> None:
    for url in (stage.inbox, *stage.dead_letter_queues.values()):
        stage.take_all(url)


def _by_job(envelopes: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for envelope in envelopes:
        found.setdefault(envelope["run_id"], []).append(envelope)
    return found
