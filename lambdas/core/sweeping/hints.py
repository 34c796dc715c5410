"""Sends what the walk through the due deliveries has gathered: hints, those of a crowd behind the depth gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Message, Notice, Now, Unavailable, Workers
from lambdas.core.sweeping.batches import CROWD
from lambdas.core.sweeping.delivery_plan import SendAgain
from lambdas.core.sweeping.report import Report
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import routing
from lambdas.core.webhooks.delivery import Delivery
from lambdas.core.webhooks.ports import DeliveryStore


class HintQueue(Protocol):
    """Where hints go, and how full it is: what Sender and WorkQueue promise."""

    def send(self, messages: Sequence[Message]) -> set[int]: ...

    def depth(self) -> int: ...


@dataclass
class Hints:
    """What is to be sent. `in_time`: whether to begin with one batch more."""

    store: DeliveryStore
    queue: HintQueue
    now: Now
    notice: Notice
    workers: Workers
    report: Report
    in_time: Callable[[], bool]
    reaped: list[Delivery] = field(default_factory=list)
    waiting: list[SendAgain] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.reaped or self.waiting)

    def send(self) -> None:
        """The reaped ones at once: what crashed is tried again, the stream alive or not."""
        if self.empty:
            return
        self._depth()  # of the queue as it was found
        self._hint(self.reaped)
        self.reaped = []
        if self.waiting and self.in_time():
            self._again(self.waiting)
            self.waiting = []

    def _again(self, found: Sequence[SendAgain]) -> None:
        """While the queue holds a message for each of a crowd, more would only make a storm. Who has no message for
        certain, or has waited long, is not held back. What may still have its message in a slow queue is sent, and is
        no repair."""
        self.report.count("claimable", len(found))
        claimable = self.report.counts["claimable"]
        slow = self._depth() >= claimable
        held = [one for one in found if slow and claimable >= CROWD and not one.urgent]
        free = [one for one in found if one not in held]
        refused = self._hint([one.delivery for one in free])
        sent = [one for position, one in enumerate(free) if position not in refused]
        self._push([*held, *sent])
        self.report.count("held_back", len(held))
        self.report.count("sent", len(sent))
        for one in sent:
            if not one.left_to_us and not slow:
                self.report.repaired(one.delivery.pk)

    def failed(self, what: str, **fields: object) -> None:
        self._count_failed(1)
        self.notice(what, **fields)

    def _hint(self, found: Sequence[Delivery]) -> set[int]:
        """Positions of those whose hint was not taken; they stay due."""
        if self.report.dry_run or not found:
            return set()
        refused = routing.send(found, now=self.now(), queue=self.queue, notice=self.notice)
        self._count_failed(len(refused))
        return refused

    def _push(self, found: Sequence[SendAgain]) -> None:
        for one in found if not self.report.dry_run else ():
            try:
                self.workers.call(lambda one=one: self._pushed(one))  # type: ignore[misc]
            except (Unavailable, UnreadableRecord) as trouble:
                self.failed("not_swept", job_id=one.delivery.pk, detail=str(trouble))

    def _pushed(self, one: SendAgain) -> None:
        self.store.apply(one.delivery.key, changes.push_due(one.delivery, one.due_at))  # refused: it has gone on

    def _depth(self) -> int:
        """How full the queue was before this sweep sent anything; as long as nobody can say, sending is the safe
        side."""
        if "depth" not in self.report.counts:
            try:
                self.report.counts["depth"] = self.queue.depth()
            except Unavailable as trouble:
                self.notice("depth_unknown", detail=str(trouble))
                return 0
        return self.report.counts["depth"]

    def _count_failed(self, number: int) -> None:
        self.report.count("failed", number)
        self.report.trouble(number)
