"""Sends what records ask to be sent, in batches: work; a stop, letters, events, and then the mark that all heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lambdas.core import changes
from lambdas.core.job import Job
from lambdas.core.ports import JobStore, Message, Notice, Outbox, Unavailable
from lambdas.core.routing import Route, route
from lambdas.core.times import Instant
from lambdas.core.workflows.ports import Executions

Send = Callable[[Sequence[Message]], set[int]]


@dataclass(frozen=True)
class Sent:
    """Positions of the jobs whose routes are not (all) sent, or not marked; they stay due."""

    failed: set[int]


def dispatch(
    jobs: Sequence[Job], *, now: Instant, outbox: Outbox, store: JobStore, executions: Executions, notice: Notice
) -> Sent:
    """Route each job and send. A final job is marked only after its letter and its event were both accepted, and what
    ran for it was stopped.

    Dying anywhere repeats a hint, a letter or an event under the same id; it loses none."""
    routes = [route(job, now) for job in jobs]
    failed = _send(routes, lambda r: r.work, outbox.send_work, set())
    failed |= _stop(jobs, routes, executions, notice)
    failed |= _send(routes, lambda r: r.letter, outbox.send_letters, failed)
    failed |= _send(routes, lambda r: r.event, outbox.publish, failed)
    for position, (job, planned) in enumerate(zip(jobs, routes, strict=True)):
        if position in failed:
            notice("not_sent", job=job)
        elif planned.work:
            notice("dispatched", job=job, delay_s=planned.work.delay_s)
        elif planned.hands_over and not _mark(job, now, store, notice):
            failed.add(position)
    return Sent(failed)


def _send(routes: Sequence[Route], part: Callable[[Route], Message | None], send: Send, failed: set[int]) -> set[int]:
    """Positions whose message was not accepted; a route that failed before is not sent on."""
    chosen = [
        (position, message)
        for position, planned in enumerate(routes)
        if position not in failed and (message := part(planned)) is not None
    ]
    if not chosen:
        return set()
    refused = send([message for _, message in chosen])
    return {chosen[index][0] for index in refused}


def _stop(jobs: Sequence[Job], routes: Sequence[Route], executions: Executions, notice: Notice) -> set[int]:
    """Positions of those whose execution may run on. When one could not be stopped, no other of its type is tried in
    this batch: nobody's event waits for one after the other to find a service silent."""
    failed: set[int] = set()
    silent: set[str] = set()
    for position, (job, planned) in enumerate(zip(jobs, routes, strict=True)):
        if planned.stop and (job.type in silent or not _stopped(job, planned.stop, executions, notice)):
            silent.add(job.type)
            failed |= {position}
    return failed


def _stopped(job: Job, name: str, executions: Executions, notice: Notice) -> bool:
    try:
        executions.stop(job.type, name, f"job {job.id} was cancelled")
    except KeyError:  # its workflow is deployed no more: there is no state machine, and nothing of it can run
        notice("no_state_machine", job=job)
    except Unavailable as trouble:
        notice("not_stopped", job=job, detail=str(trouble))
        return False
    else:
        notice("stopped", job=job, run=job.run)
    return True


def _mark(job: Job, now: Instant, store: JobStore, notice: Notice) -> bool:
    try:
        store.apply(job.id, changes.hand_over(job, now=now))  # refused: reopened meanwhile; nothing to do
    except Unavailable:
        notice("not_marked", job=job)
        return False
    notice("handed_over", job=job, status=job.status)
    return True
