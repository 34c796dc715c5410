"""The part `drift`: COMPLETED jobs whose result is gone. It reports them and repairs nothing: COMPLETED is final."""

from __future__ import annotations

from dataclasses import dataclass

from lambdas.contracts.names import COMPLETED
from lambdas.core import times
from lambdas.core.ports import Completed, Inventory, JobStore, Notice, Now, Probe, Unavailable, Workers
from lambdas.core.sweeping.report import Report, Turn

PAGE = 1_000
YOUNG_S = 300
CHECKED, LOST = "checked", "lost"


@dataclass(frozen=True)
class Drift:
    """What it works with."""

    inventory: Inventory
    store: JobStore
    results: Probe
    now: Now
    notice: Notice
    workers: Workers
    page: int = PAGE

    def run(self, report: Report, turn: Turn) -> bool:
        """Through the whole table, page by page; each result is asked for by its key."""
        report.until = report.until or times.text(times.after(self.now(), -YOUNG_S))
        report.counts = {CHECKED: 0, LOST: 0, **report.counts}
        while turn.in_time():
            after = str(report.cursor or "")
            jobs, following = self.workers.call(lambda after=after: self.inventory.completed(after, self.page))  # type: ignore[misc]
            old = (job for job in jobs if job.finished_at <= report.until)
            for job, lost in self.workers.each(old, self._is_lost):
                self._book(report, job, lost)
            if not following:
                return True
            report.cursor = following
            turn.save()
        return False

    def _is_lost(self, job: Completed) -> bool:
        """The record is read again: it may have been deleted, or reopened, since the page was read."""
        if self.results.exists(job.result_key):
            return False
        record = self.store.read(job.job_id) or {}
        return record.get("status") == COMPLETED and record.get("result_key") == job.result_key

    def _book(self, report: Report, job: Completed, lost: bool | Unavailable | None) -> None:
        report.count(CHECKED)
        if isinstance(lost, Unavailable):
            report.trouble()
            self.notice("not_checked", job_id=job.job_id, detail=str(lost))
        elif lost:
            report.count(LOST)
            report.note("lost_results", job.job_id)
            self.notice("result_lost", job_id=job.job_id, key=job.result_key)
