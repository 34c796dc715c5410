"""What the doctor says: one line per check, and the fix where there is something to fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "failed", "not checked"]


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, what was seen, and what to do about it."""

    name: str
    state: State
    seen: str
    fix: str = ""

    def __str__(self) -> str:
        line = f"{self.state:<12}{self.name:<16}{self.seen}"
        return f"{line}\n{'':<12}{'':<16}→ {self.fix}" if self.fix else line


def ok(name: str, seen: str) -> Finding:
    return Finding(name, "ok", seen)


def failed(name: str, seen: str, fix: str) -> Finding:
    return Finding(name, "failed", seen, fix)


def unknown(name: str, why: str, fix: str = "") -> Finding:
    return Finding(name, "not checked", why, fix)
