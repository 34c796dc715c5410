"""What wakes somebody of workflows: executions that end badly, and functions that ask too often to be called again."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms import FIVE_MINUTES, Alarms, errors_period, share, total
from infra.function import Function
from infra.workflows import Workflows

MOST_METRICS = 10  # that CloudWatch takes into one alarm


def watch(alarms: Alarms, workflows: Workflows, *, retried: Mapping[str, Function], lost: cloudwatch.Metric) -> None:
    """`retried`: the functions that Step Functions calls again; `lost`: parts that ended without a word."""
    _watch_executions(alarms, workflows)
    alarms.add(
        "PartsLost",
        lost,
        1,
        "Branches of workflows ended without a word: their function was killed each time.",
    )
    for name, function in retried.items():
        _watch_tries(alarms, name, function)


def _watch_executions(alarms: Alarms, workflows: Workflows) -> None:
    """Branches are caught, so that an execution fails with its collector alone. Not those that were aborted: that is
    how a job is cancelled, and `ended` hears of each."""
    for metric, what in (
        ("ExecutionsFailed", "An execution of a workflow has failed: its collector could not do its work."),
        ("ExecutionsTimedOut", "An execution of a workflow took longer than its timeout_s, and was ended."),
        ("ExecutionThrottled", "Step Functions holds executions back: the account's quota is used up."),
    ):
        machines = workflows.machines.values()
        told = [machine.metric(metric, period=FIVE_MINUTES, statistic="Sum") for machine in machines]
        for number, first in enumerate(range(0, len(told), MOST_METRICS)):
            alarms.add(f"{metric}{number or ''}", total(told[first : first + MOST_METRICS]), 1, what)


def _watch_tries(alarms: Alarms, name: str, function: Function) -> None:
    """What these raise tells Step Functions to come again: one error is no news, and half of all tries are. Where they
    are so few that no two periods of it come together, `PartsLost` and the job's letter tell of it."""
    period = errors_period(function.timeout_s)
    errors = function.resource.metric_errors(period=period)
    alarms.add(
        f"{name}Errors",
        share(errors, function.resource.metric_invocations(period=period)),
        0.5,
        "Half of all tries end in an error, for two periods: the model throttles, a store is out, or it is broken. "
        "Single errors are how it asks to be called again, and do not count.",
        periods=2,
    )
