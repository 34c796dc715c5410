"""Templates with conditions: each shape that they can take is checked by itself, and none that they cannot."""

from __future__ import annotations

from infra.delivery.contract import check
from tests.infrastructure.broken import Body, findings, found, new_findings, notes, put


def test_a_breach_in_one_branch_is_found_with_its_condition_and_never_by_mixing_two(foreign: Body) -> None:
    """Visibility and timeout depend on the same condition: 70 s go with 10 s, 370 s with 60 s."""
    branches = {"Fn::If": ["Prod", "370", 69]}
    (finding,) = new_findings(foreign, put("Orders", "VisibilityTimeout", to=branches))
    assert (finding.rule, finding.resource, finding.when) == ("visibility", "Orders", "Stage is something else")
    branches = {"Fn::If": ["Small", 70, 369]}
    (finding,) = new_findings(foreign, put("Orders", "VisibilityTimeout", to=branches))
    assert finding.when == "Stage is prod"


def test_a_resource_that_is_there_only_under_a_condition_counts_only_then(foreign: Body) -> None:
    def only_prod(body: Body) -> None:
        body["Resources"]["OrderLettersAlarm"]["Condition"] = "Prod"

    (finding,) = new_findings(foreign, only_prod)
    assert (finding.rule, finding.when) == ("letters-alarm", "Stage is something else")


def test_a_property_that_a_branch_leaves_out_has_its_default(foreign: Body) -> None:
    absent = {"Fn::If": ["Prod", 370, {"Ref": "AWS::NoValue"}]}
    (finding,) = new_findings(foreign, put("Orders", "VisibilityTimeout", to=absent))
    assert "after 30 s" in finding.message


def test_an_outcome_that_no_parameter_allows_is_not_looked_at() -> None:
    body: Body = {
        "Parameters": {"Stage": {"Type": "String", "AllowedValues": ["dev", "prod"]}},
        "Conditions": {
            "Dev": {"Fn::Equals": [{"Ref": "Stage"}, "dev"]},
            "Prod": {"Fn::Equals": ["prod", {"Ref": "Stage"}]},
            "Either": {"Fn::Or": [{"Condition": "Dev"}, {"Condition": "Prod"}]},
            "Both": {"Fn::And": [{"Condition": "Dev"}, {"Condition": "Prod"}]},
            "Never": {"Fn::Equals": ["a", "b"]},
        },
        "Resources": {
            name: {"Type": "AWS::SQS::Queue", "Condition": name, "Properties": {}}
            for name in ("Dev", "Prod", "Either", "Both", "Never")
        },
    }
    told = {one.resource: one.when for one in findings(body)}
    assert told == {"Dev": "Stage is dev", "Prod": "Stage is prod", "Either": ""}


def test_too_many_conditions_are_said_instead_of_being_waited_for() -> None:
    names = [f"C{number}" for number in range(40)]
    body: Body = {
        "Conditions": {name: {"Fn::Equals": [{"Ref": f"P{name}"}, "yes"]} for name in names},
        "Resources": {name: {"Type": "AWS::SQS::Queue", "Condition": name} for name in names},
    }
    assert [(one.rule, one.why) for one in check(body).notes] == [
        ("conditions", "its conditions have more outcomes than the 64 that were checked")
    ]


def test_the_condition_of_cdks_metadata_over_all_regions_costs_nothing(foreign: Body) -> None:
    def describe(body: Body) -> None:
        regions = [{"Fn::Equals": [{"Ref": "AWS::Region"}, f"r{number}"]} for number in range(30)]
        body["Conditions"]["CDKMetadataAvailable"] = {"Fn::Or": regions}
        body["Resources"]["CDKMetadata"] = {"Type": "AWS::CDK::Metadata", "Condition": "CDKMetadataAvailable"}

    assert (found(foreign, describe), notes(foreign, describe)) == (set(), set())
