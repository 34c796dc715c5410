"""What must hold of every write, and of every state that it leads to. Each has a name, by which tests speak of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lambdas.contracts.names import COMPLETED, DELETED, FINAL, OPEN, PENDING
from tests.simulation.races.law import Write
from tests.simulation.races.record import MAX_TRIES, NONE, Rec, Work

OVERWRITTEN = "a final state is overwritten"
REVIVED = "a deleted job is changed"
TOUCHED = "a final record is changed"
REUSED = "a fence number comes twice"
EVICTED = "a live holder is evicted"
UNDUE = "the sweep cannot find what is not settled"
STILL_DUE = "what is settled is still due"
EXPIRES = "an open record expires, or a final one never does"
TOO_MANY_TRIES = "more tries than allowed"
GIVEN_UP = "a job is given up that has tries and time left"
TOO_LATE = "a try begins after the deadline"
TOO_EARLY = "a wait is cut short"
NOT_READ = "an end is undone that nobody read"
REFUSED = "a request is refused though nothing has changed"
UNPAID = "cost is lost"
PAID_TWICE = "cost is booked twice"
UNTOLD = "handed over, but not told"
REFUNDED = "a try is given back that was billed for nothing"
STRANGE_RESULT = "completed with another job's result"
NO_RESULT = "completed without its result"
CHANGED_RESULT = "a result changes after its job completed"
CALLED_AGAIN = "the model is called though its answer is stored"
STALE_ANSWER = "failed by an answer that was rejected before, without a call"
SERVED_AGAIN = "a rejected answer is served again"
ORDINARY = "an ordinary message reopens a failed job"
NOT_HELD = "a job is run that its worker does not hold"
NOT_RECOGNISED = "a writer does not know its own write"
MISTAKEN = "a writer takes another's write for its own"
STUCK = "no way to an end that is told"

Check = Callable[[Write], bool]
MAY_END = ("reopen", "delete")
PAYING = ("complete", "retry", "park", "fail", "book_late", "part", "late_part")
AFTER_THE_END = ("late", "due", "shard", "handed", "lease", "not_before", "deadline", "ended")


def _overwritten(write: Write) -> bool:
    old, new = write.before.status, write.after.status
    return old in FINAL and new != old and (write.rule not in MAY_END or (old == COMPLETED and new == PENDING))


def _touched(write: Write) -> bool:
    old, new = write.before, write.after
    if old.status not in FINAL or old.status != new.status:
        return False
    blank: dict[str, Any] = dict.fromkeys(AFTER_THE_END, 0)
    if old.work and new.work:  # but for whose cost was booked: what comes late may cost something
        old, new = _unbooked(old, old.work), _unbooked(new, new.work)
    waits = (old.not_before, old.ended) != (new.not_before, new.ended)
    return waits or old._replace(**blank) != new._replace(**blank)


def _unbooked(rec: Rec, work: Work) -> Rec:
    return rec._replace(prepared=(work._replace(booked=()),))


def _reused(write: Write) -> bool:
    rise = write.after.attempt - write.before.attempt
    return rise != (1 if write.rule in ("claim", "reopen") else 0)


def _undue(write: Write) -> bool:
    new = write.after
    return (new.status in OPEN or (new.status in FINAL and not new.handed)) and (new.due == NONE or not new.shard)


def _still_due(write: Write) -> bool:
    new = write.after
    settled = new.status == DELETED or (new.status in FINAL and new.handed)
    return settled and (new.due != NONE or new.shard)


def _given_up(write: Write) -> bool:
    old = write.before
    return write.rule == "expire" and old.status in OPEN and old.tries < MAX_TRIES and old.deadline > 0


def _unpaid(write: Write) -> bool:
    return write.booked < 0 and write.rule not in ("delete", "accept")


def _paid_twice(write: Write) -> bool:
    return write.booked > 0 and write.rule not in PAYING


CHECKS: dict[str, Check] = {
    OVERWRITTEN: _overwritten,
    REVIVED: lambda w: w.before.status == DELETED and w.rule != "accept" and w.after != w.before,
    TOUCHED: _touched,
    UNDUE: _undue,
    STILL_DUE: _still_due,
    EXPIRES: lambda w: w.after.expires == (w.after.status in OPEN),
    TOO_MANY_TRIES: lambda w: not 0 <= w.after.tries <= MAX_TRIES,
    GIVEN_UP: _given_up,
    TOO_LATE: lambda w: w.rule == "claim" and w.before.deadline <= 0,
    TOO_EARLY: lambda w: w.rule in ("claim", "leave") and w.before.status == PENDING and w.before.not_before > 1,
    UNPAID: _unpaid,
    PAID_TWICE: _paid_twice,
    REUSED: _reused,
}


def broken_by(write: Write) -> str:
    return next((name for name, check in CHECKS.items() if check(write)), "")


def is_settled(rec: Rec) -> bool:
    return rec.status == DELETED or (rec.status in FINAL and rec.handed)


def as_written(rule: str, rec: Rec, after: Rec) -> bool:
    """Whether the record still says what that write has made of it."""
    same = rec.status == after.status
    if rule in ("cancel", "delete"):
        return same
    same = same and rec.attempt == after.attempt
    return same and (rule in ("reap", "expire", "reopen") or rec.claim == after.claim)
