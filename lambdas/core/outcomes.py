"""How a try can end, as a task raises it and as the model's side reports it; settled in one place (`execution`)."""

from __future__ import annotations

from typing import Literal, Protocol

ModelErrorKind = Literal["throttled", "transient", "permanent", "refused", "truncated", "unusable"]


class NotReady(Exception):
    """Raise it when the input is not there yet: the job waits `retry_after` seconds and no try is burned.

    Its deadline still counts: waiting beyond it is FAILED with DEADLINE_EXCEEDED."""

    def __init__(self, message: str, retry_after: float = 60) -> None:
        super().__init__(message)
        if not 0 < retry_after <= 30 * 86_400:
            raise ValueError(f"retry_after is in seconds, above 0 and at most 30 days, not {retry_after}")
        self.retry_after = max(1.0, float(retry_after))


class Permanent(Exception):
    """Raise it when trying again cannot help: the job is FAILED at once, with this message and code."""

    def __init__(self, message: str, code: str = "PERMANENT") -> None:
        super().__init__(message)
        self.code = code


class NotDone(Exception):
    """Raise it in an effect when it certainly did not happen: it may be tried again, even where it is `once`."""


class AnyAnswer(Protocol):
    """An answer of the model, as `ctx.model.ask` gives it."""

    @property
    def reused(self) -> bool: ...

    @property
    def stored(self) -> tuple[str, str]: ...


class Rejected(Exception):
    """Raise it when the model's answer is no good: the next try asks anew, at most `max_samples` times in all.

    `answers`: these alone are no good, and all others stay. Without, all that the task asks is asked anew."""

    def __init__(self, message: str = "", *answers: AnyAnswer) -> None:
        super().__init__(message)
        self.answers = answers


class OutOfTime(Exception):
    """Too little of this invocation is left to start a call that could end in time; the job goes back at once."""


class ModelError(Exception):
    """A model call without a usable answer. `code` is the provider's own word for it; `cost` is what it billed, in
    micro-dollars. `maybe_billed`: it broke after it was sent, so the provider may have billed it in full."""

    def __init__(
        self, kind: ModelErrorKind, code: str, message: str, *, cost: int = 0, maybe_billed: bool = False
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.kind, self.code, self.message = kind, code, message
        self.cost, self.maybe_billed = cost, maybe_billed
