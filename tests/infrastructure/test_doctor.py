"""What `python -m ops doctor` says of an account, and of a machine that cannot reach one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ProfileNotFound

from ops import account, doctor, synthesized
from ops.__main__ import main
from ops.findings import Finding
from ops.synthesized import Needs
from tests.infrastructure.conftest import context

NEEDS = Needs("neverdrop-prod", "eu-central-1", "eu.amazon.nova-lite-v1:0", 7, 6, "/cdk-bootstrap/x/version")
AVAILABLE = {
    "authorizationStatus": "AUTHORIZED",
    "entitlementAvailability": "AVAILABLE",
    "regionAvailability": "AVAILABLE",
}
REQUESTS = "Cross-region model inference requests per minute for Amazon Nova Lite"


class Missing(Exception):
    """Stands for the clients' own not-found exceptions."""


class Account:
    """An account in which everything is fine, unless a test changes an answer; an exception as answer is raised."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "get_caller_identity": {"Arn": "arn:aws:iam::111122223333:user/ada"},
            "get_parameter": {"Parameter": {"Value": "21"}},
            "get_inference_profile": {"status": "ACTIVE"},
            "get_foundation_model_availability": AVAILABLE,
            "get_account_settings": {"AccountLimit": {"ConcurrentExecutions": 1000}},
            "list_service_quotas": [{"Quotas": [{"QuotaName": REQUESTS, "Value": 200.0}]}],
            **answers,
        }
        self.exceptions = SimpleNamespace(ParameterNotFound=Missing, ResourceNotFoundException=Missing)

    def __call__(self, service: str) -> Account:
        return self

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: self.answer(operation))

    def answer(self, operation: str) -> Any:
        answer = self.answers[operation]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __getattr__(self, operation: str) -> Any:
        return lambda **_: self.answer(operation)


def findings(needs: Needs | None = NEEDS, **answers: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in account.check(Account(**answers), needs)}


def refused(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)


def test_an_account_that_is_ready_is_told_so() -> None:
    assert {finding.state for finding in findings().values()} == {"ok"}


@pytest.mark.parametrize(
    ("check", "answers", "fix"),
    [
        ("credentials", {"get_caller_identity": refused("GetCallerIdentity")}, "aws sso login"),
        ("credentials", {"get_caller_identity": ProfileNotFound(profile="x")}, "aws configure sso"),
        ("bootstrap", {"get_parameter": Missing()}, "cdk bootstrap aws://<account>/eu-central-1"),
        ("bootstrap", {"get_parameter": {"Parameter": {"Value": "5"}}}, "cdk bootstrap"),
        ("model access", {"get_inference_profile": Missing()}, "`models`"),
        (
            "model access",
            {"get_foundation_model_availability": {**AVAILABLE, "authorizationStatus": "NOT_AUTHORIZED"}},
            "Model catalog",
        ),
        ("Lambda quota", {"get_account_settings": {"AccountLimit": {"ConcurrentExecutions": 8}}}, "Service Quotas"),
        (
            "Bedrock quota",
            {"list_service_quotas": [{"Quotas": [{"QuotaName": REQUESTS, "Value": 0.0}]}]},
            "Service Quotas",
        ),
    ],
)
def test_what_is_wrong_comes_with_its_fix(check: str, answers: dict[str, Any], fix: str) -> None:
    finding = findings(**answers)[check]
    assert finding.state == "failed"
    assert fix in finding.fix


def test_ten_executions_of_a_new_account_are_enough() -> None:
    small = findings(get_account_settings={"AccountLimit": {"ConcurrentExecutions": 10}})
    assert small["Lambda quota"].state == "ok"


@pytest.mark.parametrize("error", [NoCredentialsError(), EndpointConnectionError(endpoint_url="https://x")])
def test_without_credentials_or_network_nothing_is_checked_and_nothing_is_wrong(error: Exception) -> None:
    assert {finding.state for finding in findings(get_caller_identity=error).values()} == {"not checked"}


def test_what_may_not_be_read_is_not_held_against_the_account() -> None:
    finding = findings(get_parameter=refused("GetParameter"))["bootstrap"]
    assert finding.state == "not checked"
    assert "AccessDenied" in finding.seen


def test_without_a_synthesized_stack_it_asks_for_one() -> None:
    told = findings(needs=None)
    assert told.pop("credentials").state == "ok"
    assert {finding.fix for finding in told.values()} == {"make synth"}


def test_what_the_stack_needs_is_read_from_its_template(tmp_path: Path) -> None:
    from infra.synthesis import synthesize

    own = {"max_concurrency": 70, "urgent_concurrency": 600, "ingest_concurrency": 2}
    synthesize(context(region="eu-central-1", **own), str(tmp_path))
    needs = synthesized.read(tmp_path)
    assert needs is not None
    assert (needs.stack, needs.region) == ("neverdrop-prod", "eu-central-1")
    assert needs.max_concurrency in (675, 677), "all queues together"
    assert (needs.model_id, needs.foundation_model) == ("eu.amazon.nova-lite-v1:0", "amazon.nova-lite-v1:0")
    assert needs.bootstrap_parameter == "/cdk-bootstrap/hnb659fds/version"
    assert synthesized.read(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("us.amazon.nova-lite-v1:0", "nova lite"),
        ("amazon.nova-pro-v1:0", "nova pro"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude haiku 4 5"),
    ],
)
def test_a_model_is_spelt_as_quotas_spell_it(model: str, words: str) -> None:
    from dataclasses import replace

    assert replace(NEEDS, model_id=model).model_words == words


@pytest.mark.parametrize(("state", "status"), [("ok", 0), ("not checked", 0), ("failed", 1)])
def test_it_exits_with_one_if_anything_is_to_be_fixed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Any, status: int
) -> None:
    def check(root: Path) -> Iterator[Finding]:
        assert (root / "cdk.json").is_file()
        yield Finding("node", state, "v24", "make setup" if state == "failed" else "")

    monkeypatch.setattr(doctor, "check", check)
    assert main(["doctor"]) == status
    assert capsys.readouterr().out.startswith(state)


def test_this_machine_passes_its_own_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "check", lambda *_: iter(()))
    found = {finding.name: finding for finding in doctor.check(doctor.ROOT)}
    assert {found[name].state for name in ("python", "environment", "node")} == {"ok"}


@pytest.mark.parametrize(
    ("written", "configured", "state"),
    [
        ({}, "", "ok"),
        ({}, "eu-central-1", "ok"),
        ({}, "us-west-2", "failed"),
        ({"region": "eu-central-1"}, "us-west-2", "ok"),
    ],
)
def test_a_region_that_would_surprise_is_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, str], configured: str, state: str
) -> None:
    (tmp_path / "cdk.json").write_text(json.dumps({"context": {"settings": written}}), encoding="utf-8")
    (tmp_path / "requirements.txt").touch()
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", configured)
    for variable in ("AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(synthesized, "read", lambda _: NEEDS)
    monkeypatch.setattr(account, "check", lambda *_: iter(()))
    assert {finding.name: finding for finding in doctor.check(tmp_path)}["region"].state == state


def test_an_environment_with_other_versions_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements.txt").write_text("# a comment\nboto3==0.0.1\nnot-there==1\n", encoding="utf-8")
    monkeypatch.setattr(account, "check", lambda *_: iter(()))
    finding = {finding.name: finding for finding in doctor.check(tmp_path)}["environment"]
    assert finding.state == "failed"
    assert "not-there missing, not 1" in finding.seen
    assert "make setup" in json.dumps(finding.fix)
