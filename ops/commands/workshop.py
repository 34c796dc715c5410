"""Commands that need no API: is everything ready, start a task, check a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops import doctor as doctor_
from ops import new_task as new_task_
from ops.exits import Exit, Failure
from ops.invocation import ended
from ops.output import Output


def doctor() -> None:
    """Can this machine build the stack, and this account run it? Exits 1 if something is to be fixed."""
    ended(Output(as_json=False), doctor_.run)


def new_task(name: Annotated[str, typer.Argument(metavar="NAME", help="Like extract-dates.")]) -> None:
    """Start a new task, a folder under lambdas/tasks."""
    ended(Output(as_json=False), lambda: _create(name))


def check_template(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="CloudFormation.")],
    as_json: Annotated[bool, typer.Option("--json", help="Findings as JSON.")] = False,
) -> None:
    """Check that a template keeps the rules of delivery. Exits 1 if it breaks one."""
    from ops import check_template as check  # noqa: PLC0415  only this command needs it

    ended(Output(as_json=as_json), lambda: check.run(file, as_json=as_json))


def _create(name: str) -> None:
    try:
        print(new_task_.create(name))
    except new_task_.BadNameError as error:
        raise Failure(Exit.BAD, str(error)) from None
