"""The part `uploads`: every object that was put into the uploads bucket is compared with the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lambdas.contracts.names import UPLOADS_PREFIX
from lambdas.core import ids, times
from lambdas.core.inbox.uploads import Place, is_folder, place_of
from lambdas.core.ports import Inventory, Listing, Notice, Now, ObjectVersion, UploadRow, Workers
from lambdas.core.sweeping import accounts
from lambdas.core.sweeping.accounts import Outcome, Window
from lambdas.core.sweeping.merge import Compared, compared
from lambdas.core.sweeping.report import Report, Turn

PAGE = 1_000


@dataclass(frozen=True)
class Uploads:
    """What it works with. `trigger(object, dry run)`: what a notification would do."""

    listing: Listing
    inventory: Inventory
    trigger: Callable[[ObjectVersion, bool], Outcome]
    window: Window
    now: Now
    notice: Notice
    workers: Workers
    page: int = PAGE

    def run(self, report: Report, turn: Turn) -> bool:
        """The cursor is a key behind which nothing is done yet: it moves when the next key begins."""
        accounts.open_account(report, self.window, self.now())
        walk = _Walk(self, report, turn)
        key = ""
        for one, outcome in self.workers.each(walk.events(), walk.look, needs=walk.needs_a_look):
            if key and one.object.key != key:
                report.cursor = key
                turn.save()
            key = one.object.key
            if walk.is_of_the_window(one):
                accounts.settle(report, one.status, outcome, name=key, notice=self.notice)
        report.cursor = key or report.cursor
        return not walk.out_of_time

    def versions(self, after: str) -> Iterator[ObjectVersion]:
        at: tuple[str, str] | None = (after, "") if after else None
        while True:
            page = self.workers.call(lambda at=at: self.listing.versions(UPLOADS_PREFIX, at, self.page))  # type: ignore[misc]
            yield from (one for one in page.versions if one.key > after and not is_folder(one))
            at = page.next
            if at is None:
                return

    def rows(self, shard: str, after: str) -> Iterator[UploadRow]:
        start = ids.after_upload(after) if after else ""
        while True:
            page = self.workers.call(lambda start=start: self.inventory.uploads(shard, start, self.page))  # type: ignore[misc]
            yield from page
            if len(page) < self.page:
                return
            start = ids.upload_order(page[-1].key, page[-1].version)


class _Walk:
    """Through bucket and index. Time is looked at between keys: what is begun of a key is seen through."""

    def __init__(self, own: Uploads, report: Report, turn: Turn) -> None:
        self.own, self.report, self.turn = own, report, turn
        self.since, self.until = times.instant(report.since), times.instant(report.until)
        self.out_of_time = False

    def events(self) -> Iterator[Compared]:
        after, key = str(self.report.cursor or ""), ""
        shards = [self.own.rows(shard, after) for shard in ids.upload_shards()]
        for one in compared(self.own.versions(after), shards, _is_given_out):
            if one.object.key != key and not self.turn.in_time():
                self.out_of_time = True
                return
            key = one.object.key
            yield one

    def is_of_the_window(self, one: Compared) -> bool:
        return self.since < one.object.modified <= self.until

    def needs_a_look(self, one: Compared) -> bool:
        return one.status is None and self.is_of_the_window(one)

    def look(self, one: Compared) -> Outcome:
        return self.own.trigger(one.object, self.report.dry_run)


def _is_given_out(key: str) -> bool:
    place = place_of(key)
    return isinstance(place, Place) and place.given_out
