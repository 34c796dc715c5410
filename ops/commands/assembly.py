"""The command line as one: every command under its name, and the exit codes in its help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from ops.commands import jobs, letters, streams, submitting, sweeps, webhooks, workshop
from ops.exits import MEANINGS
from ops.invocation import command

JOBS, DEAD, HERE = "Jobs", "What went wrong", "This repository"
EXITS = "Exit codes: " + "; ".join(f"{code:d} {meaning}" for code, meaning in MEANINGS.items()) + "."


class GroupsFirst(TyperGroup):
    """`dead-letters` alone lists the groups, `webhooks` the endpoints."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        lists = not args or (args[0].startswith("-") and args[0] != "--help")
        return super().parse_args(ctx, ["list", *args] if lists else args)


Command = Callable[..., int | None]
ABOUT_JOBS: Mapping[str, Command] = {
    "submit": submitting.submit,
    "upload": submitting.upload,
    "status": jobs.status,
    "result": jobs.result,
    "follow": jobs.follow,
    "watch": streams.watch,
    "list": jobs.list_,
    "cancel": jobs.cancel,
    "retry": jobs.retry,
    "redeliver": jobs.redeliver,
    "delete": jobs.delete,
}
ABOUT_LETTERS: Mapping[str, Command] = {"list": letters.groups, "show": letters.show, "discard": letters.discard}
ABOUT_WEBHOOKS: Mapping[str, Command] = {
    "list": webhooks.endpoints,
    "add": webhooks.add,
    "show": webhooks.show,
    "secret": webhooks.secret,
    "rotate": webhooks.rotate,
    "disable": webhooks.disable,
    "enable": webhooks.enable,
    "ping": webhooks.ping,
    "remove": webhooks.remove,
}
OF_OPERATORS: Mapping[str, Command] = {
    "redrive": letters.redrive,
    "repair": letters.repair,
    "review": letters.review,
    "sweep": sweeps.sweep,
}
WITHOUT_API: Mapping[str, Callable[..., None]] = {
    "doctor": workshop.doctor,
    "new-task": workshop.new_task,
    "check-template": workshop.check_template,
}

app = typer.Typer(
    help="Neverdrop from the command line. Data goes to stdout, everything else to stderr.",
    epilog=EXITS,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # their tracebacks show local variables, secrets among them
)
dead_letters = typer.Typer(cls=GroupsFirst, help="What is dead and why, in groups; show one letter, or let it go.")
endpoints = typer.Typer(cls=GroupsFirst, help="Where the ends of jobs are delivered to: list, add, test, remove.")

for name, function in ABOUT_JOBS.items():
    app.command(name, rich_help_panel=JOBS)(command(function))
for name, function in OF_OPERATORS.items():
    app.command(name, rich_help_panel=DEAD)(command(function))
for name, function in ABOUT_LETTERS.items():
    dead_letters.command(name)(command(function))
for name, function in ABOUT_WEBHOOKS.items():
    endpoints.command(name)(command(function))
app.add_typer(endpoints, name="webhooks", rich_help_panel=JOBS)
app.add_typer(dead_letters, name="dead-letters", rich_help_panel=DEAD)
for name, bare in WITHOUT_API.items():
    app.command(name, rich_help_panel=HERE)(bare)
