"""Our template keeps the delivery contract, in every environment; each breach of it is found, with its resource."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infrastructure.broken import (
    DAY_S,
    add,
    both,
    findings,
    found,
    letters,
    mappings,
    new_findings,
    put,
    queues,
    remove,
)
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Template


def test_every_environment_keeps_the_contract(prod: Template, dev: Template) -> None:
    assert findings(prod.body) == []
    assert findings(dev.body) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"alert_email": "ada@example.com"},
        {"worker_timeout_s": 900, "batch_window_s": 300, "max_receive_count": 10},
        {"max_concurrency": 1000, "work_days": 13},
        {"cors_origins": ["https://a.example"], "jwt_issuer": "https://a.example", "jwt_audience": ["app"]},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_no_setting_breaks_it(synthesize: Synthesize, settings: dict[str, Any]) -> None:
    assert findings(synthesize(**settings).body) == []


# --- queues -----------------------------------------------------------------------------------------------------------


def test_a_visibility_below_six_timeouts_and_the_window_is_found(prod: Template) -> None:
    """SQS-01."""
    assert list(mappings(prod, "queue"))
    for name, mapping, queue in mappings(prod, "queue"):
        timeout = prod.resources[mapping["FunctionName"]["Ref"]]["Properties"]["Timeout"]
        window = both(
            put(name, "MaximumBatchingWindowInSeconds", to=7), put(queue, "VisibilityTimeout", to=6 * timeout + 6)
        )
        (finding,) = new_findings(prod.body, window)
        assert (finding.rule, finding.resource) == ("visibility", queue)
        assert f"set VisibilityTimeout to {6 * timeout + 7} or more" in finding.fix
        assert found(prod.body, remove(queue, "VisibilityTimeout")) == {("visibility", queue)}, "30 s if not set"


def test_too_few_receives_and_too_many_for_the_retention_are_found(prod: Template) -> None:
    """SQS-03."""
    for queue, resource in queues(prod).items():
        assert found(prod.body, put(queue, "RedrivePolicy", "maxReceiveCount", to=4)) == {("receive-count", queue)}
        properties = resource["Properties"]
        kept, hidden = properties["MessageRetentionPeriod"], properties["VisibilityTimeout"]
        late = put(queue, "RedrivePolicy", "maxReceiveCount", to=kept // hidden)
        assert found(prod.body, late) == {("receive-count", queue)}
        in_time = put(queue, "RedrivePolicy", "maxReceiveCount", to=kept // hidden - 1)
        assert found(prod.body, in_time) == set()


def test_a_queue_without_dead_letters_or_with_those_of_another_is_found(prod: Template) -> None:
    """SQS-11."""
    named = list(queues(prod))
    for queue in named:
        assert found(prod.body, remove(queue, "RedrivePolicy")) == {("dead-letters", queue)}
        itself = put(queue, "RedrivePolicy", "deadLetterTargetArn", to={"Fn::GetAtt": [queue, "Arn"]})
        assert ("dead-letters", queue) in found(prod.body, itself)
    shared = queues(prod)[named[0]]["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]
    for queue in named[1:]:
        (finding,) = new_findings(prod.body, put(queue, "RedrivePolicy", "deadLetterTargetArn", to=shared))
        assert (finding.rule, finding.resource) == ("own-dead-letters", shared["Fn::GetAtt"][0])
        assert queue in finding.message


def test_a_queue_and_dead_letters_of_different_kinds_are_found(prod: Template) -> None:
    for queue, resource in queues(prod).items():
        dead = resource["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        assert found(prod.body, put(queue, "FifoQueue", to=True)) == {("kind-of-letters", dead)}


# --- dead letters -----------------------------------------------------------------------------------------------------


def test_dead_letters_that_are_kept_for_less_than_two_weeks_are_found(prod: Template) -> None:
    """SQS-07."""
    assert len(letters(prod)) >= len(queues(prod))
    for queue in letters(prod):
        assert found(prod.body, put(queue, "MessageRetentionPeriod", to=14 * DAY_S - 1)) == {
            ("letters-retention", queue)
        }
        assert found(prod.body, remove(queue, "MessageRetentionPeriod")) == {("letters-retention", queue)}


def test_a_source_that_is_kept_as_long_as_its_dead_letters_is_found(prod: Template) -> None:
    for queue in queues(prod):
        kept = put(queue, "MessageRetentionPeriod", to=14 * DAY_S)
        assert ("letters-retention", queue) in found(prod.body, kept)


def alarms(template: Template, queue: str) -> set[str]:
    """The alarms on the number of visible letters itself, without those on its changes."""
    return {
        name
        for name, one in template.of_type("CloudWatch::Alarm").items()
        for dimension in one["Properties"].get("Dimensions", ())
        if dimension["Value"] == {"Fn::GetAtt": [queue, "QueueName"]}
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (remove, "sees only changes"),
        (lambda alarm: put(alarm, "MetricName", to="NumberOfMessagesSent"), "watches NumberOfMessagesSent"),
        (lambda alarm: put(alarm, "Threshold", to=100), "fires at GreaterThanOrEqualToThreshold 100"),
        (lambda alarm: put(alarm, "ComparisonOperator", to="LessThanThreshold"), "fires at LessThanThreshold 1"),
        (lambda alarm: put(alarm, "AlarmActions", to=[]), "has no action"),
        (lambda alarm: put(alarm, "ActionsEnabled", to=False), "has no action"),
        (lambda alarm: put(alarm, "Dimensions", 0, "Value", to="another"), "nobody is told"),
        (lambda alarm: put(alarm, "Statistic", to="SampleCount"), "looks at SampleCount"),
        (lambda alarm: put(alarm, "EvaluationPeriods", to=13), "fires only after 3900 s"),
        (lambda alarm: both(put(alarm, "EvaluationPeriods", to=24), put(alarm, "Period", to=3600)), "after 86400 s"),
    ],
)
def test_dead_letters_that_nobody_is_told_of_are_found(prod: Template, change: Any, told: str) -> None:
    """SQS-21."""
    for queue in letters(prod):
        (alarm,) = alarms(prod, queue)
        (finding,) = new_findings(prod.body, change(alarm))
        assert (finding.rule, finding.resource) == ("letters-alarm", queue)
        assert told in finding.message


def test_an_alarm_may_take_some_of_its_periods(prod: Template) -> None:
    for queue in letters(prod):
        (alarm,) = alarms(prod, queue)
        some = both(put(alarm, "EvaluationPeriods", to=13), put(alarm, "DatapointsToAlarm", to=12))
        assert found(prod.body, some) == set()


def test_a_topic_under_a_key_that_cloudwatch_cannot_use_is_found(prod: Template) -> None:
    for name in prod.of_type("SNS::Topic"):
        told = {
            finding.resource
            for finding in new_findings(prod.body, put(name, "KmsMasterKeyId", to="alias/aws/sns"))
            if "has no action that CloudWatch can carry out" in finding.message
        }
        assert told in (set(), letters(prod))
    (topic,) = (name for name in prod.of_type("SNS::Topic") if "Alerts" in name)
    assert found(prod.body, put(topic, "KmsMasterKeyId", to="alias/aws/sns")) >= {
        ("letters-alarm", queue) for queue in letters(prod)
    }


def test_a_batch_that_sqs_does_not_gather_is_found(prod: Template) -> None:
    for name, _, _ in mappings(prod, "queue"):
        at_once = both(put(name, "BatchSize", to=11), put(name, "MaximumBatchingWindowInSeconds", to=0))
        assert found(prod.body, at_once) == {("batch-size", name)}
        assert ("batch-size", name) in found(prod.body, put(name, "BatchSize", to=10_001))
        gathered = both(put(name, "BatchSize", to=11), put(name, "MaximumBatchingWindowInSeconds", to=1))
        assert found(prod.body, gathered) <= {("visibility", queue) for queue in queues(prod)}


def test_a_disabled_mapping_is_found(prod: Template) -> None:
    for kind in ("queue", "stream"):
        for name, _, _ in mappings(prod, kind):
            assert found(prod.body, put(name, "Enabled", to=False)) == {("mapping-enabled", name)}
            assert found(prod.body, put(name, "Enabled", to=True)) == set()


def test_a_second_function_that_reads_the_same_queue_is_found(prod: Template) -> None:
    read = list(mappings(prod, "queue"))
    for (_, first, queue), (_, second, _) in zip(read, [*read[1:], read[0]], strict=True):
        other = {**first, "FunctionName": second["FunctionName"]}
        again = found(prod.body, add("Again", "Lambda::EventSourceMapping", **other))
        same = first["FunctionName"] == second["FunctionName"]
        assert (("one-reader", queue) in again) != same
