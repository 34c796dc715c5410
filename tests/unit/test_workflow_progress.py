"""How far a workflow is, as its owner sees it; and that a result without all parts never passes for a whole one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from lambdas.core import times, views
from lambdas.core.changes import cancel, expire, reopen
from lambdas.core.job import UnreadableRecord, from_record
from lambdas.core.policy import Limits
from lambdas.core.routing import event
from lambdas.core.streaming.reading import Place, look, shown
from lambdas.core.webhooks.planning import body_of
from lambdas.core.workflows import changes, progress
from lambdas.core.workflows.progress import is_under_way, progress_of
from tests.builders import JOB_ID, NOW, any_job, final_record, later
from tests.fakes import FakeChunks
from tests.fakes_workflows import BRANCHES, parts, workflow_record
from tests.unit.test_views import _contract

LIMITS = Limits()
WHY = {"code": "EXECUTION_FAILED", "message": "run 0 failed"}
OVER = {"status": FAILED, "finished_at": NOW}


def shown_of(record: dict[str, Any]) -> Any:
    found = views.job(from_record(record))
    assert _contract("Job")(found) is None
    return found.get("progress")


# --- which branches ----------------------------------------------------------------------------------
def test_branches_are_told_by_name_in_their_order() -> None:
    record = workflow_record("done", "failed", "again")
    assert shown_of(record) == {"done": ["summary"], "failed": ["entities"], "total": 3}
    assert shown_of(workflow_record("done", "done", "done")) == {
        "done": ["entities", "flags", "summary"], "failed": [], "total": 3,
    }  # fmt: skip


def test_a_job_that_is_no_workflows_or_has_not_begun_says_nothing() -> None:
    assert "progress" not in views.job(any_job())
    assert progress_of(any_job(parts={}, parts_run=0)) is None


def test_a_run_that_is_not_prepared_yet_has_done_nothing() -> None:
    record = workflow_record("done", "done", run=1, parts_run=0, status=PENDING)
    assert shown_of(record) == {"done": [], "failed": [], "total": 3}
    assert not is_under_way(from_record(record))


def ended_by(end: str, record: dict[str, Any]) -> dict[str, Any]:
    job = from_record(record)
    change = {
        "cancel": lambda: cancel(job, now=NOW, limits=LIMITS),
        "expire": lambda: expire(job, now=NOW, max_tries=5, limits=LIMITS),
        "fall_short": lambda: changes.fall_short(job, now=NOW, why=WHY, limits=LIMITS),
        "give_up": lambda: changes.give_up(job, now=NOW, why=WHY, limits=LIMITS),
        "collect": lambda: changes.collect(job, now=NOW, key="k", result_bytes=9, partial=True, limits=LIMITS),
    }[end]()
    return change.applied_to(record)


@pytest.mark.parametrize("end", ["cancel", "fall_short", "give_up"])
def test_what_was_done_when_a_job_ended_is_told_of_it(end: str) -> None:
    over = ended_by(end, workflow_record("done", "failed", "done"))
    assert shown_of(over) == {"done": ["flags", "summary"], "failed": ["entities"], "total": 3}
    assert not is_under_way(from_record(over))


@pytest.mark.parametrize("end", ["collect", "expire", "fall_short", "give_up"])
@pytest.mark.parametrize("left", ["again", "open"])
def test_a_branch_that_was_not_done_when_its_job_ended_has_failed(end: str, left: str) -> None:
    record = workflow_record("done", left, "done")
    if left == "open":
        record["parts"]["entities"] = {"state": "open"}  # nobody has written anything of it
    over = ended_by(end, record)
    assert shown_of(over) == {"done": ["flags", "summary"], "failed": ["entities"], "total": 3}
    told = views.timeline(from_record(over))
    assert _contract("Timeline")(told) is None
    (line,) = [one for one in told["events"] if one.get("note") == "entities"]
    when, why = (later(1), {"error": {"code": "MODEL_PERMANENT", "message": "no"}}) if left == "again" else (NOW, {})
    assert line == {"at": times.text(when), "what": "branch_failed", "attempt": 1, "note": "entities", **why}


@pytest.mark.parametrize("left", ["again", "open"])
def test_a_branch_of_a_cancelled_job_was_left_and_has_not_failed(left: str) -> None:
    over = ended_by("cancel", workflow_record("done", left, "done"))
    assert shown_of(over) == {"done": ["flags", "summary"], "failed": [], "total": 3}
    assert "branch_failed" not in [line["what"] for line in progress.lines(from_record(over))]


def test_of_an_older_opening_nothing_is_told_as_done() -> None:
    record = workflow_record("done", run=3, parts_run=0, runs=0, **OVER)
    assert shown_of(record) == {"done": [], "failed": sorted(BRANCHES), "total": 3}


def test_forty_branches_are_forty_names() -> None:
    branches = tuple(f"{n:02d}-" + "x" * 37 for n in range(40))
    record = workflow_record(parts=parts(*["done"] * 40, branches=branches))
    assert shown_of(record) == {"done": list(branches), "failed": [], "total": 40}


@pytest.mark.parametrize(
    "part", ["done", {}, {"state": 1}, {"state": "done", "at": "yesterday"}, {"state": "done", "at": 7}]
)
def test_a_branch_that_nobody_can_read_makes_the_record_unreadable(part: Any) -> None:
    """Whoever shows it would fail, and a whole list with it."""
    with pytest.raises(UnreadableRecord):
        from_record(workflow_record(parts={"summary": part}))


# --- its timeline ------------------------------------------------------------------------------------
def test_the_timeline_has_what_each_branch_has_come_to() -> None:
    told = views.timeline(from_record(workflow_record("done", "failed", "again", claimed_at=None)))
    assert _contract("Timeline")(told) is None
    why = {"code": "MODEL_PERMANENT", "message": "no"}
    assert told["events"][1:] == [
        {"at": times.text(later(0)), "what": "branch_done", "attempt": 1, "note": "summary"},
        {"at": times.text(later(1)), "what": "branch_failed", "attempt": 1, "note": "entities", "error": why},
        {"at": times.text(later(2)), "what": "branch_retried", "attempt": 1, "note": "flags", "error": why},
    ]


def test_lines_of_branches_stand_between_the_others_by_their_time() -> None:
    history = [
        {"at": times.text(later(s)), "what": what, "attempt": 1} for s, what in ((-9, "accepted"), (60, "completed"))
    ]
    record = final_record(COMPLETED, parts=parts("done", "done", branches=BRANCHES[:2]), parts_run=0, history=history)
    events = views.timeline(from_record(record))["events"]
    assert [one["what"] for one in events] == ["accepted", "branch_done", "branch_done", "completed"]


def test_a_branch_that_nobody_has_begun_has_no_line() -> None:
    assert progress.lines(from_record(workflow_record())) == []
    assert progress.lines(from_record(workflow_record(parts={"a": {"state": "done"}}))) == []


# --- without all parts -------------------------------------------------------------------------------
def completed(*, partial: bool) -> dict[str, Any]:
    record = workflow_record("done", "failed", "done")
    change = changes.collect(
        from_record(record), now=NOW, key="k", result_bytes=9, partial=partial, limits=LIMITS
    )  # fmt: skip
    return change.applied_to(record)


@pytest.mark.parametrize("partial", [True, False])
def test_a_result_without_all_parts_is_said_to_be_one_wherever_its_end_is_told(partial: bool) -> None:
    job = from_record(completed(partial=partial))
    told = event(job, NOW)
    envelope = json.loads(told.body)
    said = [
        views.job(job).get("partial"),
        envelope["payload"].get("partial"),
        json.loads(body_of(envelope))["payload"].get("partial"),
        any("without all parts" in line.get("note", "") for line in views.timeline(job)["events"]) or None,
    ]
    assert said == [True if partial else None] * 4
    assert told.attributes.get("partial") == ("true" if partial else None)
    assert _contract("Job")(views.job(job)) is None


def test_a_job_that_is_opened_again_is_partial_no_more() -> None:
    record = {**completed(partial=True), "status": FAILED}
    assert "partial" not in views.job(
        from_record(reopen(from_record(record), now=NOW, limits=LIMITS).applied_to(record))
    )


# --- for who polls -----------------------------------------------------------------------------------
def test_who_polls_for_text_is_told_how_far_a_workflow_is() -> None:
    found = look(from_record(workflow_record("done")), Place(), FakeChunks())
    told = shown(found)  # type: ignore[arg-type]
    assert told["progress"] == {"done": ["summary"], "failed": [], "total": 3}
    assert _contract("Chunks")(told) is None
    plain = shown(look(any_job(), Place(), FakeChunks()))  # type: ignore[arg-type]
    assert "progress" not in plain
    assert plain["job_id"] == JOB_ID
