"""The sweep and executions: nobody is reaped or failed whose execution runs; what is over is found out (row 15)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.contracts.workflows import Workflow
from lambdas.core import ids, times
from lambdas.core.job import from_record
from lambdas.core.policy import SKEW_S, Limits
from lambdas.core.ports import Message
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import COUNTS, Stuck
from lambdas.core.workflows.changes import LEASE_MARGIN_S
from lambdas.core.workflows.ports import EndedBadly, Execution, Running, Succeeded
from tests.builders import JOB_ID, TENANT, any_record, final_record, later
from tests.fakes import FakeClock, FakeJobStore, FakeOutbox, FakeQueue, FakeTurn, FakeWorkers, Notices, Trouble
from tests.fakes_workflows import FakeExecutions, any_workflow, machines, name_of, parts, workflow_record

MAX_TRIES = 5
KEY = ids.run_result_key(TENANT, JOB_ID, 0, "{}")
DONE = Succeeded(json.dumps({"status": "COMPLETED", "result_key": KEY, "result_bytes": 7, "partial": True}))
SHORT = Succeeded(json.dumps({"status": "FAILED", "error": {"code": "PARTS_MISSING", "message": "flags"}}))
ENDS: list[Execution] = [DONE, SHORT, EndedBadly("failed"), EndedBadly("timed out"), EndedBadly("aborted")]


class World:
    """One job, found due, and what Step Functions knows of it."""

    def __init__(self, record: dict[str, Any], found: Execution | None = None, *workflows: Workflow) -> None:
        self.store, self.outbox = FakeJobStore({"due_shard": ids.due_shard(JOB_ID), **record}), FakeOutbox()
        self.notices, self.clock = Notices(), FakeClock()
        self.executions = FakeExecutions(now=self.clock)
        if found is not None:
            self.executions.standing[name_of(run=record["run"])] = found
        self.workflows = workflows or (any_workflow(),)

    def sweep(self, *, dry_run: bool = False) -> dict[str, int]:
        """What was counted besides `due`."""
        self.report = Report("sweep-1", "stuck", dry_run)
        part = Stuck(
            store=self.store,
            outbox=self.outbox,
            queue=FakeQueue(0),
            limits=Limits(),
            now=self.clock,
            max_tries=lambda job: MAX_TRIES,
            notice=self.notices,
            workers=FakeWorkers(),
            machines=machines(self.executions, *self.workflows),
        )
        assert part.run(self.report, FakeTurn())
        told = {name: self.report.counts[name] for name in COUNTS if name != "oldest_s" and self.report.counts[name]}
        told.pop("due", None)
        return told

    @property
    def record(self) -> dict[str, Any]:
        return self.store.records[JOB_ID]

    @property
    def asked(self) -> list[str]:
        return self.executions.called("describe")


def lapsed(*states: str, **over: Any) -> dict[str, Any]:
    """Its lease is over, and its sweep due."""
    return workflow_record(*states, **{"lease_until": later(-1), "due_at": later(-1), **over})


def waiting(**over: Any) -> dict[str, Any]:
    """Prepared once, PENDING since, and used up."""
    told = {"type": "analyze", "parts": parts("done"), "parts_run": 0, "due_at": later(-1), "attempt": 1, "tries": 5}
    return any_record(**{**told, **over})


def sent(messages: list[Message]) -> list[tuple[str, int]]:
    return [(json.loads(one.body)["run_id"], one.delay_s) for one in messages]


# --- it runs -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "over", [{}, {"tries": MAX_TRIES}, {"deadline_at": later(-1)}], ids=["lapsed", "used up", "past its deadline"]
)
def test_n9_a_job_whose_execution_runs_is_neither_reaped_nor_failed(over: dict[str, Any]) -> None:
    world = World(lapsed("done", **over), Running(later(-200)))
    assert world.sweep() == {"described": 1, "extended": 1}
    assert (world.record["status"], world.record["crashes"], world.record["claim_id"]) == (
        PROCESSING, 0, "claim-of-the-holder",
    )  # fmt: skip
    assert world.record["lease_until"] == times.text(later(1_800 - 200 + LEASE_MARGIN_S))
    assert world.record["due_at"] == min(world.record["lease_until"], world.record["deadline_at"])
    assert world.asked == [name_of()[1]]
    assert (world.outbox.order, world.report.found) == ([], 1)


def test_an_execution_that_outlives_its_timeout_gets_a_margin_and_no_lease_in_the_past() -> None:
    world = World(lapsed(), Running(later(-100_000)))
    assert world.sweep()["extended"] == 1
    assert world.record["lease_until"] == times.text(later(LEASE_MARGIN_S))


def test_a_job_that_waits_and_is_used_up_is_left_to_the_execution_that_runs_for_it() -> None:
    """It was taken back by mistake, or its start was not heard of: its collector completes it all the same."""
    world = World(waiting(), Running(later(-5)))
    before = dict(world.record)
    assert world.sweep() == {"described": 1, "left": 1}
    assert world.record == before


def test_a_job_that_was_claimed_meanwhile_keeps_its_lease() -> None:
    world = World(lapsed(), Running(later(-5)))
    again = workflow_record(attempt=2, lease_until=later(120), due_at=later(-1))
    world.executions.before = lambda name: world.store.records.update({JOB_ID: again})
    assert world.sweep() == {"described": 1}
    assert world.record == again


# --- it is over --------------------------------------------------------------------------------------
@pytest.mark.parametrize("record", [lapsed("done", "done"), waiting()], ids=["held", "waiting"])
def test_a_job_whose_execution_has_succeeded_is_completed_from_its_output(record: dict[str, Any]) -> None:
    world = World(record, DONE)
    assert world.sweep() == {"described": 1, "collected": 1}
    assert (world.record["status"], world.record["result_bytes"], world.record["partial"]) == (COMPLETED, 7, True)
    assert world.record["result_key"] == KEY
    assert world.report.ids == [JOB_ID]
    assert world.notices.of("collected")["job"].status == COMPLETED


@pytest.mark.parametrize("record", [lapsed("done", "done"), waiting()], ids=["held", "waiting"])
def test_a_job_whose_execution_has_fallen_short_fails_and_keeps_its_parts(record: dict[str, Any]) -> None:
    world = World(record, SHORT)
    assert world.sweep() == {"described": 1, "given_up": 1}
    assert (world.record["status"], world.record["error"]["code"]) == (FAILED, "PARTS_MISSING")
    assert world.record["parts"] == record["parts"]
    assert world.report.found == 0


@pytest.mark.parametrize("how", ["failed", "timed out", "aborted"])
def test_a_job_whose_execution_ended_badly_runs_again_and_its_message_is_sent_in_the_same_sweep(how: Any) -> None:
    world = World(lapsed("done", "again"), EndedBadly(how))
    assert world.sweep() == {"described": 1, "run_again": 1}
    assert (world.record["status"], world.record["run"], world.record["runs"]) == (PENDING, 1, 1)
    wait_s = (times.instant(world.record["not_before"]) - world.clock()).total_seconds()
    assert [(job, delay_s + SKEW_S >= wait_s) for job, delay_s in sent(world.outbox.work)] == [(JOB_ID, True)]
    assert world.report.ids == [JOB_ID]


def test_the_last_execution_that_ends_badly_is_the_end_of_its_job() -> None:
    world = World(lapsed("again", run=1, runs=1), EndedBadly("timed out", "States.Timeout"))
    assert world.sweep() == {"described": 1, "given_up": 1}
    assert (world.record["status"], world.record["error"]["code"]) == (FAILED, "EXECUTION_TIMED_OUT")
    assert (world.outbox.order, world.report.found) == ([], 0)
    world.clock.advance(200)
    assert world.sweep() == {"handed_over": 1}
    assert world.outbox.order == ["letter", "event"]


def test_a_job_that_waits_for_no_execution_ends_as_every_other() -> None:
    world = World(waiting(), EndedBadly("aborted"))
    assert world.sweep() == {"described": 1, "expired": 1}
    assert world.record["error"]["code"] == "ATTEMPTS_EXHAUSTED"


@pytest.mark.parametrize("found", ENDS)
def test_what_somebody_else_has_written_meanwhile_stays(found: Execution) -> None:
    world = World(lapsed(), found)
    ended = final_record(CANCELLED, type="analyze", due_at=later(-1))
    world.executions.before = lambda name: world.store.records.update({JOB_ID: ended})
    assert world.sweep() == {"described": 1}
    assert (world.record, world.outbox.order, world.report.found) == (ended, [], 0)


# --- there is none -----------------------------------------------------------------------------------
def test_a_job_that_was_prepared_and_never_started_is_reaped_as_every_other() -> None:
    world = World(lapsed())
    assert world.sweep() == {"described": 1, "reaped": 1}
    assert (world.record["status"], world.record["crashes"]) == (PENDING, 1)
    assert sent(world.outbox.work) == [(JOB_ID, 0)]


def test_a_job_of_which_nothing_was_ever_started_fails_without_a_question_more() -> None:
    world = World(lapsed(parts=None, parts_run=None, tries=MAX_TRIES))
    assert world.sweep() == {"expired": 1}
    assert world.asked == []


def test_the_execution_of_another_run_is_nobodys_business() -> None:
    """It ended badly, or the job was opened anew: that run is over."""
    world = World(lapsed(run=1, parts_run=0))
    world.executions.standing[name_of(run=0)] = Running(later(-5))
    assert world.sweep() == {"reaped": 1}
    assert world.asked == []


@pytest.mark.parametrize(
    "record",
    [
        lapsed(lease_until=later(60)),
        lapsed(lease_until=later(9_000)),
        waiting(tries=1),
        {**final_record(COMPLETED), "parts": parts("done"), "parts_run": 0, "due_at": times.text(later(-1))},
    ],
    ids=["held", "held for long", "claimable", "final"],
)
def test_nobody_is_asked_about_a_job_that_is_not_taken_for_dead(record: dict[str, Any]) -> None:
    world = World(record, Running(later(-5)))
    world.sweep()
    assert world.asked == []


@pytest.mark.parametrize("deployed", [False, True], ids=["no declaration", "no state machine"])
def test_of_a_workflow_that_is_deployed_no_more_nobody_can_be_asked(deployed: bool) -> None:
    world = World(lapsed(), Running(later(-5)), any_workflow("analyze" if deployed else "another"))
    world.executions.types = ()
    assert world.sweep() == {"reaped": 1, **({"described": 1} if deployed else {})}
    assert world.record["status"] == PENDING


# --- trouble -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("record", [lapsed(), lapsed(tries=MAX_TRIES), waiting()], ids=["lapsed", "used up", "waiting"])
def test_while_step_functions_says_nothing_nothing_is_written(record: dict[str, Any]) -> None:
    world = World(record, EndedBadly("failed"))
    world.executions.troubles.add("describe", Trouble.REFUSED)
    before = dict(world.record)
    assert world.sweep() == {"failed": 1}
    assert world.record == before
    assert (world.report.troubles, world.notices.of("not_swept")["job_id"]) == (1, JOB_ID)


@pytest.mark.parametrize("found", [Running(later(-5)), *ENDS, None])
def test_a_dry_run_says_the_same_and_writes_and_sends_nothing(found: Execution | None) -> None:
    record = lapsed("done")
    really, dry = World(record, found), World(record, found)
    before = dict(dry.record)
    assert dry.sweep(dry_run=True) == really.sweep()
    assert (dry.record, dry.outbox.order, dry.report.found) == (before, [], really.report.found)


@pytest.mark.parametrize("found", [Running(later(-5)), *ENDS, None])
def test_a_lapsed_job_costs_one_question(found: Execution | None) -> None:
    world = World(lapsed("done"), found)
    world.sweep()
    assert [what for what, *_ in world.executions.calls] == ["describe"]
    assert from_record(world.record).is_final or world.record["due_at"] > times.text(world.clock())
