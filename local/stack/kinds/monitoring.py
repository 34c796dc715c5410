"""Log groups and CloudWatch alarms. Alarms can be listed; `local/metrics` evaluates them."""

from __future__ import annotations

from local.stack.kinds.kind import Kind, Made, Properties, Workbench

_ALARM = frozenset(
    {
        "ActionsEnabled",
        "AlarmActions",
        "AlarmDescription",
        "ComparisonOperator",
        "DatapointsToAlarm",
        "Dimensions",
        "EvaluateLowSampleCountPercentile",
        "EvaluationPeriods",
        "ExtendedStatistic",
        "InsufficientDataActions",
        "MetricName",
        "Metrics",
        "Namespace",
        "OKActions",
        "Period",
        "Statistic",
        "Tags",
        "Threshold",
        "ThresholdMetricId",
        "TreatMissingData",
        "Unit",
    }
)


def _log_group(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("LogGroupName") or bench.name(logical_id, 512)
    logs = bench.client("logs")
    logs.create_log_group(logGroupName=name)
    if "RetentionInDays" in properties:
        logs.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
    return Made(name, {"Arn": bench.arn("logs", f"log-group:{name}:*")})


def _alarm(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("AlarmName") or bench.name(logical_id, 255)
    request = {key: value for key, value in properties.items() if key in _ALARM}
    bench.client("cloudwatch").put_metric_alarm(AlarmName=name, **request)
    return Made(name, {"Arn": bench.arn("cloudwatch", f"alarm:{name}")})


KINDS = (
    Kind("AWS::CloudWatch::Alarm", _alarm, _ALARM | {"AlarmName"}),
    Kind(
        "AWS::Logs::LogGroup",
        _log_group,
        # without effect here: encryption at rest, storage class, tags
        frozenset({"KmsKeyId", "LogGroupClass", "LogGroupName", "RetentionInDays", "Tags"}),
    ),
)
