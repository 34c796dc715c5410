"""What CloudWatch makes of an alarm's latest datapoints; the rules of its user guide, "Using Amazon CloudWatch alarms".

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/AlarmThatSendsEmail.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from local.metrics.expressions import Series

OK, ALARM, INSUFFICIENT = "OK", "ALARM", "INSUFFICIENT_DATA"
BREACHING, NOT_BREACHING, IGNORE, MISSING = "breaching", "notBreaching", "ignore", "missing"
TREATMENTS = (BREACHING, NOT_BREACHING, IGNORE, MISSING)

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}

MORE = 2
"""How many periods CloudWatch looks at beyond an alarm's own: "a higher number of data points than the number
specified as Evaluation Periods". How many is told by example alone: five for three."""


@dataclass(frozen=True)
class Rule:
    """When datapoints are an alarm: `to_alarm` of the last `periods` breach."""

    compare: str
    threshold: float
    periods: int = 1
    to_alarm: int = 1
    missing: str = MISSING

    @property
    def looks_at(self) -> int:
        """The evaluation range, in periods."""
        return self.periods + MORE

    def breaches(self, value: float) -> bool:
        return COMPARISONS[self.compare](value, self.threshold)


def verdict(rule: Rule, series: Series, before: str) -> str:
    """The state after looking at the evaluation range. `before`: the state so far, which IGNORE keeps.

    Missing ones count only where there are fewer real ones in the whole range than are to be looked at, and then all
    of the real ones are looked at: "CloudWatch uses missing data points only as few times as possible".
    """
    real = [value for value in series if value is not None][-rule.periods :]
    breaching = sum(rule.breaches(value) for value in real)
    lacking = rule.periods - len(real)
    if breaching >= rule.to_alarm:
        return ALARM
    if breaching + lacking < rule.to_alarm or rule.missing == NOT_BREACHING:
        return OK
    if rule.missing == BREACHING:
        return ALARM
    return _undecided(rule, series, breaching, len(real), before)


def _undecided(rule: Rule, series: Series, breaching: int, real: int, before: str) -> str:
    """It would depend on what is missing, which is to be left out (MISSING) or to change nothing (IGNORE)."""
    if breaching < real:  # one that does not breach
        return OK
    if rule.missing == IGNORE:
        return before
    ages = [len(series) - at for at, value in enumerate(series) if value is not None]
    # "designed to always go into ALARM state when the oldest available breaching datapoint … is at least as old as
    # the value of Datapoints to Alarm, and all other more recent data points are breaching or missing"
    return ALARM if ages and max(ages) >= rule.to_alarm else INSUFFICIENT
