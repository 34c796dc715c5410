"""What the runtimes of a run wrote down (local/aws/uses.py), put together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, order=True)
class Permission:
    """One action of one role on one resource, as the template names all three."""

    role: str
    action: str
    resource: str

    def __str__(self) -> str:
        return f"{self.role}: {self.action} on {self.resource}"


@dataclass(frozen=True)
class Record:
    """Of all stacks of a run together: what one of them grants, another one may use."""

    granted: frozenset[Permission] = frozenset()
    used: frozenset[Permission] = frozenset()
    """Each statement that allowed something."""
    refused: frozenset[Permission] = frozenset()
    unnamed: frozenset[Permission] = frozenset()
    """Done, though no statement says so."""


def read(place: Path) -> Record:
    """A folder of such files, or one file. OSError if there is neither, ValueError for what is no such record."""
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    lines = [entry for file in files for entry in _lines(file.read_text(encoding="utf-8"))]
    kinds = [field.name for field in fields(Record)]
    for entry in lines:
        if entry.get("kind") not in kinds:
            raise ValueError(f"{place}: {entry} is none of {', '.join(kinds)}")
    return Record(**{kind: _of_kind(lines, kind) for kind in kinds})


def write(record: Record, place: Path) -> None:
    """One file, for `read`."""
    lines = [
        json.dumps({"kind": field.name, **asdict(permission)}) + "\n"
        for field in fields(Record)
        for permission in sorted(getattr(record, field.name))
    ]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("".join(lines), encoding="utf-8")


def _lines(text: str) -> Iterator[dict[str, Any]]:
    whole, _, _ = text.rpartition("\n")  # a runtime that was killed may have left half a line
    for line in whole.splitlines():
        yield json.loads(line)


def _of_kind(lines: Iterable[dict[str, Any]], kind: str) -> frozenset[Permission]:
    return frozenset(
        Permission(entry["role"], entry["action"], entry["resource"]) for entry in lines if entry["kind"] == kind
    )
