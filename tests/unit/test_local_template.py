"""The template resolver: every intrinsic, the order of creation, and an error for everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local.stack.errors import TemplateError
from local.stack.intrinsics import Resolver, names_in
from local.stack.names import physical_name
from local.stack.template import load, parse


class Names:
    """A scope with one resource and the conditions and mappings of a test."""

    def __init__(self, conditions: dict[str, Any] | None = None, mappings: dict[str, Any] | None = None) -> None:
        self.conditions: Mapping[str, Any] = conditions or {}
        self.mappings: Mapping[str, Any] = mappings or {}

    def ref(self, name: str) -> Any:
        return {"AWS::Region": "eu-west-1", "Queue": "http://queue", "List": ["a", "b"], "Number": 5}[name]

    def attribute(self, logical_id: str, name: str) -> Any:
        return f"{logical_id}/{name}"


CONDITIONS = {
    "Yes": {"Fn::Equals": [{"Ref": "AWS::Region"}, "eu-west-1"]},
    "No": {"Fn::Not": [{"Condition": "Yes"}]},
    "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
    "Either": {"Fn::Or": [{"Condition": "No"}, {"Condition": "Yes"}]},
}
MAPPINGS = {"Sizes": {"eu-west-1": {"small": 1}}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ({"a": [1, True, None]}, {"a": [1, True, None]}),
        ({"Ref": "Queue"}, "http://queue"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, "Table/Arn"),
        ({"Fn::GetAtt": "Table.StreamArn"}, "Table/StreamArn"),
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}, {"Ref": "Number"}]]}, "a-eu-west-1-5"),
        ({"Fn::Join": [",", {"Ref": "List"}]}, "a,b"),
        ({"Fn::Sub": "x-${AWS::Region}-${Table.Arn}-${!Kept}"}, "x-eu-west-1-Table/Arn-${Kept}"),
        ({"Fn::Sub": ["${mine}/${Queue}", {"mine": {"Ref": "Number"}}]}, "5/http://queue"),
        ({"Fn::Select": ["1", ["a", "b"]]}, "b"),
        ({"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "Queue"}]}]}, "queue"),
        ({"Fn::Split": [",", "a,b"]}, ["a", "b"]),
        ({"Fn::Base64": "hello"}, "aGVsbG8="),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "AWS::Region"}, "small"]}, 1),
        ({"Fn::If": ["Yes", "then", "else"]}, "then"),
        ({"Fn::If": ["Both", "then", {"Ref": "Queue"}]}, "http://queue"),
        ({"kept": 1, "gone": {"Ref": "AWS::NoValue"}}, {"kept": 1}),
        ({"gone": {"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}}, {}),
        (["a", {"Ref": "AWS::NoValue"}], ["a"]),
        (
            {"Condition": {"Bool": {"aws:SecureTransport": "false"}}},
            {"Condition": {"Bool": {"aws:SecureTransport": "false"}}},
        ),
    ],
)
def test_intrinsics_become_plain_values(value, expected):
    assert Resolver(Names(CONDITIONS, MAPPINGS)).resolve(value) == expected


@pytest.mark.parametrize(("name", "holds"), [("Yes", True), ("No", False), ("Both", False), ("Either", True)])
def test_conditions_hold_by_their_functions(name, holds):
    assert Resolver(Names(CONDITIONS)).holds(name) is holds


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Fn::Cidr": ["10.0.0.0/8", 1, 8]}, "unknown intrinsic Fn::Cidr"),
        ({"Fn::ImportValue": "other"}, "no other stack"),
        ({"Fn::FindInMap": ["Sizes", "mars", "small"]}, r"Sizes\.mars\.small"),
        ({"Fn::Select": [5, ["a"]]}, "no item 5 among 1"),
        ({"Fn::If": ["Unknown", 1, 2]}, "unknown condition Unknown"),
    ],
)
def test_what_cannot_be_resolved_is_an_error(value, words):
    with pytest.raises(TemplateError, match=words):
        Resolver(Names(CONDITIONS, MAPPINGS)).resolve(value)


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"A": {"Condition": "B"}, "B": {"Condition": "A"}}, "depends on itself"),
        ({"A": {"Fn::Contains": [["a"], "a"]}}, "unknown condition function Fn::Contains"),
        ({"A": "true"}, "not a condition"),
    ],
)
def test_conditions_that_make_no_sense_are_errors(conditions, words):
    with pytest.raises(TemplateError, match=words):
        Resolver(Names(conditions)).holds("A")


def test_names_are_found_wherever_they_stand():
    value = [
        {"Ref": "A"},
        {"x": {"Fn::GetAtt": ["B", "Arn"]}},
        {"Fn::GetAtt": "C.Arn"},
        {"Fn::Sub": "${D}-${E.Arn}-${!F}"},
        {"Fn::Sub": ["${own}", {"own": {"Ref": "G"}}]},
    ]
    assert names_in(value) == {"A", "B", "C", "D", "E", "G", "own"}


def resource(**more: Any) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", **more}


def test_resources_come_after_what_they_need():
    template = parse(
        {
            "Resources": {
                "First": resource(
                    Properties={"RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["Last", "Arn"]}}}
                ),
                "Middle": resource(DependsOn="First"),
                "Last": resource(DependsOn=[]),
            }
        },
        name="test",
    )
    assert template.order() == ["Last", "First", "Middle"]


def test_a_bucket_comes_before_a_queue_policy_that_it_only_hopes_for():
    declared = {"Policy": resource(), "Hopes": resource(Properties={"NotificationConfiguration": {}})}
    assert parse({"Resources": declared}, name="test").order() == ["Hopes", "Policy"]
    declared["Hopes"]["DependsOn"] = "Policy"
    assert parse({"Resources": declared}, name="test").order() == ["Policy", "Hopes"]


def test_a_circle_is_an_error_that_names_it():
    template = parse(
        {"Resources": {"A": resource(DependsOn="B"), "B": resource(Properties={"x": {"Ref": "A"}})}}, name="test"
    )
    with pytest.raises(TemplateError, match="A -> B -> A"):
        template.order()


def test_resources_and_outputs_whose_condition_is_false_are_left_out():
    template = parse(
        {
            "Parameters": {"Stage": {"Type": "String", "Default": "dev"}},
            "Conditions": {"Prod": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]}},
            "Resources": {"Always": resource(), "Sometimes": resource(Condition="Prod")},
            "Outputs": {"Here": {"Value": "1"}, "There": {"Value": "2", "Condition": "Prod"}},
        },
        name="test",
    )
    assert (list(template.resources), list(template.outputs)) == (["Always"], ["Here"])
    assert template.parameters["Stage"] == "dev"


def test_parameters_have_a_default_are_given_or_are_an_error():
    document = {
        "Parameters": {
            "BootstrapVersion": {
                "Type": "AWS::SSM::Parameter::Value<String>",
                "Default": "/cdk-bootstrap/hnb659fds/version",
            },
            "Zones": {"Type": "CommaDelimitedList"},
        },
        "Resources": {},
    }
    values = parse(document, name="test", parameters={"Zones": "a,b"}).parameters
    assert (values["Zones"], values["BootstrapVersion"].isdigit()) == (["a", "b"], True)
    with pytest.raises(TemplateError, match="parameter Zones has no value"):
        parse(document, name="test")


def test_pseudo_parameters_are_those_of_the_stack():
    values = parse({"Resources": {}}, name="my-stack", region="eu-west-1").parameters
    assert values["AWS::Region"] == "eu-west-1"
    assert values["AWS::StackName"] == "my-stack"
    assert values["AWS::AccountId"] == "123456789012"


def test_a_section_that_is_not_understood_is_an_error():
    with pytest.raises(TemplateError, match="Transform"):
        parse({"Resources": {}, "Transform": "AWS::Serverless-2016-10-31"}, name="test")


def test_an_assembly_gives_its_stack_with_its_region_and_assets(tmp_path: Path):
    write_assembly(tmp_path, stacks=1)
    template = load(tmp_path)
    assert (template.name, template.region) == ("stack-0", "eu-central-1")
    assert template.assets == {"abc.zip": tmp_path / "asset.abc"}
    assert list(template.resources) == ["Queue"]


@pytest.mark.parametrize("stacks", [0, 2])
def test_an_assembly_must_hold_one_stack(tmp_path: Path, stacks):
    write_assembly(tmp_path, stacks=stacks)
    with pytest.raises(TemplateError, match=f"holds {stacks} stacks"):
        load(tmp_path)


def write_assembly(folder: Path, stacks: int) -> None:
    artifacts: dict[str, Any] = {"assets": {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}}}
    for number in range(stacks):
        artifacts[f"stack-{number}"] = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/eu-central-1",
            "properties": {"templateFile": f"{number}.json"},
        }
        (folder / f"{number}.json").write_text(json.dumps({"Resources": {"Queue": resource()}}))
    asset = {"source": {"path": "asset.abc"}, "destinations": {"here": {"objectKey": "abc.zip"}}}
    (folder / "assets.json").write_text(json.dumps({"files": {"abc": asset}}))
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


@pytest.mark.parametrize("limit", [64, 80, 255])
def test_physical_names_fit_and_differ(limit):
    logical_ids = [f"AVeryLongLogicalIdThatCdkMadeOfAPathAndAHash{number}" * 3 for number in range(3)]
    names = {physical_name("a-stack-with-a-long-name", one, limit) for one in logical_ids}
    assert len(names) == 3
    assert all(len(name) <= limit for name in names)
    assert physical_name("dev", "Jobs", limit).startswith("dev-Jobs-")
