"""How a try ended, judged from what was raised, and the one write that follows from it (rows 4 to 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from lambdas.core import changes
from lambdas.core.asking import Bill
from lambdas.core.job import Job
from lambdas.core.outcomes import (
    LONGEST_WAIT_S,
    ModelError,
    NotDone,
    NotReady,
    OutOfTime,
    Permanent,
    Rejected,
    stored_as,
)
from lambdas.core.policy import Draw, Limits, RetryPolicy
from lambdas.core.ports import AnswerNotStored, AnswerPending, EffectNotRecorded, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.times import Instant, after, seconds_between

Why = dict[str, str]

TAKEOVER_SPREAD_S = 2.0  # fifty followers of one dead leader must not call in one row


_FAILURES: dict[type[Exception], str] = {
    AnswerNotStored: "ANSWER_NOT_STORED",
    EffectNotRecorded: "EFFECT_NOT_RECORDED",
    NotDone: "EFFECT_NOT_DONE",
}


@dataclass(frozen=True)
class Done:
    """The result is stored."""

    result_bytes: int


@dataclass(frozen=True)
class Wait:
    """Not this job's fault: it waits for `seconds`, or as long as the policy says for its waits so far (None)."""

    why: Why
    seconds: float | None = None


@dataclass(frozen=True)
class Failed:
    """This try failed. `final`: trying again cannot help. `anew`: ask the model anew, at once: because the answers that
    are stored are no good ("sample"), or because one is not, or not for long ("unusable"). `no_good`: the only ones
    that are to leave the store (core/asking.py, `Answer.stored`)."""

    why: Why
    final: bool = False
    anew: Literal["", "sample", "unusable"] = ""
    no_good: tuple[tuple[str, str], ...] = ()


Verdict = Done | Wait | Failed


class StoredPart(Protocol):
    """What a branch of a workflow comes to where a job is Done."""

    @property
    def sha(self) -> str: ...


Ending = Verdict | StoredPart


def judge(raised: BaseException, now: Instant, draw: Draw) -> Verdict:
    """What happens, whatever was raised. It raises nothing itself: a subclass that lacks what its kind has is a mistake
    of the task."""
    said = _said(raised)
    try:
        return _judge_kind(raised, said, now, draw)
    except BaseException:
        return _task_error(raised, said)


def _judge_kind(raised: BaseException, said: str, now: Instant, draw: Draw) -> Verdict:
    """The one table."""
    match raised:
        case NotReady():
            return Wait(changes.error("NOT_READY", said), min(max(1.0, float(raised.retry_after)), LONGEST_WAIT_S))
        case AnswerPending():
            expected = min(max(0.0, seconds_between(now, raised.until)), LONGEST_WAIT_S)
            return Wait(changes.error("ANSWER_PENDING", said), expected + TAKEOVER_SPREAD_S * draw())
        case OutOfTime():
            return Wait(changes.error("OUT_OF_TIME", said), 1.0)
        case Unavailable():
            return Wait(changes.error("STORE_UNAVAILABLE", said))
        case Permanent():
            return Failed(changes.error(raised.code, said), final=True)
        case Rejected():
            return _judge_rejected(raised, changes.error("OUTPUT_REJECTED", said))
        case ModelError():
            return _judge_model(raised, said)
        case _:
            code = next((code for kind, code in _FAILURES.items() if isinstance(raised, kind)), "")
            return Failed(changes.error(code, said)) if code else _task_error(raised, said)


def _task_error(raised: BaseException, said: str) -> Failed:
    return Failed(changes.error("TASK_ERROR", f"{type(raised).__name__}: {said}"))


def _said(raised: BaseException) -> str:
    """Its text; an exception may even fail at telling it."""
    try:
        return str(raised)
    except BaseException:
        return "(it could not say what)"


def _judge_rejected(raised: Rejected, why: Why) -> Failed:
    """Answers that this try has found and not paid, an earlier one has left behind when it died: they are thrown away,
    and count as a try alone."""
    no_good = tuple(stored_as(answer) for answer in raised.answers)
    if not no_good:
        return Failed(why, anew="sample")
    is_new = any(not answer.reused for answer in raised.answers)
    return Failed(why, anew="unusable" if is_new else "", no_good=no_good)


def _judge_model(raised: ModelError, said: str) -> Verdict:
    why = changes.error(f"MODEL_{raised.kind.upper()}", said)
    match raised.kind:
        case "throttled":
            return Wait(why)
        case "permanent":
            return Failed(why, final=True)
        case "refused" | "truncated" | "unusable":
            return Failed(why, anew="unusable")
        case _:  # "transient"
            return Failed(why)


def settle(
    job: Job, verdict: Verdict, *, bill: Bill, policy: RetryPolicy, limits: Limits, now: Instant, draw: Draw
) -> Change:
    """The write that says how this try ended. Tries and waits are bounded here and nowhere else."""
    previous_s = job.backoff_ms / 1000
    match verdict:
        case Done(result_bytes):
            return changes.complete(job, now=now, result_bytes=result_bytes, cost=bill.cost, limits=limits)
        case Wait(why, seconds):
            over = _no_more_waiting(job, why, bill, policy, now)
            if over:
                return changes.fail(job, now=now, why=over, cost=bill.cost, limits=limits)
            wait = policy.wait_s(job.waits + 1, previous_s, draw) if seconds is None else seconds
            until = after(now, wait)
            refund = is_free(why, bill)
            return changes.park(job, now=now, until=until, why=why, cost=bill.cost, refund=refund, limits=limits)
        case Failed(why, final, anew):
            asked = job.sample + job.unusable + 1
            if final or job.tries >= policy.max_attempts or (anew != "" and asked >= limits.max_samples):
                return changes.fail(job, now=now, why=why, cost=bill.cost, limits=limits)
            wait = 0.0 if anew else policy.wait_s(job.tries, previous_s, draw)
            return changes.retry(job, now=now, wait_s=wait, why=why, cost=bill.cost, limits=limits, anew=anew)


def _no_more_waiting(job: Job, why: Why, bill: Bill, policy: RetryPolicy, now: Instant) -> Why | None:
    """Why this job may not wait: its deadline has come, or it pays for each wait and has used its tries."""
    last = f"{why['code']}: {why['message']}"
    if now >= job.deadline_at:
        return changes.error("DEADLINE_EXCEEDED", last)
    if not is_free(why, bill) and job.tries >= policy.max_attempts:
        return changes.error("ATTEMPTS_EXHAUSTED", last)
    return None


def is_free(why: Why, bill: Bill) -> bool:
    """Whether this wait gives its try back: nothing was billed for nothing, and a task that ran out of time got at
    least one new answer; else it would run out of time for ever."""
    idle = why["code"] == "OUT_OF_TIME" and bill.calls == 0
    return not bill.wasted and not idle
