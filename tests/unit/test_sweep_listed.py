"""The part of a source that lists its events: its list against the records, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED
from lambdas.contracts.sources import Source
from lambdas.core import ids
from lambdas.core.inbox.listing import Event, Page
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.intake import Door
from lambdas.core.policy import Limits
from lambdas.core.ports import Unavailable
from lambdas.core.sweeping import triggers
from lambdas.core.sweeping.accounts import Window
from lambdas.core.sweeping.listed import Absent, Listed
from lambdas.core.sweeping.report import DONE, PartFailed, Report
from lambdas.core.times import Instant
from tests.builders import NOW, TENANT, later
from tests.fakes import FakeJobStore, FakeLedger, FakeObjects, FakeSecrets, FakeTurn, FakeWorkers, Notices, Trouble

SHOP = Source(tenant=TENANT, task="summarize", scheme="hmac-sha256", secret="s", header="x", id="/id", input="/data")
BODY = {"id": "e-1", "data": {"text": "An order."}}


def event(number: int, **over: Any) -> Event:
    body = {**BODY, "id": f"e-{number}", **over}
    return Event(f"e-{number}", later(hours=-1), json.dumps(body).encode())


def job_id(number: int) -> str:
    return ids.job_id_from_key(TENANT, "POST", "/events/shop", f"e-{number}")


class World:
    """A source with a list in pages, and a sweep over it."""

    def __init__(self, *pages: list[Event]) -> None:
        self.store, self.notices = FakeJobStore(), Notices()
        self.pages = {str(number): page for number, page in enumerate(pages)}
        self.asked: list[tuple[Instant, Instant, str]] = []
        door = Door(self.store, FakeObjects(), {"summarize": lambda value: None}, Limits(), lambda: NOW, lambda: "0")
        self.reception = Reception(door, {"shop": SHOP}, FakeSecrets(), FakeLedger())
        self.report = Report("sweep-1", "shop")

    def list_page(self, since: Instant, until: Instant, cursor: str) -> Page:
        self.asked.append((since, until, cursor))
        number = int(cursor or "0")
        following = str(number + 1)
        return Page(self.pages[str(number)], following if following in self.pages else "")

    def part(self, pages: Callable[[Instant, Instant, str], Page] | None = None) -> Listed:
        return Listed(
            pages=pages or self.list_page,
            job_id=triggers.listed_job_id("shop", self.reception),
            store=self.store,
            trigger=triggers.of_events("shop", self.reception),
            window=Window(days=30, grace_s=900),
            now=lambda: NOW,
            notice=self.notices,
            workers=FakeWorkers(),
        )

    def sweep(self, *, dry_run: bool = False) -> Report:
        self.report = Report("sweep-1", "shop", dry_run)
        assert self.part().run(self.report, FakeTurn())
        self.report.state = DONE
        return self.report


def columns(report: Report) -> dict[str, int]:
    return {name: number for name, number in report.counts.items() if number}


def test_an_event_that_never_came_becomes_the_job_that_its_webhook_would_be() -> None:
    world = World([event(1), event(2)], [event(3)])
    report = world.sweep()
    assert (columns(report), report.balanced) == ({"source": 3, "retriggered": 3}, True)
    assert report.ids == [job_id(1), job_id(2), job_id(3)]
    record = world.store.records[job_id(1)]
    assert (record["tenant"], record["type"], record["source"], record["input"]) == (
        TENANT, "summarize", "shop", '{"text":"An order."}',
    )  # fmt: skip
    assert [line["what"] for line in record["history"]] == ["listed", "accepted"]


def test_a_second_sweep_repairs_nothing_and_looks_once_for_each_page() -> None:
    world = World([event(1), event(2)], [event(3)])
    world.sweep()
    world.store.records[job_id(2)]["status"] = COMPLETED
    world.store.calls.clear()
    report = world.sweep()
    assert (report.found, columns(report)) == (0, {"source": 3, "completed": 1, "open": 2})
    assert world.store.calls == ["read_many", "read_many"]


def test_an_event_that_the_list_tells_twice_on_a_page_is_one() -> None:
    assert columns(World([event(1), event(1)]).sweep()) == {"source": 1, "retriggered": 1}


def test_it_asks_for_the_window_and_passes_over_what_lies_outside() -> None:
    world = World([event(1), replace(event(2), at=later(-10)), replace(event(3), at=later(days=-31))])
    assert columns(world.sweep()) == {"source": 1, "retriggered": 1}
    assert world.asked == [(later(days=-30), later(-900), "")]


def test_an_event_that_can_become_no_job_is_listed_and_not_repaired() -> None:
    world = World([event(1), Event("e-2", later(hours=-1), b"no json"), Event("", later(hours=-1), b"{}")])
    report = world.sweep()
    assert columns(report) == {"source": 3, "retriggered": 1, "unusable": 2}
    assert "e-2: MALFORMED_BODY" in report.lists["unusable_events"][0]


def test_an_event_that_its_page_could_not_tell_costs_none_of_the_others() -> None:
    world = World([event(1), event(2)])
    part = world.part(lambda *_: Page([event(1), event(2)], "", [("7", "an event's id is text")]))
    assert part.run(world.report, FakeTurn())
    assert columns(world.report) == {"source": 3, "retriggered": 2, "unusable": 1}
    assert (world.report.balanced, world.report.all_troubles) == (True, 1)
    assert world.report.lists == {"unusable_events": ["7: an event's id is text"]}


def test_an_event_whose_jobs_record_cannot_be_read_is_not_settled_and_the_others_are() -> None:
    world = World([event(1), event(2)])
    world.store.spoilt = {job_id(1)}
    report = world.sweep(dry_run=True)
    assert (columns(report), report.troubles) == ({"source": 2, "missing": 1}, 1)
    assert "cannot be read" in report.lists["not_settled"][0]


def test_a_dry_run_names_what_is_missing_and_makes_no_job() -> None:
    world = World([event(1)])
    report = world.sweep(dry_run=True)
    assert (columns(report), report.ids, world.store.records) == ({"source": 1, "missing": 1}, [job_id(1)], {})


def test_wherever_it_may_be_killed_the_pages_before_its_cursor_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World([event(1)], [event(2)], [event(3)])
    saved: list[tuple[str, int]] = []
    monkeypatch.setattr(FakeTurn, "save", lambda turn: saved.append((world.report.cursor, len(world.store.records))))
    world.sweep()
    assert saved == [("1", 1), ("2", 2)]


def test_it_goes_on_from_the_sources_own_cursor() -> None:
    world = World([event(1)], [event(2)], [event(3)])
    left = iter([True])
    assert not world.part().run(world.report, FakeTurn(lambda: next(left, False)))
    assert world.report.cursor == "1"
    assert world.part().run(world.report, FakeTurn())
    assert columns(world.report) == {"source": 3, "retriggered": 3}
    assert [cursor for *_, cursor in world.asked] == ["", "1", "2"]


def test_a_source_that_does_not_answer_fails_its_part() -> None:
    def refuse(*_: Any) -> Page:
        raise Unavailable("GET shop.test: it answered 500")

    world = World()
    with pytest.raises(PartFailed, match="it answered 500"):
        world.part(refuse).run(world.report, FakeTurn())


def test_a_plugin_that_raises_fails_its_part_and_no_more() -> None:
    def broken(*_: Any) -> Page:
        raise KeyError("next")

    with pytest.raises(PartFailed, match="KeyError: 'next'"):
        World().part(broken).run(Report("sweep-1", "shop"), FakeTurn())


def test_a_list_that_goes_round_in_circles_fails_its_part() -> None:
    world = World()
    with pytest.raises(PartFailed, match="same cursor twice"):
        world.part(lambda since, until, cursor: Page([], "again")).run(world.report, FakeTurn())


def test_what_the_store_refuses_leaves_the_account_open() -> None:
    world = World([event(1), event(2)])
    world.store.troubles.add("create", Trouble.REFUSED)
    report = world.sweep()
    assert (columns(report), report.balanced) == ({"source": 2, "retriggered": 1}, False)


def test_a_source_whose_plugin_cannot_be_used_fails_its_part_and_says_why() -> None:
    with pytest.raises(PartFailed, match="no such plug-in"):
        Absent("no such plug-in").run(Report("sweep-1", "shop"), FakeTurn())
