"""The part `uploads`: what lies in the bucket and was never recorded becomes a job, once; the account adds up."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, PENDING, PROCESSING
from lambdas.core import ids
from lambdas.core.inbox import uploads
from lambdas.core.inbox.uploads import Yard
from lambdas.core.intake import Door
from lambdas.core.policy import Limits
from lambdas.core.ports import ObjectVersion, Stored
from lambdas.core.sweeping import triggers
from lambdas.core.sweeping.accounts import Window
from lambdas.core.sweeping.report import DONE, Report
from lambdas.core.sweeping.uploads import Uploads
from tests.builders import NOW, TENANT, later
from tests.fakes import (
    FakeInventory,
    FakeJobStore,
    FakeListing,
    FakeObjects,
    FakeTurn,
    FakeUploaded,
    FakeWorkers,
    Notices,
    Trouble,
)

BUCKET = "the-uploads"
WINDOW = Window(days=30, grace_s=900)
OLD = later(hours=-1)


class World:
    """A bucket, the records of its objects, and a sweep over both."""

    def __init__(self, page: int = 3) -> None:
        self.store, self.listing, self.uploaded = FakeJobStore(), FakeListing(), FakeUploaded()
        self.inventory, self.notices = FakeInventory(self.store), Notices()
        check = {"summarize": lambda value: None}
        door = Door(self.store, FakeObjects(), check, Limits(), lambda: NOW, lambda: "0" * 32)
        self.yard = Yard(door, self.uploaded, BUCKET)
        self.page = page
        self.report = Report("sweep-1", "uploads")

    def put(self, name: str, at: datetime = OLD, *, type_: str = "summarize", body: bytes = b"{}") -> Stored:
        """An object, of which nobody was told."""
        stored = self.uploaded.put(f"uploads/{TENANT}/{type_}/{name}", body)
        self.listing.found.append(ObjectVersion(stored.key, stored.version, stored.etag, stored.bytes, at))
        return stored

    def notified(self, stored: Stored) -> str:
        """What the inbox makes of it: the job's id."""
        outcome = uploads.take(stored, OLD, self.yard)
        return str(getattr(outcome, "job_id", ""))

    def becomes(self, job_id: str, status: str) -> None:
        self.store.records[job_id]["status"] = status

    def sweep(self, *, dry_run: bool = False, turn: FakeTurn | None = None) -> Report:
        self.report = Report("sweep-1", "uploads", dry_run)
        return self.go_on(turn)

    def go_on(self, turn: FakeTurn | None = None) -> Report:
        part = Uploads(
            listing=self.listing,
            inventory=self.inventory,
            trigger=triggers.of_uploads(self.yard),
            window=WINDOW,
            now=lambda: NOW,
            notice=self.notices,
            workers=FakeWorkers(),
            page=self.page,
        )
        if part.run(self.report, turn or FakeTurn()):
            self.report.state = DONE
        return self.report


def columns(report: Report) -> dict[str, int]:
    return {name: number for name, number in report.counts.items() if number}


def test_each_event_of_the_source_is_in_one_column_and_what_was_missing_is_now_a_job() -> None:
    world = World()
    ends = [COMPLETED, COMPLETED, FAILED, CANCELLED, DELETED, PENDING, PROCESSING]
    for number, status in enumerate(ends):
        world.becomes(world.notified(world.put(f"known-{number}")), status)
    missing = [world.put(f"missing-{number}") for number in range(4)]
    report = world.sweep()
    assert columns(report) == {
        "source": 11, "completed": 2, "failed": 1, "cancelled": 1, "deleted": 1, "open": 2, "retriggered": 4,
    }  # fmt: skip
    assert report.balanced
    expected = [ids.object_job_id(BUCKET, stored.key, stored.version) for stored in missing]
    assert report.ids == expected
    assert [world.store.records[job_id]["upload"]["key"] for job_id in expected] == [one.key for one in missing]
    assert report.all_troubles == 0


def test_a_second_sweep_repairs_nothing() -> None:
    world = World()
    for number in range(10):
        world.put(f"{number}")
    assert world.sweep().found == 10
    again = world.sweep()
    assert (again.found, columns(again)) == (0, {"source": 10, "open": 10})


def test_the_job_is_the_very_one_that_the_late_notification_means() -> None:
    world = World()
    stored = world.put("a")
    world.sweep()
    records = len(world.store.records)
    world.notified(stored)
    assert len(world.store.records) == records == 1


@pytest.mark.parametrize(
    ("at", "counted"),
    [
        (later(-901), 1),
        (later(-900), 1),
        (later(-899), 0),
        (later(days=-30, seconds=1), 1),
        (later(days=-30), 0),
        (later(days=-40), 0),
    ],
)
def test_young_objects_may_still_be_in_the_inbox_and_old_ones_may_have_outlived_their_record(
    at: datetime, counted: int
) -> None:
    world = World()
    world.put("a", at)
    report = world.sweep()
    assert (report.counts["source"], report.found) == (counted, counted)


def test_every_version_is_an_event_of_its_own() -> None:
    world = World()
    first, second = world.put("a"), world.put("a")
    world.notified(second)
    report = world.sweep()
    assert columns(report) == {"source": 2, "open": 1, "retriggered": 1}
    assert report.ids == [ids.object_job_id(BUCKET, first.key, first.version)]


def test_of_an_upload_that_was_announced_only_the_first_version_counts() -> None:
    world = World()
    name = ids.upload_id(TENANT, "summarize", "0123456789abcdef0123456789abcdef")
    first = world.put(name, later(hours=-2))
    world.put(name)
    report = world.sweep()
    assert (columns(report), report.ids) == ({"source": 1, "retriggered": 1}, [name])
    assert world.store.records[name]["upload"]["version"] == first.version
    assert columns(world.sweep()) == {"source": 1, "open": 1}


def test_an_index_that_is_behind_is_not_trusted_to_say_that_a_record_is_missing() -> None:
    world = World()
    job_id = world.notified(world.put("a"))
    world.becomes(job_id, COMPLETED)
    world.inventory.behind.add(job_id)
    report = world.sweep()
    assert (report.found, columns(report)) == (0, {"source": 1, "completed": 1})
    assert world.sweep(dry_run=True).found == 0


def test_an_object_that_can_become_no_job_is_listed_and_not_repaired() -> None:
    world = World()
    world.put("a", type_="no-such-task")
    world.listing.found.append(ObjectVersion("uploads/only-one-part", "v", "e", 1, OLD))
    world.put("folder/", body=b"")
    report = world.sweep()
    assert (columns(report), report.found) == ({"source": 2, "unusable": 2}, 0)
    assert [line.partition(": ")[0] for line in report.lists["unusable_events"]] == [
        f"uploads/{TENANT}/no-such-task/a", "uploads/only-one-part",
    ]  # fmt: skip
    assert report.all_troubles == 1
    assert columns(world.sweep(dry_run=True)) == {"source": 2, "unusable": 2}


def test_what_the_store_refuses_leaves_the_account_open_and_the_next_sweep_settles_it() -> None:
    world = World()
    world.put("a")
    world.put("b")
    world.store.troubles.add("create", Trouble.REFUSED)
    report = world.sweep()
    assert (columns(report), report.balanced) == ({"source": 2, "retriggered": 1}, False)
    assert report.all_troubles == 2
    assert len(report.lists["not_settled"]) == 1
    assert columns(world.sweep()) == {"source": 2, "open": 1, "retriggered": 1}


def test_a_lost_reply_of_a_trigger_makes_one_job() -> None:
    world = World()
    world.put("a")
    world.store.troubles.add("create", Trouble.UNHEARD)
    report = world.sweep()
    assert report.balanced
    assert len(world.store.records) == 1


def test_a_dry_run_names_what_is_missing_and_makes_no_job() -> None:
    world = World()
    world.notified(world.put("known"))
    stored = world.put("missing")
    report = world.sweep(dry_run=True)
    assert columns(report) == {"source": 2, "open": 1, "missing": 1}
    assert report.balanced
    assert report.shown()["would_repair_ids"] == [ids.object_job_id(BUCKET, stored.key, stored.version)]
    assert len(world.store.records) == 1


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_it_goes_on_from_its_cursor_and_counts_nothing_twice(steps: int) -> None:
    world, whole = World(), World()
    for one in (world, whole):
        for number in range(12):
            stored = one.put(f"{number:02d}", later(days=-50) if number % 5 == 4 else OLD)
            if number % 3 == 0:
                one.put(f"{number:02d}")
            if number % 2:
                one.notified(stored)
    expected = columns(whole.sweep())
    rounds = 0
    while world.report.state != DONE:
        world.go_on(FakeTurn(counting(steps)))
        rounds += 1
        assert rounds < 20
    assert columns(world.report) == expected
    assert rounds >= 12 // steps
    assert world.report.found == len(set(world.report.ids)) == whole.report.found


def test_every_point_at_which_it_may_be_saved_is_one_to_go_on_from() -> None:
    """Whatever dies after a save: the successor begins with that state, and ends with the same account."""
    whole = World()
    for number in range(9):
        whole.put(f"{number}")
        whole.put(f"{number}")
    saved: list[dict[str, Any]] = []

    class Keeping(FakeTurn):
        def save(self) -> None:
            saved.append(replace(whole.report, ids=list(whole.report.ids)).kept())
            saved[-1]["counts"] = dict(whole.report.counts)

    expected = columns(whole.sweep(turn=Keeping()))
    assert len(saved) == 8
    for state in saved:
        world = World()
        world.listing.found, world.uploaded = whole.listing.found, whole.uploaded
        for stored in (Stored(one.key, one.version, one.etag, one.bytes) for one in whole.listing.found):
            if stored.key <= state["cursor"]:
                world.notified(stored)
        world.report = Report(**state)
        assert columns(world.go_on()) == expected


def test_pages_of_both_sides_are_asked_for_one_after_the_other() -> None:
    world = World(page=3)
    for number in range(10):
        world.notified(world.put(f"{number}"))
    report = world.sweep()
    assert (report.found, report.counts["open"]) == (0, 10)
    assert len(world.listing.pages) == 4
    assert world.listing.pages[0] is None


def test_it_reads_no_record_for_an_object_that_the_index_knows() -> None:
    world = World()
    for number in range(10):
        world.notified(world.put(f"{number}"))
    world.store.calls.clear()
    world.sweep()
    assert world.store.calls == []


def counting(most: int) -> Any:
    left = iter(range(most))
    return lambda: next(left, None) is not None
