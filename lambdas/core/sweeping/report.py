"""What one part of a sweep has done so far: true at every point at which it is saved, and the part goes on from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED
from lambdas.core.job import cut

RUNNING, DONE, BROKEN, COVERED, ABSENT = "RUNNING", "DONE", "FAILED", "COVERED", "ABSENT"
OVER = frozenset({DONE, BROKEN, COVERED, ABSENT})

SOURCE = "source"
RETRIGGERED, MISSING, UNUSABLE, OPEN = "retriggered", "missing", "unusable", "open"
ENDS = {COMPLETED: "completed", FAILED: "failed", CANCELLED: "cancelled", DELETED: "deleted"}
ACCOUNTED = (*ENDS.values(), OPEN, RETRIGGERED, MISSING, UNUSABLE)

IDS = 5_000  # of one certificate, all parts together: its item holds 400 KB
LINES = 500
LINE_BYTES = 200


class PartFailed(Exception):
    """A part that cannot go on: the certificate says why, and the others do theirs."""


@dataclass
class Report:
    """Plain values only: it is kept in the part's lease, and then in the certificate.

    `cursor`: where to go on, as the part itself understands it. `starts`: how often somebody has begun from this
    cursor and was not heard of again. `troubles`: what could not be read, written or accounted for."""

    sweep_id: str
    part: str
    dry_run: bool = False
    share: int = 1  # of how many parts this is one
    state: str = RUNNING
    why: str = ""
    started_at: str = ""
    finished_at: str = ""
    since: str = ""
    until: str = ""
    cursor: Any = None
    starts: int = 0
    found: int = 0
    troubles: int = 0
    ids: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def count(self, name: str, n: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + n

    def highest(self, name: str, number: int) -> None:
        self.counts[name] = max(self.counts.get(name, 0), number)

    def repaired(self, id_: str, n: int = 1) -> None:
        """In a dry run: would have been."""
        self.found += n
        if len(self.ids) < min(1_000, IDS // self.share):
            self.ids.append(id_)

    def trouble(self, n: int = 1) -> None:
        self.troubles += n

    def note(self, name: str, line: str) -> None:
        """One line of a list; the first ones are kept."""
        lines = self.lists.setdefault(name, [])
        if len(lines) < min(100, LINES // self.share):
            lines.append(cut(line, LINE_BYTES))

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_done(self) -> bool:
        """It got to its end."""
        return self.state == DONE

    @property
    def balanced(self) -> bool:
        """Each of the source's events is accounted for, once."""
        if SOURCE not in self.counts:
            return True
        return self.counts[SOURCE] == sum(self.counts.get(name, 0) for name in ACCOUNTED)

    @property
    def all_troubles(self) -> int:
        unaccounted = self.state == DONE and not self.balanced
        return self.troubles + int(self.state == BROKEN) + int(unaccounted) + int(self.counts.get(UNUSABLE, 0) > 0)

    def kept(self) -> dict[str, Any]:
        """What goes on from here needs; nothing that is empty."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None, [], {})}

    def shown(self) -> dict[str, Any]:
        """For a reader."""
        times = {name: value for name in _TIMES if (value := getattr(self, name))}
        shown: dict[str, Any] = {"state": self.state, **({"why": self.why} if self.why else {}), **times, **self.counts}
        if SOURCE in self.counts and self.state == DONE:
            shown["balanced"] = self.balanced
        number, ids = ("would_repair", "would_repair_ids") if self.dry_run else ("repaired", "repaired_ids")
        return {**shown, number: self.found, ids: self.ids, "troubles": self.all_troubles, **self.lists}


_TIMES = ("started_at", "finished_at", "since", "until")
_NAMES = frozenset(one.name for one in fields(Report))


def report_of(kept: Mapping[str, Any]) -> Report:
    """Read what `kept` wrote; fields of another version of this code are passed over."""
    return Report(**{name: value for name, value in kept.items() if name in _NAMES})


class Turn(Protocol):
    """One part's share of an invocation."""

    def in_time(self) -> bool:
        """Whether to begin with one thing more."""

    def save(self) -> None:
        """The report is true now. Kept every few seconds; raises LeaseLost when somebody else goes on from it."""


class Part(Protocol):
    def run(self, report: Report, turn: Turn) -> bool:
        """Go on from the report's cursor. False: time is out, and there is more to do. Raises Unavailable and
        PartFailed."""


class Steps(Protocol):
    def run(self, report: Report) -> Iterator[None]:
        """Bounded work without a cursor, a step at a time; may be closed at each."""


@dataclass(frozen=True)
class Stepwise:
    """A part that need not be seen through: what one sweep does not get to, the next begins with."""

    steps: Steps

    def run(self, report: Report, turn: Turn) -> bool:
        steps = self.steps.run(report)
        try:
            for _ in steps:
                turn.save()
                if not turn.in_time():
                    report.count("cut_short")
                    break
        finally:
            close = getattr(steps, "close", None)
            if close is not None:
                close()
        return True


class LeaseLost(Exception):
    """Somebody else has this part by now."""
