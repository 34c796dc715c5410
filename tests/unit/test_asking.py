"""A question is paid for once, every cent of a call is booked, and no call is started that cannot end in time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.asking import AskingModel, Bill, Reuse, answer_key
from lambdas.core.job import Job
from lambdas.core.outcomes import ModelError, OutOfTime, Permanent
from lambdas.core.policy import Limits
from lambdas.core.ports import AnswerNotStored, AnswerPending, ModelRequest, Reply
from tests.builders import held_job, later
from tests.fakes import FakeAnswers, FakeModel, Notices, Trouble, any_reply

MODEL_ID = "us.amazon.nova-lite-v1:0"
PAID = 180


class Asker:
    """One try of one job that asks; keywords change the job."""

    def __init__(
        self,
        *script: Any,
        answers: FakeAnswers | None = None,
        reuse: Reuse = "tenant",
        remaining_s: float | Callable[[], float] = 100,
        model_id: str = MODEL_ID,
        **over: Any,
    ) -> None:
        self.model, self.answers = FakeModel(*script), answers or FakeAnswers()
        self.bill, self.notices = Bill(), Notices()
        self.asking = AskingModel(
            held_job(**over),
            model=self.model,
            model_id=model_id,
            answers=self.answers,
            remaining_s=remaining_s if callable(remaining_s) else lambda: remaining_s,
            reuse=reuse,
            limits=Limits(),
            notice=self.notices,
            bill=self.bill,
        )


# --- once ------------------------------------------------------------------------------------------
def test_an_answer_is_paid_booked_and_kept() -> None:
    asker = Asker()
    answer = asker.asking.ask("What happened?", system="Be brief.", max_tokens=7, temperature=0.5)
    assert (answer.text, answer.cost, answer.reused) == ("All three are safe.", PAID, False)
    assert (answer.input_tokens, answer.output_tokens) == (1_000, 500)
    assert asker.model.requests == [ModelRequest(MODEL_ID, "Be brief.", "What happened?", 7, 0.5)]
    assert (asker.bill.cost, asker.bill.calls, asker.bill.wasted) == (PAID, 1, False)
    assert asker.bill.used == [(asker.answers.asked[0]["key"], "save-1")]


def test_an_answer_that_is_there_costs_nothing_and_calls_nobody() -> None:
    answers = FakeAnswers()
    Asker(answers=answers).asking.ask("What happened?")
    second = Asker(answers=answers, pk="another-job")
    answer = second.asking.ask("What happened?")
    assert (answer.text, answer.cost, answer.reused) == ("All three are safe.", 0, True)
    assert (second.bill.cost, second.bill.calls, second.bill.wasted) == (0, 0, False)
    assert second.model.requests == []
    assert second.notices.steps == ["answer_reused"]
    assert second.bill.used == [(answers.asked[0]["key"], "save-1")]


def test_an_answer_that_this_try_has_paid_costs_nothing_more_and_is_none_of_another_try() -> None:
    asker = Asker()
    answers = [asker.asking.ask("What happened?") for _ in range(2)]
    assert [(answer.cost, answer.reused) for answer in answers] == [(PAID, False), (0, False)]
    assert (asker.bill.calls, asker.bill.paid) == (1, {asker.answers.asked[0]["key"]})


def test_idem_22_many_at_once_with_one_question_make_one_call() -> None:
    answers, started = FakeAnswers(), threading.Barrier(4)
    askers = [Asker(answers=answers, pk=f"job-{n}") for n in range(4)]

    def ask(asker: Asker) -> None:
        started.wait()
        asker.asking.ask("What happened?")

    threads = [threading.Thread(target=ask, args=(asker,)) for asker in askers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(asker.model.requests) for asker in askers) == 1
    assert sum(asker.bill.cost for asker in askers) == PAID


def test_a_twins_call_under_way_is_told_to_the_caller() -> None:
    asker = Asker()
    key = answer_key(held_job(), ModelRequest(MODEL_ID, "", "Q", 1_000), shared=True)
    asker.answers.held_until[key] = later(60)
    with pytest.raises(AnswerPending) as pending:
        asker.asking.ask("Q")
    assert pending.value.until == later(60)
    assert asker.bill == Bill()


@pytest.mark.parametrize(("remaining_s", "patience_s"), [(100, 15), (20, 10), (12, 2)])
def test_a_second_caller_waits_as_long_as_its_time_allows_but_never_more_than_its_patience(
    remaining_s: float, patience_s: float
) -> None:
    asker = Asker(remaining_s=remaining_s)
    asker.answers.stored[answer_key(held_job(), ModelRequest(MODEL_ID, "", "Q", 1_000), shared=True)] = (
        {"text": "", "cost": 1, "input_tokens": 1, "output_tokens": 1},
        "save-0",
    )
    asker.asking.ask("Q")
    assert asker.answers.asked[0]["patience_s"] == patience_s


@pytest.mark.parametrize(("attempt", "look"), [(1, False), (2, True)])
def test_what_a_dead_caller_left_is_looked_for_only_after_the_first_attempt(attempt: int, look: bool) -> None:
    asker = Asker(attempt=attempt)
    asker.asking.ask("Q")
    assert asker.answers.asked[0]["look"] is look


# --- time and price --------------------------------------------------------------------------------
@pytest.mark.parametrize(("remaining_s", "called"), [(69.9, 0), (70, 1)])
def test_no_call_is_started_that_cannot_end_in_time(remaining_s: float, called: int) -> None:
    asker = Asker(remaining_s=remaining_s)
    if called:
        asker.asking.ask("Q")
    else:
        with pytest.raises(OutOfTime):
            asker.asking.ask("Q")
    assert len(asker.model.requests) == called
    assert asker.bill.calls == called


def test_an_answer_that_is_there_is_served_with_any_time_left() -> None:
    answers = FakeAnswers()
    Asker(answers=answers).asking.ask("Q")
    assert Asker(answers=answers, remaining_s=1).asking.ask("Q").reused


def test_a_model_without_a_price_is_never_called() -> None:
    asker = Asker(model_id="acme.unheard-of-v1:0")
    with pytest.raises(Permanent) as refused:
        asker.asking.ask("Q")
    assert refused.value.code == "UNKNOWN_MODEL"
    assert asker.model.requests == []


# --- what is not usable ----------------------------------------------------------------------------
UNUSABLE = [
    ("max_tokens", "truncated"),
    ("content_filtered", "refused"),
    ("guardrail_intervened", "refused"),
    ("model_context_window_exceeded", "truncated"),
    ("tool_use", "unusable"),
    ("malformed_model_output", "unusable"),
    ("malformed_tool_use", "unusable"),
    ("", "unusable"),
    ("something_new", "unusable"),
]
FINISHED = ("end_turn", "stop_sequence")


def test_every_end_that_the_sdk_knows_of_is_decided_on() -> None:
    """A newer SDK with another one turns this red: it must be said above what it means."""
    shape: Any = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("StopReason")
    assert set(shape.enum) == {reason for reason, _ in UNUSABLE if reason not in ("", "something_new")} | {*FINISHED}


@pytest.mark.parametrize(("stop_reason", "kind"), UNUSABLE)
def test_bed_09_an_answer_that_did_not_come_to_its_end_is_paid_but_never_kept(stop_reason: str, kind: str) -> None:
    asker = Asker(any_reply(stop_reason=stop_reason))
    with pytest.raises(ModelError) as error:
        asker.asking.ask("Q")
    assert (error.value.kind, error.value.cost) == (kind, PAID)
    assert error.value.code == (stop_reason or "no_stop_reason")
    assert asker.answers.stored == {}
    assert (asker.bill.cost, asker.bill.wasted, asker.bill.used) == (PAID, True, [])


@pytest.mark.parametrize("stop_reason", FINISHED)
def test_an_answer_that_came_to_its_end_is_kept(stop_reason: str) -> None:
    asker = Asker(any_reply(stop_reason=stop_reason))
    asker.asking.ask("Q")
    assert len(asker.answers.stored) == 1


def test_a_refusal_that_cost_nothing_wastes_nothing() -> None:
    asker = Asker(ModelError("throttled", "ThrottlingException", "Too many tokens"))
    with pytest.raises(ModelError):
        asker.asking.ask("Q")
    assert (asker.bill.cost, asker.bill.calls, asker.bill.wasted) == (0, 1, False)


def test_what_was_wasted_once_stays_wasted_though_a_later_call_costs_nothing() -> None:
    asker = Asker(any_reply(stop_reason="max_tokens"), ModelError("throttled", "ThrottlingException", ""))
    for _ in range(2):
        with pytest.raises(ModelError):
            asker.asking.ask("Q")
    assert (asker.bill.cost, asker.bill.wasted) == (PAID, True)


def test_the_smallest_cost_is_wasted_too() -> None:
    asker = Asker(any_reply(stop_reason="max_tokens", input_tokens=1, output_tokens=0))
    with pytest.raises(ModelError):
        asker.asking.ask("Q")
    assert (asker.bill.cost, asker.bill.wasted) == (1, True)


def test_each_call_is_told_with_its_model_and_its_cost_but_never_with_its_words() -> None:
    asker = Asker()
    asker.asking.ask("secret question", max_tokens=7)
    assert asker.notices.told == [
        ("model_called", {"model": MODEL_ID, "max_tokens": 7}),
        (
            "model_answered",
            {
                "model": MODEL_ID,
                "stop_reason": "end_turn",
                "cost_micros": PAID,
                "input_tokens": 1_000,
                "output_tokens": 500,
                "ms": 0,
            },
        ),
    ]


@pytest.mark.parametrize("stop_reason", ["end_turn", "max_tokens"])
def test_each_call_is_told_with_how_long_it_took_whatever_came_of_it(stop_reason: str) -> None:
    left = [100.0]

    def slow(request: ModelRequest) -> Reply:
        left[0] -= 1.25
        return any_reply(stop_reason=stop_reason)

    asker = Asker(slow, remaining_s=lambda: left[0])
    with contextlib.suppress(ModelError):
        asker.asking.ask("Q")
    assert asker.notices.of("model_answered")["ms"] == 1_250


def test_bed_21_a_call_that_broke_is_booked_at_what_it_can_have_cost() -> None:
    asker = Asker(ModelError("transient", "ReadTimeoutError", "", maybe_billed=True))
    with pytest.raises(ModelError) as error:
        asker.asking.ask("q" * 4_000, system="s" * 400, max_tokens=1_000)
    assert error.value.cost == asker.bill.cost == 306  # 1,100 tokens in at 60, 1,000 out at 240 a thousand
    assert asker.bill.wasted


def test_an_answer_that_could_not_be_kept_is_booked_and_wasted() -> None:
    asker = Asker()
    asker.answers.troubles.add("save", Trouble.REFUSED)
    with pytest.raises(AnswerNotStored):
        asker.asking.ask("Q")
    assert (asker.bill.cost, asker.bill.wasted) == (PAID, True)


def test_a_failed_call_leaves_the_key_free_for_the_next() -> None:
    asker = Asker(ModelError("transient", "ServiceUnavailableException", ""))
    with pytest.raises(ModelError):
        asker.asking.ask("Q")
    assert asker.asking.ask("Q").cost == PAID


def test_the_costs_of_all_calls_of_a_try_add_up() -> None:
    asker = Asker(any_reply(), any_reply(stop_reason="max_tokens"))
    asker.asking.ask("one")
    with pytest.raises(ModelError):
        asker.asking.ask("two")
    asker.asking.ask("one")
    assert (asker.bill.cost, asker.bill.calls) == (2 * PAID, 2)


# --- the key ---------------------------------------------------------------------------------------
REQUEST = ModelRequest(MODEL_ID, "s", "p", 100, 0.5)


def _key(job: Job | None = None, request: ModelRequest = REQUEST, *, shared: bool = True, **over: Any) -> str:
    return answer_key(job or held_job(**over), request, shared=shared)


@pytest.mark.parametrize(
    "request_",
    [
        ModelRequest("eu.amazon.nova-lite-v1:0", "s", "p", 100, 0.5),
        ModelRequest(MODEL_ID, "t", "p", 100, 0.5),
        ModelRequest(MODEL_ID, "s", "q", 100, 0.5),
        ModelRequest(MODEL_ID, "sp", "", 100, 0.5),
        ModelRequest(MODEL_ID, "s", "p", 101, 0.5),
        ModelRequest(MODEL_ID, "s", "p", 100, 0.6),
        ModelRequest(MODEL_ID, "s", "p", 100, None),
    ],
)
def test_whatever_is_asked_otherwise_has_another_key(request_: ModelRequest) -> None:
    assert _key(request=request_) != _key()


def test_idem_23_another_tenant_has_another_key() -> None:
    assert _key(tenant="globex") != _key()


def test_sample_0_is_shared_by_all_jobs_runs_and_attempts_of_a_tenant() -> None:
    assert _key(pk="another-job", run=3, attempt=9, tries=4) == _key()


@pytest.mark.parametrize("over", [{"pk": "another-job"}, {"run": 1}, {"sample": 2}])
def test_n2_a_further_sample_belongs_to_one_job_and_one_opening(over: dict[str, Any]) -> None:
    assert _key(**{"sample": 1, **over}) != _key(sample=1)
    assert _key(sample=1) != _key()
    assert _key(sample=1, attempt=7) == _key(sample=1)


def test_an_answer_that_is_not_shared_belongs_to_its_job() -> None:
    assert _key(shared=False) != _key()
    assert _key(shared=False, pk="another-job") != _key(shared=False)
    assert _key(shared=False, attempt=5) == _key(shared=False)


@pytest.mark.parametrize(
    ("reuse", "fresh", "shared"), [("tenant", False, True), ("job", False, False), ("tenant", True, False)]
)
def test_a_task_or_a_request_can_keep_its_answers_to_itself(reuse: Reuse, fresh: bool, shared: bool) -> None:
    answers = FakeAnswers()
    for pk in ("one", "two"):
        Asker(answers=answers, reuse=reuse, fresh=fresh, pk=pk).asking.ask("Q")
    assert len(answers.stored) == (1 if shared else 2)


@given(*[st.text(st.characters(exclude_categories=["Cs"]), max_size=5)] * 4)
def test_no_shift_of_text_between_system_and_prompt_makes_two_questions_one(a: str, b: str, c: str, d: str) -> None:
    one, other = ModelRequest(MODEL_ID, a, b, 1), ModelRequest(MODEL_ID, c, d, 1)
    assert (_key(request=one) == _key(request=other)) == (one == other)
