"""A job's record as the model keeps it: few fields, hashable, every instant relative to now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, NamedTuple

from lambdas.contracts.names import DELETED, PROCESSING
from lambdas.core import times
from lambdas.core.intake import Submission, new_record
from lambdas.core.policy import Limits, RetryPolicy
from tests.builders import NOW, TENANT, later

NONE = -(10**9)  # an attribute that is not there; a number, so that states can be sorted
JOB = "j"
MAX_TRIES = 2
LIMITS = Limits(deadline_s=3_600, retry=RetryPolicy(max_attempts=MAX_TRIES, base_s=60, cap_s=60))
INVOCATION_S = 120

LONG = 10_000
PAST, SOON = -1, {"lease": 130, "not_before": 30, "deadline": 3_600, "due": 120}


class Work(NamedTuple):
    """What became of the branches of the run that was prepared last: (branch, state, by whom), and (branch, whose cost
    was booked last). `runs`: executions of this opening that ended badly."""

    run: int
    runs: int = 0
    parts: tuple[tuple[str, str, str], ...] = ()
    booked: tuple[tuple[str, str], ...] = ()


class Rec(NamedTuple):
    """Instants in seconds from now. `claim`: a number for each claim. `life`: which job of that id (its body)."""

    status: str
    attempt: int = 0
    claim: int = NONE
    tries: int = 0
    sample: int = 0
    unusable: int = 0
    run: int = 0
    step: int = 0  # questions that were asked of people (row 11)
    late: int = NONE
    lease: int = NONE
    not_before: int = 0
    deadline: int = 3_600
    due: int = NONE
    shard: bool = False
    ended: int = NONE
    expires: bool = False
    handed: bool = False
    result: str = ""
    life: int = 0
    prepared: tuple[Work, ...] = ()  # one, once a job is prepared whose work is an execution

    @property
    def work(self) -> Work | None:
        return self.prepared[0] if self.prepared else None

    @property
    def held(self) -> bool:
        return self.status == PROCESSING


Clock = Callable[[Rec], Rec]
_NUMBERS = {name: name for name in ("attempt", "tries", "sample", "unusable", "run", "step")}
_INSTANTS = {
    "lease": "lease_until", "not_before": "not_before", "deadline": "deadline_at", "due": "due_at",
    "ended": "finished_at",
}  # fmt: skip
_RUBBISH = {"input": '{"text":""}', "history": [], "body_sha": ""}


def accepted() -> dict[str, Any]:
    """What accept writes."""
    request = {"type": "summarize", "input": {"text": ""}}
    return new_record(Submission(TENANT, b""), request, "life 0", job_id=JOB, now=NOW, limits=LIMITS)


def written(rec: Rec) -> dict[str, Any]:
    """The record as the store has it. History and input are left out: no condition looks at them."""
    record = {**accepted(), "body_sha": f"life {rec.life}", "history": [], "status": rec.status}
    if rec.status == DELETED:
        keep = ("pk", "sk", "tenant", "type", "body_sha", "status")
        record = {name: record[name] for name in keep}
    for name, attribute in _NUMBERS.items():
        record[attribute] = getattr(rec, name)
    for name, attribute in _INSTANTS.items():
        record.pop(attribute, None)
        if (at := getattr(rec, name)) != NONE:
            record[attribute] = times.text(later(at))
    record |= {"claim_id": f"claim {rec.claim}"} if rec.claim != NONE else {}
    record |= {"late_cost": rec.late} if rec.late != NONE else {}
    record |= {"expires_at": 1} if rec.expires else {}
    record |= {"handed_over_at": times.text(NOW)} if rec.handed else {}
    record |= {"result_key": rec.result} if rec.result else {}
    record |= _written(rec.work) if rec.work and rec.status != DELETED else {}
    if not rec.shard:
        record.pop("due_shard", None)
    return record


def _written(work: Work) -> dict[str, Any]:
    parts = {name: {"state": state, "sha": "s", **({"by": by} if by else {})} for name, state, by in work.parts}
    return {"parts_run": work.run, "runs": work.runs, "parts": parts, "booked_by": dict(work.booked)}


def _prepared(record: Mapping[str, Any]) -> tuple[Work, ...]:
    if "parts_run" not in record:
        return ()
    parts = tuple(sorted((name, part["state"], part.get("by", "")) for name, part in record["parts"].items()))
    booked = tuple(sorted(record["booked_by"].items()))
    return (Work(record["parts_run"], record.get("runs", 0), parts, booked),)


def read(record: Mapping[str, Any], clock: Clock, now: times.Instant = NOW) -> Rec:
    """As the model sees it at that time."""
    numbers = {name: record.get(attribute, 0) for name, attribute in _NUMBERS.items()}
    instants = {
        name: ceil((times.instant(record[attribute]) - now).total_seconds()) if attribute in record else NONE
        for name, attribute in _INSTANTS.items()
    }
    return clock(
        Rec(
            record["status"],
            **numbers,
            **instants,
            claim=int(record["claim_id"].split()[1]) if "claim_id" in record else NONE,
            late=record.get("late_cost", NONE),
            shard="due_shard" in record,
            expires="expires_at" in record,
            handed="handed_over_at" in record,
            result=record.get("result_key", ""),
            life=int(record["body_sha"].split()[1]),
            prepared=_prepared(record),
        )
    )


def before_or_after(rec: Rec) -> Rec:
    """The clock of the races: of an instant only whether it has come. It may come at any time, in any order."""
    come: dict[str, Any] = {
        name: PAST if at <= 0 else SOON[name] for name in SOON if (at := getattr(rec, name)) != NONE
    }
    if rec.held and rec.lease >= LONG:
        come["lease"] = LONG  # an execution's: it ends after the execution was killed
    if rec.ended != NONE:
        come["ended"] = -LIMITS.sweep_period_s
    if rec.lease != NONE and not rec.held:
        come["lease"] = PAST  # it stays on the record, and may be over
    return rec._replace(**come)
