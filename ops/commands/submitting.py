"""Commands that hand work in: an event, or a file that becomes one."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated

import typer

from ops import inputs, storage, watching
from ops.commands.jobs import show_story
from ops.commands.streams import watch
from ops.exits import usage
from ops.invocation import Invocation

Type = Annotated[str, typer.Argument(metavar="TYPE", help="Which task or workflow.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow the job to its end; exit 1 if it ends badly.")]


def submit(
    run: Invocation,
    *,
    type_: Type,
    task_input: Annotated[
        str | None, typer.Option("--input", metavar="FILE|-|JSON", help="The task's input; else an empty object.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="FILE|-", help='A text: the input is {"text": …}.')
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency-Key: the same key is the same job.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="Ahead of the others.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use no answer that was paid for before.")] = False,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start no earlier, like 2026-11-29T15:30:44Z.")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show the text while it comes; exit 1 if the job ends badly.")
    ] = False,
    wait: Wait = False,
) -> int | None:
    """Submit an event; prints the job's id."""
    if task_input is not None and text is not None:
        raise usage("--input or --text, not both")
    body = "{}"
    if task_input is not None:
        body = inputs.json_text(task_input, "--input")
    elif text is not None:
        body = json.dumps({"text": inputs.text_of(text, "--text")})
    api = run.api
    if key is None:
        key = str(uuid.uuid4())
        run.out.note(f"--key {key} (repeat the command with it if you are not sure that it was accepted)")
    wishes = {"urgent": urgent or None, "fresh": fresh or None, "stream": stream or None}
    answer = api.submit(type_, body, key=key, not_before=not_before, **wishes)
    if stream:
        run.out.note(f"job {answer['job_id']}")
        return watch(run, answer["job_id"])
    if wait:
        return show_story(run, answer["job_id"])
    if run.out.as_json:
        run.out.json({**answer, "idempotency_key": key})
    else:
        run.out.line(answer["job_id"])
    return None


def upload(
    run: Invocation,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, readable=True, help="What to send.")
    ],
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="Which task or workflow.")],
    content_type: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Else application/json for *.json and text/plain for others.")
    ] = None,
    wait: Wait = False,
) -> int | None:
    """Send a file of any size; the upload becomes a job. Prints the job's id.

    A JSON file is the task's input; of a text the input is {"text": …}.
    """
    kind = content_type
    if kind is None:
        kind = "application/json" if file.suffix.lower() == ".json" else "text/plain"
    grant = run.api.grant_upload(type_, kind)
    with run.out.waiting(f"Sending {file.name} …"):
        storage.send(grant, file, kind)
    if wait:
        with run.out.waiting("Waiting for the upload to become a job …"):
            watching.arrival(run.api, grant["job_id"])
        return show_story(run, grant["job_id"])
    if run.out.as_json:
        run.out.json({"job_id": grant["job_id"], "links": grant.get("links", {})})  # the rest of it is a secret
    else:
        run.out.line(grant["job_id"])
    return None
