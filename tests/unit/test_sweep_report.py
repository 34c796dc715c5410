"""What a part reports: accounts that add up, lists that are bounded, and plain values that can be kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, OPEN
from lambdas.core.ports import Unavailable
from lambdas.core.sweeping import accounts
from lambdas.core.sweeping.accounts import Known, Missed, Triggered, Unusable, Window, settle
from lambdas.core.sweeping.report import DONE, Report, report_of
from tests.builders import NOW
from tests.fakes import Notices, _must_be_storable

STATUSES = (COMPLETED, FAILED, CANCELLED, DELETED, *OPEN)
KNOWN = st.sampled_from(STATUSES).map(lambda status: (status, None))
FOUND = st.sampled_from(
    [Triggered("j"), Missed("j"), Unusable("why"), *(Known("j", status) for status in STATUSES)]
).map(lambda outcome: (None, outcome))


def account() -> Report:
    report = Report("s", "uploads")
    accounts.open_account(report, Window(30, 900), NOW)
    report.state = DONE
    return report


@given(st.lists(KNOWN | FOUND, max_size=50))
def test_the_account_adds_up_whatever_becomes_of_each_event(events: list[Any]) -> None:
    report = account()
    for status, outcome in events:
        settle(report, status, outcome, name="n", notice=Notices())
    assert (report.counts["source"], report.balanced) == (len(events), True)
    assert report.found == sum(isinstance(outcome, Triggered | Missed) for _, outcome in events)


def test_an_event_that_could_not_be_settled_leaves_the_account_open_and_is_a_trouble() -> None:
    report = account()
    settle(report, None, Unavailable("no"), name="uploads/a", notice=Notices())
    assert (report.balanced, report.all_troubles) == (False, 2)
    assert report.shown()["balanced"] is False
    assert report.lists["not_settled"] == ["uploads/a: no"]


def test_the_window_stays_as_it_was_when_the_part_began() -> None:
    report = account()
    window = (report.since, report.until)
    report.count("source")
    accounts.open_account(report, Window(1, 1), NOW)
    assert (report.since, report.until, report.counts["source"]) == (*window, 1)


@pytest.mark.parametrize(("share", "kept"), [(1, 1_000), (5, 1_000), (10, 500), (50, 100)])
def test_ids_are_kept_up_to_a_bound_and_the_others_counted(share: int, kept: int) -> None:
    report = Report("s", "uploads", share=share)
    for number in range(1_500):
        report.repaired(f"{number:032d}")
    assert (len(report.ids), report.found) == (kept, 1_500)


def test_a_sweep_of_many_parts_fits_into_one_item() -> None:
    """400 KB, with every list full."""
    size = 0
    for number in range(20):
        report = Report("s", f"source-{number}", share=20)
        for count in range(1_000):
            report.repaired(f"{count:032d}")
            report.note("unusable_events", "x" * 1_024)
            report.note("not_settled", "y" * 1_024)
        size += len(json.dumps(report.kept()))
    assert size < 400_000


def test_what_is_kept_is_read_back_and_can_be_stored() -> None:
    report = account()
    settle(report, None, Triggered("j"), name="n", notice=Notices())
    report.note("unusable_events", "half a surrogate: \ud800")
    report.cursor = {"number": 3, "due_at": "2026", "job_id": "x"}
    kept = report.kept()
    _must_be_storable(kept)
    json.dumps(kept).encode()
    assert report_of({**kept, "a_field_of_tomorrow": 1}) == report


def test_an_event_that_can_become_no_job_is_one_trouble_however_many_there_are() -> None:
    report = account()
    for _ in range(3):
        settle(report, None, Unusable("why"), name="n", notice=Notices())
    assert (report.all_troubles, report.balanced) == (1, True)
