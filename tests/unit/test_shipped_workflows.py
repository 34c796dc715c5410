"""The workflows that ship, and those that the page about them shows: their tasks are there, and get what they take."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.workflow_definition import definition
from lambdas.contracts.validation import compile_schema
from lambdas.contracts.workflows import Branch, Workflow, load, task_types
from lambdas.core.inbox.upload_forms import Counter, offer
from lambdas.core.intake import Accepted, Door, Submission, accept
from lambdas.core.policy import Limits
from lambdas.core.problems import Problem
from lambdas.tasks import job_types
from local import synthesis
from ops.new_task import create
from tests.builders import JOB_ID, NOW
from tests.fakes import FakeJobStore, FakeObjects

ROOT = Path(__file__).resolve().parents[2]
TASKS, WORKFLOWS = ROOT / "lambdas" / "tasks", ROOT / "lambdas" / "workflows"
PAGE = (ROOT / "docs" / "writing-a-workflow.md").read_text("utf-8")
SHIPPED, BROKEN = load()
Schema = Mapping[str, Any]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


# --- what a task takes, and what it is given ---------------------------------------------------------
def schema_of(task: str, side: str) -> Schema:
    found: Schema = json.loads((TASKS / task.replace("-", "_") / "schema.json").read_text("utf-8"))[side]
    return found


def offered(workflow: Workflow, branch: Branch) -> Schema:
    """What the branch gets, as far as the schemas say it."""
    parts = {one.name: schema_of(one.task, "output") for one in workflow.branches}
    document = _object({"input": workflow.input_schema, "parts": _object(parts)})
    if isinstance(branch.input, Mapping):
        return _object({name: _within(document, pointer) for name, pointer in branch.input.items()})
    return _within(document, branch.pointers[0])


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "additionalProperties": False, "required": [*properties], "properties": properties}


def _within(schema: Schema, pointer: str) -> Schema:
    for step in pointer.split("/")[1:]:
        schema = schema["properties"][step]
    return schema


def misfit(given: Schema, taken: Schema, at: str = "") -> str | None:
    """Where something may be given that is not taken; of keywords that are not known here they must be the same."""
    if given.get("type") != taken.get("type"):
        return f"{at or '/'}: {given.get('type')} where {taken.get('type')} is taken"
    if taken.get("type") != "object":
        return next((f"{at}: {key} {taken[key]!r}" for key in taken if not _keeps(given, taken, key)), None)
    unknown = set(given["properties"]) - set(taken["properties"])
    if unknown and taken.get("additionalProperties") is False:
        return f"{at or '/'}: {', '.join(sorted(unknown))} not taken"
    missing = set(taken.get("required", ())) - set(given.get("required", ()))
    if missing:
        return f"{at or '/'}: {', '.join(sorted(missing))} may be missing"
    fields = ((name, one) for name, one in given["properties"].items() if name in taken["properties"])
    return next(filter(None, (misfit(one, taken["properties"][name], f"{at}/{name}") for name, one in fields)), None)


def _keeps(given: Schema, taken: Schema, key: str) -> bool:
    if key == "description":
        return True
    if key.startswith("min"):
        return bool(given.get(key, float("-inf")) >= taken[key])
    if key.startswith("max"):
        return bool(given.get(key, float("inf")) <= taken[key])
    return bool(given.get(key) == taken[key])


@pytest.mark.parametrize(
    ("given", "taken", "told"),
    [
        ({"type": "string"}, {"type": "string", "minLength": 1}, "minLength"),
        ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 8}, "maxLength"),
        ({"type": "string", "minLength": 2, "maxLength": 8}, {"type": "string", "minLength": 1, "maxLength": 8}, None),
        ({"type": "string"}, {"type": "string", "pattern": "a"}, "pattern"),
        ({"type": "array"}, {"type": "string"}, "array where string"),
        (_object({"a": {}}), _object({}), "a not taken"),
        (_object({}), _object({"a": {}}), "a may be missing"),
        (_object({"a": {"type": "string"}}), _object({"a": {"type": "string", "minLength": 1}}), "/a: minLength"),
    ],
)
def test_a_misfit_is_found(given: Schema, taken: Schema, told: str | None) -> None:
    found = misfit(given, taken)
    assert found is None if told is None else told in (found or "")


# --- what ships --------------------------------------------------------------------------------------
def test_no_workflow_that_ships_is_broken() -> None:
    assert BROKEN == {}
    assert SHIPPED.keys() >= {"analyze-document"}


def test_the_five_analyses_run_side_by_side() -> None:
    (stage,) = SHIPPED["analyze-document"].stages
    assert [branch.task for branch in stage] == [
        "summarize-document", "extract-entities", "classify-document", "score-sentiment", "flag-compliance",
    ]  # fmt: skip


@pytest.mark.parametrize("workflow", SHIPPED.values(), ids=SHIPPED.keys())
def test_each_branch_gets_what_its_task_takes(workflow: Workflow) -> None:
    compile_schema(workflow.input_schema)
    assert {branch.task for branch in workflow.branches} <= task_types(TASKS)
    for branch in workflow.branches:
        assert misfit(offered(workflow, branch), schema_of(branch.task, "input")) is None


@pytest.mark.parametrize("folder", [*sorted(WORKFLOWS.iterdir())], ids=lambda folder: folder.name)
def test_a_workflow_is_data_and_no_code(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"workflow.json", "schema.json"}


# --- the door ----------------------------------------------------------------------------------------
def door() -> Door:
    return Door(FakeJobStore(), FakeObjects(), job_types()[0], Limits(), lambda: NOW, lambda: JOB_ID)


def test_a_workflow_is_asked_for_as_any_job_and_its_input_is_checked_at_the_door() -> None:
    body = {"type": "analyze-document", "input": {"text": "Houston, we have had a problem."}}
    assert isinstance(accept(Submission("acme", json.dumps(body).encode()), door()), Accepted)
    for wrong, where in (({}, "/input/text"), ({"text": ""}, "/input/text"), ({"text": "x", "mode": 1}, "/input/mode")):
        refused = accept(Submission("acme", json.dumps({**body, "input": wrong}).encode()), door())
        assert isinstance(refused, Problem)
        assert (refused.status, refused.pointer) == (422, where)


def test_an_upload_can_become_a_workflow() -> None:
    class Forms:
        def form(self, key: str, *_: Any) -> tuple[str, dict[str, str]]:
            return "https://uploads", {"key": key}

    counter = Counter(Forms(), job_types()[0], Limits(), lambda: NOW, lambda: JOB_ID)
    offered_ = offer("acme", b'{"type": "analyze-document", "content_type": "text/plain"}', counter)
    assert not isinstance(offered_, Problem)
    assert offered_["fields"]["key"].startswith("uploads/acme/analyze-document/")


def test_a_document_of_1_1_mb_is_an_input_of_the_workflow_and_of_each_analysis() -> None:
    checks, large = job_types()[0], {"text": "x" * 1_100_000}
    types = ["analyze-document", *(branch.task for branch in SHIPPED["analyze-document"].branches)]
    assert [checks[type_](large) for type_ in types] == [None] * 6


# --- what docs/writing-a-workflow.md shows -------------------------------------------------------------
@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Tasks and workflows as they ship, to be changed."""
    for folder in (TASKS, WORKFLOWS):
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def declare(copy: Path, name: str, declaration: str) -> Workflow:
    place = copy / "workflows" / name
    place.mkdir()
    (place / "workflow.json").write_text(declaration)
    (place / "schema.json").write_text((WORKFLOWS / "analyze_document" / "schema.json").read_text())
    loaded, broken = load(copy / "workflows")
    assert broken == {}
    return loaded[name.replace("_", "-")]


def test_the_page_shows_the_declaration_that_ships() -> None:
    shown = json.loads(blocks("json")[1])
    assert shown == json.loads((WORKFLOWS / "analyze_document" / "workflow.json").read_text("utf-8"))


def test_a_sixth_analysis_is_one_folder_and_one_word(copy: Path) -> None:
    told = section("Adding a sixth analysis")
    (name,) = re.findall(r"^make new-task NAME=([a-z-]+)$", told, flags=re.MULTILINE)
    (diff,) = re.findall(r"^```diff\n(.*?)^```", told, flags=re.DOTALL | re.MULTILINE)
    before = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " -")
    after = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " +")
    place = copy / "workflows" / "analyze_document" / "workflow.json"
    declared = place.read_text()
    assert declared.count(before) == 1

    place.write_text(declared.replace(before, after))
    assert f"make new-task NAME={name}" in load(copy / "workflows")[1]["analyze-document"]
    create(name, copy / "tasks")

    loaded, broken = load(copy / "workflows")
    assert broken == {}
    workflow = loaded["analyze-document"]
    assert [branch.task for branch in workflow.branches][5:] == [name]
    new = json.loads((copy / "tasks" / name.replace("-", "_") / "schema.json").read_text())
    assert misfit(offered_to_first(workflow), new["input"]) is None
    asl = definition(workflow, branch_arn="b", collect_arn="c", branch_timeout_s=300, collect_timeout_s=60)
    assert json.dumps(asl).count(f'"branch": "{name}"') == 1
    checks, wrong = job_types(copy / "tasks", copy / "workflows")
    assert wrong == {}
    assert checks.keys() >= {name, "analyze-document"}


def offered_to_first(workflow: Workflow) -> Schema:
    """What a branch gets that names no input."""
    return _within(_object({"input": workflow.input_schema}), "/input")


def test_the_pipeline_of_the_page_gives_each_stage_what_its_task_takes(copy: Path) -> None:
    workflow = declare(copy, "answer_document", blocks("json")[2])
    assert [[branch.name for branch in stage] for stage in workflow.stages] == [["extract"], ["analyze"], ["summarize"]]
    assert workflow.result == "last"
    assert [misfit(offered(workflow, one), schema_of(one.task, "input")) for one in workflow.branches] == [None] * 3
    asl = definition(workflow, branch_arn="b", collect_arn="c", branch_timeout_s=300, collect_timeout_s=60)
    assert {state["Type"] for state in asl["States"].values()} == {"Task"}


def test_the_collector_of_the_page_gets_the_parts_that_there_are(copy: Path) -> None:
    create("write-briefing", copy / "tasks")
    workflow = declare(copy, "brief_document", blocks("json")[3])
    assert workflow.reads("write-briefing") == ("summarize-document", "flag-compliance")
    assert workflow.branch("write-briefing").needs == ()
    assert (workflow.partial, workflow.result) == ("best_effort", "last")


def test_a_changed_declaration_is_a_changed_template_to_the_local_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("infra", "lambdas/contracts", "lambdas/tasks", "lambdas/workflows/one"):
        (tmp_path / folder).mkdir(parents=True)
    declaration = tmp_path / "lambdas" / "workflows" / "one" / "workflow.json"
    monkeypatch.setattr(synthesis, "REPOSITORY", tmp_path)
    seen = set()
    for text in ("{}", "[]", "{}"):
        declaration.write_text(text)
        seen.add(synthesis._fingerprint({}))
    assert len(seen) == 2


def test_the_page_names_every_field_of_a_declaration() -> None:
    told = set(re.findall(r"^\| `([a-z_]+)` \|", section("workflow.json"), flags=re.MULTILINE))
    assert told == {"description", "stages", "partial", "result", "timeout_s", "max_runs"} | {
        "task", "name", "input", "may_fail",
    }  # fmt: skip
