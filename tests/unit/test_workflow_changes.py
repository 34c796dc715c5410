"""What the writes of rows 13 and 14 do to a record; under which condition, tests/unit/test_protocol.py says."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import changes as every
from lambdas.core import times
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Applied
from lambdas.core.protocol import Change
from lambdas.core.workflows import changes
from lambdas.core.workflows.parts import AGAIN, DONE, OPEN, Part, all_open, parts_of
from tests.builders import JOB_ID, NOW, held_record, later
from tests.fakes import FakeJobStore

LIMITS, WHY = Limits(), {"code": "EXECUTION_FAILED", "message": "run 0 failed"}
BRANCHES = ("key-facts", "summary")
LEASE = later(1_860)
Record = dict[str, Any]


def prepared(**over: Any) -> Record:
    return held_record(**{"parts": all_open(BRANCHES), "parts_run": 0, "booked_by": {}, **over})


def job_of(record: Record) -> Job:
    return from_record(record)


def after(record: Record, change: Change) -> Record:
    """The record when this write has been made twice: the second time changes nothing."""
    store = FakeJobStore(record)
    store.apply(JOB_ID, change)
    once = store.records[JOB_ID]
    store.apply(JOB_ID, change)
    assert store.records[JOB_ID] == once
    return once


def collected(record: Record, **over: Any) -> Record:
    values: dict[str, Any] = {"now": NOW, "key": "k", "result_bytes": 9, "partial": False, "limits": LIMITS, **over}
    return after(record, changes.collect(job_of(record), **values))


def fallen_short(record: Record) -> Record:
    return after(record, changes.fall_short(job_of(record), now=NOW, why=WHY, limits=LIMITS))


def given_up(record: Record) -> Record:
    return after(record, changes.give_up(job_of(record), now=NOW, why=WHY, limits=LIMITS))


def run_again(record: Record, wait_s: float = 30) -> Record:
    return after(record, changes.run_again(job_of(record), now=NOW, wait_s=wait_s, why=WHY, limits=LIMITS))


# --- row 13 -----------------------------------------------------------------------------------------------
def test_a_run_begins_with_all_branches_open() -> None:
    found = job_of(after(held_record(), changes.prepare(job_of(held_record()), BRANCHES)))
    assert (found.parts_run, parts_of(found)) == (0, {name: Part() for name in BRANCHES})
    assert found.booked_by == {}


def test_a_second_claim_leaves_what_the_branches_of_its_run_have_written() -> None:
    done = prepared(attempt=2, parts={"summary": {"state": DONE, "by": "x"}})
    assert after(done, changes.prepare(job_of(done), BRANCHES)) == done


def test_the_next_run_begins_anew_and_keeps_who_came_late_in_the_one_before() -> None:
    before = prepared(run=1, parts={"summary": {"state": DONE, "by": "x"}}, booked_by={"summary": "x"})
    found = job_of(after(before, changes.prepare(job_of(before), BRANCHES)))
    assert (found.parts_run, parts_of(found)["summary"], found.booked_by) == (1, Part(), {"summary": "x"})


def test_what_is_started_is_held_until_its_own_time_is_over_and_a_minute() -> None:
    assert changes.lease_of(NOW, 1_800) == LEASE
    found = job_of(after(prepared(), changes.adopt(job_of(prepared()), now=NOW, lease=LEASE)))
    assert (found.status, found.lease_until, found.due_at) == (PROCESSING, LEASE, LEASE)
    assert [line["what"] for line in found.history] == ["accepted", "claimed", "started"]
    assert found.history[-1]["note"] == "run 0"


def test_the_claim_is_told_once_however_the_execution_ends() -> None:
    started = after(prepared(), changes.adopt(job_of(prepared()), now=NOW, lease=LEASE))
    told = [line["what"] for line in collected(started)["history"]]
    assert told == ["accepted", "claimed", "started", "completed"]


def test_the_sweep_prolongs_the_lease_of_what_it_finds_running() -> None:
    lapsed = prepared(lease_until=later(-1))
    found = job_of(after(lapsed, changes.extend(job_of(lapsed), lease=LEASE)))
    assert (found.lease_until, found.due_at) == (LEASE, LEASE)


@pytest.mark.parametrize("write", ["adopt", "extend"])
def test_the_next_look_comes_no_later_than_the_deadline(write: str) -> None:
    record = prepared(deadline_at=later(600))
    adopt = changes.adopt(job_of(record), now=NOW, lease=LEASE)
    change = adopt if write == "adopt" else changes.extend(job_of(record), lease=LEASE)
    assert job_of(after(record, change)).due_at == later(600)


# --- row 14: a branch -------------------------------------------------------------------------------------
def part_of(record: Record, **over: Any) -> Change:
    became = Part(**{"state": DONE, "by": "me", "at": NOW, "cost": 7, "sha": "s", "bytes": 3, **over})
    return changes.part(job_of(record), "summary", became, cost=7, now=NOW)


def test_a_branch_writes_its_own_entry_its_cost_and_the_time() -> None:
    found = job_of(after(prepared(cost=5), part_of(prepared())))
    written = {"state": DONE, "by": "me", "at": times.text(NOW), "cost": 7, "sha": "s", "bytes": 3}
    assert found.parts == {"key-facts": {"state": OPEN}, "summary": written}
    assert (found.cost, found.progress_at, found.status) == (12, NOW, PROCESSING)


def test_two_branches_that_end_at_once_do_not_write_over_each_other() -> None:
    """Neither has seen what the other wrote."""
    store = FakeJobStore(prepared())
    for name in BRANCHES:
        store.apply(JOB_ID, changes.part(job_of(prepared()), name, Part(DONE, f"of {name}"), cost=1, now=NOW))
    found = job_of(store.records[JOB_ID])
    assert ([part.state for part in parts_of(found).values()], found.cost) == ([DONE, DONE], 2)


def test_a_try_that_was_overtaken_changes_nothing() -> None:
    """Also the copy of a write that comes out of the network when the next try has written."""
    store = FakeJobStore(prepared())
    first = part_of(prepared(), state=AGAIN, by="first")
    store.apply(JOB_ID, first)
    store.apply(JOB_ID, part_of(store.records[JOB_ID], by="second"))
    done = store.records[JOB_ID]
    store.apply(JOB_ID, first)
    assert (store.records[JOB_ID], done["cost"], done["parts"]["summary"]["state"]) == (done, 14, DONE)


def test_a_repeat_of_a_branchs_write_books_nothing_twice_whatever_run_the_job_is_in() -> None:
    store, first = FakeJobStore(prepared()), part_of(prepared())
    store.apply(JOB_ID, first)
    store.apply(JOB_ID, changes.run_again(job_of(prepared()), now=NOW, wait_s=0, why=WHY, limits=LIMITS))
    claimed = store.records[JOB_ID] = {**store.records[JOB_ID], "status": PROCESSING, "claim_id": "next"}
    store.apply(JOB_ID, changes.prepare(job_of(claimed), BRANCHES))
    before = store.records[JOB_ID]
    assert isinstance(store.apply(JOB_ID, first), Applied)
    store.apply(JOB_ID, changes.late_part("summary", "me", 7, seen_booked=""))
    assert (store.records[JOB_ID], before["cost"]) == (before, 7)


def test_a_branch_writes_to_a_job_that_was_reaped_by_mistake() -> None:
    reaped = prepared(status=PENDING, claim_id=None)
    assert after(reaped, part_of(reaped))["parts"]["summary"]["state"] == DONE


@pytest.mark.parametrize("status", [CANCELLED, COMPLETED, PENDING])
def test_what_came_too_late_has_cost_something_all_the_same(status: str) -> None:
    found = after(prepared(status=status, run=1, cost=5), changes.late_part("summary", "me", 7, seen_booked=""))
    assert (found["cost"], found["late_cost"], found["parts"]) == (5, 7, all_open(BRANCHES))


def test_all_branches_of_a_cancelled_job_come_back_at_once_and_a_repeat_finds_its_own() -> None:
    store = FakeJobStore(prepared(status=CANCELLED))
    writes = [changes.late_part(name, f"of {name}", 7, seen_booked="") for name in BRANCHES]
    for change in [*writes, *writes]:
        store.apply(JOB_ID, change)
    assert store.records[JOB_ID]["late_cost"] == 14


def test_what_an_earlier_try_has_booked_keeps_no_later_one_from_booking() -> None:
    """Nor does a copy of the earlier write that comes out of the network then."""
    store = FakeJobStore(prepared(status=CANCELLED))
    first = changes.late_part("summary", "first", 7, seen_booked="")
    store.apply(JOB_ID, first)
    store.apply(JOB_ID, changes.late_part("summary", "second", 5, seen_booked="first"))
    store.apply(JOB_ID, first)
    assert store.records[JOB_ID]["late_cost"] == 12


def test_a_repeat_after_the_job_was_opened_again_books_nothing_twice() -> None:
    late = changes.late_part("summary", "me", 7, seen_booked="")
    cancelled = after(prepared(status=CANCELLED, expires_at=1), late)
    opened = after(cancelled, every.reopen(job_of(cancelled), now=NOW, limits=LIMITS))
    assert (opened["cost"], after(opened, late)) == (7, opened)


# --- row 14: the end --------------------------------------------------------------------------------------
def test_what_was_collected_is_the_result() -> None:
    found = job_of(collected(prepared(error=WHY)))
    assert (found.status, found.result_key, found.result_bytes) == (COMPLETED, "k", 9)
    assert (found.error, found.claim_id, found.partial, found.finished_at) == (None, None, False, NOW)


def test_what_lacks_parts_is_never_shown_as_complete() -> None:
    found = job_of(collected(prepared(), partial=True))
    assert (found.status, found.partial, found.history[-1]["note"]) == (COMPLETED, True, "without all parts")


def test_a_job_whose_execution_fell_short_keeps_what_its_parts_have_come_to() -> None:
    done = {"summary": {"state": DONE, "by": "x"}}
    found = job_of(fallen_short(prepared(parts=done)))
    assert (found.status, found.error, found.parts, found.run, found.claim_id) == (FAILED, WHY, done, 0, None)


def test_another_run_has_another_name_and_is_counted() -> None:
    found = job_of(run_again(prepared(runs=1)))
    assert (found.status, found.run, found.runs, found.not_before) == (PENDING, 1, 2, later(30))
    assert (found.error, found.claim_id, found.history[-1]["what"]) == (WHY, None, "ended_badly")


def test_another_run_after_one_that_only_waited_is_not_counted() -> None:
    record = prepared(runs=1, tries=2)
    change = changes.run_again(job_of(record), now=NOW, wait_s=30, why=WHY, limits=LIMITS, waited=True)
    found = job_of(after(record, change))
    assert (found.status, found.run, found.runs, found.tries) == (PENDING, 1, 1, 1)


def test_after_the_last_run_the_job_has_failed_and_its_name_is_used_all_the_same() -> None:
    found = job_of(given_up(prepared(runs=1)))
    assert (found.status, found.error, found.run, found.runs, found.claim_id) == (FAILED, WHY, 1, 2, None)


@pytest.mark.parametrize("end", [collected, fallen_short, given_up])
def test_an_end_is_looked_after_within_the_grace_and_not_when_the_lease_would_end(end: Any) -> None:
    """A lost stream record must not keep it from everybody for as long as an execution may take."""
    found = job_of(end(prepared(due_at=LEASE)))
    assert found.due_at == later(LIMITS.grace_s)
    assert found.expires_at == int(later(days=LIMITS.record_days).timestamp())
    assert job_of(end(prepared(due_at=LEASE, deadline_at=later(5)))).due_at == later(5)


@pytest.mark.parametrize("end", [collected, fallen_short, given_up, run_again])
def test_who_held_the_job_takes_no_such_end_for_its_own(end: Any) -> None:
    ended, held = end(prepared()), job_of(prepared())
    own = [
        every.complete(held, now=NOW, result_bytes=1, cost=0, limits=LIMITS),
        every.fail(held, now=NOW, why=WHY, cost=0, limits=LIMITS),
        every.park(held, now=NOW, until=NOW, why=WHY, cost=0, refund=True, limits=LIMITS),
    ]
    assert [change.rule.name for change in own if change.is_own_effect(ended)] == []


def test_an_opening_begins_with_all_its_runs() -> None:
    failed = {**given_up(prepared(runs=1)), "partial": True}
    found = job_of(after(failed, every.reopen(job_of(failed), now=NOW, limits=LIMITS)))
    assert (found.run, found.runs, found.partial) == (2, 0, False)


# --- parts ------------------------------------------------------------------------------------------------
FULL = Part(AGAIN, "x", NOW, 5, "sha", 9, 1, {"code": "THROTTLED", "message": "slow down"})


@pytest.mark.parametrize("part", [Part(), Part(DONE, "x"), FULL])
def test_a_part_is_read_as_it_was_written(part: Part) -> None:
    assert parts_of(job_of(prepared(parts={"a": part.written()}))) == {"a": part}


def test_what_says_nothing_is_not_written() -> None:
    assert Part().written() == {"state": OPEN}


def test_of_a_run_that_is_not_prepared_yet_all_branches_are_open() -> None:
    assert parts_of(job_of(prepared(run=1, parts={"a": FULL.written()}))) == {"a": Part()}
    assert parts_of(job_of(held_record())) == {}
