"""What all commands share: the options that say which API, the two streams, and how a failure ends."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Annotated, Any

import typer

from ops.access import Access, reach
from ops.api import Api
from ops.exits import Exit, Failure
from ops.output import Output

PANEL = "Which API, and who asks"
Option = typer.Option


def _reach(
    url: Annotated[
        str | None,
        Option(envvar="NEVERDROP_URL", help="Of the API. Else the local runtime, if it runs.", rich_help_panel=PANEL),
    ] = None,
    profile: Annotated[str | None, Option(help="AWS profile whose credentials sign.", rich_help_panel=PANEL)] = None,
    region: Annotated[str | None, Option(help="To sign for; else the host's own.", rich_help_panel=PANEL)] = None,
    token: Annotated[
        str | None,
        Option(envvar="NEVERDROP_TOKEN", help="JWT, where the API takes tokens from tenants.", rich_help_panel=PANEL),
    ] = None,
    tenant: Annotated[str | None, Option(help="Local runtime only: who asks.", rich_help_panel=PANEL)] = None,
) -> Access:
    return reach(url, token, tenant, profile, region)


def _output(
    as_json: Annotated[bool, Option("--json", help="JSON for programs; lists as one object a line.")] = False,
) -> Output:
    return Output(as_json=as_json)


@dataclass
class Invocation:
    """One command at work. The API is looked for when it is first needed."""

    out: Output
    find: Callable[[], Access]

    @cached_property
    def api(self) -> Api:
        return Api(self.find(), say=self.out.note)

    def close(self) -> None:
        if "api" in self.__dict__:
            self.api.close()


def command(function: Callable[..., int | None]) -> Callable[..., None]:
    """A command of an API: `function(run, …)` with the options of this module added and its failures told.

    What it returns is the exit code; None is 0."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    which, how = _parameters(_reach), _parameters(_output)

    @wraps(function)
    def command_(**given: Any) -> None:
        reached = {name: given.pop(name) for name in which}
        out = _output(**{name: given.pop(name) for name in how})
        run = Invocation(out, lambda: _reach(**reached))
        ended(out, lambda: _finally(run, function, given))

    parameters = [*own, *how.values(), *which.values()]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    command_.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # what Typer reads
    command_.__annotations__ = {one.name: one.annotation for one in keywords}
    return command_


def ended(out: Output, work: Callable[[], int | None]) -> None:
    """Do it and leave with its exit code: failures in one line on stderr, a reader that has gone in silence."""
    try:
        code = work() or Exit.OK
        sys.stdout.flush()
    except Failure as failure:
        out.note(f"error: {failure}")
        code = failure.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        code = Exit.PIPE
    raise typer.Exit(int(code))


def _finally(run: Invocation, function: Callable[..., int | None], given: dict[str, Any]) -> int | None:
    try:
        return function(run, **given)
    finally:
        run.close()


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function, eval_str=True).parameters)
