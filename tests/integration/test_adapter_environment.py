"""From a setting to a rule: what infra writes into a function's environment is what its code reads out of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from moto import mock_aws

from lambdas.adapters.environment import Environment, MissingSetting, on_start
from lambdas.contracts import names
from lambdas.core.policy import DAY_S, Limits
from local.stack.provision import provision
from tests.integration.cloud import REGION, Cloud
from tests.integration.conftest import synthesize
from tests.integration.wire import Wire

ARN = "arn:aws:iam::111122223333:role/Backend"
OTHER = {
    "env": "dev",
    "max_attempts": 7,
    "retry_base_s": 3,
    "retry_cap_s": 600,
    "jitter": "equal",
    "max_samples": 4,
    "deadline_s": 50_000,
    "not_before_max_days": 11,
    "due_grace_s": 110,
    "sweep_period_s": 240,
    "record_days": 45,
    "answer_days": 80,
    "object_days": 90,
    "upload_max_bytes": 6_000_000,
    "model_timeout_s": 40,
    "wait_max": 9,
    "chunk_ms": 450,
    "chunk_bytes": 1_500,
    "webhook_hours": 24,
    "webhook_timeout_s": 3,
    "tenants": {ARN: "globex"},
}
"""Each unlike its default, so that a value that was not passed on shows."""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    template = synthesize(tmp_path_factory.mktemp("changed"), **OTHER)
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        any_endpoint: Any = None
        yield Cloud(provision(template, any_endpoint), Wire())


def limits(changed: Cloud, role: str) -> Limits:
    return Environment(changed.environment(role)).limits


USED = {
    "accept": ["deadline_s", "grace_s", "not_before_s", "upload_bytes"],
    "ingest": ["deadline_s", "grace_s"],
    "worker": [
        "deadline_s", "grace_s", "sweep_period_s", "record_days", "max_samples", "model_timeout_s", "upload_bytes",
        "chunk_ms", "chunk_bytes", "retry",
    ],
    "sweep": ["grace_s", "sweep_period_s", "record_days"],
}  # fmt: skip
"""The limits that the rules of each function look at."""


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, found in USED.items() for name in found])
def test_a_changed_setting_reaches_each_function_that_goes_by_it(changed: Cloud, role: str, name: str):
    expected = {
        "deadline_s": 50_000,
        "grace_s": 110,
        "sweep_period_s": 240,
        "record_days": 45,
        "max_samples": 4,
        "model_timeout_s": 40,
        "not_before_s": 11 * DAY_S,
        "upload_bytes": 6_000_000,
        "chunk_ms": 450,
        "chunk_bytes": 1_500,
    }
    found = getattr(limits(changed, role), name)
    if name == "retry":
        assert (found.max_attempts, found.base_s, found.cap_s, found.jitter) == (7, 3.0, 600.0, "equal")
    else:
        assert found == expected[name]


def test_the_sweep_and_the_worker_agree_when_a_job_is_used_up(changed: Cloud):
    assert limits(changed, "sweep").retry.max_attempts == limits(changed, "worker").retry.max_attempts == 7


def test_every_limit_is_either_a_setting_or_fixed(changed: Cloud):
    """A limit that is added and forgotten here, or in the environment, shows."""
    fixed = {"settle_s", "inline_input_bytes", "input_bytes"}
    assert {one.name for one in fields(Limits)} == fixed.union(*USED.values())


@pytest.mark.parametrize("role", ["accept", "query"])
def test_declared_principals_reach_the_door(changed: Cloud, role: str):
    assert Environment(changed.environment(role)).principals == {ARN: "globex"}


def test_the_rest_of_the_changed_settings_arrive_too(changed: Cloud):
    assert changed.environment("query")[names.WAIT_MAX_S] == "9"
    assert changed.environment("worker")[names.ANSWER_DAYS] == "80"


def test_by_default_the_template_says_what_the_code_would_assume(cloud: Cloud):
    assert limits(cloud, "worker") == Limits()


def test_a_missing_variable_is_told_by_its_name():
    with pytest.raises(MissingSetting, match="JOBS_TABLE"):
        Environment({}).text("JOBS_TABLE")


def test_no_principals_are_declared_by_an_empty_variable():
    assert Environment({"TENANTS": ""}).principals == {}
    assert Environment({"TENANTS": json.dumps({ARN: "a"})}).principals == {ARN: "a"}


def test_a_functions_parts_are_built_once_and_inside_lambda_at_its_start(monkeypatch: pytest.MonkeyPatch):
    built: list[int] = []
    parts = on_start(lambda environment: built.append(1))
    assert built == []
    parts()
    parts()
    assert built == [1]
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "worker")
    on_start(lambda environment: built.append(2))
    assert built == [1, 2]


def test_what_makes_deliveries_and_what_opens_them_again_keep_the_same_times(changed: Cloud):
    found = [Environment(changed.environment(role)).delivery_limits for role in ("deliver", "webhooks")]
    assert [one.hours for one in found] == [24, 24]
    assert [(one.limits.grace_s, one.limits.record_days) for one in found] == [(110, 45)] * 2
    assert found[0].timeout_s == 3
