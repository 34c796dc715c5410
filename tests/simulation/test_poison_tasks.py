"""What a task may do to its process stays its own affair: it alone fails, and those beside it complete."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from tests.e2e.target import eventually
from tests.simulation.own_tasks import TASKS, LiveStack, Record


def batch(live: LiveStack, nonce: str, way: str, innocents: int = 2) -> tuple[str, list[str]]:
    """A poison job and innocent ones, waiting for the worker in one batch."""
    live.control("POST", "pause", {"function": "worker"})
    poison = live.submit("misbehave", {"how": way, "nonce": nonce})
    innocent = [live.submit("ask", {"prompt": f"{nonce} innocent {number}"}) for number in range(innocents)]
    eventually(live.depth, lambda depth: depth["visible"] == 1 + innocents)
    live.control("DELETE", "invocations")
    return poison, innocent


def resume(live: LiveStack) -> None:
    live.control("POST", "resume", {"function": "worker"})


def ends(live: LiveStack) -> list[dict[str, Any]]:
    """The worker's invocations, as they ended."""
    return [one for one in live.control("GET", "invocations")["invocations"] if one["function"] == "worker"]


def assert_unharmed(live: LiveStack, nonce: str, innocents: Sequence[Record], *, calls_more: int = 0) -> None:
    assert [(job["status"], job.get("sample", 0)) for job in innocents] == [(COMPLETED, 0)] * len(innocents)
    for number in range(len(innocents)):
        assert len(live.model_calls(f"{nonce} innocent {number}")) <= 1 + calls_more


# --- what the worker survives ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("way", "code", "tries"),
    [
        ("exit", "TASK_ERROR", 2),
        ("recurse", "TASK_ERROR", 2),
        ("set", "INVALID_OUTPUT", 1),
        ("bytes", "INVALID_OUTPUT", 1),
        ("nan", "INVALID_OUTPUT", 1),
        ("surrogate", "INVALID_OUTPUT", 1),
        ("huge number", "INVALID_OUTPUT", 1),
        ("circle", "INVALID_OUTPUT", 1),
        ("nothing", "OUTPUT_REJECTED", 2),
        ("unspeakable", "TASK_ERROR", 2),
        ("deadly to print", "TASK_ERROR", 2),
        ("leave the generator", "TASK_ERROR", 2),
        ("interrupt", "TASK_ERROR", 2),
        ("half a letter", "TASK_ERROR", 2),
        ("a long story", "TASK_ERROR", 2),
    ],
)
def test_a_task_that_misbehaves_fails_alone_and_its_worker_lives(
    live: LiveStack, nonce: str, way: str, code: str, tries: int
) -> None:
    poison, innocents = batch(live, nonce, way)
    resume(live)
    job, *others = live.settle(poison, *innocents)
    assert (job["status"], job["error"]["code"], job["tries"], job["crashes"]) == (FAILED, code, tries, 0)
    assert_unharmed(live, nonce, others)
    assert all(end["ok"] and not end["result"]["batchItemFailures"] for end in ends(live))
    letter = live.letter_about(poison)
    assert letter["reason"] == code


@pytest.mark.parametrize("way", ["print garbage", "close stdout"])
def test_a_task_that_spoils_the_log_spoils_nothing_else(live: LiveStack, nonce: str, way: str) -> None:
    poison, innocents = batch(live, nonce, way)
    resume(live)
    job, *others = live.settle(poison, *innocents)
    assert (job["status"], job["tries"], job["crashes"]) == (COMPLETED, 1, 0)
    assert_unharmed(live, nonce, others)


def test_a_result_of_seven_megabytes_is_fetched_from_where_it_lies(live: LiveStack, nonce: str) -> None:
    job_id = live.submit("misbehave", {"how": "seven megabytes", "nonce": nonce})
    (job,) = live.settle(job_id)
    assert job["status"] == COMPLETED
    answer = live.get(f"/jobs/{job_id}/result")
    assert answer.status == 303
    assert len(live.get(answer.headers["location"]).json()["found"]) == 7_000_000


# --- what kills the invocation -----------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["die", "kill", "grow", "hang"])
def test_a_task_that_kills_its_invocation_fails_alone_and_its_batch_mates_complete(
    live: LiveStack, nonce: str, way: str
) -> None:
    poison, innocents = batch(live, nonce, way, innocents=9)
    resume(live)
    job, *others = live.settle(poison, *innocents, hangs=way == "hang")
    assert (job["status"], job["error"]["code"]) == (FAILED, "ATTEMPTS_EXHAUSTED")
    assert (job["tries"], job["crashes"]) in [(2, 1), (2, 2)]
    assert_unharmed(live, nonce, others, calls_more=1)
    assert max(other["tries"] for other in others) <= 2  # once killed beside it, never again: suspects run alone
    assert not [letter for letter in live.letters() if letter.get("job_id") in innocents]
    died = [end for end in ends(live) if not end["ok"]]
    assert len(died) == 2
    if way == "hang":
        assert all(end["timed_out"] for end in died)
    if way == "grow":
        assert all(end["reason"] == "memory" for end in died)


def test_a_thread_that_a_task_leaves_behind_costs_nobody_a_result(live: LiveStack, nonce: str) -> None:
    """Here such an invocation is reported as failed; its messages come again and find their jobs done."""
    poison, innocents = batch(live, nonce, "leave a thread")
    resume(live)
    job, *others = live.settle(poison, *innocents)
    live.leap(12 * 60 + 1)
    eventually(live.depth, lambda depth: sum(depth.values()) == 0)
    assert (job["status"], job["tries"]) == (COMPLETED, 1)
    assert_unharmed(live, nonce, others)
    assert {live.found(one)["attempt"] for one in (poison, *innocents)} == {1}


# --- tasks that are not there (yet) ------------------------------------------------------------------------------
def test_a_job_whose_task_is_not_deployed_yet_waits_and_completes_when_it_is(live: LiveStack) -> None:
    live.control("POST", "pause", {"function": "worker"})
    job_id = live.submit("late", {"polls": 7})
    place = live.code / "lambdas" / "tasks" / "late"
    shutil.rmtree(place)
    try:
        live.reload()
        resume(live)
        (waiting,) = live.pass_time([job_id], lambda record: record.get("waits", 0) >= 3)
        assert (waiting["status"], waiting["tries"], waiting["error"]["code"]) == (PENDING, 0, "UNKNOWN_TYPE")
    finally:
        shutil.copytree(TASKS / "late", place)
        live.reload()
    (job,) = live.settle(job_id)
    assert (job["status"], job["tries"]) == (COMPLETED, 1)


def test_a_folder_that_cannot_be_imported_stops_its_own_jobs_and_no_others(live: LiveStack, nonce: str) -> None:
    broken, sound = live.submit("broken", {"polls": 1}), live.submit("ask", {"prompt": nonce})
    (job,) = live.settle(sound)
    assert job["status"] == COMPLETED
    (waiting,) = live.pass_time([broken], lambda record: record.get("waits", 0) >= 2)
    assert waiting["error"]["code"] == "UNKNOWN_TYPE"
    live.leap(3_600)
    (ended,) = live.settle(broken)
    assert (ended["status"], ended["error"]["code"]) == (FAILED, "DEADLINE_EXCEEDED")
    assert "UNKNOWN_TYPE" in ended["error"]["message"]
