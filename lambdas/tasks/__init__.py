"""The plug-ins: one folder each, `task.py` and `schema.json`. Found by looking; nothing is edited to add one."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from lambdas.contracts.validation import Check, Violation, compile_schema
from lambdas.contracts.workflows import load as load_workflows
from lambdas.contracts.workflows import type_of, well_named
from lambdas.core.tasks import DECLARATION, Declaration, Task

T = TypeVar("T")

HERE = Path(__file__).parent


class BadTask(Exception):
    """A folder under `tasks/` that is no task; the message says what it lacks."""


def types(folder: Path = HERE) -> tuple[dict[str, Check], dict[str, str]]:
    """The check of each task's input by type, and what is wrong with schemas that cannot be used. Imports no task:
    the door must not stand or fall with one."""
    return _each(folder, lambda place: compile_schema(_schema(place)["input"]))


def job_types(folder: Path = HERE, workflows: Path | None = None) -> tuple[dict[str, Check], dict[str, str]]:
    """The same of every job type: of the tasks, and of the workflows that are made of them. A task stands, whatever is
    wrong with a workflow of its name."""
    checks, broken = types(folder)
    declared, wrong = load_workflows(workflows)
    for type_, workflow in declared.items():
        try:
            checks[type_] = compile_schema(workflow.input_schema)
        except Exception as error:
            wrong[type_] = f"{type(error).__name__}: {error}"
    return checks, {**wrong, **broken}


def load(folder: Path = HERE, package: str = __name__) -> tuple[dict[str, Task], dict[str, str]]:
    """All tasks by type, and what is wrong with those that cannot be loaded: one broken task harms no other."""
    return _each(folder, lambda place: _load(place, package))


def _each(folder: Path, make: Callable[[Path], T]) -> tuple[dict[str, T], dict[str, str]]:
    made: dict[str, T] = {}
    broken: dict[str, str] = {}
    for place in sorted(folder.iterdir()):
        if not (place / "task.py").is_file():
            continue
        try:
            well_named(place)
            made[type_of(place)] = make(place)
        except (Exception, SystemExit) as error:
            broken[type_of(place)] = f"{type(error).__name__}: {error}"
    return made, broken


def _load(place: Path, package: str) -> Task:
    schema = _schema(place)
    module = importlib.import_module(f"{package}.{place.name}.task")
    found = [value for value in vars(module).values() if isinstance(getattr(value, DECLARATION, None), Declaration)]
    if len(found) != 1:
        raise BadTask(f"{place.name}/task.py must declare exactly one function with @task, not {len(found)}")
    declaration: Declaration = getattr(found[0], DECLARATION)
    if declaration.type != type_of(place):
        raise BadTask(f"{place.name}/task.py declares {declaration.type!r}; its folder says {type_of(place)!r}")
    return Task(declaration, found[0], _when_asked(schema["input"]), compile_schema(schema["output"]))


def _when_asked(schema: Mapping[str, Any]) -> Check:
    """Compiled at the first question: only uploads are not checked before they get here."""

    @cache
    def compiled() -> Check:
        return compile_schema(schema)

    def check(value: Any) -> Violation | None:
        return compiled()(value)

    return check


def _schema(place: Path) -> dict[str, Any]:
    try:
        schema = json.loads((place / "schema.json").read_text("utf-8"))
        if not isinstance(schema, dict) or not {"input", "output"} <= schema.keys():
            raise BadTask(f"{place.name}/schema.json must be an object with `input` and `output`")
    except (OSError, ValueError) as error:
        raise BadTask(f"{place.name}/schema.json: {error}") from error
    return schema
