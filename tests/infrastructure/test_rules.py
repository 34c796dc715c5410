"""What the template checkers of AWS and of the community say about the stack."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.conftest import Synthesize, context
from tests.infrastructure.templates import Template

BASELINE = Path(__file__).parent / "nag_baseline.json"
DEFAULT_RULES = {"@aws-cdk/core:validateAgainstDefaultRules": True}


def nag(tmp_path: Path) -> dict[tuple[str, str], str]:
    """Findings of cdk-nag as (rule, construct) pairs with their description; logical ids without their hashes."""
    from aws_cdk import Validations
    from cdk_nag import AwsSolutionsChecks, ServerlessChecks

    from infra.synthesis import build

    app = build(context(), str(tmp_path))
    for pack in (AwsSolutionsChecks, ServerlessChecks):
        Validations.of(app).add_plugins(pack(app))
    with pytest.raises(Exception, match="ValidationFailed"):  # it is our baseline that judges
        app.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text(encoding="utf-8"))
    return {
        (_any_machine(_without_hash(violation["ruleName"])), _any_machine(construct["constructPath"])): violation[
            "description"
        ]
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    }


def _without_hash(rule: str) -> str:
    return re.sub(r"<([A-Za-z]+)[0-9A-F]{8}(?=[.>])", r"<\1", rule)


def _any_machine(text: str) -> str:
    """They are made alike of data: who declares a workflow has nothing to review here."""
    text = re.sub(r"<WorkflowsMachines\w+", "<a workflow", text)
    return re.sub(r"(?<=/Workflows/Machines/)\w+", "(a workflow)", text)


def test_cdk_nag_finds_only_what_was_reviewed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = nag(tmp_path)
    capfd.readouterr()  # its own report
    reviewed: list[dict[str, Any]] = json.loads(BASELINE.read_text(encoding="utf-8"))
    accepted = Counter((entry["rule"], construct) for entry in reviewed for construct in entry["constructs"])
    assert {pair: found[pair] for pair in found.keys() - accepted.keys()} == {}, "new findings"
    assert accepted.keys() - found.keys() == set(), "fixed: take them out of the baseline"
    assert max(accepted.values()) == 1
    assert all(len(entry["reason"]) > 20 for entry in reviewed)


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_cloudformation_would_accept_the_template(
    request: pytest.FixtureRequest, environment: str, tmp_path: Path
) -> None:
    from cloudformation_validate import CompositeEngine, Severity

    template: Template = request.getfixturevalue(environment)
    path = tmp_path / "template.json"
    path.write_text(json.dumps(template.body), encoding="utf-8")
    diagnostics = CompositeEngine().validate_template(str(path)).diagnostics
    assert diagnostics, "it always has remarks: none means that it did not look"
    worse = [d for d in diagnostics if d.severity not in (Severity.INFO, Severity.DEBUG) and d.rule_id != "W3005"]
    assert [(d.rule_id, d.message) for d in worse] == []


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_cfn_lint_has_no_complaint(request: pytest.FixtureRequest, environment: str, tmp_path: Path) -> None:
    """All but W3005, dependencies that CDK writes twice. It alone finds misspelt IAM actions."""
    template: Template = request.getfixturevalue(environment)
    path = tmp_path / "template.json"
    path.write_text(json.dumps(template.body), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("cfn-lint")), "-i", "W3005", "-r", "us-east-1", "-t", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (run.returncode, run.stdout) == (0, "")


def test_cdks_own_default_rules_hold(synthesize: Synthesize) -> None:
    """CDK-11, MOTO-22: a visibility below the timeout or a wrong dead-letter queue would be an error."""
    assert context()["@aws-cdk/core:validateAgainstDefaultRules"] is True
    assert synthesize(**DEFAULT_RULES).resources


@pytest.mark.parametrize("region", ["eu-central-1", "ap-southeast-2", "ca-central-1"])
def test_the_stack_can_be_made_for_other_regions(synthesize: Synthesize, region: str) -> None:
    template = synthesize(region=region)
    assert f":{region}:" in json.dumps(template.statements("worker"))
    assert "us-east-1" not in json.dumps(template.body)
