"""The plug-ins: one folder each, `task.py` and `schema.json`. Found by looking; nothing is edited to add one."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lambdas.contracts.validation import Check, compile_schema
from lambdas.core.tasks import DECLARATION, Declaration, Task

HERE = Path(__file__).parent


class BadTask(Exception):
    """A folder under `tasks/` that is no task; the message says what it lacks."""


def types(folder: Path = HERE) -> dict[str, Check]:
    """The check of each task's input, by type. Imports no task: the door must not stand or fall with one."""
    return {type_of(place): compile_schema(schema["input"]) for place, schema in _schemas(folder)}


def load(folder: Path = HERE, package: str = __name__) -> tuple[dict[str, Task], dict[str, str]]:
    """All tasks by type, and what is wrong with those that cannot be loaded: one broken task harms no other."""
    loaded: dict[str, Task] = {}
    broken: dict[str, str] = {}
    for place, schema in _schemas(folder):
        try:
            loaded[type_of(place)] = _load(place, schema, package)
        except (Exception, SystemExit) as error:
            broken[type_of(place)] = f"{type(error).__name__}: {error}"
    return loaded, broken


def type_of(place: Path) -> str:
    """`notify_by_email/` is the task `notify-by-email`."""
    return place.name.replace("_", "-")


def _load(place: Path, schema: dict[str, Any], package: str) -> Task:
    module = importlib.import_module(f"{package}.{place.name}.task")
    found = [value for value in vars(module).values() if isinstance(getattr(value, DECLARATION, None), Declaration)]
    if len(found) != 1:
        raise BadTask(f"{place.name}/task.py must declare exactly one function with @task, not {len(found)}")
    declaration: Declaration = getattr(found[0], DECLARATION)
    if declaration.type != type_of(place):
        raise BadTask(f"{place.name}/task.py declares {declaration.type!r}; its folder says {type_of(place)!r}")
    return Task(declaration, found[0], compile_schema(schema["output"]))


def _schemas(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for place in sorted(folder.iterdir()):
        if (place / "task.py").is_file():
            yield place, _schema(place)


def _schema(place: Path) -> dict[str, Any]:
    try:
        schema = json.loads((place / "schema.json").read_text("utf-8"))
        if not isinstance(schema, dict) or not {"input", "output"} <= schema.keys():
            raise BadTask(f"{place.name}/schema.json must be an object with `input` and `output`")
    except (OSError, ValueError) as error:
        raise BadTask(f"{place.name}/schema.json: {error}") from error
    return schema
