"""Workflows as they are declared: what the stack makes of a folder, and what is refused before anything is deployed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import declarations, sources
from infra.limits import problems
from infra.settings import Settings
from lambdas.contracts import names, workflows
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Template
from tests.infrastructure.test_workflows import declared, machines

Declare = Callable[..., Path]


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Workflows by their types, instead of those that ship; `tasks` beside them."""

    def write(declarations_: dict[str, dict[str, Any]], tasks: tuple[str, ...] = ("summarize",)) -> Path:
        for task in tasks:
            (tmp_path / "tasks" / task.replace("-", "_")).mkdir(parents=True)
            (tmp_path / "tasks" / task.replace("-", "_") / "task.py").touch()
        folder = tmp_path / "workflows"
        folder.mkdir()
        for type_, body in declarations_.items():
            place = folder / type_.replace("-", "_")
            place.mkdir()
            written = {"description": "x", "stages": ["summarize"], **body}
            (place / "workflow.json").write_text(json.dumps(written), encoding="utf-8")
            (place / "schema.json").write_text('{"input": {"type": "object"}}', encoding="utf-8")
        monkeypatch.setattr(workflows, "HERE", folder)
        return folder

    return write


def test_a_folder_is_a_state_machine_and_no_folder_none(synthesize: Synthesize, declare: Declare) -> None:
    """However it is called: its neighbours have names, too."""
    declare({"branch": {}, "collect": {}, "jobs-table": {"stages": [["summarize"] * 1]}, "ended": {}})
    template = synthesize()
    made = declared(template.environment("dispatch")[names.WORKFLOWS])
    assert made.keys() == {"branch", "collect", "jobs-table", "ended"}
    assert set(made.values()) == set(machines(template))
    pattern = template.only("Events::Rule")["Properties"]["EventPattern"]
    assert {one["Ref"] for one in pattern["detail"]["stateMachineArn"]} == set(machines(template))
    for role, action in (("worker", "states:StartExecution"), ("dispatch", "states:StopExecution")):
        granted = {on for allowed, on in template.permissions(role) if allowed == action}
        assert len(granted) == 4
        assert all(any(machine in on for machine in machines(template)) for on in granted)


def test_without_workflows_there_is_nothing_to_start_and_nothing_to_hear(
    synthesize: Synthesize, declare: Declare
) -> None:
    declare({})
    template = synthesize()
    assert declared(template.environment("worker")[names.WORKFLOWS]) == {}
    assert not template.of_type("Events::Rule")
    assert not machines(template)
    for role in ("worker", "sweep", "ended", "dispatch"):
        assert not {action for action, _ in template.permissions(role) if action.startswith("states:")}


S = Settings(region="us-east-1")


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ({"stages": []}, "lambdas/workflows/some_work: stages must be"),
        (
            {"stages": ["sumarize"]},
            "lambdas/workflows/some_work: the branch sumarize wants the task sumarize, which is",
        ),
        ({"stages": [["summarize", "summarize"]]}, "two branches are named summarize"),
        ({"timeout_s": 419}, "timeout_s of some-work (419) must be at least 420"),
        (
            {"stages": [{"name": f"s{n}", "task": "summarize"} for n in range(3)], "timeout_s": 1_079},
            "timeout_s of some-work (1079) must be at least 1080: one try for each of its stages (3: ",
        ),
        ({"timeout_s": 86_040}, "deadline_s (86400) must exceed timeout_s of some-work, the 60 s"),
        (
            {"max_runs": 3},
            "max_runs of some-work (3) must be at most 2: a branch is tried 3 times in each run, and one",
        ),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_with_what_to_do(
    declare: Declare, body: dict[str, Any], advice: str
) -> None:
    declare({"some-work": body})
    (told,) = problems(S)
    assert advice in told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"format": "e-mail"}}},
        {"$ref": "#/definitions/nothing"},
        {"required": "text"},
        {"type": "string", "minLength": "1"},
    ],
)
def test_a_schema_that_the_door_could_not_use_is_refused(declare: Declare, schema: dict[str, Any]) -> None:
    """Else the type would be missing at the door, and all the rest of it deployed."""
    folder = declare({"some-work": {}})
    (folder / "some_work" / "schema.json").write_text(json.dumps({"input": schema}), encoding="utf-8")
    (told,) = problems(S)
    assert told.startswith("lambdas/workflows/some_work/schema.json: `input` is no usable JSON Schema")


def test_branches_that_wait_for_longer_than_a_history_has_room_for_are_refused(declare: Declare) -> None:
    """40 branches, about 200 calls each, three events a call."""
    stages = [[{"name": f"b{n}", "task": "summarize"} for n in range(40)]]
    declare({"just": {"stages": stages, "timeout_s": 28_499}, "more": {"stages": stages, "timeout_s": 28_500}})
    (told,) = problems(S)
    assert told.startswith("timeout_s of more (28500) must be at most 28350: with 40 branches")


def test_two_workflows_that_would_have_one_name_in_the_stack_are_refused(declare: Declare) -> None:
    declare({"report-2": {}, "report2": {}})
    (told,) = problems(S)
    assert told == "report2 and report-2 would both be named Report2 in the stack: rename the folder of one"


@pytest.mark.parametrize(
    "body",
    [{"timeout_s": 420}, {"stages": ["summarize"] * 1, "timeout_s": 86_039}, {"max_runs": 2}],
)
def test_and_one_that_just_can_be_is_not(declare: Declare, body: dict[str, Any]) -> None:
    declare({"some-work": body})
    assert problems(S) == []


def test_more_workflows_than_there_is_room_for_are_refused(declare: Declare) -> None:
    """A rule's pattern has 2,048 characters, a function's environment 4 KB."""
    declare({f"work-{number}": {} for number in range(13)})
    (told,) = problems(S)
    assert told.startswith("13 workflows, but a deployment has room for 12: deploy a second environment")


def test_the_most_workflows_with_the_longest_names_fit_into_a_pattern_and_into_environments(declare: Declare) -> None:
    types = [f"work-{number:02}-".ljust(63, "x") + "y" for number in range(declarations.MOST)]
    declare({type_: {} for type_ in types})
    arn = "arn:aws-us-gov:states:us-gov-west-1:123456789012:stateMachine:" + "N" * 80
    pattern = {
        "detail-type": ["Step Functions Execution Status Change"],
        "source": ["aws.states"],
        "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"], "stateMachineArn": [arn] * len(types)},
    }
    assert len(json.dumps(pattern, separators=(",", ":"))) < 2_048
    assert declarations.environment_bytes(declarations.read()) >= len(json.dumps(dict.fromkeys(types, arn))) - 2
    (told,) = problems(S)  # the longest types there may be, and as many as there may be: too much for a sweep
    assert "sources and lambdas/workflows take" in told
    assert "the sweep has room for 2200 of them" in told


def test_no_environment_grows_beyond_what_lambda_gives(prod: Template) -> None:
    """4 KB, with as much of sources and workflows as is let through, and the longest names CloudFormation makes."""
    for role in ("worker", "sweep", "ended", "dispatch", "admin", "ingest"):
        variables = {
            name: value
            for name, value in prod.environment(role).items()
            if name not in (names.WORKFLOWS, names.SOURCES)
        }
        taken = sum(len(name) + _most(prod, value) for name, value in variables.items())
        assert taken + len(names.WORKFLOWS + names.SOURCES) + sources.MAX_BYTES <= 4_096, role


def _most(template: Template, value: Any) -> int:
    """Characters of a value, once it is deployed under the longest name of an environment."""
    match value:
        case str():
            return len(value)
        case {"Fn::Join": ["", list(parts)]}:
            return sum(_most(template, part) for part in parts)
        case {"Ref": str(name)} if name.startswith("AWS::"):
            return 14
        case {"Ref": str(name)}:
            physical = len("neverdrop-") + 20 + 1 + len(name) + 13
            most = {
                "AWS::SQS::Queue": len("https://sqs.ap-southeast-2.amazonaws.com/123456789012/") + min(80, physical),
                "AWS::S3::Bucket": min(63, physical),
                "AWS::SNS::Topic": len("arn:aws-us-gov:sns:us-gov-west-1:123456789012:") + physical,
                "AWS::Lambda::Function": min(64, physical),
            }
            return most.get(template.resources[name]["Type"], physical)
    return 120
