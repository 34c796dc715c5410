"""Commands that show a job's text while a model says it."""

from __future__ import annotations

from typing import Any

from neverdrop_client import Event, Final, Progress, Restarted, Text
from ops import watching
from ops.commands.jobs import JobId, come, ending
from ops.exits import Exit
from ops.invocation import Invocation

KINDS = {Text: "text", Restarted: "restarted", Progress: "progress", Final: "final"}


def watch(run: Invocation, job_id: JobId) -> int:
    """Show a job's text while it comes, or how far a workflow is. Exits 1 if the job failed or was cancelled.

    When the job is tried again, what was shown is void and stays on the screen; programs take --json.
    """
    is_open_line = False
    for event in run.api.stream(job_id):
        if run.out.as_json:
            run.out.json(_line(event))
        elif isinstance(event, Text):
            run.out.piece(event.text)
            is_open_line = not event.text.endswith("\n") if event.text else is_open_line
        elif is_open_line:
            run.out.piece("\n")
            is_open_line = False
        if isinstance(event, Restarted):
            run.out.note(f"restarted: attempt {event.attempt} begins, what came before is void")
        if isinstance(event, Progress):
            run.out.note(come(event.done, event.failed, event.total))
        if isinstance(event, Final):
            run.out.note(ending(dict(event.job)))
            return watching.outcome(dict(event.job))
    return Exit.OK


def _line(event: Event) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in event.__slots__}
    return {"event": KINDS[type(event)], **fields}
