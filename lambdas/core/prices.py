"""What a model call costs, in integer micro-dollars. List prices on demand, us-east-1; add a line to add a model."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Price:
    """Micro-dollars per million tokens (so 60_000 is $0.06)."""

    input: int
    output: int


PRICES: dict[str, Price] = {
    "amazon.nova-micro-v1:0": Price(35_000, 140_000),
    "amazon.nova-lite-v1:0": Price(60_000, 240_000),
    "amazon.nova-pro-v1:0": Price(800_000, 3_200_000),
    "amazon.nova-premier-v1:0": Price(2_500_000, 12_500_000),
    "anthropic.claude-3-haiku-20240307-v1:0": Price(250_000, 1_250_000),
    "anthropic.claude-3-5-haiku-20241022-v1:0": Price(800_000, 4_000_000),
    "anthropic.claude-sonnet-4-20250514-v1:0": Price(3_000_000, 15_000_000),
}

GEOGRAPHIES = ("us", "us-gov", "eu", "apac", "jp", "au", "ca", "global")


class UnknownModel(KeyError):
    """No price is known for this model; add it to lambdas/core/prices.py."""


def base_model(model: str) -> str:
    """The model behind an inference profile id: `us.amazon.nova-lite-v1:0` is `amazon.nova-lite-v1:0`."""
    head, _, tail = model.partition(".")
    return tail if head in GEOGRAPHIES else model


def price_of(model: str) -> Price:
    try:
        return PRICES[base_model(model)]
    except KeyError:
        raise UnknownModel(f"{model}: no price in lambdas/core/prices.py; add one") from None


def cost_micros(model: str, input_tokens: int, output_tokens: int) -> int:
    """Micro-dollars, rounded up, so that no call is free and a sum never under-counts."""
    price = price_of(model)
    return math.ceil((input_tokens * price.input + output_tokens * price.output) / 1_000_000)


def estimate_tokens(text: str) -> int:
    """Tokens of a text that nobody counted for us: four bytes a token, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)
