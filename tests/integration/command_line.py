"""`python -m ops` in this process, against an API that answers by a script."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from ops.__main__ import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Ended:
        code = main(list(words))
        said = self._capsys.readouterr()
        return Ended(code, said.out, said.err)


def job(job_id: str = "j1", status: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    """A job as the API shows it."""
    shown = {
        "job_id": job_id,
        "type": "summarize",
        "status": status,
        "attempt": 1,
        "tries": 1,
        "cost_micros": 18,
        "created_at": "2026-11-29T15:30:44.123Z",
        "links": {"self": f"/jobs/{job_id}"},
    }
    return {**shown, **more}


def timeline(status: str, *whats: str, job_id: str = "j1") -> dict[str, Any]:
    events = [{"at": f"2026-11-29T15:30:4{at}.000Z", "what": what, "attempt": 1} for at, what in enumerate(whats)]
    return {"job_id": job_id, "status": status, "events": events, "left_out": 0}
