"""Whole lives of one job, delivery after delivery: how often a model is called, what is paid, and when it ends."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from lambdas.contracts.names import COMPLETED, FAILED
from lambdas.core import times
from lambdas.core.outcomes import ModelError, NotReady
from lambdas.core.policy import Jitter, Limits, RetryPolicy
from lambdas.core.tasks import Context
from tests.builders import NOW, any_delivery, any_hint_body, any_record, any_task
from tests.fakes import FakeModel, any_reply
from tests.unit.bench import PAID, Bench

THROTTLED = ModelError("throttled", "ThrottlingException", "Too many tokens")
BROKEN = ModelError("transient", "ReadTimeoutError", "", maybe_billed=True)
TRUNCATED = any_reply(stop_reason="max_tokens")


def live(bench: Bench, deliveries: int = 400) -> list[float]:
    """Deliver the job whenever its time has come, until it is final. The waits in between, in seconds."""
    waits: list[float] = []
    for n in range(deliveries):
        bench.handle(any_delivery(any_hint_body(attempt=bench.job().attempt), message_id=f"m{n}"))
        if bench.job().is_final:
            return waits
        waits.append(max(0.0, times.seconds_between(bench.clock(), bench.job().not_before)))
        bench.clock.advance(waits[-1])
    raise AssertionError(f"still {bench.job().status} after {deliveries} deliveries")


def a_bench(*script: Any, task: Any = None, retry: RetryPolicy | None = None) -> Bench:
    limits = Limits(retry=retry or RetryPolicy())
    return Bench(any_record(), task or any_task(), model=FakeModel(*script), limits=limits)


@pytest.mark.parametrize(
    ("script", "calls", "code"),
    [
        ([ModelError("permanent", "ValidationException", "")] * 9, 1, "MODEL_PERMANENT"),
        ([ModelError("transient", "ServiceUnavailableException", "")] * 9, 5, "MODEL_TRANSIENT"),
        ([BROKEN] * 9, 5, "MODEL_TRANSIENT"),
        ([TRUNCATED] * 9, 2, "MODEL_TRUNCATED"),
        ([any_reply(stop_reason="model_context_window_exceeded")] * 9, 2, "MODEL_TRUNCATED"),
        ([any_reply(stop_reason="guardrail_intervened")] * 9, 2, "MODEL_REFUSED"),
        ([any_reply(stop_reason="tool_use")] * 9, 2, "MODEL_UNUSABLE"),
        ([any_reply(stop_reason="something_new")] * 9, 2, "MODEL_UNUSABLE"),
    ],
)
def test_cost_01_the_calls_of_a_job_that_never_succeeds_are_bounded(script: list[Any], calls: int, code: str) -> None:
    bench = a_bench(*script)
    live(bench)
    assert len(bench.model.requests) == calls
    assert (bench.job().status, bench.job().error["code"]) == (FAILED, code)  # type: ignore[index]


def test_five_throttles_burn_no_try_and_cost_nothing() -> None:
    bench = a_bench(*[THROTTLED] * 5)
    waits = live(bench)
    assert (bench.job().status, bench.job().tries, bench.job().cost) == (COMPLETED, 1, PAID)
    assert (bench.job().waits, bench.job().attempt) == (5, 6)
    assert waits == sorted(waits)


def test_hole_9_a_provider_that_throttles_for_ever_ends_at_the_deadline() -> None:
    bench = a_bench(*[THROTTLED] * 10_000, retry=RetryPolicy(cap_s=900, jitter="equal"))
    live(bench)
    assert bench.job().error["code"] == "DEADLINE_EXCEEDED"  # type: ignore[index]
    assert times.seconds_between(NOW, bench.clock()) <= 86_400 + 1
    assert bench.job().cost == 0


def test_sqs_05_an_input_that_is_twenty_polls_late_completes_and_burns_no_try() -> None:
    polls = iter(range(20))

    def run(task_input: Any, ctx: Context) -> Any:
        if next(polls, None) is not None:
            raise NotReady("transcript still missing", retry_after=60)
        return {}

    bench = a_bench(task=any_task(run))
    assert live(bench) == [60] * 20
    assert (bench.job().status, bench.job().tries, bench.job().waits) == (COMPLETED, 1, 20)
    assert len(bench.job().history) == 10


def test_n7_waits_that_are_billed_for_nothing_end_when_the_tries_are_used() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        try:
            ctx.model.ask("Q")
        except ModelError:
            raise NotReady("once more") from None

    bench = a_bench(*[TRUNCATED] * 400, task=any_task(run))
    live(bench)
    assert len(bench.model.requests) == 5
    assert bench.job().error["code"] == "ATTEMPTS_EXHAUSTED"  # type: ignore[index]


@pytest.mark.parametrize("jitter", get_args(Jitter))
def test_the_waits_between_tries_follow_the_policy_and_never_exceed_its_cap(jitter: Jitter) -> None:
    bench = a_bench(*[BROKEN] * 20, retry=RetryPolicy(max_attempts=10, base_s=2, cap_s=20, jitter=jitter))
    waits = live(bench)
    assert len(waits) == 9
    assert all(0 < wait <= 20 for wait in waits)
    assert waits[:4] == {"full": [1, 2, 4, 8], "equal": [1.5, 3, 6, 12], "decorrelated": [4, 7, 11.5, 18.25]}[jitter]


def test_every_cent_of_a_job_that_failed_on_its_way_is_on_its_record() -> None:
    bench = a_bench(BROKEN, TRUNCATED, any_reply())
    live(bench)
    assert bench.job().status == COMPLETED
    broken = 1 + 240  # ten tokens of prompt at 60, 1,000 of answer at 240 a thousand, rounded up
    assert bench.job().cost == broken + 2 * PAID


def test_swp_03_a_job_that_kills_its_worker_each_time_is_claimed_as_often_as_it_may_and_then_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die(raised: BaseException, *_: Any) -> Any:
        raise raised  # as a killed process: nothing is judged, nothing is written

    monkeypatch.setattr("lambdas.core.execution.judge", die)
    bench = a_bench(*[KeyboardInterrupt()] * 20)
    for n in range(5):
        with pytest.raises(KeyboardInterrupt):
            bench.handle(any_delivery(message_id=f"m{n}"))
        bench.clock.advance(131)
    bench.handle(any_delivery(message_id="m6"))
    assert (bench.job().status, bench.job().attempt, bench.job().tries) == (FAILED, 5, 5)
    assert bench.job().error["code"] == "ATTEMPTS_EXHAUSTED"  # type: ignore[index]
    assert len(bench.model.requests) == 5
