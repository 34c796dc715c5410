"""What the actors do to the record: the core's functions with the model's store behind them."""

from __future__ import annotations

from lambdas.contracts.names import CANCELLED, DELETED
from lambdas.core import changes, claiming, lifecycle
from lambdas.core.asking import Bill
from lambdas.core.conditions import holds
from lambdas.core.dispatching import dispatch as core_dispatch
from lambdas.core.envelope import Hint, ReturnedLetter
from lambdas.core.job import from_record
from lambdas.core.lifecycle import Cancelled, Office, Reopened
from lambdas.core.ports import Refused
from lambdas.core.protocol import Change
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import Stuck
from lambdas.core.verdicts import Done, Failed, Verdict, Wait, settle
from tests.builders import NOW, TENANT, later
from tests.fakes import FakeChunks, FakeObjects, FakeTurn, FakeUploads, FakeWorkers
from tests.fakes_workflows import FakeExecutions, machines
from tests.simulation.races.law import Store
from tests.simulation.races.record import INVOCATION_S, JOB, LIMITS, MAX_TRIES, Rec

WHY = changes.error("WHY", "")
VERDICTS: dict[str, Verdict] = {
    "done": Done(1),
    "not ready": Wait(WHY, 30),
    "pending": Wait(WHY, 30),
    "throttled": Wait(WHY),
    "failed": Failed(WHY),
    "permanent": Failed(WHY, final=True),
    "rejected": Failed(WHY, anew="sample"),
    "unusable": Failed(WHY, anew="unusable"),
}
ENDS = {"complete": "completed", "fail": "failed", "park": "waits", "retry": "retried"}


def claim(store: Store, attempt: int) -> str:
    """A hint comes. The name of a claim is its number: an invocation and a message have it once."""
    outcome = claiming.claim(
        Hint(JOB, attempt, 0),
        claim_id=f"claim {next_claim(store.rec)}",
        invocation_ends=later(INVOCATION_S),
        now=NOW,
        max_tries=MAX_TRIES,
        store=store,
        limits=LIMITS,
    )
    match outcome:
        case claiming.Claimed():
            return "claimed"
        case claiming.Early():
            return "early"
        case claiming.NoSuchJob():
            return "no such job"
        case claiming.Acknowledge(why):
            return "fenced" if "held" in why else "acknowledged"


def next_claim(rec: Rec) -> int:
    return rec.life * 100 + rec.attempt + 1


def put_off(store: Store, attempt: int) -> str:
    outcome = claiming.put_off(Hint(JOB, attempt, 0), now=NOW, store=store)
    return "early" if isinstance(outcome, claiming.Early) else "acknowledged"


def end(store: Store, held: Rec, verdict: str, cost: int, wasted: bool) -> str:
    """As `execution.execute` does once the verdict stands; `conformance` holds the two together."""
    change = ending(store, held, verdict, cost, wasted)
    if isinstance(store.apply(JOB, change), Refused):
        return book_late(store, held, cost)
    return ENDS[change.rule.name]


def ending(store: Store, held: Rec, verdict: str, cost: int, wasted: bool) -> Change:
    job = from_record(store.law.record(held))
    return settle(
        job, VERDICTS[verdict], bill=Bill(cost=cost, calls=cost, wasted=wasted), policy=LIMITS.retry, limits=LIMITS,
        now=NOW, draw=lambda: 0.5,
    )  # fmt: skip


def book_late(store: Store, held: Rec, cost: int) -> str:
    if cost and store.record["status"] == CANCELLED:
        store.apply(JOB, changes.book_late(from_record(store.law.record(held)), cost))
    return "fenced out"


def reopen_by_letter(store: Store, attempt: int) -> str:
    claiming.reopen(ReturnedLetter(JOB, attempt), now=NOW, store=store, limits=LIMITS)
    return "acknowledged"


def _office(store: Store) -> Office:
    return Office(store, FakeObjects(), FakeObjects(), FakeUploads(), FakeChunks(), LIMITS, lambda: NOW)


def cancel(store: Store) -> str:
    return "done" if isinstance(lifecycle.cancel(TENANT, JOB, _office(store)), Cancelled) else "refused"


def retry(store: Store) -> str:
    return "done" if isinstance(lifecycle.retry(TENANT, JOB, _office(store)), Reopened) else "refused"


def delete(store: Store) -> str:
    if "deleting does not look" in store.law.flags:
        found = from_record(store.read(JOB) or {})
        return "refused" if isinstance(store.apply(JOB, changes.delete(found)), Refused) else "done"
    return "done" if isinstance(lifecycle.delete(TENANT, JOB, _office(store)), lifecycle.Deleted) else "refused"


def accept(store: Store) -> str:
    """The same key again, with another body. Gone without a tombstone: another life of that id."""
    gone = store.record["status"] == DELETED and "no tombstone" in store.law.flags
    if not gone and not holds(store.law.rules["accept"].condition, store.record, {}):
        return "refused"
    life = store.rec.life + 1
    record = {**store.law.record(Rec("PENDING", due=120, shard=True, life=life))}
    store.put("accept", record, -1)
    return "accepted"


def dispatch(store: Store, image: Rec) -> str:
    job = from_record(store.law.record(image))
    sent = core_dispatch(
        [job], now=NOW, outbox=store, store=store, executions=FakeExecutions(), notice=lambda *a, **k: None
    )
    return "failed" if sent.failed else "sent"


def sweep(store: Store) -> str:
    Stuck(
        store=store,
        outbox=store,
        queue=store,
        limits=LIMITS,
        now=lambda: NOW,
        max_tries=lambda job: MAX_TRIES,
        notice=lambda *a, **k: None,
        workers=FakeWorkers(),
        machines=machines(),
    ).run(Report("sweep", "stuck"), FakeTurn())
    return "swept"
