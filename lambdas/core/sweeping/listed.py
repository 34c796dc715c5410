"""The part of a declared source that can list its events: what its own list has is compared with the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lambdas.core import times
from lambdas.core.inbox.listing import Event, Page
from lambdas.core.ports import JobStore, Notice, Now, Unavailable, Workers
from lambdas.core.sweeping import accounts
from lambdas.core.sweeping.accounts import Outcome, Unusable, Window
from lambdas.core.sweeping.report import PartFailed, Report, Turn
from lambdas.core.times import Instant


@dataclass(frozen=True)
class Listed:
    """What it works with. `pages(since, until, cursor)`: the source's list. `job_id(event id)`: the job it would be.
    `trigger(event, dry run)`: what its webhook would do."""

    pages: Callable[[Instant, Instant, str], Page]
    job_id: Callable[[str], str]
    store: JobStore
    trigger: Callable[[Event, bool], Outcome]
    window: Window
    now: Now
    notice: Notice
    workers: Workers

    def run(self, report: Report, turn: Turn) -> bool:
        """Page by page, with one look at the records for each."""
        accounts.open_account(report, self.window, self.now())
        cursor = str(report.cursor or "")
        while turn.in_time():
            page = self._page(report, cursor)
            self._settle(report, page)
            if not page.cursor:
                return True
            if page.cursor == cursor:
                raise PartFailed("the source's list goes on from where it was: the same cursor twice")
            report.cursor = cursor = page.cursor
            turn.save()
        return False

    def _page(self, report: Report, cursor: str) -> Page:
        since, until = times.instant(report.since), times.instant(report.until)
        try:
            return self.workers.call(lambda: self.pages(since, until, cursor))
        except Exception as trouble:  # a plug-in is anybody's code
            name = "" if isinstance(trouble, Unavailable) else f"{type(trouble).__name__}: "
            raise PartFailed(f"the source's list: {name}{trouble}") from trouble

    def _settle(self, report: Report, page: Page) -> None:
        self._settle_events(report, page.events)
        for name, why in page.unusable:
            accounts.settle(report, None, Unusable(why), name=name, notice=self.notice)

    def _settle_events(self, report: Report, events: Sequence[Event]) -> None:
        """A page may tell of one event twice, and a source may not keep to the window that it was asked for."""
        since, until = times.instant(report.since), times.instant(report.until)
        found = {self.job_id(event.id): event for event in events if since < event.at <= until}
        records = self.workers.call(lambda: self.store.read_many(list(found)))
        known = {str(record["pk"]): str(record.get("status")) for record in records}

        def look(job_id: str) -> Outcome:
            return self.trigger(found[job_id], report.dry_run)

        for job_id, outcome in self.workers.each(found, look, needs=lambda job_id: job_id not in known):
            name = found[job_id].id
            accounts.settle(report, known.get(job_id), outcome, name=name, notice=self.notice)


@dataclass(frozen=True)
class Absent:
    """A declared source whose plug-in cannot be used: its part fails, and says why."""

    why: str

    def run(self, report: Report, turn: Turn) -> bool:
        raise PartFailed(self.why)
