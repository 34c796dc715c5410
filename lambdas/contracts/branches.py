"""One branch of a workflow: which task, with what as its input, and whether it may be missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

PARTS: Final = "parts"
TYPE: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TYPE_MAX: Final = 64
BRANCH: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
FIELDS_MAX: Final = 40
_FIELDS: Final = ("name", "task", "input", "may_fail")
_POINTER: Final = re.compile(r"(/([^~/]|~[01])*)*")


@dataclass(frozen=True)
class Branch:
    """One task of a workflow. `input` says where its input is in {"input": …, "parts": {branch: output}}: None is the
    workflow's own input, a string one JSON pointer, an object one for each field. `may_fail`: never counted."""

    name: str
    task: str
    input: str | Mapping[str, str] | None = None
    may_fail: bool = False

    @property
    def pointers(self) -> tuple[str, ...]:
        if self.input is None:
            return ("/input",)
        return (self.input,) if isinstance(self.input, str) else tuple(self.input.values())

    @property
    def needs(self) -> tuple[str, ...]:
        """The branches, named in its pointers, without whose outputs it has no input."""
        named = (pointer.split("/")[2] for pointer in self.pointers if pointer.startswith(f"/{PARTS}/"))
        return tuple(dict.fromkeys(named))

    @property
    def reads_all(self) -> bool:
        """Whether it gets whatever parts there are."""
        return any(pointer in ("", f"/{PARTS}") for pointer in self.pointers)


def branch_of(raw: Any, at: str, earlier: list[str]) -> Branch:
    """As it is declared: `at` is where, `earlier` are the branches of earlier stages. ValueError says what is wrong."""
    fields = {"task": raw} if isinstance(raw, str) else raw
    if not isinstance(fields, dict) or not isinstance(fields.get("task"), str):
        raise ValueError(f'{at}: a branch is the name of a task, or {{"task": "…"}} with name, input or may_fail')
    only(fields, _FIELDS, at)
    task, name, may_fail = fields["task"], fields.get("name", fields["task"]), fields.get("may_fail", False)
    if not TYPE.fullmatch(task) or len(task) > TYPE_MAX:
        raise ValueError(f"{at}: {task!r} is no task: use its job type, like summarize-document")
    if not isinstance(name, str) or not BRANCH.fullmatch(name):
        raise ValueError(
            f"{at}: {name!r} is no name of a branch: give it a `name` of at most 40 lower-case letters, digits, hyphens"
        )
    if not isinstance(may_fail, bool):
        raise ValueError(f"{at}: may_fail of {name} is true or false, not {may_fail!r}")
    return Branch(name, task, _input(fields.get("input"), f"{at}: input of {name}", earlier), may_fail)


def _input(raw: Any, at: str, earlier: list[str]) -> str | Mapping[str, str] | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        _pointer(raw, at, earlier)
        return raw
    if not isinstance(raw, dict) or not 0 < len(raw) <= FIELDS_MAX:
        raise ValueError(f'{at} is a JSON pointer, or an object of them like {{"text": "/input/text"}}')
    for name, pointer in raw.items():
        _pointer(pointer, f"{at}, field {name[:40]!r}", earlier)
    return raw


def _pointer(raw: Any, at: str, earlier: list[str]) -> None:
    if not isinstance(raw, str) or not _POINTER.fullmatch(raw):
        raise ValueError(f"{at}: {raw!r} is no JSON pointer: write one like /input/text or /parts/<branch>/summary")
    root, *path = raw.split("/")[1:] or [""]
    if raw and root not in ("input", PARTS):
        raise ValueError(f"{at}: {raw} must begin with /input or /parts")
    if root == PARTS and path and path[0] not in earlier:
        known = ", ".join(earlier) or "none, this is the first"
        raise ValueError(f"{at}: {raw} names no branch of an earlier stage ({known})")


def only(fields: Mapping[str, Any], known: tuple[str, ...], at: str) -> None:
    """ValueError for the first field that is not known."""
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise ValueError(f"{at}: `{unknown[:40]}` is not known here; known: {', '.join(known)}")
