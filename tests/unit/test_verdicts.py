"""From what a try raised to the one write that follows: rows 4 to 6, their refunds and their bounds."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import FAILED
from lambdas.core import times
from lambdas.core.asking import Answer, Bill
from lambdas.core.outcomes import ModelError, ModelErrorKind, NotDone, NotReady, OutOfTime, Permanent, Rejected
from lambdas.core.policy import DAY_S, Limits, RetryPolicy
from lambdas.core.ports import AnswerNotStored, AnswerPending, EffectNotRecorded, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.verdicts import TAKEOVER_SPREAD_S, Done, Failed, Verdict, Wait, judge, settle
from tests.builders import NOW, held_job, later
from tests.fakes import drawing

LIMITS = Limits()
POLICY = RetryPolicy(max_attempts=3, base_s=2, cap_s=60)
WHY = {"code": "X", "message": "y"}
Anew = Literal["sample", "unusable"]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def _raises(self: object) -> Any:
    raise SystemExit(4)


KINDS = (
    NotReady, OutOfTime, Unavailable, AnswerPending, Permanent, Rejected, ModelError, AnswerNotStored,
    EffectNotRecorded, NotDone, KeyError, SystemExit, Mute,
)  # fmt: skip
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text()), st.datetimes(),
    st.tuples(st.text(), st.text()), st.sampled_from([object(), property(_raises), 10**400, Rejected]),
)  # fmt: skip
ATTRIBUTES = st.dictionaries(st.sampled_from(["retry_after", "until", "code", "kind", "answers", "cost", "args"]), ODD)


def _without_its_init(kind: type[BaseException], /, **attributes: Any) -> BaseException:
    """Of a subclass whose own `__init__` does not call that of its kind."""
    made: BaseException = type("Odd", (kind,), {**attributes, "__init__": lambda self: None})()
    return made


def _judge(raised: BaseException) -> Verdict:
    return judge(raised, NOW, drawing())


def _settle(verdict: Verdict, bill: Bill | None = None, **over: Any) -> Change:
    return settle(
        held_job(**over),
        verdict,
        bill=bill or Bill(),
        policy=POLICY,
        limits=LIMITS,
        now=NOW,
        draw=drawing(),
    )


# --- judged ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("raised", "code", "seconds"),
    [
        (NotReady("no transcript", retry_after=60), "NOT_READY", 60.0),
        (NotReady("no transcript"), "NOT_READY", 60.0),
        (OutOfTime("9 s left"), "OUT_OF_TIME", 1.0),
        (Unavailable("S3"), "STORE_UNAVAILABLE", None),
        (AnswerPending(later(30)), "ANSWER_PENDING", 30 + TAKEOVER_SPREAD_S / 2),
        (AnswerPending(later(-30)), "ANSWER_PENDING", TAKEOVER_SPREAD_S / 2),
        (ModelError("throttled", "ThrottlingException", "slow down"), "MODEL_THROTTLED", None),
    ],
)
def test_what_is_not_the_jobs_fault_makes_it_wait(raised: Exception, code: str, seconds: float | None) -> None:
    found = _judge(raised)
    assert isinstance(found, Wait)
    assert (found.why["code"], found.seconds) == (code, seconds)


@pytest.mark.parametrize(
    ("raised", "code", "final", "anew"),
    [
        (Permanent("no such call"), "PERMANENT", True, ""),
        (Permanent("no such call", "NO_CALL"), "NO_CALL", True, ""),
        (Rejected("not JSON"), "OUTPUT_REJECTED", False, "sample"),
        (AnswerNotStored("row"), "ANSWER_NOT_STORED", False, ""),
        (EffectNotRecorded("row"), "EFFECT_NOT_RECORDED", False, ""),
        (NotDone("refused"), "EFFECT_NOT_DONE", False, ""),
        (Permanent("started", "OUTCOME_UNKNOWN"), "OUTCOME_UNKNOWN", True, ""),
        (ModelError("permanent", "ValidationException", ""), "MODEL_PERMANENT", True, ""),
        (ModelError("refused", "content_filtered", ""), "MODEL_REFUSED", False, "unusable"),
        (ModelError("truncated", "max_tokens", ""), "MODEL_TRUNCATED", False, "unusable"),
        (ModelError("unusable", "tool_use", ""), "MODEL_UNUSABLE", False, "unusable"),
        (ModelError("transient", "ReadTimeoutError", ""), "MODEL_TRANSIENT", False, ""),
        (ValueError("oops"), "TASK_ERROR", False, ""),
        (SystemExit(3), "TASK_ERROR", False, ""),
        (RecursionError(), "TASK_ERROR", False, ""),
        (MemoryError(), "TASK_ERROR", False, ""),
        (asyncio.CancelledError(), "TASK_ERROR", False, ""),
        (Mute(), "TASK_ERROR", False, ""),
    ],
)
def test_what_went_wrong_fails_the_try(raised: BaseException, code: str, final: bool, anew: str) -> None:
    found = _judge(raised)
    assert isinstance(found, Failed)
    assert (found.why["code"], found.final, found.anew) == (code, final, anew)


def test_bed_04_a_throttle_is_known_by_its_kind_and_not_by_its_words() -> None:
    words = "Too many tokens, please wait before trying again."
    kinds: list[ModelErrorKind] = ["throttled", "permanent", "transient"]
    verdicts = [_judge(ModelError(kind, "C", words)) for kind in kinds]
    assert [type(verdict) for verdict in verdicts] == [Wait, Failed, Failed]


def test_a_task_error_says_what_it_was() -> None:
    found = _judge(KeyError("text"))
    assert isinstance(found, Failed)
    assert found.why["message"] == "KeyError: 'text'"


def test_fifty_followers_of_one_leader_do_not_come_back_together() -> None:
    verdicts = [judge(AnswerPending(later(30)), NOW, drawing([n / 50])) for n in range(50)]
    waits = {verdict.seconds for verdict in verdicts if isinstance(verdict, Wait) and verdict.seconds is not None}
    assert len(waits) == 50
    assert min(waits) >= 30


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 30 * DAY_S + 1])
def test_a_wait_that_cannot_be_meant_is_a_mistake_of_the_task(seconds: float) -> None:
    with pytest.raises(ValueError, match="retry_after"):
        NotReady("x", retry_after=seconds)


@pytest.mark.parametrize(("asked_s", "waits_s"), [(0.001, 1.0), (0.999, 1.0), (1, 1.0), (1.5, 1.5), (60, 60.0)])
def test_no_task_waits_in_a_hot_loop(asked_s: float, waits_s: float) -> None:
    found = _judge(NotReady("x", retry_after=asked_s))
    assert isinstance(found, Wait)
    assert found.seconds == waits_s


@given(kind=st.sampled_from(KINDS), attributes=ATTRIBUTES)
def test_whatever_is_raised_is_judged_and_the_write_that_follows_is_made(
    kind: type[BaseException], attributes: dict[str, Any]
) -> None:
    found = _judge(_without_its_init(kind, **attributes))
    assert isinstance(found, Wait | Failed)
    assert _settle(found).rule.name in ("park", "retry", "fail")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (NotReady, Wait({"code": "NOT_READY", "message": ""}, 60.0)),
        (Permanent, Failed({"code": "PERMANENT", "message": ""}, final=True)),
        (Rejected, Failed({"code": "OUTPUT_REJECTED", "message": ""}, anew="sample")),
        (ModelError, Failed({"code": "TASK_ERROR", "message": "Odd: "})),
    ],
)
def test_a_subclass_that_does_not_call_its_kinds_init_is_of_that_kind_as_far_as_it_can_be(
    kind: type[BaseException], expected: Verdict
) -> None:
    assert _judge(_without_its_init(kind)) == expected


@pytest.mark.parametrize("answer", ["its text", None, Answer("yes", "m", 1, 1, 1, reused=False), Rejected])
def test_what_is_no_stored_answer_cannot_be_named_as_no_good(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"answers of ctx\.model\.ask"):
        Rejected("no good", answer)
    found = _judge(_without_its_init(Rejected, answers=(answer,)))
    assert (found.why["code"], found.no_good) == ("TASK_ERROR", ()) if isinstance(found, Failed) else False


# --- settled ---------------------------------------------------------------------------------------
def test_a_stored_result_completes_the_job_and_books_its_cost() -> None:
    change = _settle(Done(42), Bill(cost=7))
    assert (change.rule.name, change.sets["result_bytes"], change.adds["cost"]) == ("complete", 42, 7)


def test_a_wait_gives_the_try_back() -> None:
    change = _settle(Wait(WHY, 60))
    assert (change.rule.name, change.adds) == ("park", {"tries": -1, "waits": 1})
    assert change.sets["not_before"] == times.text(later(60))


def test_a_wait_after_a_paid_and_stored_answer_gives_the_try_back_and_books_the_cost() -> None:
    assert _settle(Wait(WHY, 60), Bill(cost=7)).adds == {"tries": -1, "waits": 1, "cost": 7}


def test_n7_a_wait_after_something_was_billed_for_nothing_keeps_the_try() -> None:
    assert _settle(Wait(WHY, 60), Bill(cost=7, wasted=True)).adds == {"waits": 1, "cost": 7}


@pytest.mark.parametrize(("tries", "rule"), [(2, "park"), (3, "fail")])
def test_n7_waits_that_are_paid_for_are_bounded_by_the_tries(tries: int, rule: str) -> None:
    change = _settle(Wait(WHY, 60), Bill(cost=7, wasted=True), tries=tries)
    assert change.rule.name == rule
    if rule == "fail":
        assert change.sets["error"]["code"] == "ATTEMPTS_EXHAUSTED"
        assert "X: y" in change.sets["error"]["message"]


def test_waits_that_cost_nothing_are_not_bounded_by_the_tries() -> None:
    assert _settle(Wait(WHY, 60), tries=3, waits=400).rule.name == "park"


OUT = {"code": "OUT_OF_TIME", "message": "9 s left"}


def test_running_out_of_time_after_a_new_answer_gives_the_try_back() -> None:
    assert _settle(Wait(OUT, 1), Bill(cost=7, calls=1), tries=3).adds == {"tries": -1, "waits": 1, "cost": 7}


def test_running_out_of_time_after_something_was_billed_for_nothing_keeps_the_try() -> None:
    assert _settle(Wait(OUT, 1), Bill(cost=7, calls=2, wasted=True)).adds == {"waits": 1, "cost": 7}


@pytest.mark.parametrize(("tries", "rule"), [(1, "park"), (2, "park"), (3, "fail")])
def test_running_out_of_time_without_a_new_answer_costs_a_try_and_is_bounded_by_them(tries: int, rule: str) -> None:
    change = _settle(Wait(OUT, 1), tries=tries)
    assert change.rule.name == rule
    if rule == "park":
        assert change.adds == {"waits": 1}
    else:
        assert change.sets["error"]["code"] == "ATTEMPTS_EXHAUSTED"
        assert "OUT_OF_TIME: 9 s left" in change.sets["error"]["message"]


@pytest.mark.parametrize(("deadline_s", "rule"), [(0, "fail"), (-1, "fail"), (0.001, "park")])
def test_5p_no_job_waits_past_its_deadline(deadline_s: float, rule: str) -> None:
    change = _settle(Wait(WHY, 60), deadline_at=later(deadline_s))
    assert change.rule.name == rule
    if rule == "fail":
        assert change.sets["error"]["code"] == "DEADLINE_EXCEEDED"
        assert "X: y" in change.sets["error"]["message"]


def test_a_wait_without_a_time_of_its_own_backs_off_with_each_wait_up_to_the_cap() -> None:
    def waited(waits: int) -> float:
        start = times.instant(str(_settle(Wait(WHY), waits=waits).sets["not_before"]))
        return times.seconds_between(NOW, start)

    assert [waited(n) for n in (0, 1, 2, 3)] == [1, 2, 4, 8]  # half of the ceiling, as drawn
    assert waited(50) == 30


@pytest.mark.parametrize(("tries", "rule"), [(1, "retry"), (2, "retry"), (3, "fail"), (4, "fail")])
def test_a_failed_try_is_tried_again_until_the_tries_are_used(tries: int, rule: str) -> None:
    change = _settle(Failed(WHY), Bill(cost=5), tries=tries)
    assert change.rule.name == rule
    assert change.adds == {"cost": 5}


def test_a_retry_backs_off_with_its_tries() -> None:
    starts = [_settle(Failed(WHY), tries=tries).sets["backoff_ms"] for tries in (1, 2)]
    assert starts == [1_000, 2_000]


def test_cost_03_what_is_final_fails_at_the_first_try() -> None:
    change = _settle(Failed(WHY, final=True), Bill(cost=5), tries=1)
    assert (change.rule.name, change.sets["status"], change.sets["error"], change.adds) == (
        "fail",
        FAILED,
        WHY,
        {"cost": 5},
    )


ANEW: list[Anew] = ["sample", "unusable"]


@pytest.mark.parametrize("anew", ANEW)
@pytest.mark.parametrize(
    ("sample", "unusable", "most", "rule"),
    [
        (0, 0, 2, "retry"),
        (1, 0, 2, "fail"),
        (0, 1, 2, "fail"),
        (0, 0, 1, "fail"),
        (1, 1, 4, "retry"),
        (2, 1, 4, "fail"),
        (1, 2, 4, "fail"),
    ],
)
def test_bed_23_the_model_is_asked_anew_for_one_job_at_most_max_samples_times_whatever_for(
    anew: Anew, sample: int, unusable: int, most: int, rule: str
) -> None:
    job = held_job(sample=sample, unusable=unusable)
    limits = Limits(max_samples=most)
    change = settle(
        job, Failed(WHY, anew=anew), bill=Bill(), policy=POLICY, limits=limits, now=NOW, draw=drawing()
    )  # fmt: skip
    assert change.rule.name == rule
    assert change.adds == ({anew: 1} if rule == "retry" else {})


@pytest.mark.parametrize("anew", ANEW)
def test_an_answer_that_is_no_good_is_asked_for_anew_at_once_and_says_only_which_kind_it_was(anew: Anew) -> None:
    change = _settle(Failed(WHY, anew=anew), Bill(cost=5))
    assert change.adds == {"cost": 5, anew: 1}
    assert change.sets["not_before"] == times.text(NOW)


@pytest.mark.parametrize("anew", ANEW)
def test_asking_anew_counts_against_the_tries_too(anew: Anew) -> None:
    assert _settle(Failed(WHY, anew=anew), tries=3).rule.name == "fail"


def test_an_ordinary_failure_asks_for_no_new_sample_and_is_not_bounded_by_the_samples() -> None:
    assert _settle(Failed(WHY), sample=1, unusable=1).rule.name == "retry"
    assert _settle(Failed(WHY)).adds == {}


def test_decorrelated_waits_follow_the_last_wait() -> None:
    policy = RetryPolicy(max_attempts=9, base_s=2, cap_s=60, jitter="decorrelated")
    change = settle(
        held_job(backoff_ms=10_000), Failed(WHY), bill=Bill(), policy=policy, limits=LIMITS, now=NOW, draw=drawing()
    )
    assert change.sets["backoff_ms"] == 16_000  # half-way between 2 s and 3 x 10 s
