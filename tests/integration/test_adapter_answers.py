"""The Answers port: one call for a question, whoever asks how often; kept by the adapter and by the fake alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lambdas.core.canonical import sha256
from lambdas.core.ports import Answers, Kept

KEY, OTHER = sha256("a question"), sha256("another question")


class Counting:
    """A call that says how often it was made; `outcomes` in turn, the last one for ever."""

    def __init__(self, *outcomes: Mapping[str, Any] | Exception, lasts_s: float = 0.0) -> None:
        self.outcomes, self.lasts_s, self.calls = list(outcomes), lasts_s, 0
        self._lock = threading.Lock()

    def __call__(self) -> Mapping[str, Any]:
        with self._lock:
            self.calls += 1
            outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        time.sleep(self.lasts_s)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def ask(answers: Answers, call: Callable[[], Mapping[str, Any]], key: str = KEY, patience_s: float = 100) -> Kept:
    return answers.once(key, "acme", call, patience_s=patience_s, look=False)


def test_the_first_caller_gets_what_its_call_answered(any_answers: Answers):
    kept = ask(any_answers, Counting({"text": "yes", "cost": 12}))
    assert (kept.value, kept.reused) == ({"text": "yes", "cost": 12}, False)


def test_the_second_caller_gets_the_same_answer_without_a_call(any_answers: Answers):
    first, second = Counting({"text": "yes"}), Counting({"text": "no"})
    kept, again = ask(any_answers, first), ask(any_answers, second)
    assert (again.value, again.by, again.reused) == (kept.value, kept.by, True)
    assert second.calls == 0


@pytest.mark.parametrize("value", [{}, {"text": ""}, {"text": None}, {"text": [], "cost": 0}, {"": False}])
def test_an_empty_or_falsy_answer_is_kept_like_any_other(any_answers: Answers, value: dict[str, Any]):
    call = Counting(value)
    assert ask(any_answers, call).value == value
    kept = ask(any_answers, call)
    assert (kept.value, kept.reused, call.calls) == (value, True, 1)


def test_what_a_call_raises_comes_out_and_is_never_an_answer(any_answers: Answers):
    call = Counting(KeyError("broken"), {"text": "yes"})
    with pytest.raises(KeyError, match="broken"):
        ask(any_answers, call)
    kept = ask(any_answers, call)
    assert (kept.value, kept.reused, call.calls) == ({"text": "yes"}, False, 2)


def test_two_questions_have_two_answers(any_answers: Answers):
    assert ask(any_answers, Counting({"text": "yes"}), KEY).value == {"text": "yes"}
    assert ask(any_answers, Counting({"text": "no"}), OTHER).value == {"text": "no"}
    assert ask(any_answers, Counting({"text": "?"}), KEY).value == {"text": "yes"}


def test_an_answer_forgotten_by_its_own_save_is_asked_for_anew(any_answers: Answers):
    kept = ask(any_answers, Counting({"text": "bad"}))
    any_answers.forget(KEY, "acme", kept.by)
    again = ask(any_answers, Counting({"text": "good"}))
    assert (again.value, again.reused) == ({"text": "good"}, False)
    assert again.by != kept.by


def test_an_answer_saved_by_somebody_else_is_not_forgotten(any_answers: Answers):
    bad = ask(any_answers, Counting({"text": "bad"}))
    any_answers.forget(KEY, "acme", bad.by)
    good = ask(any_answers, Counting({"text": "good"}))
    any_answers.forget(KEY, "acme", bad.by)  # a second job that used the bad one, late
    again = ask(any_answers, Counting({"text": "?"}))
    assert (again.value, again.by, again.reused) == ({"text": "good"}, good.by, True)


def test_forgetting_what_is_not_there_does_nothing(any_answers: Answers):
    any_answers.forget(KEY, "acme", "nobody")
    assert ask(any_answers, Counting({"text": "yes"})).reused is False


@pytest.mark.parametrize("callers", [4, 10])
def test_idem_22_callers_at_the_same_time_share_one_call(any_answers: Answers, callers: int):
    call, start = Counting({"text": "yes"}, lasts_s=0.15), threading.Barrier(callers)

    def one() -> Kept:
        start.wait()
        return ask(any_answers, call)

    with ThreadPoolExecutor(callers) as threads:
        kept = [future.result() for future in [threads.submit(one) for _ in range(callers)]]
    assert call.calls == 1
    assert [one.value for one in kept] == [{"text": "yes"}] * callers
    assert len({one.by for one in kept}) == 1
    assert sum(not one.reused for one in kept) == 1


def test_when_the_leader_fails_a_waiter_calls_itself(any_answers: Answers):
    """Hole 18: polling for ever would park every follower of a failed leader."""
    call, started = Counting(RuntimeError("cut"), {"text": "yes"}, lasts_s=0.15), threading.Event()

    def leader() -> Mapping[str, Any]:
        started.set()
        return call()

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(ask, any_answers, leader)
        assert started.wait(60)
        others = [threads.submit(ask, any_answers, call) for _ in range(3)]
        with pytest.raises(RuntimeError, match="cut"):
            first.result()
        kept = [other.result() for other in others]
    assert call.calls == 2
    assert [one.value for one in kept] == [{"text": "yes"}] * 3
    assert sum(not one.reused for one in kept) == 1
