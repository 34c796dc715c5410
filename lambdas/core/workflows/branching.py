"""One try of one branch of an execution: its input, its task, its part, and the one write that says what became of it.

Step Functions calls again what raises TransientError or WaitError; what cannot get better is written down and returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.names import DELETED, PENDING, PROCESSING
from lambdas.contracts.workflows import Workflow
from lambdas.core.changes import error
from lambdas.core.execution import Try, Worker, forget, reason
from lambdas.core.job import Job, from_record
from lambdas.core.ports import Applied, Notice, Unavailable
from lambdas.core.verdicts import Failed, Wait, is_free, judge
from lambdas.core.workflows import changes
from lambdas.core.workflows.parts import AGAIN, DONE, FAILED, OPEN, Part, parts_of
from lambdas.core.workflows.producing import Given, produce
from lambdas.core.workflows.recording import recorded
from lambdas.core.workflows.told import Ask, TransientError, WaitError, became


@dataclass(frozen=True)
class Branching:
    """What a branch is worked on with."""

    worker: Worker
    workflows: Mapping[str, Workflow]


def run(
    ask: Ask,
    desk: Branching,
    *,
    by: str,
    remaining_s: Callable[[], float],
    notice: Notice,
    about: Callable[[Job], None],
) -> dict[str, str]:
    """What became of the branch: done, failed for good, or stale. `by`: this invocation. Raises TransientError and
    WaitError, to be called again."""

    def tell(step: str, /, **fields: Any) -> None:
        notice(step, branch=ask.branch, **fields)

    job = _open_job(ask, desk.worker)
    if job is None:
        tell("branch_stale", job_id=ask.job_id)
        return became(ask, "stale")
    about(job)
    part = parts_of(job).get(ask.branch, Part())
    if part.state in (DONE, FAILED):
        tell("branch_was_over", state=part.state)
        return became(ask, part.state)
    job = _charged(job, ask.branch, by, part, desk.worker)
    # answers are asked for under the part's own sample; the job's is of jobs without branches
    attempt = Try(replace(job, sample=part.sample), desk.worker, remaining_s, tell, again=part.by != "")
    one = _One(attempt, ask.branch, by, part, _tries(desk, job.type, ask.branch))
    return _settled(ask, one, _used_up(one) or _verdict(attempt, desk, ask.branch))


@dataclass(frozen=True)
class _One:
    """One try of a branch. `by`: the invocation; `part`: as it was before this try was taken from it; `tries`: how many
    its task wants in a run, where it has a word of its own."""

    attempt: Try
    branch: str
    by: str
    part: Part
    tries: int | None

    @property
    def is_last(self) -> bool:
        """Of those that its task wants. How often it is called at most is Step Functions' to count."""
        return self.tries is not None and self.part.used + 1 >= self.tries

    def now(self, state: str, **over: Any) -> Part:
        cost, at = self.part.cost + self.attempt.bill.cost, self.attempt.worker.now()
        return replace(self.part, **{"state": state, "by": self.by, "at": at, "cost": cost, **over})


def _charged(job: Job, branch: str, by: str, part: Part, worker: Worker) -> Job:
    """A try is taken from the branch before it goes on, as from a job by its claim, and given back with a free wait: of
    one that dies having paid, nobody believes that it only waited. The job as it is then. Nothing is lost where that
    cannot be written: raises WaitError."""
    now = worker.now()
    charge = replace(part, state=OPEN, by=f"{by}.begun", at=now, used=part.used + 1, error={})
    try:
        outcome = worker.store.apply(job.id, changes.part(job, branch, charge, cost=0, now=now))
    except Unavailable:
        raise WaitError("STORE_UNAVAILABLE") from None
    if not isinstance(outcome, Applied):
        raise WaitError("OVERTAKEN")
    return replace(job, parts={**(job.parts or {}), branch: charge.written()})


def _open_job(ask: Ask, worker: Worker) -> Job | None:
    """None: it is over, gone, or in another run. Nothing may be paid for it."""
    try:
        record = worker.store.read(ask.job_id)
    except Unavailable:
        raise WaitError("STORE_UNAVAILABLE") from None
    if record is None or record.get("status") == DELETED:
        return None
    job = from_record(record)
    is_of_run = job.run == ask.run == job.parts_run
    return job if is_of_run and job.status in (PENDING, PROCESSING) else None


def _tries(desk: Branching, type_: str, name: str) -> int | None:
    workflow = desk.workflows.get(type_)
    tasks = {branch.name: branch.task for branch in workflow.branches} if workflow else {}
    task = desk.worker.tasks.get(tasks.get(name, ""))
    return task.declaration.retry.max_attempts if task and task.declaration.retry else None


def _used_up(one: _One) -> Failed | None:
    """Its earlier tries died without a word."""
    if one.tries is None or one.part.used < one.tries:
        return None
    return Failed(error("ATTEMPTS_EXHAUSTED", f"{one.part.used} tries used, and the last one died"), final=True)


def _verdict(attempt: Try, desk: Branching, name: str) -> Given | Wait | Failed:
    workflow = desk.workflows.get(attempt.job.type)
    if workflow is None:
        return Wait(error("UNKNOWN_TYPE", f"no workflow {attempt.job.type!r} here (yet): a deploy may be under way"))
    try:
        branch = workflow.branch(name)
    except KeyError:
        return Failed(error("UNKNOWN_BRANCH", f"{workflow.type} has no branch {name!r} (any more)"), final=True)
    task = attempt.worker.tasks.get(branch.task)
    if task is None:
        return Wait(error("UNKNOWN_TYPE", f"no task {branch.task!r} here (yet): a deploy may be under way"))
    try:
        return produce(attempt, workflow, branch, task)
    except BaseException as raised:
        return _final(judge(raised, attempt.worker.now(), attempt.worker.draw))


def _final(verdict: Any) -> Wait | Failed:
    assert isinstance(verdict, Wait | Failed)
    return verdict


def _settled(ask: Ask, one: _One, verdict: Given | Wait | Failed) -> dict[str, str]:
    match verdict:
        case Wait():
            state = _put_off(one, verdict)
        case Given(sha, size):
            state = _written(one, one.now(DONE, sha=sha, bytes=size, error={}), verdict)
        case Failed(why, final) if _is_last(one, verdict):
            used = one.part.used + (not final or one.attempt.bill.wasted)
            state = _written(one, one.now(FAILED, error=why, used=used), verdict)
        case Failed(why, _, anew):
            more = {anew: getattr(one.part, anew) + 1} if anew else {}
            state = _written(one, one.now(AGAIN, error=why, used=one.part.used + 1, **more), verdict)
    if state == AGAIN:
        raise TransientError("OVERTAKEN" if isinstance(verdict, Given) else verdict.why["code"])
    return became(ask, state)


def _is_last(one: _One, verdict: Failed) -> bool:
    """As for a job: what is no good is asked for anew a few times."""
    asked = one.part.sample + one.part.unusable + 1
    return verdict.final or one.is_last or (verdict.anew != "" and asked >= one.attempt.worker.limits.max_samples)


def _put_off(one: _One, verdict: Wait) -> str:
    """AGAIN where a try was used, FAILED where it was the last; a wait that is free raises WaitError."""
    again = one.now(AGAIN, error=verdict.why)
    if not is_free(verdict.why, one.attempt.bill):
        if one.is_last:
            why = error("ATTEMPTS_EXHAUSTED", f"{verdict.why['code']}: {verdict.why['message']}")
            again = replace(again, state=FAILED, error=why)
        return _written(one, replace(again, used=one.part.used + 1), verdict)
    state = _written(one, again, verdict) if one.attempt.bill.cost else _told(one, again, verdict)
    if state != AGAIN:
        return state
    raise WaitError(verdict.why["code"])


def _told(one: _One, again: Part, verdict: Wait) -> str:
    """Nothing is lost where it cannot be written but the try, which is not given back."""
    with suppress(TransientError):
        return _written(one, again, verdict)
    return AGAIN


def _written(one: _One, part: Part, verdict: Given | Wait | Failed) -> str:
    """What the record says of the branch from now on: ours, or that of whoever was faster."""
    attempt = one.attempt
    try:
        state = recorded(attempt, one.branch, part)
    except Unavailable as trouble:
        attempt.notice("part_not_recorded", cost_micros=attempt.bill.cost, detail=str(trouble))
        raise TransientError("PART_NOT_RECORDED") from None
    told = {"found": verdict.found} if isinstance(verdict, Given) else reason(verdict)
    attempt.notice(f"branch_{state}", cost_micros=attempt.bill.cost, calls=attempt.bill.calls, **told)
    if state == part.state:
        forget(attempt, verdict)
    return state
