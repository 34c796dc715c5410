"""One invocation of the sweep: takes each part's lease, goes on from where its last holder stopped, and certifies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.contracts.names import LEASE_SK, SWEEP_SK
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Ledger, Notice, Now, Results, Unavailable
from lambdas.core.sweeping.asking import (
    PART,
    Order,
    Start,
    are_over,
    certificate,
    certificate_key,
    item_of,
    lease_of,
    open_sweep,
    reports_in,
)
from lambdas.core.sweeping.report import ABSENT, BROKEN, COVERED, DONE, LeaseLost, Part, PartFailed, Report, report_of
from lambdas.core.times import Instant, seconds_between

STARTS_MAX = 3  # what dies so often at one place will always die there: the part fails, and the next one begins anew
ROUNDS_MAX = 500
SAVE_S = 10


@dataclass
class Rounds:
    """What a sweep is made with. `until`: when the platform has certainly ended this invocation. `tell(report)`: a part
    is over, for the metrics."""

    parts: Mapping[str, Part]
    ledger: Ledger
    certificates: Results
    start: Start
    now: Now
    holder: str
    until: Instant
    in_time: Callable[[], bool]
    tell: Callable[[Report], None]
    notice: Notice
    over: dict[str, Report] = field(default_factory=dict)

    def run(self, order: Order) -> bool:
        """False: there is more to do, and a new invocation was asked to do it. Raises Unavailable."""
        if order.round == 0:
            open_sweep(order, now=self.now(), ledger=self.ledger)
        left = [part for part in order.parts if not (self.in_time() and self._part(part, order))]
        if left:
            self._go_on(order, left)
        return not left

    def _part(self, name: str, order: Order) -> bool:
        """Whether it is over, by whomever."""
        if name not in self.parts:
            self._close(self._fresh(name, order, state=ABSENT, why="there is no such part"))
            return True
        lease = lease_of(name, order.dry_run)
        state = self.ledger.take(lease, self.holder, self.now(), self.until)
        if state is None:
            by = (self.ledger.read(f"lease#{lease}", LEASE_SK) or {}).get("state", {}).get("sweep_id", "another sweep")
            self._close(self._fresh(name, order, state=COVERED, why=f"covered by {by}, which is under way"))
            return True
        left_over = report_of(state) if state else None
        if left_over is not None and left_over.sweep_id != order.sweep_id:
            if not self._work(left_over, lease):
                return False
            left_over = None
        elif left_over is None and self._is_over_already(name, order):
            self.ledger.give_back(lease, self.holder, {})
            return True
        done = self._work(left_over or self._fresh(name, order), lease)
        if done:
            self.ledger.give_back(lease, self.holder, {})
        return done

    def _fresh(self, name: str, order: Order, state: str = "", why: str = "") -> Report:
        report = Report(order.sweep_id, name, order.dry_run, len(order.parts), started_at=times.text(self.now()))
        report.state, report.why = state or report.state, why
        return report

    def _is_over_already(self, name: str, order: Order) -> bool:
        """Somebody went on with it in our place, to its end."""
        if order.round == 0:
            return False
        item = self.ledger.read(item_of(order.sweep_id), SWEEP_SK) or {}
        report = reports_in(item).get(name)
        return report is not None and report.is_over

    def _work(self, report: Report, lease: str) -> bool:
        """See a part through, or as far as time goes: then its lease waits, with the cursor in it."""
        report.starts += 1
        try:
            self.keep(report, lease)
            through = self._go_on_with(report, lease)
        except LeaseLost:
            self.notice("lease_lost", part=report.part, sweep_id=report.sweep_id)
            return True
        report.starts = 0
        if not through:
            self.ledger.give_back(lease, self.holder, report.kept())
            return False
        self._close(report)
        return True

    def _go_on_with(self, report: Report, lease: str) -> bool:
        if report.starts > STARTS_MAX:
            report.state, report.why = BROKEN, f"given up: {STARTS_MAX} invocations died at the same place"
            return True
        turn = _Turn(self, report, lease, self.now())
        try:
            if not self.parts[report.part].run(report, turn):
                return False
            report.state = DONE
        except (Unavailable, PartFailed, UnreadableRecord) as trouble:
            report.state, report.why = BROKEN, str(trouble)[:500]
        return True

    def keep(self, report: Report, lease: str) -> None:
        if not self.ledger.keep(lease, self.holder, self.until, report.kept()):
            raise LeaseLost(report.part)

    def _close(self, report: Report) -> None:
        """Told first and recorded then: dying in between tells it twice, and never not at all."""
        report.finished_at = times.text(self.now())
        self.over[report.part] = report
        self.notice("part_over", part=report.part, sweep_id=report.sweep_id, **_line(report))
        if not report.dry_run and report.state in (DONE, BROKEN):
            self.tell(report)
        self.ledger.save(item_of(report.sweep_id), SWEEP_SK, {f"{PART}{report.part}": report.kept()})
        self._certify(report.sweep_id)

    def _certify(self, sweep_id: str) -> None:
        """The certificate first, then the mark that it is there; whoever closes the last part does it."""
        item = self.ledger.read(item_of(sweep_id), SWEEP_SK)
        if item is None or item.get("finished_at") or not are_over(item):
            return
        now = self.now()
        told = certificate(sweep_id, item, now)
        self.certificates.put(certificate_key(sweep_id), json.dumps(told, indent=1).encode())
        ended = {"status": told["status"], "finished_at": times.text(now), "key": certificate_key(sweep_id)}
        self.ledger.save(item_of(sweep_id), SWEEP_SK, ended)
        self.notice("certified", sweep_id=sweep_id, status=told["status"], troubles=told["troubles"])

    def _go_on(self, order: Order, left: list[str]) -> None:
        """In a new invocation; when that cannot be asked for, the next schedule goes on."""
        following = Order(order.sweep_id, tuple(left), order.dry_run, order.by, order.round + 1)
        self.notice("goes_on", sweep_id=order.sweep_id, parts=left, round=following.round)
        if following.round > ROUNDS_MAX:
            return
        try:
            self.start(following.event())
        except Unavailable as trouble:
            self.notice("not_started", sweep_id=order.sweep_id, detail=str(trouble))


@dataclass
class _Turn:
    """One part's share of the invocation."""

    rounds: Rounds
    report: Report
    lease: str
    saved: Instant

    def in_time(self) -> bool:
        return self.rounds.in_time()

    def save(self) -> None:
        now = self.rounds.now()
        if seconds_between(self.saved, now) >= SAVE_S:
            self.saved = now
            self.report.starts = 1
            self.rounds.keep(self.report, self.lease)


def _line(report: Report) -> dict[str, Any]:
    shown = report.shown()
    return {name: value for name, value in shown.items() if not isinstance(value, list)}
