"""A workflow is data: what its declaration means, and what is said about one that means nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lambdas.contracts.workflows import Branch, Workflow, load, parse

SCHEMA = {"input": {"type": "object", "required": ["text"]}}
FAN_OUT = [["a", "b", "c"]]


def declared(**fields: Any) -> Workflow:
    return parse("review", {"description": "d", "stages": FAN_OUT, **fields}, SCHEMA)


def test_words_are_tasks_that_run_side_by_side_on_the_workflows_own_input() -> None:
    workflow = declared()
    assert workflow.stages == ((Branch("a", "a"), Branch("b", "b"), Branch("c", "c")),)
    assert [branch.name for branch in workflow.branches] == ["a", "b", "c"]
    assert {branch.pointers for branch in workflow.branches} == {("/input",)}
    assert (workflow.type, workflow.partial, workflow.result) == ("review", "all", "parts")
    assert (workflow.timeout_s, workflow.max_runs, workflow.needed) == (1_800, 2, 3)
    assert workflow.input_schema == SCHEMA["input"]


def test_a_pipeline_takes_from_the_stages_before_it() -> None:
    stages = [
        "a",
        {"name": "second", "task": "b", "input": {"text": "/parts/a/text", "language": "/input/language"}},
        [{"task": "c", "input": "/parts/second"}, {"task": "d", "input": {"all": "/parts"}, "may_fail": True}],
        {"name": "last", "task": "e", "input": ""},
    ]
    workflow = declared(stages=stages, result="last", partial="best_effort")
    assert [[branch.name for branch in stage] for stage in workflow.stages] == [["a"], ["second"], ["c", "d"], ["last"]]
    assert workflow.branch("second").needs == ("a",)
    assert [workflow.reads(branch.name) for branch in workflow.branches] == [
        (), ("a",), ("second",), ("a", "second"), ("a", "second", "c", "d"),
    ]  # fmt: skip
    assert workflow.branch("d").needs == ()
    with pytest.raises(KeyError):
        workflow.reads("nobody")
    with pytest.raises(KeyError):
        workflow.branch("nobody")


@pytest.mark.parametrize(
    ("partial", "needed"), [("all", 2), ("best_effort", 1), ({"quorum": 1}, 1), ({"quorum": 2}, 2)], ids=str
)
def test_branches_that_may_fail_are_not_counted(partial: Any, needed: int) -> None:
    workflow = declared(stages=[["a", "b", {"task": "c", "may_fail": True}]], partial=partial)
    assert workflow.counted == ("a", "b")
    assert workflow.needed == needed


def test_one_task_may_stand_in_several_branches_under_names_of_their_own() -> None:
    branches = [{"name": f"b{n}", "task": "a", "input": f"/input/chapters/{n}"} for n in range(40)]
    assert len(declared(stages=[branches]).branches) == 40


LONG = "a" * 41
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no stage": ({"stages": []}, "at least one stage"),
    "stages that are no list": ({"stages": "a"}, "at least one stage"),
    "a stage without a branch": ({"stages": ["a", []]}, "/stages/1 is empty: name its tasks, or remove it"),
    "a branch that is a number": ({"stages": [7]}, "the name of a task, or"),
    "a branch without a task": ({"stages": [{"name": "a"}]}, "the name of a task, or"),
    "a task that is no word": ({"stages": ["Extract Dates"]}, "use its job type"),
    "a branch with an unknown field": ({"stages": [{"task": "a", "retries": 3}]}, "known: name, task, input, may_fail"),
    "two branches of one name": ({"stages": ["a", "a"]}, "two branches are named a: give one another name"),
    "two branches of one name side by side": ({"stages": [["a", "a"]]}, "two branches are named a"),
    "a name that is none": ({"stages": [{"task": "a", "name": "A b"}]}, "give it a `name` of at most 40"),
    "a name that is no text": ({"stages": [{"task": "a", "name": 1}]}, "give it a `name`"),
    "a task whose name is too long for a branch": ({"stages": [LONG]}, "give it a `name` of at most 40"),
    "41 branches": ({"stages": [[{"name": f"b{n}", "task": "a"} for n in range(41)]]}, "at most 40: make two of it"),
    "may_fail that is no truth": ({"stages": [{"task": "a", "may_fail": "yes"}]}, "true or false"),
    "nothing that counts": ({"stages": [{"task": "a", "may_fail": True}]}, "take may_fail from one"),
    "an input that is a number": ({"stages": [{"task": "a", "input": 1}]}, '{"text": "/input/text"}'),
    "an input without fields": ({"stages": [{"task": "a", "input": {}}]}, '{"text": "/input/text"}'),
    "an input of 41 fields": (
        {"stages": [{"task": "a", "input": {f"f{n}": "/input" for n in range(41)}}]},
        '{"text": "/input/text"}',
    ),
    "an input that is no pointer": ({"stages": [{"task": "a", "input": "text"}]}, "write one like /input/text"),
    "an input with half an escape": ({"stages": [{"task": "a", "input": "/input/a~2"}]}, "no JSON pointer"),
    "a field that is no pointer": ({"stages": [{"task": "a", "input": {"n": 5}}]}, "field 'n': 5 is no JSON pointer"),
    "a pointer elsewhere": ({"stages": [{"task": "a", "input": "/inputs"}]}, "must begin with /input or /parts"),
    "a pointer to the empty name": ({"stages": [{"task": "a", "input": "/"}]}, "must begin with /input or /parts"),
    "a pointer to nobody": (
        {"stages": ["a", {"task": "b", "input": "/parts/c"}]},
        "no branch of an earlier stage (a)",
    ),
    "a pointer to itself": ({"stages": [{"task": "a", "input": "/parts/a"}]}, "(none, this is the first)"),
    "a pointer to a neighbour": (
        {"stages": [["a", {"task": "b", "input": {"text": "/parts/a/text"}}]]},
        "no branch of an earlier stage",
    ),
    "a pointer to a later stage": (
        {"stages": [{"task": "b", "input": "/parts/a"}, "a"]},
        "no branch of an earlier stage",
    ),
    "a partial that is none": ({"partial": "some"}, '"all", "best_effort" or {"quorum": 3}'),
    "a partial with more": ({"partial": {"quorum": 1, "of": 3}}, '"all", "best_effort" or'),
    "a quorum of nobody": ({"partial": {"quorum": 0}}, "from 1 to 3 here"),
    "a quorum beyond those that count": ({"partial": {"quorum": 4}}, "from 1 to 3 here"),
    "a quorum that is no number": ({"partial": {"quorum": True}}, "from 1 to 3 here"),
    "a result that is none": ({"result": "first"}, '"parts" or "last"'),
    "a list as the result": ({"result": ["parts"]}, '"parts" or "last"'),
    "a last result of several": ({"result": "last"}, "add a stage with the task that assembles"),
    "a last result that may fail": (
        {"result": "last", "stages": ["a", {"task": "b", "may_fail": True}]},
        "b makes the result",
    ),
    "no time": ({"timeout_s": 59}, "timeout_s must be a whole number from 60 to 86400, not 59"),
    "a time that is no number": ({"timeout_s": "1800"}, "timeout_s must be a whole number"),
    "a time with a fraction": ({"timeout_s": 90.5}, "timeout_s must be a whole number"),
    "no run": ({"max_runs": 0}, "max_runs must be a whole number from 1 to 3, not 0"),
    "runs without end": ({"max_runs": 4}, "max_runs must be a whole number from 1 to 3, not 4"),
    "runs that are a truth": ({"max_runs": True}, "max_runs must be a whole number"),
    "no description": ({"description": " "}, "description must say in one sentence"),
    "a description that is none": ({"description": 1}, "description must say in one sentence"),
    "an unknown field": ({"retry": {}}, "workflow.json: `retry` is not known here; known: description, stages"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_declaration_is_told_what_to_do(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as told:  # noqa: PT011 - what it says is the point
        declared(**fields)
    assert said in str(told.value)


@pytest.mark.parametrize("raw", [[], "a", None], ids=repr)
def test_a_declaration_is_an_object(raw: Any) -> None:
    with pytest.raises(ValueError, match=r"workflow\.json must be an object"):
        parse("review", raw, SCHEMA)


@pytest.mark.parametrize("schema", [None, [], {}, {"input": []}, {"output": {}}], ids=repr)
def test_a_schema_has_an_input(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"schema\.json must be an object with `input`"):
        parse("review", {"description": "d", "stages": FAN_OUT}, schema)


@pytest.mark.parametrize("type_", ["", "Review", "re view", "-a", "a--b", "a" * 65])
def test_a_type_is_words_joined_by_hyphens(type_: str) -> None:
    with pytest.raises(ValueError, match="no job type"):
        parse(type_, {"description": "d", "stages": FAN_OUT}, SCHEMA)


# --- the folder --------------------------------------------------------------------------------------
def put(place: Path, stages: Any, *, schema: str | None = json.dumps(SCHEMA), raw: str | None = None) -> None:
    place.mkdir(parents=True)
    (place / "workflow.json").write_text(raw or json.dumps({"description": "d", "stages": stages}))
    if schema is not None:
        (place / "schema.json").write_text(schema)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of workflows, beside the tasks `known` and `both`."""
    for name in ("known", "both"):
        (tmp_path / "tasks" / name).mkdir(parents=True)
        (tmp_path / "tasks" / name / "task.py").touch()
    (tmp_path / "tasks" / "notes").mkdir()
    put(tmp_path / "workflows" / "good_one", ["known"])
    return tmp_path / "workflows"


def test_a_folder_is_found_without_being_named_anywhere(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "notes.txt").touch()
    loaded, broken = load(folder)
    assert broken == {}
    assert loaded.keys() == {"good-one"}
    assert loaded["good-one"].type == "good-one"


def test_without_tasks_beside_it_any_task_will_do(tmp_path: Path) -> None:
    put(tmp_path / "one", ["whatever"])
    assert load(tmp_path)[0].keys() == {"one"}
    assert load(tmp_path / "nothing-there") == ({}, {})


TWICE = '{"description": "d", "stages": ["known"], "stages": []}'
BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "a task that is not there": ("bad", {"stages": ["notes"]}, "make it with `make new-task NAME=notes`"),
    "a name that a task has": ("both", {"stages": ["known"]}, "there is a task both as well"),
    "no schema": ("bad", {"stages": ["known"], "schema": None}, "schema.json is missing"),
    "a schema that is no JSON": ("bad", {"stages": ["known"], "schema": "{"}, "schema.json: not JSON"),
    "a declaration that is no JSON": ("bad", {"stages": [], "raw": "{,}"}, "workflow.json: not JSON"),
    "a field that stands twice": ("bad", {"stages": [], "raw": TWICE}, "workflow.json: the name 'stages' stands twice"),
    "a declaration that is wrong": ("bad", {"stages": []}, "stages must be a list"),
    "a schema with more than an input": (
        "bad",
        {"stages": ["known"], "schema": json.dumps({**SCHEMA, "output": {}})},
        "schema.json",
    ),
    "a folder that is spelt as its type": ("bad-one", {"stages": ["known"]}, "must be named bad_one"),
    "a folder that is no type": ("Bad", {"stages": ["known"]}, "no job type"),
}


@pytest.mark.parametrize(("name", "files", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_workflow_is_named_with_its_reason_and_harms_no_other(
    folder: Path, name: str, files: dict[str, Any], said: str
) -> None:
    put(folder / name, **files)
    loaded, broken = load(folder)
    assert loaded.keys() == {"good-one"}
    assert broken.keys() == {name}
    assert said in broken[name]
