"""Stores that refuse, a table that takes nothing, a backlog: work comes later, and is neither lost, doubled nor paid
for twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, PENDING
from local.aws.calls import Call, Refusal, Response
from local.faults import Fault
from tests.e2e.target import Answer
from tests.simulation.stage import SWEEP_PERIOD_S, Stage
from tests.simulation.watch import poll

SDK_ATTEMPTS = 3  # of a call to a store, by lambdas/adapters/clients.py
GRACE_S = 120
TENANT = "acme"
LARGE = " of many words" * 200  # above 2 KiB: the input goes through S3


def throttle(
    stage: Stage,
    function: str,
    service: str,
    operation: str,
    word: str | None = None,
    *,
    first: int = 1,
    times: int = 1,
) -> list[Fault]:
    """Refuse every attempt at a call: the `first` of an invocation's calls that fit (with `word` in them), in `times`
    invocations."""
    numbers = range(first, first + SDK_ATTEMPTS)
    faults = [Fault(function, "throttle", "before", nth, times, service, operation, word) for nth in numbers]
    return [stage.strike(fault) for fault in faults]


def summarize(stage: Stage, nonce: str, more: str = "") -> str:
    """A job of its own key, submitted by a client that insists; its id is known before it is used."""
    stage.submit("summarize", {"text": f"ANN: {nonce}{more}"}, key=nonce, tenant=TENANT)
    return stage.job_id(nonce, TENANT)


# --- stores that refuse --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Who is refused what, in how many invocations; and how many tries and model calls it costs."""

    function: str
    service: str
    operation: str
    first: int = 1
    times: int = 2
    tries: int = 1
    calls: int = 1
    named_by_prompt: bool = False  # the call has words of the answer in it, and not the job's id


POINTS = {
    "dispatch sends the work": Point("dispatch", "sqs", "SendMessageBatch"),
    "worker claims": Point("worker", "dynamodb", "UpdateItem"),
    "worker reads the input": Point("worker", "s3", "GetObject"),
    "worker stores the result": Point("worker", "s3", "PutObject"),
    # paid and not stored: the one refusal that costs a try, or the job would be paid for without end
    "worker saves the answer": Point(
        "worker", "dynamodb", "UpdateItem", times=1, tries=2, calls=2, named_by_prompt=True
    ),
    # held until its lease ends, as after a crash; the answer is stored, so that the second try pays nothing
    "worker completes": Point("worker", "dynamodb", "UpdateItem", first=2, times=1, tries=2),
    "dispatch publishes": Point("dispatch", "sns", "PublishBatch"),
    "dispatch marks it handed over": Point("dispatch", "dynamodb", "UpdateItem"),
}


@dataclass(frozen=True)
class Outcome:
    record: dict[str, Any]
    calls: int
    struck: list[int]


@pytest.fixture(scope="module")
def throttled(module_stage: Stage) -> dict[str, Outcome]:
    """A job for each point, all at once: the SDK waits for each of its attempts in real time."""
    stage = module_stage
    stage.reset()
    nonces = {name: f"{name.replace(' ', '-')}-throttled" for name in POINTS}
    ids = {name: stage.job_id(nonce, TENANT) for name, nonce in nonces.items()}
    faults = {
        name: throttle(
            stage, point.function, point.service, point.operation,
            nonces[name] if point.named_by_prompt else ids[name], first=point.first, times=point.times,
        )
        for name, point in POINTS.items()
    }  # fmt: skip
    for nonce in nonces.values():
        summarize(stage, nonce, LARGE)
    stage.pass_time_until(lambda: stage.all_handed_over(ids.values()))
    return {
        name: Outcome(
            stage.record(ids[name]), len(stage.model_calls(nonces[name])), [one.fired for one in faults[name]]
        )
        for name in POINTS
    }


@pytest.mark.parametrize("name", POINTS)
def test_a_store_that_throttles_delays_a_job_and_costs_no_try_where_nothing_was_billed(
    throttled: dict[str, Outcome], name: str
) -> None:
    point, outcome = POINTS[name], throttled[name]
    assert outcome.struck == [point.times] * SDK_ATTEMPTS
    assert outcome.record["status"] == COMPLETED
    assert (outcome.record["tries"], outcome.calls) == (point.tries, point.calls)


def test_a_guard_that_throttles_delays_a_job_before_it_is_paid(stage: Stage, nonce: str) -> None:
    stage.quiet()  # any job's row would be struck
    faults = throttle(stage, "worker", "dynamodb", "PutItem", times=2)  # the worker puts nothing but the guard's row
    job_id = summarize(stage, nonce)
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    record = stage.record(job_id)
    assert [fault.fired for fault in faults] == [2] * SDK_ATTEMPTS
    assert (record["status"], record["tries"], record["waits"]) == (COMPLETED, 1, 2)
    assert len(stage.model_calls(nonce)) == 1


SWEEPS = {
    "asks what is due": ("dynamodb", "Query"),
    "reads the record": ("dynamodb", "GetItem"),
    "sends again": ("sqs", "SendMessageBatch"),
    "puts off the next look": ("dynamodb", "UpdateItem"),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_that_is_throttled_leaves_its_work_to_the_next(stage: Stage, nonce: str, name: str) -> None:
    stage.disable("dispatch")  # so that nobody but the sweep sends
    job_id = summarize(stage, nonce)
    stage.quiet()
    faults = throttle(stage, "sweep", *SWEEPS[name])
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert [fault.fired for fault in faults] == [1] * SDK_ATTEMPTS
    record = stage.record(job_id)
    assert (record["status"], record["tries"], len(stage.model_calls(nonce))) == (COMPLETED, 1, 1)


@pytest.mark.parametrize("store", [("dynamodb", "PutItem"), ("s3", "PutObject")])
def test_a_door_that_is_throttled_for_a_moment_accepts_all_the_same(
    stage: Stage, nonce: str, store: tuple[str, str]
) -> None:
    refused = [
        stage.strike(Fault("accept", "throttle", "before", nth, 1, *store)) for nth in (1,)
    ]  # the door has two attempts in all
    assert post(stage, nonce, LARGE).status == 202
    assert [fault.fired for fault in refused] == [1]


# --- a table that takes nothing --------------------------------------------------------------------------------------


class Denied:
    """A gate: the role of accept has lost its permission to write the table."""

    def before(self, call: Call) -> Refusal | None:
        mine = call.caller is not None and call.caller.function == "accept" and call.operation == "PutItem"
        return (
            Refusal("AccessDeniedException", "accept is not authorized to perform: dynamodb:PutItem") if mine else None
        )

    def after(self, _call: Call, response: Response) -> Response:
        return response


@contextmanager
def _denied(stage: Stage) -> Iterator[None]:
    gate = Denied()
    stage.runtime._aws.gates.insert(0, gate)
    try:
        yield
    finally:
        stage.runtime._aws.gates.remove(gate)


@contextmanager
def _throttled(stage: Stage) -> Iterator[None]:
    throttle(stage, "accept", "dynamodb", "PutItem")
    yield


@contextmanager
def _lost(stage: Stage) -> Iterator[None]:
    """The record lands, every reply about it is lost, and so is every reply to the read that would have told."""
    for operation in ("PutItem", "GetItem"):
        for nth in range(1, SDK_ATTEMPTS + 1):
            stage.strike(Fault("accept", "lost_reply", "after", nth, 1, "dynamodb", operation))
    yield


@contextmanager
def _no_bucket(stage: Stage) -> Iterator[None]:
    throttle(stage, "accept", "s3", "PutObject")
    yield


TROUBLES = {
    # trouble, what the body says, whether it is recorded all the same
    "denied": (_denied, "not-accepted", False),
    "throttled": (_throttled, "unknown", False),  # a refused attempt may have had one before it that landed
    "every reply lost": (_lost, "unknown", True),
    "no room for a large input": (_no_bucket, "not-accepted", False),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_without_a_writable_table_the_door_says_so_and_the_same_key_repairs_it(
    stage: Stage, nonce: str, name: str
) -> None:
    trouble, kind, recorded = TROUBLES[name]
    job_id = stage.job_id(nonce, TENANT)
    stage.quiet()
    stage.runtime.functions.pause("worker")
    before = stage.depth()
    with trouble(stage):
        answer = post(stage, nonce, LARGE)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == f"urn:neverdrop:problem:{kind}"
    assert "same Idempotency-Key" in answer.json()["detail"]
    assert answer.json().get("job_id") == (job_id if kind == "unknown" else None)
    stage.quiet()
    assert (job_id in stage.records([job_id]), stage.depth() - before) == (recorded, int(recorded))

    again = post(stage, nonce, LARGE)
    assert (again.status, again.json()["job_id"]) == (202, job_id)
    stage.runtime.functions.resume("worker")
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert (stage.record(job_id)["tries"], len(stage.model_calls(nonce))) == (1, 1)


def post(stage: Stage, nonce: str, more: str = "") -> Answer:
    """One request, not repeated."""
    body = {"type": "summarize", "input": {"text": f"ANN: {nonce}{more}"}}
    headers = {"content-type": "application/json", "idempotency-key": nonce, "x-local-tenant": TENANT}
    return stage.target.request("POST", "/jobs", json.dumps(body).encode(), headers)


# --- a backlog -------------------------------------------------------------------------------------------------------


def test_a_backlog_is_not_sent_again_while_its_messages_wait_and_once_when_they_are_lost(
    stage: Stage, nonce: str
) -> None:
    """The depth gate: without it each sweep would send every waiting job again."""
    backlog = 110  # a crowd: fewer are sent again all the same
    stage.quiet()
    stage.sqs.purge_queue(QueueUrl=stage.target.outputs["WorkQueueUrl"])
    stage.runtime.functions.pause("worker")
    jobs = [summarize(stage, f"{nonce}-{number}") for number in range(backlog)]
    poll(lambda: stage.depth() == backlog, lambda: f"{stage.depth()} messages of {backlog}")
    stage.skip(GRACE_S + 1)
    waiting = [swept(stage) for _ in range(4)]
    assert waiting[0]["held_back"] == backlog
    assert [one["sent"] for one in waiting] == [0] * 4
    assert stage.depth() == backlog

    stage.sqs.purge_queue(QueueUrl=stage.target.outputs["WorkQueueUrl"])
    lost = [swept(stage) for _ in range(5)]
    assert sum(one["sent"] for one in lost) == stage.depth() == backlog
    assert {record["status"] for record in stage.records(jobs).values()} == {PENDING}

    stage.runtime.functions.resume("worker")
    stage.pass_time_until(lambda: stage.all_handed_over(jobs))
    assert {(record["tries"], record["attempt"]) for record in stage.records(jobs).values()} == {(1, 1)}
    assert len(stage.model_calls(nonce)) == backlog


def swept(stage: Stage) -> dict[str, Any]:
    """What one sweep says it did; then a period goes by."""
    outcome = stage.sweep()
    assert outcome is not None
    assert outcome.ok, outcome
    stage.skip(SWEEP_PERIOD_S)
    result: dict[str, Any] = outcome.result["parts"]["stuck"]
    return result
