"""Makes the conditional writes of the protocol from a delivery. Each function is one row; the rules are the jobs' own.

Two things differ: nobody else must hear of a delivery's end, so that its last write leaves the `due` index itself; and
a delivery that was taken may be sent again, too, when a human asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.changes import LEASE_MARGIN_S, error, first_look
from lambdas.core.job import entry, history_with
from lambdas.core.policy import DAY_S, SKEW_S
from lambdas.core.protocol import RULES, Change
from lambdas.core.times import Instant, after
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits
from lambdas.core.webhooks.ports import Answer
from lambdas.core.webhooks.schedule import TRIES_MAX

DELIVERED, RETRIED, WAITS, GIVEN_UP, CRASHED, REOPENED = (
    "delivered", "retried", "waits", "failed", "crashed", "reopened",
)  # fmt: skip
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_DUE = ("due_at", "due_shard")


def receipt(answer: Answer) -> dict[str, Any]:
    """What is kept of an answer: its status, how long it took, and the beginning of what it says, for a human's eyes
    and without what would move their cursor."""
    said = _UNSEEN.sub(" ", answer.excerpt).strip()
    return {"status": answer.status, "ms": answer.ms, **({"note": said} if said else {})}


def _line(now: Instant, what: str, delivery: Delivery, receipt: Mapping[str, Any], note: str = "") -> dict[str, Any]:
    told = {name: value for name, value in receipt.items() if name != "note"}
    said = "; ".join(part for part in (note, str(receipt.get("note", ""))) if part)
    return {**entry(now, what, delivery.attempt, said), **told}


def _mine(delivery: Delivery) -> dict[str, Any]:
    return {"attempt": delivery.attempt, "claim_id": delivery.claim_id}


def _seen(delivery: Delivery) -> dict[str, Any]:
    return {"seen_status": delivery.status, "seen_attempt": delivery.attempt}


def _end(now: Instant, limits: DeliveryLimits) -> dict[str, Any]:
    expires_at = int(now.timestamp()) + limits.limits.record_days * DAY_S
    return {"finished_at": times.text(now), "expires_at": expires_at}


def claim(*, claim_id: str, now: Instant, invocation_ends: Instant) -> Change:
    """Row 3."""
    return Change(
        RULES["claim"],
        {
            "now": times.text(now),
            "soon": times.text(after(now, SKEW_S)),
            "max_tries": TRIES_MAX,
            "claim_id": claim_id,
        },
        sets={
            "status": PROCESSING,
            "claim_id": claim_id,
            "lease_until": times.text(after(invocation_ends, LEASE_MARGIN_S)),
            "claimed_at": times.text(now),
        },
        adds={"attempt": 1, "tries": 1},
    )


def pull_due(delivery: Delivery) -> Change:
    """Row 3: a crash of this holder must not hide behind a look that was pushed far ahead."""
    assert delivery.lease_until is not None
    return Change(RULES["pull_due"], _mine(delivery), sets={"due_at": times.text(delivery.lease_until)})


def complete(delivery: Delivery, *, now: Instant, receipt: Mapping[str, Any], limits: DeliveryLimits) -> Change:
    """Row 4: it was taken."""
    line = _line(now, DELIVERED, delivery, receipt)
    return Change(
        RULES["complete"],
        _mine(delivery),
        sets={"status": COMPLETED, **_end(now, limits), **history_with(delivery, line)},
        removes=("error", *_DUE),
    )


def _pending_again(
    delivery: Delivery, line: Mapping[str, Any], *, now: Instant, at: Instant, limits: DeliveryLimits
) -> dict[str, Any]:
    start = min(at, delivery.deadline_at)
    return {
        "status": PENDING,
        "not_before": times.text(start),
        "due_at": times.text(first_look(now, start, delivery.deadline_at, limits.limits)),
        **history_with(delivery, line),
    }


def retry(
    delivery: Delivery,
    *,
    now: Instant,
    at: Instant,
    why: Mapping[str, str],
    refused: bool,
    limits: DeliveryLimits,
    receipt: Mapping[str, Any],
    meaning: str = "",
) -> Change:
    """Row 5. `refused`: it was answered, and not wanted. `receipt`: of its answer, empty when none came. `meaning`: of
    that answer, for this line alone: what is told of it at the end is not that it is tried again."""
    line = _line(now, RETRIED, delivery, receipt, ": ".join(part for part in (_text(why), meaning) if part))
    sets = {**_pending_again(delivery, line, now=now, at=at, limits=limits), "error": dict(why)}
    return Change(RULES["retry"], _mine(delivery), sets, {"refusals": 1} if refused else {})


def park(delivery: Delivery, *, now: Instant, until: Instant, why: Mapping[str, str], limits: DeliveryLimits) -> Change:
    """Row 5p: it was not tried, and the try is given back. What its last try came to stays its error, and of many
    waits in a row the last one is in its history: they must not push the receipts out."""
    line = _line(now, WAITS, delivery, {}, _text(why))
    waited = bool(delivery.history) and delivery.history[-1].get("what") == WAITS
    before = replace(delivery, history=delivery.history[:-1]) if waited else delivery
    sets = _pending_again(before, line, now=now, at=until, limits=limits)
    return Change(RULES["park"], _mine(delivery), sets, {"waits": 1, "tries": -1})


def leave(*, attempt: int, now: Instant) -> Change:
    """Row 5u: no time to start it here; the stream sends a fresh message."""
    return Change(
        RULES["leave"],
        {"attempt": attempt, "soon": times.text(after(now, SKEW_S))},
        sets={"not_before": times.text(after(now, 1))},
    )


def fail(
    delivery: Delivery, *, now: Instant, why: Mapping[str, str], limits: DeliveryLimits, receipt: Mapping[str, Any]
) -> Change:
    """Row 6: given up; a human may open it again."""
    line = _line(now, GIVEN_UP, delivery, receipt, _text(why))
    return Change(
        RULES["fail"],
        _mine(delivery),
        sets={"status": FAILED, "error": dict(why), **_end(now, limits), **history_with(delivery, line)},
        removes=_DUE,
    )


def expire(delivery: Delivery, *, now: Instant, limits: DeliveryLimits) -> Change:
    """Row 7: used up, or past its deadline. Its last trouble is told along."""
    last = f" Last: {_text(delivery.error)}" if delivery.error else ""
    if delivery.deadline_at <= now:
        why = error("DEADLINE_EXCEEDED", f"not taken by {times.text(delivery.deadline_at)}.{last}")
    else:
        why = error("ATTEMPTS_EXHAUSTED", f"{delivery.tries} tries, {delivery.crashes} crashed.{last}")
    line = _line(now, GIVEN_UP, delivery, {}, _text(why))
    return Change(
        RULES["expire"],
        {**_seen(delivery), "now": times.text(now)},
        sets={"status": FAILED, "error": why, **_end(now, limits), **history_with(delivery, line)},
        removes=("claim_id", *_DUE),
    )


def _for(registration: str) -> dict[str, str]:
    """Of the endpoint that a human means now: it may be a later one of the same URL."""
    return {"registration": registration} if registration else {}


def reopen(delivery: Delivery, *, now: Instant, limits: DeliveryLimits, registration: str = "") -> Change:
    """Row 8: sent again because a human wants it, under the same event id and with fresh counters. Of a FAILED one,
    and of one that was taken: its receiver may have lost it."""
    deadline = limits.deadline(now)
    return Change(
        RULES["reopen"],
        {**_seen(delivery), "next_attempt": delivery.attempt + 1, "late_cost": 0},  # it costs nothing
        sets={
            "status": PENDING,
            "not_before": times.text(now),
            "deadline_at": times.text(deadline),
            "due_at": times.text(first_look(now, now, deadline, limits.limits)),
            "due_shard": ids.delivery_shard(*delivery.key),
            **dict.fromkeys(("tries", "crashes", "waits", "refusals"), 0),
            **_for(registration),
            **history_with(delivery, entry(now, REOPENED, delivery.attempt + 1)),
        },
        adds={"attempt": 1, "opening": 1},
        removes=("expires_at", "claim_id", "finished_at"),
    )


def is_left_over(record: Mapping[str, Any], made: Instant, began: Instant) -> bool:
    """Whether it is over and older than the job that began then: by a day, for clocks differ; no record expires sooner
    after its end."""
    return "due_shard" not in record and made < after(began, -DAY_S)


def renew(left_over: Delivery, record: Mapping[str, Any]) -> Change:
    """Row 8, of what an earlier job of the same id has left over: this fresh record in its place. Attempts go on, so
    that no late hint means another one."""
    fresh = {name: value for name, value in record.items() if name not in ("pk", "sk", "attempt", "opening")}
    return Change(
        RULES["reopen"],
        {**_seen(left_over), "next_attempt": left_over.attempt + 1, "late_cost": 0},
        sets=fresh,
        adds={"attempt": 1, "opening": 1},
        removes=("error", "history_left_out", "expires_at", "claim_id", "finished_at"),
    )


def hasten(delivery: Delivery, *, now: Instant, limits: DeliveryLimits, registration: str = "") -> Change:
    """Row 15, of one that is PENDING and waits: a human wants it now. The stream sends it at once."""
    sets = {
        "not_before": times.text(now),
        "due_at": times.text(first_look(now, now, delivery.deadline_at, limits.limits)),
        **_for(registration),
    }
    return Change(RULES["push_due"], _seen(delivery), sets)


def reap(delivery: Delivery, *, now: Instant, limits: DeliveryLimits) -> Change:
    """Row 15: its holder was killed by the platform; the try stays charged and the crash is counted."""
    line = _line(now, CRASHED, delivery, {})
    return Change(
        RULES["reap"],
        {**_seen(delivery), "now": times.text(now)},
        sets={
            "status": PENDING,
            "not_before": times.text(now),
            "due_at": times.text(min(after(now, limits.limits.grace_s), delivery.deadline_at)),
            **history_with(delivery, line),
        },
        adds={"crashes": 1},
        removes=("claim_id",),  # a late holder must not take this for an effect of its own
    )


def push_due(delivery: Delivery, due_at: Instant) -> Change:
    """Row 15: nobody need look at it before then."""
    return Change(RULES["push_due"], _seen(delivery), sets={"due_at": times.text(min(due_at, delivery.deadline_at))})


def _text(why: Mapping[str, str]) -> str:
    return f"{why['code']}: {why['message']}"
