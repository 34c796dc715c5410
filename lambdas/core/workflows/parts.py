"""What became of each branch of a run: the map `parts` of a job's record, one entry for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.core import times
from lambdas.core.job import Job
from lambdas.core.times import Instant

OPEN, DONE, AGAIN, FAILED = "open", "done", "again", "failed"

_SAID = ("by", "cost", "sha", "bytes", "sample", "unusable")


@dataclass(frozen=True)
class Part:
    """One branch. `by`: the invocation that wrote it last; `sha`: under which its result lies (`ids.part_key`);
    `cost`: of this run, in micro-dollars; `sample`: rejected answers; `unusable`: answers that were refused or cut, and
    never kept; `error`: its last trouble, {code, message}."""

    state: str = OPEN
    by: str = ""
    at: Instant | None = None
    cost: int = 0
    sha: str = ""
    bytes: int = 0
    sample: int = 0
    error: Mapping[str, str] = field(default_factory=dict)
    unusable: int = 0

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


def _read(entry: Mapping[str, Any]) -> Part:
    at = times.instant(entry["at"]) if "at" in entry else None
    known = {name: entry[name] for name in (*_SAID, "error") if name in entry}
    return Part(state=entry["state"], at=at, **known)
