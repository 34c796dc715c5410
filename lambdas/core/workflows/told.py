"""What the functions of an execution tell Step Functions: outputs, and errors that its retry policies know by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REFUSED = "refused"  # the record has gone on without this execution: to Step Functions a success


class TransientError(Exception):
    """A try was used: something may have been paid that is not kept. To be tried again, a few times. Its text is a
    code: what an exception says is kept in the history of the execution."""


class WaitError(Exception):
    """Nothing was paid without its answer being kept: to be tried again, with patience. Its text is a code."""


@dataclass(frozen=True)
class Ask:
    """Which branch (empty: the collector) of which run of which job."""

    job_id: str
    run: int
    branch: str = ""


def ask_of(event: Any, *, of_branch: bool) -> Ask:
    """ValueError for what no state machine of ours sends: it is not tried again."""
    match event:
        case {"job": str(job_id), "run": int(run), **more} if not isinstance(run, bool):
            branch = more.get("branch", "")
            if isinstance(branch, str) and bool(branch) == of_branch:
                return Ask(job_id, run, branch)
    raise ValueError("expected the job and the run of an execution" + (", and a branch" if of_branch else ""))


def became(ask: Ask, state: str) -> dict[str, str]:
    """A branch's answer. Nobody reads it but whoever looks at the execution."""
    return {"branch": ask.branch, "state": state}


def completed(key: str, result_bytes: int, partial: bool) -> dict[str, Any]:
    more = {"partial": True} if partial else {}
    return {"status": "COMPLETED", "result_key": key, "result_bytes": result_bytes, **more}


def failed(why: Mapping[str, str]) -> dict[str, Any]:
    return {"status": "FAILED", "error": dict(why)}


def refused() -> dict[str, Any]:
    return {"status": REFUSED}
