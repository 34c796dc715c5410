"""One try of a held job: its input, its task, its result, and the write that says how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import CANCELLED
from lambdas.core import changes, ids
from lambdas.core.accepted_input import accepted_input
from lambdas.core.asking import AskingModel, Bill
from lambdas.core.canonical import canonical
from lambdas.core.effects import Acting
from lambdas.core.job import Job
from lambdas.core.outcomes import NotReady, Permanent
from lambdas.core.policy import Draw, Limits
from lambdas.core.ports import (
    Answers,
    Applied,
    Effects,
    Inputs,
    JobStore,
    Mailer,
    Missing,
    Notice,
    Now,
    Refused,
    Results,
    Unavailable,
    UploadedObjects,
)
from lambdas.core.streaming.ports import Chunks, StreamingModel
from lambdas.core.streaming.recorder import Recorder
from lambdas.core.tasks import Context, Task, Tasks, policy_of
from lambdas.core.times import seconds_between
from lambdas.core.verdicts import Done, Ending, Failed, Verdict, Wait, judge, settle

_ENDS = {"complete": "completed", "fail": "failed", "park": "waits", "retry": "retried"}
# Fields of a log line that are not for a task to fill: one job's lines must not pass for another's.
_NO_TASKS_OWN = frozenset(
    {"text", "job", "step", "job_id", "tenant", "trace_id", "attempt", "type"}
    | {"request_id", "function", "message_id", "xray_trace_id"}
)


@dataclass(frozen=True)
class Worker:
    """What a worker works with: the ports, the tasks, the limits of this deployment."""

    store: JobStore
    inputs: Inputs
    uploads: UploadedObjects
    results: Results
    answers: Answers
    effects: Effects
    mailer: Mailer
    model: StreamingModel
    model_id: str
    chunks: Chunks
    tasks: Tasks
    limits: Limits
    now: Now
    draw: Draw


@dataclass(frozen=True)
class Try:
    """One try of one job, in one invocation. `again`: another one came before it, whatever the attempt says."""

    job: Job
    worker: Worker
    remaining_s: Callable[[], float]
    notice: Notice
    bill: Bill = field(default_factory=Bill)
    again: bool = False


def execute(attempt: Try) -> str:
    """Run one try to its end and write that end. The word for how it ended. Raises Unavailable: then the record
    still says PROCESSING, and the lease's end brings the job back."""
    return conclude(attempt, _verdict(attempt))


def conclude(attempt: Try, verdict: Verdict) -> str:
    """Write how a try ended, and tell it. The word for it. Raises Unavailable."""
    job, worker, bill = attempt.job, attempt.worker, attempt.bill
    policy = policy_of(worker.tasks.get(job.type), worker.limits.retry)
    change = settle(
        job, verdict, bill=bill, policy=policy, limits=worker.limits, now=worker.now(), draw=worker.draw
    )  # fmt: skip
    name = _ENDS[change.rule.name]
    match worker.store.apply(job.id, change):
        case Refused(record):
            name = "fenced_out"
            _book_late(attempt, record)
        case Applied():
            forget(attempt, verdict)
    open_s = int(seconds_between(job.deadline_at, worker.now())) + worker.limits.deadline_s  # since it could start
    attempt.notice(name, cost_micros=bill.cost, calls=bill.calls, open_s=open_s, **reason(verdict))
    return name


def _verdict(attempt: Try) -> Verdict:
    job, worker = attempt.job, attempt.worker
    task = worker.tasks.get(job.type)
    if task is None:
        return Wait(changes.error("UNKNOWN_TYPE", f"no task {job.type!r} here (yet): a deploy may be under way"))
    most = policy_of(task, worker.limits.retry).max_attempts
    if job.tries > most:
        return Failed(changes.error("ATTEMPTS_EXHAUSTED", f"{most} tries used, {job.crashes} crashed"), final=True)
    try:
        return _run(attempt, task)
    except BaseException as raised:
        return judge(raised, worker.now(), worker.draw)


def _run(attempt: Try, task: Task) -> Verdict:
    job, worker = attempt.job, attempt.worker
    task_input = accepted_input(job, task.check_input, worker.inputs, worker.uploads, worker.limits)
    body = result_of(task, task_input, context(attempt, task, recorder=_recorder(attempt)))
    if isinstance(body, Failed):
        return body
    key = ids.result_key(job.tenant, job.id, job.attempt)
    worker.results.put(key, body)
    attempt.notice("stored", key=key, bytes=len(body))
    return Done(len(body))


def result_of(task: Task, task_input: Any, ctx: Context) -> bytes | Failed:
    """What a task gives for this input, as it is stored; or why that is no result. Raises what the task raises."""
    result = task.run(task_input, ctx)
    try:
        written = canonical(result)
        body = written.encode()
    except (TypeError, ValueError, RecursionError) as error:
        return Failed(changes.error("INVALID_OUTPUT", f"the task returned what is not JSON: {error}"), final=True)
    wrong = task.check_output(json.loads(written))
    if wrong:
        return Failed(changes.error("OUTPUT_REJECTED", f"{wrong.pointer or '/'}: {wrong.detail}"), anew="sample")
    return body


def context(attempt: Try, task: Task, *, scope: Sequence[str] = (), recorder: Recorder | None = None) -> Context:
    """What the task is given beside its input. `scope`: whose effects these are, where a job has several tasks."""
    job, worker = attempt.job, attempt.worker
    model = AskingModel(
        job,
        model=worker.model,
        model_id=worker.model_id,
        answers=worker.answers,
        remaining_s=attempt.remaining_s,
        reuse=task.declaration.reuse,
        limits=worker.limits,
        notice=attempt.notice,
        bill=attempt.bill,
        recorder=recorder,
        again=attempt.again,
    )
    return Context(
        job_id=job.id,
        tenant=job.tenant,
        attempt=job.attempt,
        model=model,
        effect=Acting(job, worker.effects, attempt.notice, scope=scope).effect,
        mail=worker.mailer,
        fetch=lambda key: _fetch(worker.inputs, job.tenant, key),
        remaining_s=attempt.remaining_s,
        log=lambda text, /, **fields: attempt.notice("task", **_own_fields(text, fields)),
    )


def _recorder(attempt: Try) -> Recorder | None:
    worker = attempt.worker
    if not attempt.job.stream:
        return None
    return Recorder(attempt.job, worker.chunks, worker.limits, worker.now, attempt.notice)


def _own_fields(text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A task names its fields as it likes; those that say whose line it is, or mean something to a notice, get an
    underscore."""
    return {"text": text, **{f"{name}_" if name in _NO_TASKS_OWN else name: value for name, value in fields.items()}}


def _fetch(inputs: Inputs, tenant: str, key: str) -> bytes:
    try:
        fits = len(key.encode()) <= 900
    except UnicodeEncodeError:  # half a surrogate pair
        fits = False
    if not fits or set(key.split("/")) & {"", ".", ".."}:
        raise Permanent(f"{key[:80]!r} is no key: names joined by single slashes, at most 900 bytes", "INVALID_KEY")
    try:
        return inputs.get(ids.context_key(tenant, key))
    except Missing as error:
        raise NotReady(f"{key} is not in the inputs bucket yet") from error


def forget(attempt: Try, verdict: Ending) -> None:
    """The record says that these answers were rejected; now they leave the cache: those that the task has named, else
    all that it had. Failing here costs one more rejection by whoever reads them next, no more."""
    for answer, by in _rejected(attempt, verdict):
        try:
            attempt.worker.answers.forget(answer, attempt.job.tenant, by)
        except Unavailable as trouble:
            attempt.notice("answer_not_forgotten", answer=answer, detail=str(trouble))


def _rejected(attempt: Try, verdict: Ending) -> Sequence[tuple[str, str]]:
    """Nobody else reads those of a further sample, and its job does not ask for them once more."""
    if not isinstance(verdict, Failed):
        return ()
    if verdict.anew == "sample":
        return attempt.bill.used if attempt.job.sample == 0 else ()
    return verdict.no_good


def _book_late(attempt: Try, record: Mapping[str, Any] | None) -> None:
    """A cancelled job's answer came all the same: what it cost is kept on its record, once. If the store cannot be
    reached, the log has it: a message that comes again would find nobody who knows."""
    if not (attempt.bill.cost and record and record.get("status") == CANCELLED):
        return
    try:
        attempt.worker.store.apply(attempt.job.id, changes.book_late(attempt.job, attempt.bill.cost))
    except Unavailable as trouble:
        attempt.notice("late_cost_not_booked", cost_micros=attempt.bill.cost, detail=str(trouble))


def reason(verdict: Verdict) -> Mapping[str, Any]:
    """For the log. What a task's own exception says may quote its input: its kind must do."""
    if isinstance(verdict, Done):
        return {}
    code, message = verdict.why["code"], verdict.why["message"]
    return {"reason": code, "detail": message.partition(":")[0] if code == "TASK_ERROR" else message}
