"""How often, how long and when to give up: the one retry authority, as plain data and pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

Jitter = Literal["full", "equal", "decorrelated"]
Draw = Callable[[], float]  # uniform in [0, 1)

DAY_S = 86_400
SKEW_S = 1.0  # the clocks of two Lambdas differ by milliseconds; a job may start so much early, to no harm
DISPATCH_DELAY_MAX_S = 900  # SQS holds a message back for 15 minutes at most; longer waits are left to the sweep


@dataclass(frozen=True)
class RetryPolicy:
    """Tries of one job and the waits between them, in seconds. A wait never exceeds `cap_s`."""

    max_attempts: int = 5
    base_s: float = 2.0
    cap_s: float = 900.0
    jitter: Jitter = "full"

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be 1 or more, not {self.max_attempts}")
        if not 0 < self.base_s <= self.cap_s <= DAY_S:
            raise ValueError(f"0 < base_s <= cap_s <= {DAY_S} does not hold for {self.base_s} and {self.cap_s}")
        if self.jitter not in get_args(Jitter):
            raise ValueError(f"jitter is one of {', '.join(get_args(Jitter))}, not {self.jitter!r}")

    def wait_s(self, nth: int, previous_s: float, draw: Draw) -> float:
        """Seconds before the next try after the `nth` (1 is the first) failure in a row.

        Full, equal and decorrelated jitter as in the AWS Architecture Blog, "Exponential Backoff And Jitter".
        """
        ceiling = min(self.cap_s, self.base_s * 2.0 ** min(nth - 1, 60))
        if self.jitter == "full":
            return ceiling * draw()
        if self.jitter == "equal":
            return ceiling / 2 + ceiling / 2 * draw()
        highest = 3 * max(self.base_s, previous_s)
        return min(self.cap_s, self.base_s + (highest - self.base_s) * draw())


@dataclass(frozen=True)
class Limits:
    """The settings that the rules need, in seconds and days; the defaults are those of the deployed stack."""

    deadline_s: int = DAY_S
    grace_s: int = 120
    sweep_period_s: int = 300
    record_days: int = 90
    max_samples: int = 2
    settle_s: int = 10  # kept free at an invocation's end: save the answer, store the result, complete
    model_timeout_s: int = 60
    inline_input_bytes: int = 2_048
    input_bytes: int = 1_000_000
    upload_bytes: int = 10_000_000
    not_before_s: int = 30 * DAY_S
    chunk_ms: int = 200
    chunk_bytes: int = 2_048
    retry: RetryPolicy = RetryPolicy()

    @property
    def call_s(self) -> int:
        """No call is started with less time left than this."""
        return self.model_timeout_s + self.settle_s

    @property
    def start_s(self) -> int:
        """No job is started with less time left than this: a call, and a moment to claim it and read its input."""
        return self.call_s + 5
