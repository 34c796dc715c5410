"""Workflows as somebody else might declare them, beside the one that ships: a folder each, and no other edit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.aws.uses import VARIABLE
from tests.e2e.target import ROOT, LocalStack, Target
from tests.e2e.test_ops import ops
from tests.e2e.test_workflows import REFUSED, about, calls_of, document, executions

pytestmark = pytest.mark.local_only

FIVE = ["summarize-document", "extract-entities", "classify-document", "score-sentiment", "flag-compliance"]
PAGES, PAGE_BYTES = 40, 10_000
DECLARED: dict[str, dict[str, Any]] = {
    "three_of_five": {"stages": [FIVE], "partial": {"quorum": 3}},
    "what_there_is": {"stages": [FIVE], "partial": "best_effort"},
    "forty_pages": {"stages": [[{"name": f"page-{n}", "task": "write-page"} for n in range(PAGES)]]},
    "briefing": {
        "stages": [
            {"name": "extract", "task": "summarize-document"},
            [
                {"name": "mood", "task": "score-sentiment", "input": {"text": "/parts/extract/summary"}},
                {"name": "kind", "task": "classify-document", "may_fail": True},
            ],
            {"task": "write-briefing", "input": {"parts": "/parts"}},
        ],
        "result": "last",
    },
}
TASKS = {
    "write_page": f'return {{"page": "x" * {PAGE_BYTES}}}',
    "write_briefing": 'return {"of": sorted(task_input["parts"])}',
}
FOLDERS = ("infra", "lambdas", "local")


@pytest.fixture(scope="module")
def custom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """What this repository is with these workflows and tasks. What its roles may do beyond is no permission of ours."""
    home = tmp_path_factory.mktemp("home")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, home / name)
    for name in ("app.py", "cdk.json"):
        shutil.copy2(ROOT / name, home)
    for name, declaration in DECLARED.items():
        _declare(home / "lambdas" / "workflows" / name, declaration)
    for name, body in TASKS.items():
        _write_task(home / "lambdas" / "tasks" / name, body)
    unseen = {name: value for name, value in os.environ.items() if name != VARIABLE}
    local = LocalStack(home=home, environment=unseen)
    try:
        yield local.ready()
    finally:
        local.end()


def _declare(place: Path, declaration: dict[str, Any]) -> None:
    place.mkdir()
    (place / "workflow.json").write_text(json.dumps({"description": "of a test", **declaration}), "utf-8")
    shutil.copy2(ROOT / "lambdas" / "workflows" / "analyze_document" / "schema.json", place)


def _write_task(place: Path, body: str) -> None:
    place.mkdir()
    (place / "schema.json").write_text('{"input": {"type": "object"}, "output": {"type": "object"}}', "utf-8")
    (place / "task.py").write_text(
        f'from lambdas.core.tasks import task\n\n\n@task("{place.name.replace("_", "-")}")\n'
        f"def run(task_input, ctx):\n    {body}\n",
        "utf-8",
    )
    (place / "__init__.py").touch()


def done(custom: Target, type_: str, nonce: str, *failing: str) -> dict[str, Any]:
    """The job, when it is over: the model refuses these branches for good."""
    custom.script(*({"match": about(nonce, name), "error": REFUSED} for name in failing))
    return custom.final(custom.submit(type_, {"text": document(nonce)}))


def result(custom: Target, job: dict[str, Any]) -> Any:
    return custom.get(f"/jobs/{job['job_id']}/result").json()


def test_a_quorum_is_enough_and_what_is_missing_is_told_everywhere(custom: Target, nonce: str) -> None:
    with custom.subscribed as subscription:
        job = done(custom, "three-of-five", nonce, *FIVE[:2])
        job_id = job["job_id"]
        (event, *_) = subscription.events(lambda found: any(one["run_id"] == job_id for one in found))
    assert (job["status"], job["partial"], job["progress"]["failed"]) == ("COMPLETED", True, sorted(FIVE[:2]))
    found = result(custom, job)
    assert (found["complete"], sorted(found["parts"])) == (False, sorted(FIVE[2:]))
    assert [(one["part"], one["code"]) for one in found["missing"]] == [(name, "MODEL_PERMANENT") for name in FIVE[:2]]
    assert all(one["message"] for one in found["missing"])
    assert custom.record(job_id)["partial"] == {"BOOL": True}
    assert event["payload"]["partial"] is True
    assert "COMPLETED (partial)" in ops(custom, "status", job_id).stdout


def test_below_its_quorum_a_job_fails(custom: Target, nonce: str) -> None:
    job = done(custom, "three-of-five", nonce, *FIVE[:3])
    assert (job["status"], job["error"]["code"]) == ("FAILED", "PARTS_MISSING")
    assert "partial" not in job


def test_a_quorum_that_is_whole_is_not_called_partial(custom: Target, nonce: str) -> None:
    job = done(custom, "three-of-five", nonce)
    assert "partial" not in job
    assert result(custom, job)["complete"] is True


def test_the_best_effort_takes_one_part_but_not_none(custom: Target, nonce: str) -> None:
    job = done(custom, "what-there-is", nonce, *FIVE[1:])
    assert (job["status"], job["partial"]) == ("COMPLETED", True)
    assert list(result(custom, job)["parts"]) == FIVE[:1]
    nothing = done(custom, "what-there-is", f"{nonce}0", *FIVE)
    assert (nothing["status"], nothing["error"]["code"]) == ("FAILED", "PARTS_MISSING")


def test_forty_parts_of_10_kb_pass_256_kb_since_only_the_jobs_name_goes_from_state_to_state(custom: Target) -> None:
    job = custom.final(custom.submit("forty-pages", {"text": "x"}))
    assert job["status"] == "COMPLETED", job
    assert job["result_bytes"] > PAGES * PAGE_BYTES > 256 * 1024
    assert {len(part["page"]) for part in result(custom, job)["parts"].values()} == {PAGE_BYTES}
    (execution,) = executions(custom, job["job_id"])
    assert execution["transitions"] == PAGES + 3
    assert set(calls_of(custom, execution)) == {f"page-{n}" for n in range(PAGES)} | {"collect"}
    history = custom.control("POST", "executions/history", {"name": execution["name"]})["events"]
    entered = [event["stateEnteredEventDetails"]["input"] for event in history if "stateEnteredEventDetails" in event]
    assert set(entered) == {execution["input"]}


def test_a_pipeline_hands_on_what_its_stages_made_and_its_last_one_makes_the_result(custom: Target, nonce: str) -> None:
    told = {"summary": f"Of {nonce[::-1]} nothing is known.", "key_points": []}
    custom.script({"match": about(nonce, "summarize-document"), "answer": told})
    job = custom.final(custom.submit("briefing", {"text": document(nonce)}))
    assert (job["status"], result(custom, job)) == ("COMPLETED", {"of": ["extract", "kind", "mood"]})
    events = custom.get(f"/jobs/{job['job_id']}/events").json()["events"]
    order = [event["note"] for event in events if event["what"] == "branch_done"]
    assert (order[0], sorted(order[1:3]), order[3:]) == ("extract", ["kind", "mood"], ["write-briefing"])
    assert (len(custom.model_calls(nonce)), len(custom.model_calls(nonce[::-1]))) == (2, 1)


def test_a_branch_that_may_fail_is_left_out_of_what_is_handed_on(custom: Target, nonce: str) -> None:
    job = done(custom, "briefing", nonce, "classify-document")
    assert (job["status"], job["partial"]) == ("COMPLETED", True)
    assert result(custom, job) == {"of": ["extract", "mood"]}
