"""What an alarm looks at: one number, made of one metric, and whom it tells.

CloudWatch evaluates the latest datapoints that there are, and goes back beyond an alarm's own periods for them. Where
none is news of its own, it must be filled in, or the alarm waits for periods that nobody asked for.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

FIVE_MINUTES = Duration.minutes(5)
QUIET = cloudwatch.TreatMissingData.NOT_BREACHING
LOUD = cloudwatch.TreatMissingData.BREACHING
AT_LEAST = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
_LATE_S = 180  # until what Lambda reports of an invocation's end is there, with a margin


class Alarms:
    """Makes them, as children of `scope`; each tells `topic`."""

    def __init__(self, scope: Construct, topic: sns.Topic) -> None:
        self._scope = scope
        self._topic = topic

    def add(
        self,
        construct_id: str,
        number: cloudwatch.IMetric,
        threshold: float,
        description: str,
        *,
        missing: cloudwatch.TreatMissingData = QUIET,
        compare: cloudwatch.ComparisonOperator = AT_LEAST,
        periods: int = 1,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self._scope,
            construct_id,
            metric=number,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=compare,
            treat_missing_data=missing,
            alarm_description=f"{description} What to do: docs/operations.md",
        )
        alarm.add_alarm_action(actions.SnsAction(self._topic))


def filled(metric: cloudwatch.Metric, by: int) -> cloudwatch.MathExpression:
    """The metric, and `by` for each period in which nobody has reported."""
    return cloudwatch.MathExpression(
        expression=f"FILL(told, {by})", using_metrics={"told": metric}, period=metric.period, label="told"
    )


def growth(metric: cloudwatch.Metric) -> cloudwatch.MathExpression:
    """How much more than a period ago. An idle queue sends no numbers at all: filled with zeros, its first letter is
    growth too."""
    return cloudwatch.MathExpression(
        expression="DIFF(FILL(told, 0))", using_metrics={"told": metric}, period=metric.period, label="more"
    )


def total(metrics: list[cloudwatch.Metric]) -> cloudwatch.MathExpression:
    """Of all together, each counted as nothing where it has not reported."""
    told = {f"told{number}": metric for number, metric in enumerate(metrics)}
    expression = " + ".join(f"FILL({name}, 0)" for name in told)
    return cloudwatch.MathExpression(expression=expression, using_metrics=told, period=metrics[0].period, label="all")


def share(part: cloudwatch.Metric, whole: cloudwatch.Metric) -> cloudwatch.MathExpression:
    """From 0 to 1; no number where there was nothing at all."""
    return cloudwatch.MathExpression(
        expression="part / whole", using_metrics={"part": part, "whole": whole}, period=part.period, label="share"
    )


def errors_period(timeout_s: float) -> Duration:
    """Lambda reports an invocation when it has ended, under the time at which it began: one that ran into its timeout
    is as old as that, and a shorter period would be over before its error is seen."""
    return Duration.minutes(max(5, -int(-(timeout_s + _LATE_S) // 60)))
