"""How a try can end, as a task raises it and as the model's side reports it; settled in one place (`execution`)."""

from __future__ import annotations

from typing import Any, Literal, Protocol

LONGEST_WAIT_S = 30 * 86_400.0

ModelErrorKind = Literal["throttled", "transient", "permanent", "refused", "truncated", "unusable"]


class NotReady(Exception):
    """Raise it when the input is not there yet: the job waits `retry_after` seconds and no try is burned.

    Its deadline still counts: waiting beyond it is FAILED with DEADLINE_EXCEEDED."""

    retry_after: float = 60.0  # also of a subclass that does not call this `__init__`, as below

    def __init__(self, message: str, retry_after: float = 60) -> None:
        super().__init__(message)
        if not 0 < retry_after <= LONGEST_WAIT_S:
            raise ValueError(f"retry_after is in seconds, above 0 and at most 30 days, not {retry_after}")
        self.retry_after = max(1.0, float(retry_after))


class Permanent(Exception):
    """Raise it when trying again cannot help: the job is FAILED at once, with this message and code."""

    code: str = "PERMANENT"

    def __init__(self, message: str, code: str = "PERMANENT") -> None:
        super().__init__(message)
        self.code = code


class NotDone(Exception):
    """Raise it in an effect when it certainly did not happen: it may be tried again, even where it is `once`."""


class AnyAnswer(Protocol):
    """An answer of the model, as `ctx.model.ask` gives it. `reused`: this try has not paid it."""

    @property
    def reused(self) -> bool: ...

    @property
    def stored(self) -> tuple[str, str]: ...


class Rejected(Exception):
    """Raise it when the model's answer is no good: the next try asks anew, at most `max_samples` times in all.

    `answers`: these alone are no good, and all others stay. Without, all that the task asks is asked anew. TypeError
    for what is no answer of `ctx.model.ask`: its text, say."""

    answers: tuple[AnyAnswer, ...] = ()

    def __init__(self, message: str = "", *answers: AnyAnswer) -> None:
        super().__init__(message)
        for one in answers:
            stored_as(one)
        self.answers = answers


def stored_as(answer: Any) -> tuple[str, str]:
    """Under which key an answer that a task names is stored, and by whom. TypeError when it is none."""
    match getattr(answer, "stored", None):
        case (str() as key, str() as by) if key and by:
            return key, by
        case _:
            raise TypeError(f"Rejected names answers of ctx.model.ask, as they were given, not {type(answer).__name__}")


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
