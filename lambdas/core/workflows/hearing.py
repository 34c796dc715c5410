"""An execution ended badly, says the bus: its job's record hears of it, unless it has gone on by itself (row 14)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import PROCESSING
from lambdas.contracts.workflows import Workflow
from lambdas.core import ids
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Draw, Limits
from lambdas.core.ports import Applied, JobStore, Notice, Now
from lambdas.core.workflows import following
from lambdas.core.workflows.ports import Executions, Running
from lambdas.core.workflows.told import Ask, ask_of


@dataclass(frozen=True)
class Hearing:
    """What an end is heard with."""

    store: JobStore
    executions: Executions
    workflows: Mapping[str, Workflow]
    limits: Limits
    now: Now
    draw: Draw
    notice: Notice


def hear(event: Any, desk: Hearing, about: Callable[[Job], None]) -> str:
    """The word for what followed. The bus tells late, twice and out of order: what counts is what the record and Step
    Functions say now. Raises Unavailable: the sweep hears of it, too."""
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
    word, more = _followed(job, desk)
    desk.notice(word, run=job.run, **more)
    return word


def _followed(job: Job, desk: Hearing) -> tuple[str, dict[str, Any]]:
    workflow = desk.workflows.get(job.type)
    if workflow is None:
        return "unknown_type", {}
    try:
        found = desk.executions.describe(job.type, ids.execution_name(job.id, job.run))
    except KeyError:
        return "unknown_type", {}
    if found is None or isinstance(found, Running):
        # it was redriven, or Step Functions is behind its own event: the sweep asks once more when the lease is over
        return "left_to_the_sweep", {"execution": type(found).__name__}
    change = following.ended(
        job, found, workflow=workflow, now=desk.now(), draw=desk.draw, limits=desk.limits
    )  # fmt: skip
    if not isinstance(desk.store.apply(job.id, change), Applied):
        return "not_needed", {}
    why = change.sets.get("error") or {}
    return following.WORDS[change.rule.name], {"reason": why.get("code", ""), "detail": why.get("message", "")}


def _execution_in(event: Any) -> Ask | None:
    """Which run of which job: only what bears the name that we give to it."""
    detail = event.get("detail") if isinstance(event, Mapping) else None
    if not isinstance(detail, Mapping) or not isinstance(detail.get("input"), str):
        return None
    try:
        ask = ask_of(json.loads(detail["input"]), of_branch=False)
    except (ValueError, RecursionError):
        return None
    return ask if detail.get("name") == ids.execution_name(ask.job_id, ask.run) else None
