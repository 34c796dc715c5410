"""What became of each branch of a run: the map `parts` of a job's record, one entry for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.core import times
from lambdas.core.changes import ERROR_BYTES
from lambdas.core.job import Job
from lambdas.core.times import Instant

OPEN, DONE, AGAIN, FAILED = "open", "done", "again", "failed"

_SAID = ("by", "cost", "sha", "bytes", "sample", "unusable", "used")


@dataclass(frozen=True)
class Part:
    """One branch. `by`: the invocation that wrote it last; `sha`: under which its result lies (`ids.part_key`);
    `cost`: of this run, in micro-dollars; `sample`: rejected answers; `unusable`: answers that are not kept, since they
    were refused or cut, or the task has named them as no good; `used`: tries of this run that were no free wait, or
    have not said yet what they were; `error`: its last trouble, {code, message}."""

    state: str = OPEN
    by: str = ""
    at: Instant | None = None
    cost: int = 0
    sha: str = ""
    bytes: int = 0
    sample: int = 0
    error: Mapping[str, str] = field(default_factory=dict)
    unusable: int = 0
    used: int = 0

    def written(self) -> dict[str, Any]:
        """As the record has it: what says nothing is left out."""
        at = {"at": times.text(self.at)} if self.at else {}
        said = {name: getattr(self, name) for name in _SAID}
        error = {"error": dict(self.error)} if self.error else {}
        return {"state": self.state, **at, **{name: value for name, value in said.items() if value}, **error}


def all_open(branches: Iterable[str]) -> dict[str, Any]:
    """Before anything is begun."""
    return {branch: Part().written() for branch in branches}


def parts_of(job: Job) -> dict[str, Part]:
    """By branch, in the current run: of one that is not prepared yet all are open."""
    found = job.parts or {}
    if job.parts_run != job.run:
        return {branch: Part() for branch in found}
    return {branch: _read(entry) for branch, entry in found.items()}


def waiting(job: Job) -> dict[str, str]:
    """The codes of what branches wait for, by name, if this run has only waited: nothing that it may have paid is to be
    paid again. Else nothing. Who is open was never called, or in vain: a call takes a try first."""
    left = {name: part for name, part in parts_of(job).items() if part.state != DONE}
    if any(part.used for part in left.values()):
        return {}
    return {name: part.error.get("code", "NOT_BEGUN") for name, part in left.items() if part.state != FAILED}


def named(start: str, codes: Mapping[str, str]) -> str:
    """An error's text about these branches: as many as it has room for, each whole, and how many more there are."""
    names = [f"{name} ({code})" for name, code in codes.items()]
    for shown in range(len(names), 0, -1):
        rest = f" and {len(names) - shown} more" if shown < len(names) else ""
        said = f"{start}{', '.join(names[:shown])}{rest}"
        if len(said.encode()) <= ERROR_BYTES:
            return said
    return f"{start}{len(names)}"


def _read(entry: Mapping[str, Any]) -> Part:
    at = times.instant(entry["at"]) if "at" in entry else None
    known = {name: entry[name] for name in (*_SAID, "error") if name in entry}
    return Part(state=entry["state"], at=at, **known)
