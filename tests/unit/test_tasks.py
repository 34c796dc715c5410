"""A folder is the whole plug-in: found by looking, bound to its folder's name, and alone with its mistakes."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lambdas import tasks as shipped
from lambdas.contracts.workflows import load as load_workflows
from lambdas.contracts.workflows import type_of
from lambdas.core.policy import RetryPolicy
from lambdas.core.tasks import DECLARATION, most_tries, policy_of, task
from lambdas.tasks import job_types, load, types
from tests.builders import any_task

SCHEMA = {"input": {"type": "object", "required": ["a"]}, "output": {"type": "object", "required": ["b"]}}
CODE = """
from lambdas.core.tasks import task

@task({type!r})
def run(task_input, ctx):
    return {{"b": 1}}
"""


class Folder:
    """A folder of tasks that can be imported."""

    def __init__(self, path: Path, package: str) -> None:
        self.path, self.package = path, package

    def add(self, name: str, code: str | None = None, schema: Any = SCHEMA, *, raw: str | None = None) -> None:
        place = self.path / name
        place.mkdir()
        (place / "__init__.py").touch()
        (place / "task.py").write_text(CODE.format(type=name.replace("_", "-")) if code is None else code)
        if schema is not None:
            (place / "schema.json").write_text(json.dumps(schema) if raw is None else raw)

    def load(self) -> tuple[dict[str, Any], dict[str, str]]:
        importlib.invalidate_caches()
        return load(self.path, self.package)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    package = f"plugins_{abs(hash(tmp_path))}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return Folder(tmp_path / package, package)


def test_a_folder_with_a_task_and_a_schema_is_found_without_being_named_anywhere(folder: Folder) -> None:
    folder.add("notify_by_email")
    (folder.path / "__pycache__").mkdir(exist_ok=True)
    (folder.path / "notes.txt").write_text("no task")
    loaded, broken = folder.load()
    assert loaded.keys() == {"notify-by-email"}
    assert broken == {}
    found = loaded["notify-by-email"]
    assert found.run({}, None) == {"b": 1}
    assert found.check_output({"b": 1}) is None
    assert found.check_output({}) is not None


def test_the_type_is_the_folders_name_with_hyphens() -> None:
    assert type_of(Path("x/notify_by_email")) == "notify-by-email"


BROKEN: dict[str, dict[str, Any]] = {
    "declares nothing": {"code": "x = 1"},
    "declares two": {"code": CODE.format(type="bad") + "@task('bad')\ndef other(i, c): ..."},
    "declares another type": {"code": CODE.format(type="other")},
    "does not compile": {"code": "def"},
    "raises when imported": {"code": "raise RuntimeError('no')"},
    "ends the process when imported": {"code": "import sys; sys.exit(1)"},
    "imports what is not there": {"code": "import nothing_like_that"},
    "has no schema": {"schema": None},
    "has a schema that is no JSON": {"raw": "{"},
    "has a schema that is no object": {"schema": []},
    "has no output schema": {"schema": {"input": {}}},
    "has an output format that nobody checks": {"schema": {"input": {}, "output": {"format": "ipv7"}}},
    "has an output schema that is none": {"schema": {"input": {}, "output": {"type": "no-such"}}},
}


@pytest.mark.parametrize("wrong", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_task_is_named_with_its_reason_and_harms_no_other(folder: Folder, wrong: dict[str, Any]) -> None:
    folder.add("bad", **wrong)
    folder.add("good")
    loaded, broken = folder.load()
    assert loaded.keys() == {"good"}
    assert broken.keys() == {"bad"}
    assert ":" in broken["bad"]
    if "schema" in wrong or "raw" in wrong:
        assert re.search("schema.json|format|Unknown type", broken["bad"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": None},
        {"raw": "{"},
        {"schema": {"output": {}}},
        {"schema": {"input": {"format": "ipv7"}, "output": {}}},
        {"schema": {"input": {"type": "no-such"}, "output": {}}},
    ],
)
def test_the_door_stands_though_one_schema_is_broken(folder: Folder, wrong: dict[str, Any]) -> None:
    folder.add("bad", **wrong)
    folder.add("good")
    checks, broken = types(folder.path)
    assert checks.keys() == {"good"}
    assert broken.keys() == {"bad"}
    assert checks["good"]({"a": 1}) is None
    assert checks["good"]({}) is not None


def test_the_door_imports_no_task(folder: Folder) -> None:
    folder.add("boom", code="raise SystemExit('imported')")
    assert types(folder.path)[0].keys() == {"boom"}


def test_the_shipped_tasks_load_and_their_door_knows_them() -> None:
    loaded, broken = load()
    assert broken == {}
    assert loaded.keys() == types()[0].keys() >= {"summarize", "classify"}
    for name in loaded:
        schema = json.loads((Path(shipped.__file__).parent / name.replace("-", "_") / "schema.json").read_text())
        assert schema["input"]["additionalProperties"] is False
        assert schema["output"]["additionalProperties"] is False


# --- and the workflows that are made of them ---------------------------------------------------------
def put_workflow(folder: Folder, name: str, stages: list[str], schema: Any = SCHEMA) -> Path:
    """Beside the tasks, as they ship."""
    place = folder.path.parent / "workflows" / name
    place.mkdir(parents=True)
    (place / "workflow.json").write_text(json.dumps({"description": "d", "stages": stages}))
    (place / "schema.json").write_text(json.dumps(schema))
    return place.parent


def test_the_door_checks_the_inputs_of_workflows_beside_those_of_tasks(folder: Folder) -> None:
    folder.add("good")
    workflows = put_workflow(folder, "all_of_it", ["good"], {"input": {"type": "string"}})
    checks, broken = job_types(folder.path, workflows)
    assert broken == {}
    assert checks.keys() == {"good", "all-of-it"}
    assert checks["all-of-it"]("text") is None
    assert checks["all-of-it"]({"a": 1}) is not None


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"input": {"type": "no-such"}}, "Unknown type"),
        ({"input": {"format": "ipv7"}}, "UnknownFormat"),
        ({"output": {}}, "must be an object with `input`"),
    ],
)
def test_a_broken_workflow_and_a_broken_task_close_no_door(folder: Folder, schema: Any, said: str) -> None:
    folder.add("good")
    folder.add("bad", raw="{")
    checks, broken = job_types(folder.path, put_workflow(folder, "worse", ["good"], schema))
    assert checks.keys() == {"good"}
    assert broken.keys() == {"bad", "worse"}
    assert said in broken["worse"]


def test_a_workflow_of_a_tasks_name_is_refused_and_the_task_stands(folder: Folder) -> None:
    (folder.path.parent / "tasks").symlink_to(folder.path)
    folder.add("good")
    checks, broken = job_types(folder.path, put_workflow(folder, "good", ["good"], {"input": {"type": "string"}}))
    assert checks["good"]({"a": 1}) is None
    assert "there is a task good as well" in broken["good"]


def test_the_shipped_workflows_and_tasks_are_all_that_the_door_knows() -> None:
    checks, broken = job_types()
    assert broken == {}
    assert checks.keys() == {*types()[0], *load_workflows()[0]} >= {"analyze-document", "summarize"}


# --- the declaration -------------------------------------------------------------------------------
def test_the_decorator_leaves_the_function_as_it_is_and_declares_it() -> None:
    policy = RetryPolicy(max_attempts=2)

    @task("x", retry=policy, reuse="job")
    def run(task_input: Any, ctx: Any) -> Any:
        return task_input

    nobody: Any = None
    assert run(7, nobody) == 7
    declared = getattr(run, DECLARATION)
    assert (declared.type, declared.retry, declared.reuse) == ("x", policy, "job")


def test_a_task_without_a_policy_has_the_deployments() -> None:
    default, own = RetryPolicy(max_attempts=4), RetryPolicy(max_attempts=9)
    assert policy_of(any_task(), default) is default
    assert policy_of(any_task(retry=own), default) is own
    assert policy_of(None, default) is default


def test_the_claim_is_bounded_by_the_most_patient_task() -> None:
    default = RetryPolicy(max_attempts=4)
    tasks = {"a": any_task(retry=RetryPolicy(max_attempts=9)), "b": any_task(retry=RetryPolicy(max_attempts=1))}
    assert most_tries(tasks, default) == 9
    assert most_tries({"b": tasks["b"]}, default) == 4
    assert most_tries({}, default) == 4
