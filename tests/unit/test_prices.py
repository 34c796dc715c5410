"""What a call costs, in whole micro-dollars that never under-count."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.prices import PRICES, UnknownModel, base_model, cost_micros, estimate_tokens, price_of

LITE = "amazon.nova-lite-v1:0"


def test_a_call_costs_its_tokens_at_the_list_price() -> None:
    assert cost_micros(LITE, 1_000_000, 1_000_000) == 60_000 + 240_000
    assert cost_micros(LITE, 1_000, 500) == 180


def test_a_cost_is_rounded_up_so_that_no_call_is_free() -> None:
    assert cost_micros(LITE, 1, 0) == 1
    assert cost_micros(LITE, 0, 0) == 0


@given(st.sampled_from(sorted(PRICES)), st.integers(0, 2_000_000), st.integers(0, 200_000))
def test_a_cost_is_never_below_the_exact_price_and_less_than_a_micro_dollar_above(
    model: str, sent: int, got: int
) -> None:
    exact = Fraction(sent * PRICES[model].input + got * PRICES[model].output, 1_000_000)
    assert exact <= cost_micros(model, sent, got) < exact + 1


@pytest.mark.parametrize("geography", ["us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"])
def test_an_inference_profile_has_the_price_of_its_model(geography: str) -> None:
    assert base_model(f"{geography}.{LITE}") == LITE
    assert price_of(f"{geography}.{LITE}") == price_of(LITE)


@pytest.mark.parametrize("model", ["", "amazon", "us.", "us.us.amazon.nova-lite-v1:0", "xx.amazon.nova-lite-v1:0"])
def test_a_model_without_a_price_is_named(model: str) -> None:
    with pytest.raises(UnknownModel, match="no price"):
        price_of(model)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1), ("\ud800", 1)])
def test_tokens_that_nobody_counted_are_a_quarter_of_the_bytes_rounded_up(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
