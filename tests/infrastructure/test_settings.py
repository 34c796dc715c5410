"""What can be set, where it may be said, and what is refused with advice instead of deployed."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest

from infra.configuration import SettingsError, load
from infra.limits import problems
from infra.settings import Settings
from tests.infrastructure.conftest import ROOT, context


def loaded(**settings: Any) -> Settings:
    return load(context(**settings))


def refusal(**settings: Any) -> str:
    with pytest.raises(SettingsError) as refused:
        loaded(**settings)
    return str(refused.value)


def test_the_defaults_are_those_of_the_design() -> None:
    s = loaded()
    assert (s.accept_timeout_s, s.query_timeout_s, s.dispatch_timeout_s, s.worker_timeout_s) == (10, 29, 30, 120)
    assert (s.visibility_s, s.lease_s, s.max_receive_count) == (720, 130, 5)
    assert (s.batch_size, s.batch_window_s, s.max_concurrency) == (10, 0, 5)
    assert (s.max_attempts, s.retry_base_s, s.retry_cap_s, s.jitter, s.max_samples) == (5, 2, 900, "full", 2)
    assert (s.deadline_s, s.due_grace_s, s.sweep_period_s) == (86_400, 120, 300)
    assert (s.record_days, s.dlq_days, s.log_days) == (90, 14, 30)
    assert (s.throttle_rate, s.throttle_burst, s.wait_max) == (50, 100, 20)
    assert s.keep_data
    assert not s.jwt_issuer


def test_environments_override_common_settings_and_the_command_line_overrides_both() -> None:
    written = {"settings": {"log_days": 90, "batch_size": 5}, "environments": {"prod": {}, "qa": {"batch_size": 4}}}
    assert load(written).batch_size == 5
    assert load({**written, "env": "qa"}).batch_size == 4
    spoken = load(
        {**written, "env": "qa", "batch_size": "3", "keep_data": "false", "models": '["amazon.nova-pro-v1:0"]'}
    )
    assert (spoken.batch_size, spoken.log_days, spoken.keep_data) == (3, 90, False)
    assert spoken.models == ("amazon.nova-pro-v1:0",)


@pytest.mark.parametrize("value", [None, [], "x"], ids=str)
@pytest.mark.parametrize("place", ["settings", "environments", "environments.prod"])
def test_what_is_no_object_in_cdk_json_is_refused_by_its_place(place: str, value: Any) -> None:
    written: dict[str, Any] = {"environments": {"prod": {}}, "settings": {}}
    key, _, name = place.partition(".")
    wrong = {**written, key: {name: value} if name else value}
    with pytest.raises(SettingsError, match=rf"^{place} in cdk\.json must be an object of settings"):
        load(wrong)


@pytest.mark.parametrize("env", [None, 5, ["prod"]], ids=str)
def test_an_environment_that_is_no_name_is_unknown(env: Any) -> None:
    with pytest.raises(SettingsError, match="unknown environment"):
        load({**context(), "env": env})


def test_what_the_cdk_itself_puts_into_the_context_is_no_setting() -> None:
    assert loaded(**{"aws:cdk:enable-path-metadata": True, "cli-telemetry": False, "@aws-cdk/x:y": True}) == loaded()


def test_the_region_is_said_by_the_settings_then_by_the_credentials_then_us_east_1() -> None:
    assert load(context(region="eu-central-1"), "ap-south-1").region == "eu-central-1"
    assert load(context(), "ap-south-1").region == "ap-south-1"
    assert load(context()).region == "us-east-1"


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"max_concurency": 5}, "unknown setting 'max_concurency': did you mean 'max_concurrency'?"),
        ({"env": "staging"}, "unknown environment 'staging': cdk.json has dev, prod"),
        ({"worker_timeout_s": "two minutes"}, "worker_timeout_s must be a whole number"),
        ({"worker_timeout_s": 60.5}, "worker_timeout_s must be a whole number"),
        ({"worker_timeout_s": True}, "worker_timeout_s must be a whole number"),
        ({"keep_data": "perhaps"}, "keep_data must be true or false"),
        ({"models": "us.amazon.nova-lite-v1:0"}, "models must be a list of texts"),
        ({"tenants": ["shop"]}, "tenants must be an object of texts"),
        ({"max_concurrency": 1}, "max_concurrency is 1, but must be between 2 and 1000"),
        ({"max_concurrency": 1001}, "max_concurrency is 1001, but must be between 2 and 1000"),
        ({"max_receive_count": 1}, "max_receive_count is 1, but must be between 5 and 1000"),
        ({"batch_size": 11}, "batch_size is 11, but must be between 1 and 10"),
        ({"query_timeout_s": 60}, "query_timeout_s is 60, but must be between 3 and 29"),
        ({"record_days": 29}, "record_days is 29, but must be between 30 and 3650"),
        ({"dlq_days": 7}, "unknown setting 'dlq_days'"),
        ({"log_days": 31}, "log_days is 31, which CloudWatch does not offer: take 30"),
        ({"sweep_period_s": 310}, "take a multiple of 60"),
        ({"source_sweep_period_s": 3610}, "take a multiple of 60"),
        ({"drift_sweep_period_s": 86_399}, "take a multiple of 60"),
        ({"drift_sweep_period_s": 86_460}, "drift_sweep_period_s is 86460, but must be between 3600 and 86400"),
        ({"jitter": "some"}, "jitter has 'some', which does not look like one: full, equal or decorrelated"),
        ({"alert_email": "nobody"}, "alert_email has 'nobody'"),
        ({"alert_email": "ops@exämple.com"}, "alert_email has 'ops@exämple.com'"),
        ({"mail_from": "ops@-.com"}, "mail_from has 'ops@-.com'"),
        ({"cors_origins": ["app.example.com"]}, "cors_origins has 'app.example.com'"),
        ({"cors_origins": ["*", "https://a.example"]}, "cors_origins has '*' beside other origins"),
        ({"jwt_issuer": "https://a.example"}, "jwt_issuer and jwt_audience belong together"),
        ({"jwt_audience": ["app"]}, "jwt_issuer and jwt_audience belong together"),
        (
            {
                "jwt_issuer": "https://a.example",
                "jwt_audience": ["app"],
                "tenants": {"arn:aws:iam::111122223333:role/x": "x"},
            },
            "tenants maps IAM principals",
        ),
        ({"tenants": {"shop": "shop"}}, "must be a principal's ARN"),
        ({"sweep_timeout_s": 29}, "sweep_timeout_s is 29, but must be between 30 and 890"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_do(settings: dict[str, Any], advice: str) -> None:
    assert advice in refusal(**settings)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"worker_timeout_s": 60}, "model_timeout_s (60) must leave 25 seconds of worker_timeout_s (60)"),
        ({"model_timeout_s": 96}, "so that no job would ever be tried"),
        ({"worker_timeout_s": 105}, "due_grace_s (120) must be at most worker_timeout_s + 10 (115)"),
        ({"branch_timeout_s": 84}, "model_timeout_s (60) must leave 25 seconds of branch_timeout_s (84)"),
        ({"branch_timeout_s": 900, "collect_timeout_s": 900}, "timeout_s of analyze-document (1800) must be at least"),
        (
            {"deadline_s": 2_160, "retry_cap_s": 60},
            "deadline_s (2160) must exceed timeout_s of analyze-document, the 60 s that its lease is longer",
        ),
        ({"due_grace_s": 30}, "due_grace_s (30) must exceed dispatch_timeout_s (30)"),
        ({"stream_age_s": 86_400}, "stream_age_s is 86400, but must be between 60 and 86399"),
        ({"deadline_s": 430, "retry_cap_s": 60}, "deadline_s (430) must exceed a lease and a sweep (430)"),
        ({"retry_base_s": 60, "retry_cap_s": 30}, "retry_base_s (60) must be at most retry_cap_s (30)"),
        ({"retry_cap_s": 3600, "deadline_s": 3600}, "and that below deadline_s (3600)"),
        ({"webhook_timeout_s": 30, "deliver_timeout_s": 49}, "webhook_timeout_s (30) must leave 20 seconds of deliver"),
        ({"deliver_timeout_s": 30, "webhook_timeout_s": 11}, "note what came of it are left"),
        (
            {"webhook_concurrency": 2, "deliver_concurrency": 2},
            "webhook_concurrency (2) must be below deliver_concurrency (2), or one slow endpoint holds up",
        ),
        ({"query_timeout_s": 20}, "wait_max (20) must leave four seconds of query_timeout_s (20)"),
        ({"sweep_period_s": 120}, "sweep_timeout_s (120) must be at least ten seconds below sweep_period_s (120)"),
        ({"sweep_period_s": 3600, "source_sweep_period_s": 1800}, "drift_sweep_period_s (86400) must not fall"),
        ({"source_sweep_period_s": 86_400, "drift_sweep_period_s": 3600}, "drift_sweep_period_s (3600) must not fall"),
        ({"sweep_window_days": 90}, "sweep_window_days (90) must be below record_days (90)"),
        ({"work_days": 13, "deadline_s": 172_800}, "work_days and the deadline (15) must be at most the 14 days"),
        (
            {"deadline_s": 1_209_600, "record_days": 30},
            "record_days (30) must be at least work_days, the deadline and the 14",
        ),
        ({"record_days": 102}, "answer_days (120) must be at least record_days, work_days, the deadline and"),
        ({"not_before_max_days": 60}, "object_days (150) must cover answer_days"),
        ({"answer_days": 151}, "object_days (150) must cover answer_days"),
    ],
)
def test_every_inequality_of_the_protocol_is_kept_at_synth(settings: dict[str, Any], advice: str) -> None:
    assert advice in refusal(**settings)


@pytest.mark.parametrize(("model", "worker"), [(6, 31), (95, 120), (875, 900)])
def test_the_longest_model_call_leaves_25_seconds_of_its_function_and_no_second_less(model: int, worker: int) -> None:
    longest = Settings(
        region="us-east-1",
        worker_timeout_s=worker,
        branch_timeout_s=worker,
        model_timeout_s=model,
        due_grace_s=40,
    )
    assert problems(longest) == []
    for function, shorter in (
        ("worker", replace(longest, worker_timeout_s=worker - 1)),
        ("branch", replace(longest, branch_timeout_s=worker - 1)),
    ):
        (told,) = problems(shorter)
        assert told.startswith(f"model_timeout_s ({model}) must leave 25 seconds of {function}_timeout_s ({worker - 1}")


def test_a_message_returns_only_after_its_lease_for_every_timeout_that_is_allowed() -> None:
    for timeout in (30, 120, 900):
        s = Settings(worker_timeout_s=timeout, batch_window_s=0)
        assert timeout < s.lease_s < s.visibility_s <= 43_200


def test_all_mistakes_are_told_at_once() -> None:
    told = refusal(batch_sise=1, log_days="x", keep_data=3)
    assert len(told.splitlines()) == 4


@pytest.mark.parametrize(
    ("region", "profile", "regions"),
    [
        ("us-west-2", "us.amazon.nova-lite-v1:0", {"us-east-1", "us-east-2", "us-west-2"}),
        ("eu-central-1", "eu.amazon.nova-lite-v1:0", {"eu-central-1", "eu-north-1", "eu-west-1", "eu-west-3"}),
        ("ca-central-1", "ca.amazon.nova-lite-v1:0", {"ca-central-1", "ca-west-1"}),
        (
            "ap-southeast-2",
            "apac.amazon.nova-lite-v1:0",
            {"ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"},
        ),
    ],
)
def test_the_default_model_is_nova_lite_of_the_regions_geography(region: str, profile: str, regions: set[str]) -> None:
    (route,) = loaded(region=region).model_routes
    assert (route.model_id, route.foundation_model) == (profile, "amazon.nova-lite-v1:0")
    assert set(route.regions) == regions


def test_a_region_at_the_edge_of_its_geography_may_also_serve_itself() -> None:
    (route,) = loaded(region="eu-south-1").model_routes
    assert "eu-south-1" in route.regions


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"region": "sa-east-1"}, "no Amazon Nova Lite inference profile is known for region 'sa-east-1'"),
        (
            {"region": "eu-west-1", "models": ["us.amazon.nova-lite-v1:0"]},
            "does not serve region 'eu-west-1': use 'eu.amazon.nova-lite-v1:0'",
        ),
        (
            {"region": "eu-west-1", "models": ["amazon.nova-lite-v1:0"]},
            "only through an inference profile: put the geography's prefix in front",
        ),
        ({"models": ["anthropic.claude-sonnet-4-5-20250929-v1:0"]}, "only through an inference profile"),
        ({"models": ["nova lite"]}, "models has 'nova lite'"),
        ({"models": ["gpt"]}, "model 'gpt' is no Bedrock model"),
        ({"models": ["us.amazon.nova-lite-v1:0"] * 2}, "models names a model twice"),
    ],
)
def test_a_model_that_the_region_cannot_call_is_refused(settings: dict[str, Any], advice: str) -> None:
    """BED-06."""
    assert advice in refusal(**settings)


def test_a_model_without_a_price_is_refused_before_any_job_calls_it() -> None:
    with pytest.raises(SettingsError, match=r"no price is known for 'mistral.mistral-large-2402-v1:0'"):
        load(context(models=["mistral.mistral-large-2402-v1:0"]), priced={"amazon.nova-lite-v1:0"})
    assert load(context(), priced={"amazon.nova-lite-v1:0"})


def test_the_app_knows_the_prices_that_the_functions_use() -> None:
    command = [sys.executable, str(ROOT / "app.py"), "-c", 'models=["mistral.mistral-large-2402-v1:0"]']
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 1
    assert run.stderr.startswith("error: these settings cannot be deployed:")
    assert "no price is known" in run.stderr


def test_other_profiles_are_routed_as_they_say_or_as_the_settings_say() -> None:
    named = loaded(models=["jp.amazon.nova-2-lite-v1:0"], model_regions=["ap-northeast-1", "ap-northeast-3"])
    assert named.model_routes[0].regions == ("ap-northeast-1", "ap-northeast-3")
    everywhere = loaded(models=["global.amazon.nova-2-lite-v1:0"])
    assert everywhere.model_routes[0].regions == ("", "us-east-1")
    on_demand = loaded(models=["mistral.mistral-large-2402-v1:0"])
    assert not on_demand.model_routes[0].is_profile


def test_the_documented_table_is_the_settings() -> None:
    """Name and default of each, in the order of infra/settings.py."""
    page = (ROOT / "docs/deploying.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`]*)` \|", page, re.MULTILINE))
    empty: dict[type, str] = {str: '""', tuple: "[]"}
    defaults = [(one.name, getattr(Settings(), one.name)) for one in fields(Settings)]
    written = {
        name: empty.get(type(value), "{}") if value != 0 and not value else str(value).replace("True", "true")
        for name, value in defaults
    }
    assert list(documented.items()) == list(written.items())


def test_the_defaults_have_no_problems_in_any_known_region() -> None:
    from infra.models import GEOGRAPHIES

    for geography in GEOGRAPHIES:
        for region in geography.sources:
            assert problems(Settings(region=region)) == []
