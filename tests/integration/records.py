"""Job records for the tests of adapters and handlers, made by the code that makes the real ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lambdas.adapters import clock
from lambdas.contracts.names import PENDING
from lambdas.core import changes, times
from lambdas.core.canonical import canonical, sha256
from lambdas.core.intake import Submission, new_record
from lambdas.core.job import from_record
from lambdas.core.policy import Limits
from lambdas.core.protocol import Change
from lambdas.core.webhooks import delivery_changes
from lambdas.core.webhooks.delivery import DeliveryLimits
from lambdas.core.webhooks.delivery import new_record as new_delivery
from lambdas.core.workflows import changes as runs
from lambdas.core.workflows.parts import Part

LIMITS = Limits()
_NUMBER = itertools.count(1)
CALL = {"type": "summarize", "input": {"text": "ANNA: The pump is broken.\nBEN: I will send somebody today."}}


def an_id() -> str:
    return sha256(f"job {next(_NUMBER)}")[:32]


def pending(
    job_id: str | None = None,
    *,
    tenant: str = "acme",
    request: Mapping[str, Any] = CALL,
    now: datetime | None = None,
    **over: Any,
) -> dict[str, Any]:
    """A record as accept writes it, a minute old."""
    now = now or times.after(clock.now(), -60)
    submission = Submission(tenant=tenant, body=b"")
    sha = sha256(canonical(request))
    record = new_record(submission, request, sha, job_id=job_id or an_id(), now=now, limits=LIMITS)
    return {**record, **over}


def processing(record: Mapping[str, Any] | None = None, *, lease_s: float = 100, **over: Any) -> dict[str, Any]:
    """Claimed a moment ago; its lease ends in `lease_s` seconds."""
    record = record or pending()
    now = clock.now()
    claim = changes.claim(
        claim_id="holder", max_tries=5, now=now, invocation_ends=times.after(now, lease_s - changes.LEASE_MARGIN_S)
    )
    assert record["status"] == PENDING
    return {**claim.applied_to(record), **over}


def completed(*, ago_s: float = 0, **over: Any) -> dict[str, Any]:
    job = from_record(processing())
    change = changes.complete(job, now=times.after(clock.now(), -ago_s), result_bytes=2, cost=7, limits=LIMITS)
    return {**change.applied_to(processing(pending(job.id))), **over}


def failed(*, ago_s: float = 0, **over: Any) -> dict[str, Any]:
    record = processing()
    why = changes.error("MODEL_PERMANENT", "no such model")
    change = changes.fail(from_record(record), now=times.after(clock.now(), -ago_s), why=why, cost=3, limits=LIMITS)
    return {**change.applied_to(record), **over}


def cancelled(**over: Any) -> dict[str, Any]:
    record = processing()
    return {**changes.cancel(from_record(record), now=clock.now(), limits=LIMITS).applied_to(record), **over}


def every_change(now: datetime) -> dict[str, tuple[dict[str, Any], Change]]:
    """For each rule of the protocol but `accept`: a record that allows it, and the change as the code makes it."""
    held, lapsed, open_ = processing(), processing(lease_s=-3_600), pending()
    gone, dead, done = cancelled(), failed(), completed()
    told = changes.hand_over(from_record(done), now=now).applied_to(done)
    why = changes.error("MODEL_TRANSIENT", "cut")
    job, soon = from_record(held), times.after(now, 30)
    made = {
        "claim": (open_, changes.claim(claim_id="me", max_tries=5, now=now, invocation_ends=soon)),
        "pull_due": (held, changes.pull_due(job)),
        "complete": (held, changes.complete(job, now=now, result_bytes=9, cost=11, limits=LIMITS)),
        "retry": (held, changes.retry(job, now=now, wait_s=3, why=why, cost=5, limits=LIMITS, anew="sample")),
        "park": (held, changes.park(job, now=now, until=soon, why=why, cost=5, refund=True, limits=LIMITS)),
        "leave": (open_, changes.leave(attempt=0, now=now)),
        "fail": (held, changes.fail(job, now=now, why=why, cost=5, limits=LIMITS)),
        "expire": (open_, changes.expire(from_record(open_), now=now, max_tries=5, limits=LIMITS)),
        "reopen": (dead, changes.reopen(from_record(dead), now=now, limits=LIMITS)),
        "cancel": (held, changes.cancel(job, now=now, limits=LIMITS)),
        "delete": (told, changes.delete(from_record(told))),
        "book_late": (gone, changes.book_late(from_record(gone), 17)),
        "note": (dead, changes.note(from_record(dead), "repaired", "by somebody", at=now)),
        "hand_over": (done, changes.hand_over(from_record(done), now=now)),
        "reap": (lapsed, changes.reap(from_record(lapsed), now=now, limits=LIMITS)),
        "push_due": (open_, changes.push_due(from_record(open_), soon)),
        **_every_change_of_a_run(now),
    }
    # one job each: they are all written to one table
    return {name: ({**record, "pk": an_id()}, change) for name, (record, change) in made.items()}


def _every_change_of_a_run(now: datetime) -> dict[str, tuple[dict[str, Any], Change]]:
    """Of a job whose work is an execution."""
    held, lease = processing(), times.after(now, 900)
    job, why = from_record(held), changes.error("EXECUTION_FAILED", "run 0 failed")
    prepared = runs.prepare(job, ["key-facts", "summary"]).applied_to(held)
    at_work = from_record(prepared)
    done = Part(state="done", by="me", at=now, cost=11, sha="f" * 32, bytes=2)
    return {
        "prepare": (held, runs.prepare(job, ["key-facts", "summary"])),
        "adopt": (held, runs.adopt(job, now=now, lease=lease)),
        "extend": (prepared, runs.extend(at_work, lease=lease)),
        "part": (prepared, runs.part(at_work, "key-facts", done, cost=11, now=now)),
        "late_part": (prepared, runs.late_part("key-facts", "me", 11, seen_booked="")),
        "collect": (prepared, runs.collect(at_work, now=now, key="k", result_bytes=2, partial=True, limits=LIMITS)),
        "fall_short": (prepared, runs.fall_short(at_work, now=now, why=why, limits=LIMITS)),
        "run_again": (prepared, runs.run_again(at_work, now=now, wait_s=2, why=why, limits=LIMITS)),
        "give_up": (prepared, runs.give_up(at_work, now=now, why=why, limits=LIMITS)),
    }


# --- deliveries ------------------------------------------------------------------------------------
DELIVERIES = DeliveryLimits()


def planned(
    job_id: str | None = None, *, endpoint: str = "e1", url: str = "", ago_s: float = 0, **over: Any
) -> dict[str, Any]:
    """A delivery as deliver plans it: of that job's first end, for an endpoint."""
    pk = job_id or an_id()
    record = new_delivery(
        pk=pk, tenant="acme", endpoint=endpoint, event_type="job.completed", event_id=f"{pk}.1.COMPLETED", sequence=1,
        body="{}", url=url, now=times.after(clock.now(), -ago_s), limits=DELIVERIES,
    )  # fmt: skip
    return {**record, **over}


def claimed(record: Mapping[str, Any], *, lease_s: float = 60) -> dict[str, Any]:
    """That delivery in somebody's hands, whose lease ends in `lease_s` seconds."""
    ends = times.after(clock.now(), lease_s - changes.LEASE_MARGIN_S)
    return delivery_changes.claim(claim_id="holder", now=clock.now(), invocation_ends=ends).applied_to(record)
