"""An execution ended badly, says the bus: its job's record hears of it, unless it has gone on by itself (row 14)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import PROCESSING
from lambdas.contracts.workflows import Workflow
from lambdas.core import ids, times
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Draw, Limits
from lambdas.core.ports import Applied, JobStore, Notice, Now
from lambdas.core.times import Instant
from lambdas.core.workflows import following
from lambdas.core.workflows.ports import Execution, Executions, Running
from lambdas.core.workflows.told import Ask, ask_of

PAUSES_S = (0.5, 1.0, 2.0)  # between looks: DescribeExecution is eventually consistent
HEARD_AGAIN_S = 120  # Lambda calls an event again a minute after it failed, and once more two minutes later


class StillRunning(Exception):
    """Step Functions is behind its own event: to be told of it once more."""


@dataclass(frozen=True)
class Hearing:
    """What an end is heard with. `pause`: waits for so many seconds."""

    store: JobStore
    executions: Executions
    workflows: Mapping[str, Workflow]
    limits: Limits
    now: Now
    draw: Draw
    notice: Notice
    pause: Callable[[float], None]


def hear(event: Any, desk: Hearing, about: Callable[[Job], None]) -> str:
    """The word for what followed. The bus tells late, twice and out of order: what counts is what the record and Step
    Functions say now. Raises Unavailable and StillRunning, to be called again; the sweep hears of it, too."""
    ask = _execution_in(event)
    if ask is None:
        desk.notice("foreign_event")
        return "foreign_event"
    record = desk.store.read(ask.job_id)
    if record is None or record.get("status") != PROCESSING or record.get("run") != ask.run:
        desk.notice("not_needed", job_id=ask.job_id, run=ask.run, status=(record or {}).get("status"))
        return "not_needed"
    job = from_record(record)
    about(job)
    word, more = _followed(job, _stopped(event), desk)
    desk.notice(word, run=job.run, **more)
    return word


def _followed(job: Job, stopped: Instant | None, desk: Hearing) -> tuple[str, dict[str, Any]]:
    workflow = desk.workflows.get(job.type)
    if workflow is None:
        return "unknown_type", {}
    try:
        found = _found(job, stopped, desk)
    except KeyError:
        return "unknown_type", {}
    if found is None or isinstance(found, Running):
        if stopped and _is_behind(found, stopped) and desk.now() < times.after(stopped, HEARD_AGAIN_S):
            desk.notice("still_running", run=job.run)
            raise StillRunning(f"run {job.run} has ended, says its event")
        # it was redriven, and will be heard of again; what is not, the sweep asks for when the lease is over
        return "left_to_the_sweep", {"execution": type(found).__name__}
    change = following.ended(
        job, found, workflow=workflow, now=desk.now(), draw=desk.draw, limits=desk.limits
    )  # fmt: skip
    if not isinstance(desk.store.apply(job.id, change), Applied):
        return "not_needed", {}
    why = change.sets.get("error") or {}
    return following.WORDS[change.rule.name], {"reason": why.get("code", ""), "detail": why.get("message", "")}


def _found(job: Job, stopped: Instant | None, desk: Hearing) -> Execution | None:
    name = ids.execution_name(job.id, job.run)
    found = desk.executions.describe(job.type, name)
    for pause_s in PAUSES_S:
        if not _is_behind(found, stopped):
            break
        desk.pause(pause_s)
        found = desk.executions.describe(job.type, name)
    return found


def _is_behind(found: Execution | None, stopped: Instant | None) -> bool:
    """It cannot run: since it was started, or redriven, it has stopped."""
    return isinstance(found, Running) and stopped is not None and found.since <= stopped


def _stopped(event: Mapping[str, Any]) -> Instant | None:
    """When the execution stopped, as the event says; None where that cannot be read."""
    when = event["detail"].get("stopDate")
    try:
        return times.of_milliseconds(when) if isinstance(when, int) else None
    except (ValueError, OverflowError, OSError):
        return None


def _execution_in(event: Any) -> Ask | None:
    """Which run of which job: only what bears the name that we give to it."""
    detail = event.get("detail") if isinstance(event, Mapping) else None
    if not isinstance(detail, Mapping) or not isinstance(detail.get("input"), str):
        return None
    try:
        ask = ask_of(json.loads(detail["input"]), of_branch=False)
        return ask if detail.get("name") == ids.execution_name(ask.job_id, ask.run) else None
    except (ValueError, RecursionError):  # also for a name that is no text: half of a surrogate pair
        return None
