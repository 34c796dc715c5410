"""A job that is cancelled while its workflow runs: its execution is stopped before anybody hears of it (row 10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING
from lambdas.core import changes, ids
from lambdas.core.dispatching import Sent, dispatch
from lambdas.core.job import from_record
from lambdas.core.policy import Limits
from lambdas.core.routing import route
from lambdas.core.workflows.ports import EndedBadly, Running, Succeeded
from tests.builders import FINALS, JOB_ID, NOW, final_job, final_record, handed_over, later
from tests.fakes import FakeJobStore, FakeOutbox, Notices, Trouble
from tests.fakes_workflows import FakeExecutions, name_of, parts, workflow_record

LIMITS = Limits()


def cancelled(pk: str = JOB_ID, **over: Any) -> dict[str, Any]:
    record = workflow_record("done", pk=pk, **over)
    return changes.cancel(from_record(record), now=NOW, limits=LIMITS).applied_to(record)


class World:
    """Records whose images the dispatcher gets, and an execution that runs for each."""

    def __init__(self, *records: dict[str, Any]) -> None:
        self.outbox, self.notices = FakeOutbox(), Notices()
        self.store = FakeJobStore(*records, before=self.outbox.order.append)
        self.executions = FakeExecutions(before=self.outbox.order.append)
        for record in records:
            self.executions.standing[record["type"], self.name(record)] = Running(later(-60))

    @staticmethod
    def name(record: dict[str, Any]) -> str:
        return ids.execution_name(record["pk"], record["run"])

    def dispatch(self, *images: dict[str, Any]) -> Sent:
        return dispatch(
            [from_record(image) for image in images or self.store.records.values()],
            now=NOW,
            outbox=self.outbox,
            store=self.store,
            executions=self.executions,
            notice=self.notices,
        )


def test_the_execution_is_stopped_before_the_end_is_published_and_marked() -> None:
    world = World(cancelled())
    assert world.dispatch().failed == set()
    assert world.outbox.order == ["stop", "event", "hand_over"]
    assert world.executions.standing[name_of()] == EndedBadly("aborted")
    assert world.notices.of("stopped")["run"] == 0


def test_while_it_cannot_be_stopped_nobody_is_told_and_the_record_comes_again() -> None:
    world = World(cancelled())
    world.executions.troubles.add("stop", Trouble.REFUSED)
    assert world.dispatch().failed == {0}
    assert world.outbox.order == ["stop"]
    assert "due_shard" in world.store.records[JOB_ID]
    assert world.notices.steps == ["not_stopped", "not_sent"]
    assert world.dispatch().failed == set()
    assert world.outbox.order == ["stop", "stop", "event", "hand_over"]


@pytest.mark.parametrize("found", [None, Succeeded("{}"), EndedBadly("failed")])
def test_what_is_not_there_or_over_is_as_good_as_stopped(found: Any) -> None:
    world = World(cancelled())
    world.executions.standing = {name_of(): found} if found else {}
    assert world.dispatch().failed == set()
    assert world.executions.standing.get(name_of()) == found


def test_of_a_workflow_that_is_deployed_no_more_nothing_runs() -> None:
    world = World(cancelled())
    world.executions.types = ()
    assert world.dispatch().failed == set()
    assert world.notices.steps == ["no_state_machine", "handed_over"]


def test_a_stop_that_was_not_heard_of_is_repeated() -> None:
    world = World(cancelled())
    world.executions.troubles.add("stop", Trouble.UNHEARD)
    assert world.dispatch().failed == {0}
    assert world.dispatch().failed == set()


def test_who_cancels_and_opens_it_again_at_once_stops_the_run_that_was_cancelled_and_not_the_next() -> None:
    image = cancelled()
    opened = changes.reopen(from_record(image), now=NOW, limits=LIMITS).applied_to(image)
    world = World(opened)
    world.executions.standing[name_of(run=0)] = Running(later(-60))
    assert world.dispatch(image, opened).failed == set()
    assert world.executions.called("stop") == [name_of(run=0)[1]]
    assert world.executions.standing[name_of(run=1)] == Running(later(-60))
    assert (world.store.records[JOB_ID]["status"], "due_shard" in world.store.records[JOB_ID]) == (PENDING, True)


@pytest.mark.parametrize("over", [{"parts": None, "parts_run": None}, {"run": 1, "parts_run": 0}])
def test_of_a_run_that_was_never_prepared_nothing_was_started(over: dict[str, Any]) -> None:
    """A plain job; one that was cancelled before its turn came, or between two runs."""
    world = World(cancelled(**over))
    assert world.dispatch().failed == set()
    assert world.executions.calls == []


@pytest.mark.parametrize("status", [status for status in FINALS if status != CANCELLED])
def test_no_other_end_stops_anything(status: str) -> None:
    """Its execution told of it, or was asked for before: what it does from now on finds a job that is over."""
    assert route(final_job(status, parts=parts("done"), parts_run=0), NOW).stop == ""


def test_one_that_stays_silent_is_asked_once_for_all_jobs_of_its_type_and_holds_up_no_other() -> None:
    silent = [cancelled(f"{n}") for n in range(3)]
    other = {**cancelled("other"), "type": "review"}
    plain = [final_record(FAILED, pk="failed"), final_record(COMPLETED, pk="completed")]
    world = World(*silent, other, *plain)
    world.executions.troubles.add("stop", Trouble.UNSENT)
    assert world.dispatch().failed == {0, 1, 2}
    assert world.executions.called("stop") == [world.name(silent[0]), world.name(other)]
    assert {json.loads(message.body)["run_id"] for message in world.outbox.events} == {"other", "failed", "completed"}


def test_a_job_that_everybody_has_heard_of_is_routed_as_before() -> None:
    assert route(from_record(handed_over(CANCELLED)), NOW).stop == ""
