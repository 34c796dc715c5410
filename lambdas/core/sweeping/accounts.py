"""The account of a source: each of its events in exactly one column."""

from __future__ import annotations

from dataclasses import dataclass

from lambdas.core import times
from lambdas.core.policy import DAY_S
from lambdas.core.ports import Notice, Unavailable
from lambdas.core.sweeping.report import ENDS, MISSING, OPEN, RETRIGGERED, SOURCE, UNUSABLE, Report
from lambdas.core.times import Instant


@dataclass(frozen=True)
class Window:
    """What is compared: older than `grace_s` (younger ones may still be on their way), younger than `days`."""

    days: int
    grace_s: int


@dataclass(frozen=True)
class Triggered:
    """It had no record, and has one now."""

    job_id: str


@dataclass(frozen=True)
class Known:
    """It had a record after all: the index was behind, or somebody was faster."""

    job_id: str
    status: str


@dataclass(frozen=True)
class Missed:
    """A dry run's finding: it has no record."""

    job_id: str


@dataclass(frozen=True)
class Unusable:
    """It can become no job."""

    why: str


Outcome = Triggered | Known | Missed | Unusable


def open_account(report: Report, window: Window, now: Instant) -> None:
    """The window stays the same until the part is through, however often it is gone on with."""
    if not report.until:
        report.since = times.text(times.after(now, -window.days * DAY_S))
        report.until = times.text(times.after(now, -window.grace_s))
        report.counts = {SOURCE: 0, **dict.fromkeys((*ENDS.values(), OPEN, RETRIGGERED, UNUSABLE), 0)}


def settle(
    report: Report, status: str | None, outcome: Outcome | Unavailable | None, *, name: str, notice: Notice
) -> None:
    """Book one event. `status`: what the records say of it; without one, `outcome` is what came of looking closer."""
    report.count(SOURCE)
    match outcome:
        case Triggered(job_id):
            report.count(RETRIGGERED)
            report.repaired(job_id)
            notice("retriggered", job_id=job_id, part=report.part)
        case Missed(job_id):
            report.count(MISSING)
            report.repaired(job_id)
        case Unusable(why):
            report.count(UNUSABLE)
            report.note("unusable_events", f"{name}: {why}")
        case Unavailable():
            report.trouble()
            report.note("not_settled", f"{name}: {outcome}")
            notice("not_settled", part=report.part, detail=str(outcome))
        case Known(_, status_now):
            report.count(ENDS.get(status_now, OPEN))
        case None:
            report.count(ENDS.get(status or "", OPEN))
