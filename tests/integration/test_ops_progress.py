"""The operator's command line and workflows: how far they are, and that a result without all parts looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from local.demo import said
from tests.integration.command_line import CommandLine, job, timeline
from tests.integration.scripted_api import ScriptedApi
from tests.integration.streams import polled

COME = {"done": ["entities", "summary", "sentiment"], "failed": ["flags"], "total": 5}
PARTIAL = job(partial=True, progress=COME, handed_over=True)


def test_a_job_says_in_words_how_far_it_is(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs/j1", job(status="PROCESSING", progress={**COME, "failed": []}))
    lines = dict(line.split(None, 1) for line in ops("status", "j1").out.splitlines() if " " in line.strip())
    assert lines["progress"] == "3 of 5 done"
    assert lines["progress.done"] == "entities summary sentiment"
    assert lines["status"] == "PROCESSING"


def test_a_result_without_all_parts_is_never_shown_as_a_whole_one(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs/j1", PARTIAL)
    api.on("GET /jobs", {"jobs": [PARTIAL, job("j2")]})
    api.on("GET /jobs/j1/events", timeline("COMPLETED", "accepted", "handed_over"))
    shown = ops("status", "j1").out
    assert "COMPLETED (partial)" in shown
    assert "3 of 5 done, 1 failed: flags" in shown
    _, one, two = ops("list").out.splitlines()
    assert ("COMPLETED (partial)" in one, "partial" in two) == (True, False)
    assert "COMPLETED (partial)" in ops("follow", "j1").err
    assert ops("status", "j1", "--json").json() == PARTIAL


def test_the_timeline_names_each_branch_and_why_it_failed(api: ScriptedApi, ops: CommandLine) -> None:
    told = timeline("COMPLETED", "branch_done", "branch_failed", "handed_over")
    why = {"code": "MODEL_PERMANENT", "message": "no"}
    told["events"][0]["note"], told["events"][1] = "summary", {**told["events"][1], "note": "flags", "error": why}
    api.on("GET /jobs/j1/events", told)
    api.on("GET /jobs/j1", PARTIAL)
    one, two, _ = ops("follow", "j1").out.splitlines()
    assert one.split()[1:] == ["branch_done", "1", "summary"]
    assert two.split()[1:] == ["branch_failed", "1", "flags", "MODEL_PERMANENT:", "no"]


@pytest.mark.parametrize(("missing", "words"), [(["flags", "tone"], "partial: without flags, tone"), ([], "COMPLETED")])
def test_the_demo_says_what_a_result_lacks(missing: list[str], words: str) -> None:
    told = said({"step": "completed", "cost_micros": 7, "missing": missing})
    assert words in told
    assert ("partial" in told) == bool(missing)


@pytest.mark.parametrize("as_json", [False, True])
def test_who_watches_a_workflow_sees_its_steps(api: ScriptedApi, ops: CommandLine, as_json: bool) -> None:
    def come(*done: str) -> dict[str, Any]:
        return {**polled(), "progress": {"done": list(done), "failed": [], "total": 2}}

    api.on("GET /jobs/j1/chunks", come(), come("a"), polled(is_final=True))
    api.on("GET /jobs/j1", PARTIAL)
    api.on("GET /jobs/j1/result", {})
    ended = ops("watch", "j1", *(["--json"] if as_json else []))
    assert ended.code == 0
    if not as_json:
        assert [line for line in ended.err.splitlines() if "done" in line] == ["0 of 2 done", "1 of 2 done"]
        return
    assert [line["event"] for line in ended.lines()] == ["progress", "progress", "final"]
    assert ended.lines()[1] == {"event": "progress", "attempt": 1, "done": ["a"], "failed": [], "total": 2}
