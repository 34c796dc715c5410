"""Waits never exceed their cap, and each kind of jitter stays within the bounds of its formula."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.policy import DAY_S, Jitter, Limits, RetryPolicy
from tests.fakes import drawing

BASES = st.floats(0.01, 100)
CAPS = st.floats(100, DAY_S)
DRAWS = st.floats(0, 1, exclude_max=True)
TRIES = st.integers(1, 10_000)
PREVIOUS = st.floats(0, 40 * DAY_S)


def policy(jitter: Any = "full", **over: Any) -> RetryPolicy:
    return RetryPolicy(jitter=jitter, **over)


@given(st.builds(policy, st.sampled_from(get_args(Jitter)), base_s=BASES, cap_s=CAPS), TRIES, PREVIOUS, DRAWS)
def test_no_wait_is_negative_or_above_the_cap(any_policy: RetryPolicy, nth: int, previous: float, draw: float) -> None:
    assert 0 <= any_policy.wait_s(nth, previous, lambda: draw) <= any_policy.cap_s


@given(BASES, CAPS, TRIES, DRAWS)
def test_full_jitter_draws_from_zero_to_the_doubled_ceiling(base: float, cap: float, nth: int, draw: float) -> None:
    ceiling = min(cap, base * 2 ** min(nth - 1, 60))
    assert policy("full", base_s=base, cap_s=cap).wait_s(nth, 0, lambda: draw) == pytest.approx(ceiling * draw)


@given(BASES, CAPS, TRIES, DRAWS)
def test_equal_jitter_waits_at_least_half_of_the_ceiling(base: float, cap: float, nth: int, draw: float) -> None:
    ceiling = min(cap, base * 2 ** min(nth - 1, 60))
    waits = policy("equal", base_s=base, cap_s=cap).wait_s(nth, 0, lambda: draw)
    assert waits == pytest.approx(ceiling / 2 * (1 + draw))


@given(BASES, CAPS, PREVIOUS, DRAWS)
def test_decorrelated_jitter_draws_from_the_base_to_three_times_the_last_wait(
    base: float, cap: float, previous: float, draw: float
) -> None:
    waits = policy("decorrelated", base_s=base, cap_s=cap).wait_s(1, previous, lambda: draw)
    highest = 3 * max(base, previous)
    assert waits == pytest.approx(min(cap, base + (highest - base) * draw))
    assert waits >= base


def test_the_first_decorrelated_wait_is_spread_out_too() -> None:
    draws = drawing([0.0, 0.5, 0.99])
    assert len({policy("decorrelated", base_s=2).wait_s(1, 0, draws) for _ in range(3)}) == 3


def test_full_jitter_doubles_its_ceiling_with_each_failure_up_to_the_cap() -> None:
    ceilings = [policy(base_s=2, cap_s=10).wait_s(nth, 0, lambda: 1.0) for nth in (1, 2, 3, 4)]
    assert ceilings == [2, 4, 8, 10]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"base_s": 0},
        {"base_s": -1},
        {"base_s": float("nan")},
        {"base_s": 10, "cap_s": 9},
        {"cap_s": DAY_S + 1},
        {"jitter": "none"},
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_attempts|base_s|jitter"):
        RetryPolicy(**wrong)


def test_a_policy_of_one_try_is_one() -> None:
    assert RetryPolicy(max_attempts=1, base_s=5, cap_s=5).max_attempts == 1


def test_a_call_needs_the_model_timeout_and_the_time_to_settle() -> None:
    assert Limits(model_timeout_s=60, settle_s=10).call_s == 70


def test_the_defaults_are_those_of_the_design() -> None:
    limits = Limits()
    assert (limits.deadline_s, limits.grace_s, limits.sweep_period_s) == (86_400, 120, 300)
    assert (limits.record_days, limits.max_samples) == (90, 2)
    assert (limits.settle_s, limits.model_timeout_s) == (10, 60)
    assert (limits.inline_input_bytes, limits.input_bytes, limits.not_before_s) == (2_048, 1_000_000, 30 * DAY_S)
    assert limits.retry == RetryPolicy(max_attempts=5, base_s=2, cap_s=900, jitter="full")
