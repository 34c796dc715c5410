"""An alarm of the template, read so that it can be evaluated; what cannot be is refused by its logical id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.metrics.expressions import Expression, Series, parse
from local.metrics.store import MINUTE_S, STATISTICS, Metric, Store, metric
from local.metrics.verdict import COMPARISONS, MISSING, TREATMENTS, Rule
from local.stack.errors import TemplateError

DAY_S = 86_400
HOUR_S = 3_600
_KNOWN = frozenset(
    {
        "ActionsEnabled", "AlarmActions", "AlarmDescription", "AlarmName", "ComparisonOperator", "DatapointsToAlarm",
        "Dimensions", "EvaluationPeriods", "InsufficientDataActions", "MetricName", "Metrics", "Namespace", "OKActions",
        "Period", "Statistic", "Tags", "Threshold", "TreatMissingData",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A metric as an alarm looks at it."""

    about: Metric
    statistic: str

    def series(self, store: Store, period_s: int, number: int, at_s: int) -> Series:
        """The last `number` periods before `at_s`, as they could be seen then."""
        starts = range(at_s - number * period_s, at_s, period_s)
        return [store.statistics(self.about, start, start + period_s, at_s).value(self.statistic) for start in starts]


@dataclass(frozen=True)
class Alarm:
    """`sources` by the ids that `expression` has for them; without an expression there is one."""

    logical_id: str
    name: str
    description: str
    period_s: int
    rule: Rule
    sources: Mapping[str, Source]
    expression: Expression | None = None

    @property
    def step_s(self) -> int:
        """How often it is evaluated: each minute, but each hour when it looks at more than a day."""
        return HOUR_S if self.period_s * self.rule.periods > DAY_S else MINUTE_S

    @property
    def looks_back_s(self) -> int:
        return self.period_s * self.rule.looks_at

    def series(self, store: Store, at_s: int) -> Series:
        """What it would look at in that moment, the oldest first. Periods end there and then: the window slides."""
        number = self.rule.looks_at
        found = {name: one.series(store, self.period_s, number, at_s) for name, one in self.sources.items()}
        if self.expression is None:
            (series,) = found.values()
            return series
        return self.expression.of(found)


def read(logical_id: str, properties: Mapping[str, Any], name: str) -> Alarm:
    """TemplateError for what is not played here."""
    unknown = sorted(set(properties) - _KNOWN)
    if unknown:
        raise TemplateError(f"{', '.join(unknown)} of an alarm is not played on this machine")
    sources, expression, period_s = _looked_at(properties)
    if period_s % MINUTE_S:
        raise TemplateError(f"a period of {period_s} s: alarms of high resolution are not played on this machine")
    if period_s > DAY_S:
        raise TemplateError(f"a period of {period_s} s: CloudWatch knows none longer than a day ({DAY_S} s)")
    return Alarm(
        logical_id=logical_id,
        name=name,
        description=str(properties.get("AlarmDescription", "")),
        period_s=period_s,
        rule=_rule(properties),
        sources=sources,
        expression=expression,
    )


def _rule(properties: Mapping[str, Any]) -> Rule:
    periods = int(properties["EvaluationPeriods"])
    missing = properties.get("TreatMissingData", MISSING)
    compare = properties["ComparisonOperator"]
    if missing not in TREATMENTS:
        raise TemplateError(f"TreatMissingData {missing!r} is not known")
    if compare not in COMPARISONS or "Threshold" not in properties:
        raise TemplateError(f"alarms that compare by {compare} are not played on this machine")
    to_alarm = int(properties.get("DatapointsToAlarm", periods))
    return Rule(compare, float(properties["Threshold"]), periods, to_alarm, missing)


def _looked_at(properties: Mapping[str, Any]) -> tuple[dict[str, Source], Expression | None, int]:
    if "Metrics" not in properties:
        about = _metric(properties)
        return {"": Source(about, _statistic(properties.get("Statistic")))}, None, int(properties["Period"])
    queries: Sequence[Mapping[str, Any]] = properties["Metrics"]
    math = [one for one in queries if "Expression" in one]
    plain = {str(one["Id"]): one["MetricStat"] for one in queries if "MetricStat" in one}
    if len(math) != 1 or len(plain) + 1 != len(queries):
        raise TemplateError("an alarm has one expression over its metrics on this machine")
    expression = parse(str(math[0]["Expression"]))
    if expression.uses != frozenset(plain):
        raise TemplateError(f"{expression.text!r} is about {sorted(expression.uses)}, and there is {sorted(plain)}")
    periods = {int(one["Period"]) for one in plain.values()}
    if len(periods) != 1:
        raise TemplateError("all metrics of an alarm must have the same period")
    sources = {name: Source(_metric(one["Metric"]), _statistic(one["Stat"])) for name, one in plain.items()}
    return sources, expression, periods.pop()


def _metric(properties: Mapping[str, Any]) -> Metric:
    dimensions = {str(one["Name"]): str(one["Value"]) for one in properties.get("Dimensions", [])}
    return metric(str(properties["Namespace"]), str(properties["MetricName"]), dimensions)


def _statistic(name: Any) -> str:
    if name not in STATISTICS:
        raise TemplateError(f"the statistic {name!r} is not played on this machine")
    return str(name)
