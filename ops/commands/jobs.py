"""Commands about jobs: look at them, follow them, and end, reopen or delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from ops import watching
from ops.api import Json
from ops.invocation import Invocation
from ops.output import dollars

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job.")]
Status = Literal["PENDING", "PROCESSING", "WAITING", "COMPLETED", "FAILED", "CANCELLED"]
COLUMNS = ("JOB", "TYPE", "STATUS", "TRIES", "COST", "CREATED", "ERROR")


def status(run: Invocation, job_id: JobId) -> int:
    """Show a job as it stands. Exits 1 if it failed or was cancelled."""
    job = run.api.job(job_id)
    _show(run, job)
    return watching.outcome(job)


def result(run: Invocation, job_id: JobId) -> None:
    """Print the result of a completed job, which is JSON. Exits 4 if there is none."""
    found = run.api.result(job_id)
    if run.out.as_json:
        run.out.json(found)
    else:
        run.out.document(found)


def follow(run: Invocation, job_id: JobId) -> int:
    """Show what happens to a job, as it happens, until it has ended. Exits 1 if it failed or was cancelled."""
    with run.out.waiting(f"Following {job_id} …"):
        for event in watching.timeline(run.api, job_id):
            if run.out.as_json:
                run.out.json(event)
            else:
                run.out.line(_told(event))
    last = run.api.job(job_id)
    run.out.note(ending(last))
    return watching.outcome(last)


def show_story(run: Invocation, job_id: str) -> int:
    """What `--wait` does: the timeline beside the data, and the job as it ended."""
    run.out.note(f"job {job_id}")
    with run.out.waiting(f"Waiting for {job_id} …"):
        for event in watching.timeline(run.api, job_id):
            run.out.note(_told(event))
    job = run.api.job(job_id)
    _show(run, job)
    return watching.outcome(job)


def list_(
    run: Invocation,
    status: Annotated[Status | None, typer.Option(help="Only those.")] = None,
    type_: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only those of a task.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many at most; 0 is all.")] = 20,
) -> None:
    """List jobs, newest first."""
    jobs = run.api.jobs(status=status, type_=type_, limit=limit)
    if run.out.as_json:
        for job in jobs:
            run.out.json(job)
        return
    run.out.table(COLUMNS, [_row(job) for job in jobs])


def cancel(run: Invocation, job_id: JobId) -> None:
    """End a job, also while it runs. Exits 4 if it has ended already."""
    _changed(run, run.api.cancel(job_id))


def retry(run: Invocation, job_id: JobId) -> None:
    """Reopen a job that failed or was cancelled. Exits 4 if it did not."""
    _changed(run, run.api.retry(job_id))


def redeliver(
    run: Invocation,
    job_id: JobId,
    endpoint: Annotated[
        str | None, typer.Option(metavar="ID", help="Only to this one, or to `callback`; else to all who want it.")
    ] = None,
) -> None:
    """Deliver how a job ended once more, to its webhooks. Exits 4 if it has not ended, or nobody wants it."""
    answer = run.api.redeliver(job_id, endpoint)
    if run.out.as_json:
        run.out.json(answer)
    else:
        run.out.table(("ENDPOINT", "DELIVERY"), [(one["endpoint"], one["status"]) for one in answer["deliveries"]])


def delete(run: Invocation, job_id: JobId) -> None:
    """Delete what is kept of a job that has ended, its result too. Exits 4 if it has not ended."""
    run.api.delete(job_id)
    _changed(run, {"job_id": job_id, "status": "DELETED"})


def _changed(run: Invocation, answer: Json) -> None:
    if run.out.as_json:
        run.out.json(answer)
    else:
        run.out.line(answer["status"])


def _show(run: Invocation, job: Json) -> None:
    if run.out.as_json:
        run.out.json(job)
        return
    shown = {name: value for name, value in job.items() if name not in ("cost_micros", "links")}
    shown |= {"status": status_of(job), "cost": dollars(job.get("cost_micros"))}
    if "progress" in job:
        done, failed, total = (job["progress"][name] for name in ("done", "failed", "total"))
        shown |= {"progress": come(done, failed, total), "progress.done": done, "progress.failed": failed}
    run.out.record(shown)


def status_of(job: Json) -> str:
    """A result that lacks parts is never shown as a whole one."""
    return f"{job.get('status')} (partial)" if job.get("partial") else str(job.get("status"))


def come(done: Sequence[str], failed: Sequence[str], total: int) -> str:
    """How far a workflow is, in words."""
    return f"{len(done)} of {total} done" + (f", {len(failed)} failed: {', '.join(failed)}" if failed else "")


def _row(job: Json) -> tuple[object, ...]:
    error = job.get("error") or {}
    return (
        job.get("job_id"),
        job.get("type"),
        status_of(job),
        job.get("tries"),
        dollars(job.get("cost_micros")),
        job.get("created_at"),
        error.get("code"),
    )


def _told(event: Json) -> str:
    at, what, attempt, note = (str(event.get(name, "")) for name in ("at", "what", "attempt", "note"))
    error = event.get("error") or {}
    why = f"{error.get('code')}: {error.get('message')}" if error else ""
    return f"{at:<24}  {what:<12}  {attempt:>3}  {note}  {why}".rstrip()


def ending(job: Json) -> str:
    """How it ended, in a line."""
    error = job.get("error") or {}
    return ": ".join(str(word) for word in (status_of(job), error.get("code"), error.get("message")) if word)
