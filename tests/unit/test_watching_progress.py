"""Watching a workflow: how far it is when one begins to watch, each step once, and the end that tells the last."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, PENDING
from lambdas.core.job import from_record
from lambdas.core.watching import frames
from lambdas.core.watching.frames import FRAME_MAX
from lambdas.core.watching.ports import Trouble
from lambdas.core.workflows.progress import Progress
from tests.builders import JOB_ID, final_record
from tests.fakes import Trouble as StoreTrouble
from tests.fakes_workflows import parts, workflow_record
from tests.unit.studio import ANNA, BEN, Studio


@pytest.fixture
def studio() -> Studio:
    studio = Studio()
    studio.connect(ANNA, BEN)
    studio.becomes(workflow_record())
    return studio


def becomes(studio: Studio, *states: str, **over: Any) -> None:
    """The record changes, and the stream tells."""
    studio.becomes(workflow_record(*states, **over))
    studio.push()


def told(studio: Studio, connection: str = ANNA) -> list[tuple[list[str], list[str]]]:
    sent = studio.postman.sent[connection]
    return [(frame["done"], frame["failed"]) for frame in sent if frame["type"] == "progress"]


def test_each_step_is_told_once_to_each_watcher(studio: Studio) -> None:
    for connection in (ANNA, BEN):
        studio.watch(connection)
    becomes(studio, "done")
    becomes(studio, "done")
    becomes(studio, "done", "failed")
    steps: list[tuple[list[str], list[str]]] = [([], []), (["summary"], []), (["summary"], ["entities"])]
    assert told(studio) == told(studio, BEN) == steps
    assert studio.postman.sent[ANNA][-1] == {
        "type": "progress", "job_id": JOB_ID, "attempt": 1, "done": ["summary"], "failed": ["entities"], "total": 3,
    }  # fmt: skip


def test_who_comes_late_is_told_how_far_it_is_and_then_what_comes(studio: Studio) -> None:
    studio.becomes(workflow_record("done", "done"))
    assert [frame["type"] for frame in studio.watch(ANNA)] == ["watching", "progress"]
    studio.push()
    becomes(studio, "done", "done", "done")
    assert [len(done) for done, _ in told(studio)] == [2, 3]


def test_who_watches_again_is_told_again(studio: Studio) -> None:
    studio.becomes(workflow_record("done"))
    assert len(studio.watch(ANNA)) == len(studio.watch(ANNA)) == 2


def test_what_comes_quickly_is_told_in_one(studio: Studio) -> None:
    studio.watch(ANNA)
    becomes(studio, "done", "done", "done")
    assert told(studio) == [([], []), (["entities", "flags", "summary"], [])]


def test_a_branch_that_is_tried_again_is_no_step(studio: Studio) -> None:
    studio.becomes(workflow_record("done"))
    studio.watch(ANNA)
    becomes(studio, "done", "again")
    assert told(studio) == [(["summary"], [])]


def test_a_job_that_is_no_workflow_or_has_not_begun_has_no_progress(studio: Studio) -> None:
    studio.becomes(workflow_record(parts=None, parts_run=None))
    assert [frame["type"] for frame in studio.watch(ANNA)] == ["watching"]


def test_an_end_is_told_without_a_step_before_it(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.ends(parts=parts("done", "done", "failed"), parts_run=0, partial=True)
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "progress", "final"]
    job = studio.postman.sent[ANNA][-1]["job"]
    assert (job["status"], job["partial"]) == (COMPLETED, True)
    assert job["progress"] == {"done": ["entities", "summary"], "failed": ["flags"], "total": 3}
    assert studio.connections.watches == {}


def test_a_new_run_is_told_from_its_beginning(studio: Studio) -> None:
    """Its execution ended badly: nothing is said of branches until the next one is prepared."""
    studio.becomes(workflow_record("done", "done"))
    studio.watch(ANNA)
    becomes(studio, "done", "done", status=PENDING, run=1, parts_run=0)
    becomes(studio, run=1, attempt=2)
    becomes(studio, "done", run=1, attempt=2)
    assert [(frame["type"], frame["attempt"], len(frame.get("done", []))) for frame in studio.postman.sent[ANNA]] == [
        ("watching", 1, 0), ("progress", 1, 2), ("restarted", 2, 0), ("progress", 2, 0), ("progress", 2, 1),
    ]  # fmt: skip
    listener = studio.heard_by(ANNA)
    assert (listener.attempt, listener.settled) == (2, {"summary"})


def test_a_claim_that_takes_over_a_running_execution_tells_where_it_is_under_its_own_attempt(studio: Studio) -> None:
    studio.becomes(workflow_record("done"))
    studio.watch(ANNA)
    becomes(studio, "done", "done", attempt=2)
    assert studio.heard_by(ANNA).settled == {"summary", "entities"}


# --- trouble -----------------------------------------------------------------------------------------
def test_a_step_that_could_not_be_sent_comes_with_the_next_ping(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.postman.outcomes[ANNA].append(Trouble("500"))
    becomes(studio, "done")
    assert told(studio) == [([], [])]
    assert [frame["type"] for frame in studio.say(ANNA, action="ping")] == ["pong", "progress"]
    assert told(studio)[-1] == (["summary"], [])


def test_a_cursor_that_could_not_be_saved_repeats_the_step_and_loses_none(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.connections.troubles.add("tell", StoreTrouble.UNSENT)
    with pytest.raises(Exception, match="tell"):
        becomes(studio, "done")
    studio.push()
    assert told(studio) == [([], []), (["summary"], []), (["summary"], [])]
    assert studio.heard_by(ANNA).settled == {"summary"}


def test_a_watcher_who_is_gone_is_forgotten_and_the_others_are_told(studio: Studio) -> None:
    for connection in (ANNA, BEN):
        studio.watch(connection)
    studio.postman.gone.add(ANNA)
    becomes(studio, "done")
    assert [watch.connection_id for watch in studio.connections.watches.values()] == [BEN]
    assert told(studio, BEN)[-1] == (["summary"], [])


def test_a_push_that_comes_late_tells_no_older_step(studio: Studio) -> None:
    studio.watch(ANNA)
    becomes(studio, "done", "done")
    studio.becomes(workflow_record("done"))  # as a slow push has read it
    studio.push()
    assert [len(done) for done, _ in told(studio)] == [0, 2]


def test_progress_and_text_do_not_move_each_others_cursors(studio: Studio) -> None:
    studio.becomes(workflow_record("done", stream=True))
    studio.stored("a", "b")
    studio.watch(ANNA)
    assert studio.cursor(ANNA) == (1, 2)
    studio.becomes(workflow_record("done", "done", stream=True))
    studio.stored("c")
    studio.push()
    assert studio.cursor(ANNA) == (1, 3)
    assert studio.postman.types(ANNA) == ["watching", "chunks", "progress", "chunks", "progress"]


# --- sizes -------------------------------------------------------------------------------------------
def test_a_frame_of_forty_branches_is_far_below_the_limit() -> None:
    names = tuple(f"{n:02d}-" + "x" * 37 for n in range(40))
    job = from_record(workflow_record(pk="j" * 128))
    assert len(frames.progress(job, Progress(names, (), 40))) < FRAME_MAX // 8


def test_an_end_of_forty_branches_fits_too() -> None:
    names = tuple(f"{n:02d}-" + "x" * 37 for n in range(40))
    job = from_record(final_record(COMPLETED, parts=parts(*["done"] * 40, branches=names), parts_run=0))
    assert all(len(frame) <= FRAME_MAX for frame in frames.ending(job, 0, '"' + "x" * 32_000 + '"', None))
