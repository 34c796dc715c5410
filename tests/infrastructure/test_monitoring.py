"""What wakes somebody: every alarm reaches the alerts topic, and looks at a number that really moves."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from lambdas.contracts import names
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Template, target


def alarms(template: Template) -> list[dict[str, Any]]:
    return [one["Properties"] for one in template.of_type("CloudWatch::Alarm").values()]


def alerts(template: Template) -> str:
    name: str = template.outputs["AlertsTopicArn"]["Value"]["Ref"]
    return name


def about(template: Template, metric: str) -> list[dict[str, Any]]:
    return [alarm for alarm in alarms(template) if alarm.get("MetricName") == metric]


def computed(template: Template, metric: str) -> list[dict[str, Any]]:
    """Alarms on an expression over one metric, with that metric's own properties and the `Expression` beside theirs."""
    found = []
    for alarm in (one for one in alarms(template) if "Metrics" in one):
        (expression,) = (one["Expression"] for one in alarm["Metrics"] if "Expression" in one)
        stat, *others = (one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one)
        if not others and stat["Metric"]["MetricName"] == metric:
            own = {"Statistic": stat["Stat"], "Period": stat["Period"], "Expression": expression}
            found.append({**alarm, **stat["Metric"], **own})
    return found


def combined(template: Template, metric: str) -> list[dict[str, Any]]:
    """Alarms on an expression in which this metric stands, with all their `metrics` by the names that they have there:
    what metric, of whom, and how."""
    found = []
    for alarm in (one for one in alarms(template) if "Metrics" in one):
        (expression,) = (one["Expression"] for one in alarm["Metrics"] if "Expression" in one)
        stats = {one["Id"]: one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one}
        named = {name: (stat["Metric"]["MetricName"], on(stat["Metric"]), stat["Stat"]) for name, stat in stats.items()}
        (period,) = {stat["Period"] for stat in stats.values()}
        if metric in {name for name, _, _ in named.values()}:
            found.append({**alarm, "Expression": expression, "Period": period, "metrics": named})
    return found


def on(alarm: dict[str, Any]) -> str:
    (dimension,) = alarm["Dimensions"]
    return target(dimension["Value"]).removesuffix(".QueueName")


def test_every_alarm_acts_on_the_alerts_topic(prod: Template) -> None:
    assert len(alarms(prod)) == 75
    for alarm in alarms(prod):
        assert alarm["AlarmActions"] == [{"Ref": alerts(prod)}]
        assert alarm.get("ActionsEnabled", True)
        assert alarm["AlarmDescription"]


def test_cloudwatch_may_publish_to_the_alerts_topic(prod: Template) -> None:
    """A policy of our own replaces the default one, which had allowed it."""
    (policy,) = (
        one["Properties"]["PolicyDocument"]
        for one in prod.of_type("SNS::TopicPolicy").values()
        if one["Properties"]["Topics"] == [{"Ref": alerts(prod)}]
    )
    (allowed,) = (s for s in policy["Statement"] if s["Effect"] == "Allow")
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def sources(template: Template) -> dict[str, str]:
    """The queues that somebody must empty."""
    names_ = ("Work", "Urgent", "Inbox", "Deliveries")
    return {name: template.outputs[f"{name}QueueUrl"]["Value"]["Ref"] for name in names_}


def test_each_dead_letter_queue_is_watched_for_letters_and_for_more_of_them(prod: Template) -> None:
    """SQS-21: what SQS moves itself is not counted as sent."""
    letters = set(prod.of_type("SQS::Queue")) - set(sources(prod).values())
    lying = about(prod, "ApproximateNumberOfMessagesVisible")
    assert {on(alarm) for alarm in lying} == letters
    assert {(alarm["Threshold"], alarm["ComparisonOperator"]) for alarm in lying} == {
        (1, "GreaterThanOrEqualToThreshold")
    }
    growing = computed(prod, "ApproximateNumberOfMessagesVisible")
    assert {on(alarm) for alarm in growing} == letters
    assert {(alarm["Expression"], alarm["Threshold"]) for alarm in growing} == {("DIFF(FILL(told, 0))", 1)}


def test_waiting_work_and_a_lagging_dispatcher_are_noticed(prod: Template) -> None:
    ages = {on(age): age["Threshold"] for age in about(prod, "ApproximateAgeOfOldestMessage")}
    assert {name: ages.pop(queue) for name, queue in sources(prod).items()} == {
        "Work": 900,
        "Urgent": 300,
        "Inbox": 900,
        "Deliveries": 900,
    }
    assert ages == {}
    (lag,) = about(prod, "IteratorAge")
    assert on(lag) == prod.id_of(prod.function("dispatch"))
    assert lag["Threshold"] == 1000 * int(prod.environment("sweep")["DUE_GRACE_S"])


def test_the_oldest_open_job_is_watched_under_the_name_that_the_sweep_emits(prod: Template) -> None:
    (alarm,) = computed(prod, names.OLDEST_OPEN_JOB)
    assert alarm["Namespace"] == names.METRIC_NAMESPACE
    assert alarm["Dimensions"] == [
        {"Name": names.METRIC_DIMENSION, "Value": prod.environment("sweep")["POWERTOOLS_SERVICE_NAME"]}
    ]
    assert (alarm["TreatMissingData"], alarm["EvaluationPeriods"], alarm["Period"]) == ("breaching", 1, 900)
    assert alarm["Expression"] == f"FILL(told, {alarm['Threshold']})"


def test_no_alarm_waits_for_silence_longer_than_it_says(prod: Template) -> None:
    """CloudWatch goes back beyond an alarm's own periods for datapoints that are there, and counts missing ones last:
    an alarm on silence must fill them in itself. The guide tells five for three periods, and no rule."""
    loud = [alarm for alarm in alarms(prod) if alarm["TreatMissingData"] == "breaching"]
    assert len(loud) == 4
    for alarm in loud:
        (expression,) = (one["Expression"] for one in alarm["Metrics"] if "Expression" in one)
        assert expression.startswith("FILL(told, ")


def test_a_sweep_that_leaves_something_out_is_noticed_until_two_have_left_out_nothing(prod: Template) -> None:
    (alarm,) = about(prod, names.SWEEP_TROUBLES)
    (oldest,) = computed(prod, names.OLDEST_OPEN_JOB)
    assert (alarm["Namespace"], alarm["Dimensions"]) == (oldest["Namespace"], oldest["Dimensions"])
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    assert (alarm["TreatMissingData"], alarm["Period"], alarm["Statistic"]) == ("notBreaching", 600, "Maximum")


def test_what_a_sweep_puts_back_is_noticed(prod: Template) -> None:
    (alarm,) = about(prod, names.SWEEP_REPAIRED)
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    assert (alarm["TreatMissingData"], alarm["Statistic"]) == ("notBreaching", "Sum")


@pytest.mark.parametrize(
    ("metric", "period_s"), [(names.DUE_JOBS, 300), (names.SOURCE_MISSING, 3_600), (names.DRIFT_FOUND, 86_400)]
)
def test_a_sweep_that_did_not_get_to_its_end_for_two_periods_is_noticed_whatever_else_reports(
    prod: Template, metric: str, period_s: int
) -> None:
    """By the number that it would have told: a sweep that was started and failed is as silent as none."""
    (alarm,) = computed(prod, metric)
    assert (alarm["Statistic"], alarm["Expression"]) == ("SampleCount", "FILL(told, 0)")
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "LessThanThreshold")
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (period_s, 2, "breaching")


def test_results_that_are_gone_are_noticed(prod: Template) -> None:
    (alarm,) = about(prod, names.DRIFT_FOUND)
    assert alarm["Statistic"] == "Maximum"
    assert (alarm["Threshold"], alarm["Period"], alarm["TreatMissingData"]) == (1, 86_400, "notBreaching")


@pytest.mark.parametrize(
    "settings",
    [
        {"sweep_period_s": 3_600, "sweep_timeout_s": 890},
        {"source_sweep_period_s": 300},
        {"source_sweep_period_s": 86_400},
        {"source_sweep_period_s": 86_400, "drift_sweep_period_s": 86_400},
        {"sweep_period_s": 60, "sweep_timeout_s": 50},
    ],
)
def test_no_alarm_looks_back_further_than_cloudwatch_does(synthesize: Synthesize, settings: dict[str, int]) -> None:
    """PutMetricAlarm: seven days in all, and one day for periods below an hour; and no period is longer than a day."""
    for alarm in alarms(synthesize(**settings)):
        (period,) = {one["MetricStat"]["Period"] for one in alarm.get("Metrics", []) if "MetricStat" in one} or {
            alarm.get("Period")
        }
        most = 604_800 if period >= 3_600 else 86_400
        assert period * alarm["EvaluationPeriods"] <= most
        assert period % 60 == 0
        assert period <= 86_400


def test_an_api_that_answers_500_or_above_is_noticed_though_no_function_failed(prod: Template) -> None:
    """The names are those of an HTTP API: a REST API's metric is 5XXError, by ApiName."""
    (alarm,) = about(prod, "5xx")
    assert alarm["Namespace"] == "AWS/ApiGateway"
    assert {one["Name"]: one["Value"] for one in alarm["Dimensions"]} == {
        "ApiId": {"Ref": prod.id_of(prod.api())},
        "Stage": prod.stage()["Properties"]["StageName"],
    }
    assert (alarm["Threshold"], alarm["Statistic"], alarm["TreatMissingData"]) == (1, "Sum", "notBreaching")


@pytest.mark.parametrize(("metric", "others"), [("Errors", {"branch", "collect"}), ("Throttles", set())])
def test_every_function_is_watched_for(prod: Template, metric: str, others: set[str]) -> None:
    found = about(prod, metric)
    watched = {on(alarm) for alarm in found} | {prod.id_of(prod.function(role)) for role in others}
    assert watched == set(prod.of_type("Lambda::Function"))
    assert len(found) + len(others) == len(watched)
    assert {(alarm["Statistic"], alarm["Threshold"]) for alarm in found} == {("Sum", 1)}


@pytest.mark.parametrize("role", ["branch", "collect"])
def test_functions_that_ask_to_be_called_again_are_watched_for_the_share_of_errors(prod: Template, role: str) -> None:
    """What they raise is how Step Functions hears of a throttle: one of them is no news, half of them for long are."""
    function = prod.function(role)
    name = prod.id_of(function)
    (alarm,) = (
        one for one in combined(prod, "Invocations") if name in {whose for _, whose, _ in one["metrics"].values()}
    )
    assert alarm["Expression"] == "part / whole"
    assert alarm["metrics"] == {"part": ("Errors", name, "Sum"), "whole": ("Invocations", name, "Sum")}
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (0.5, "GreaterThanOrEqualToThreshold")
    assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (2, "notBreaching")
    assert alarm["Period"] >= max(300, function["Properties"]["Timeout"] + 180)
    assert "do not count" in alarm["AlarmDescription"]


@pytest.mark.parametrize("metric", ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionThrottled"])
def test_executions_of_all_workflows_together_are_watched_for(prod: Template, metric: str) -> None:
    """One alarm for all: whichever it is, the same is to be done. Not for those that were aborted: so is a cancelled
    job's."""
    (alarm,) = combined(prod, metric)
    assert {whose for _, whose, _ in alarm["metrics"].values()} == set(prod.of_type("StepFunctions::StateMachine"))
    assert {(name, how) for name, _, how in alarm["metrics"].values()} == {(metric, "Sum")}
    assert alarm["Expression"] == " + ".join(f"FILL({name}, 0)" for name in alarm["metrics"])
    assert (alarm["Threshold"], alarm["Period"], alarm["TreatMissingData"]) == (1, 300, "notBreaching")
    assert combined(prod, "ExecutionsAborted") == about(prod, "ExecutionsAborted") == []


def test_no_alarm_has_more_metrics_than_cloudwatch_takes(
    synthesize: Synthesize, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten. So twelve workflows have two alarms of each kind, and each stands in one of them."""
    from infra import declarations

    (shipped,) = list(declarations.read().values())[:1]
    monkeypatch.setattr(declarations, "read", lambda: {f"work-{number}": shipped for number in range(12)})
    template = synthesize()
    found = combined(template, "ExecutionsFailed")
    watched = [whose for alarm in found for _, whose, _ in alarm["metrics"].values()]
    assert sorted(watched) == sorted(template.of_type("StepFunctions::StateMachine"))
    assert [len(alarm["metrics"]) for alarm in found] == [10, 2]


def test_branches_that_ended_without_a_word_are_noticed(prod: Template) -> None:
    (alarm,) = about(prod, names.PARTS_LOST)
    assert (alarm["Threshold"], alarm["Statistic"], alarm["Period"], alarm["TreatMissingData"]) == (
        1, "Sum", 300, "notBreaching",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "role"),
    [({}, "worker"), ({}, "redrive"), ({"worker_timeout_s": 900}, "worker"), ({"sweep_timeout_s": 290}, "sweep")],
)
def test_an_error_is_still_within_the_period_when_it_is_reported(
    synthesize: Synthesize, settings: dict[str, int], role: str
) -> None:
    """Lambda reports an invocation when it has ended, under the time at which it began: after its timeout at worst."""
    template = synthesize(**settings)
    function = template.function(role)
    (alarm,) = (one for one in about(template, "Errors") if on(one) == template.id_of(function))
    assert alarm["Period"] >= max(300, function["Properties"]["Timeout"] + 180)


def test_a_subscription_that_is_gone_and_one_that_cannot_be_served_are_noticed(prod: Template) -> None:
    (lost,) = about(prod, names.LISTENERS_LOST)
    assert (lost["Statistic"], lost["Period"], lost["TreatMissingData"]) == ("Maximum", 600, "notBreaching")
    assert (lost["Threshold"], lost["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    (failed,) = about(prod, "NumberOfNotificationsFailed")
    assert (failed["Namespace"], failed["Threshold"], failed["Statistic"]) == ("AWS/SNS", 1, "Sum")
    assert failed["Dimensions"][0]["Name"] == "TopicName"
    assert on(failed) == prod.outputs["JobEventsTopicArn"]["Value"]["Ref"] + ".TopicName"


def test_records_that_are_removed_before_their_time_are_noticed(prod: Template) -> None:
    (alarm,) = about(prod, names.RECORDS_LOST)
    assert (alarm["Threshold"], alarm["Statistic"], alarm["TreatMissingData"]) == (1, "Sum", "notBreaching")


def test_deliveries_that_were_given_up_are_noticed(prod: Template) -> None:
    (alarm,) = about(prod, names.DELIVERIES_FAILED)
    assert (alarm["Threshold"], alarm["Statistic"], alarm["Period"], alarm["TreatMissingData"]) == (
        1, "Sum", 300, "notBreaching",
    )  # fmt: skip


def test_an_address_is_subscribed_to_the_alerts(prod: Template, synthesize: Synthesize) -> None:
    def to_alerts(template: Template) -> list[dict[str, Any]]:
        told = [one["Properties"] for one in template.of_type("SNS::Subscription").values()]
        return [one for one in told if one["TopicArn"] == {"Ref": alerts(template)}]

    assert not to_alerts(prod)
    template = synthesize(alert_email="ops@example.com")
    (subscription,) = to_alerts(template)
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")
    assert subscription["TopicArn"] == {"Ref": alerts(template)}


def test_one_saved_query_follows_a_job_through_all_functions(prod: Template) -> None:
    query = prod.only("Logs::QueryDefinition")["Properties"]
    assert "One job, receipt to delivery" in query["Name"]
    logged = {
        json.dumps(one["Properties"]["LoggingConfig"]["LogGroup"]) for one in prod.of_type("Lambda::Function").values()
    }
    assert {json.dumps(group) for group in query["LogGroupNames"]} == logged
    assert "filter job_id = " in query["QueryString"]
    asked = re.findall(r"^fields (.+)$", query["QueryString"], flags=re.MULTILINE)[0].split(", ")
    assert {"timestamp", "level", "step", "tenant", "attempt"} <= set(asked)
    assert {"detail", "request_id", "cost_micros", "ms"} <= set(asked)
