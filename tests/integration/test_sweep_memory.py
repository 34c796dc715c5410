"""What a sweep holds in memory does not grow with what it looks through."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from lambdas.adapters.pipeline import Pace, Pipeline
from lambdas.core import ids
from lambdas.core.ports import Completed, ObjectVersion, UploadRow, VersionPage
from lambdas.core.sweeping.accounts import Triggered, Window
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.uploads import Uploads
from tests.builders import NOW, later
from tests.fakes import FakeTurn

MIB = 1024 * 1024
PAGE = 1_000
MISSING_EACH = 10  # one of so many was never recorded


class Endless:
    """A bucket of so many keys and its index, made page by page as they are asked for."""

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.pages = 0

    def _key(self, number: int) -> str:
        return f"uploads/acme/summarize/call-{number:09d}.json"

    def versions(self, prefix: str, after: tuple[str, str] | None, limit: int) -> VersionPage:
        self.pages += 1
        start = int(after[0][-14:-5]) + 1 if after else 0
        numbers = range(start, min(start + limit, self.keys))
        page = [ObjectVersion(self._key(n), f"v{n}", f"e{n}", 10, later(hours=-1)) for n in numbers]
        return VersionPage(page, (page[-1].key, page[-1].version) if start + limit < self.keys else None)

    def uploads(self, shard: str, after: str, limit: int) -> list[UploadRow]:
        self.pages += 1
        number = ids.upload_shards().index(shard)
        start = int(after.partition("\0")[0][-14:-5]) + 1 if after else 0
        mine = (n for n in range(start, self.keys) if n % 4 == number and n % MISSING_EACH)
        return [
            UploadRow(self._key(n), f"v{n}", f"{n:032d}", "COMPLETED") for n, _ in zip(mine, range(limit), strict=False)
        ]

    def completed(self, after: str, limit: int) -> tuple[list[Completed], str]:
        raise NotImplementedError


def peak_of(act: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def run(keys: int) -> tuple[int, Report, Endless]:
    """The peak, in bytes, of a whole sweep over so many keys, on real threads."""
    world, report = Endless(keys), Report("s", "uploads")
    part = Uploads(
        listing=world,
        inventory=world,
        trigger=lambda found, dry_run: Triggered(found.key),
        window=Window(30, 900),
        now=lambda: NOW,
        notice=lambda *a, **k: None,
        workers=Pipeline(8, Pace(1_000_000)),
        page=PAGE,
    )
    return peak_of(lambda: part.run(report, FakeTurn())), report, world


@pytest.mark.slow
def test_listing_a_hundred_thousand_keys_holds_no_more_than_listing_ten_thousand() -> None:
    small, _, _ = run(10_000)
    large, report, world = run(100_000)
    assert report.counts["source"] == 100_000
    assert report.counts["retriggered"] == report.found == 10_000
    assert report.balanced
    assert world.pages > 190
    assert large - small < 20 * MIB
    assert large < 10 * MIB


def test_an_endless_bucket_is_made_as_it_says() -> None:
    """The test above would prove nothing with a bucket that is short of keys."""

    def all_keys(world: Endless) -> Iterator[str]:
        at = None
        while True:
            page = world.versions("", at, 7)
            yield from (one.key for one in page.versions)
            at = page.next
            if at is None:
                return

    assert len(set(all_keys(Endless(50)))) == 50
