"""Reads the function's environment: the one place that does, once, when the function starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

from lambdas.contracts import names, sources
from lambdas.contracts.sources import Source
from lambdas.core.policy import Jitter, Limits, RetryPolicy

if TYPE_CHECKING:
    from lambdas.core.webhooks.delivery import DeliveryLimits

T = TypeVar("T")


class MissingSetting(KeyError):
    """The function was deployed without a variable it needs; infra/ sets each function's environment."""


class Environment:
    """Typed access to the variables that `contracts.names` lists."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str) -> str:
        try:
            return self._variables[name]
        except KeyError:
            raise MissingSetting(f"environment variable {name} is not set") from None

    def has(self, name: str) -> bool:
        """Whether it is set, and not to nothing."""
        return bool(self._variables.get(name))

    def number(self, name: str, default: int) -> int:
        return int(self._variables.get(name, default))

    @property
    def principals(self) -> dict[str, str]:
        """IAM principal ARN to tenant."""
        return dict(json.loads(self._variables.get(names.TENANTS) or "{}"))

    @property
    def sources(self) -> dict[str, Source]:
        """The declared sources of events, by name."""
        return sources.read(self._variables.get(names.SOURCES, ""))

    @property
    def state_machines(self) -> dict[str, str]:
        """Workflow type to the ARN of its state machine."""
        return dict(json.loads(self._variables.get(names.WORKFLOWS) or "{}"))

    @property
    def limits(self) -> Limits:
        default = Limits()
        retry = RetryPolicy(
            max_attempts=self.number(names.MAX_ATTEMPTS, default.retry.max_attempts),
            base_s=float(self._variables.get(names.RETRY_BASE_S, default.retry.base_s)),
            cap_s=float(self._variables.get(names.RETRY_CAP_S, default.retry.cap_s)),
            jitter=cast("Jitter", self._variables.get(names.JITTER, default.retry.jitter)),
        )
        return Limits(
            deadline_s=self.number(names.DEADLINE_S, default.deadline_s),
            grace_s=self.number(names.DUE_GRACE_S, default.grace_s),
            sweep_period_s=self.number(names.SWEEP_PERIOD_S, default.sweep_period_s),
            record_days=self.number(names.RECORD_DAYS, default.record_days),
            max_samples=self.number(names.MAX_SAMPLES, default.max_samples),
            upload_bytes=self.number(names.UPLOAD_MAX_BYTES, default.upload_bytes),
            not_before_s=self.number(names.NOT_BEFORE_MAX_S, default.not_before_s),
            model_timeout_s=self.number(names.MODEL_TIMEOUT_S, default.model_timeout_s),
            chunk_ms=self.number(names.CHUNK_MS, default.chunk_ms),
            chunk_bytes=self.number(names.CHUNK_BYTES, default.chunk_bytes),
            retry=retry,
        )

    @property
    def delivery_limits(self) -> DeliveryLimits:
        from lambdas.core.webhooks.delivery import DeliveryLimits  # noqa: PLC0415  # few functions need it

        default = DeliveryLimits()
        return DeliveryLimits(
            limits=self.limits,
            hours=self.number(names.WEBHOOK_HOURS, default.hours),
            timeout_s=self.number(names.WEBHOOK_TIMEOUT_S, default.timeout_s),
        )


def on_start(build: Callable[[Environment], T]) -> Callable[[], T]:
    """Builds a function's parts once: in Lambda's init phase, elsewhere (tests, tools) when they are first used."""

    @cache
    def parts() -> T:
        return build(Environment(os.environ))

    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        parts()
    return parts
