"""Alarms over time: windows that slide, datapoints that come late, states that change; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from local.metrics.alarm import Alarm, read
from local.metrics.alarms import Alarms
from local.metrics.store import Store, metric
from local.metrics.verdict import ALARM, INSUFFICIENT, OK
from local.stack.errors import TemplateError

ABOUT = metric("Ours", "Due", {"service": "prod"})
DIMENSIONS = [{"Name": "service", "Value": "prod"}]
PLAIN = {
    "Namespace": "Ours", "MetricName": "Due", "Dimensions": DIMENSIONS, "Statistic": "Maximum", "Period": 300,
    "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    "TreatMissingData": "notBreaching",
}  # fmt: skip


def alarm(**changes: Any) -> Alarm:
    chosen = {name: value for name, value in {**PLAIN, **changes}.items() if value is not None}
    return read("Due", chosen, "due")


def math(expression: str, statistic: str = "Maximum", period_s: int = 300, **changes: Any) -> Alarm:
    stat = {"Metric": {"Namespace": "Ours", "MetricName": "Due", "Dimensions": DIMENSIONS}, "Period": period_s}
    metrics = [
        {"Id": "e", "Expression": expression, "ReturnData": True},
        {"Id": "told", "MetricStat": {**stat, "Stat": statistic}, "ReturnData": False},
    ]
    gone = dict.fromkeys(("Namespace", "MetricName", "Dimensions", "Statistic", "Period"))
    return alarm(Metrics=metrics, **gone, **changes)


class Bench:
    """One alarm, from midnight on."""

    def __init__(self, chosen: Alarm) -> None:
        self.store = Store()
        self.alarms = Alarms([chosen], self.store, 0)

    def changes(self, until_s: float) -> list[tuple[int, str]]:
        self.alarms.evaluate(until_s)
        return [(one.at_s, one.state) for one in self.alarms.transitions("Due")]


def test_a_datapoint_is_looked_at_from_the_next_whole_minute_on() -> None:
    bench = Bench(alarm())
    bench.store.put(ABOUT, 1, 601)
    assert bench.changes(3_600)[:2] == [(60, OK), (660, ALARM)]


def test_with_nothing_newer_the_last_datapoint_is_looked_at_for_two_periods_more() -> None:
    """ "alarms might repeatedly re-evaluate the last set of data points for a period of time"."""
    bench = Bench(alarm())
    bench.store.put(ABOUT, 1, 600)
    assert bench.changes(3_600) == [(60, OK), (660, ALARM), (660 + 900, OK)]


def test_with_something_newer_it_is_over_when_its_own_period_is() -> None:
    bench = Bench(alarm())
    for minute in range(60):
        bench.store.put(ABOUT, int(minute == 10), minute * 60)
    assert bench.changes(3_600) == [(60, OK), (660, ALARM), (660 + 300, OK)]


def test_what_is_reported_late_is_looked_at_when_it_is_there_under_the_time_that_it_belongs_to() -> None:
    """Lambda: "The timestamp on a metric reflects when the function was invoked"."""
    bench = Bench(alarm())
    bench.store.put(ABOUT, 1, 600, seen_s=780)
    assert bench.changes(3_600)[1] == (780, ALARM)


def test_an_error_that_is_older_than_the_period_when_it_is_reported_is_never_looked_at_beside_newer_ones() -> None:
    """Why an alarm on errors has a period that is longer than its function's timeout."""
    short, long = Bench(alarm()), Bench(alarm(Period=600))
    for bench in (short, long):
        for minute in range(60):
            bench.store.put(ABOUT, 0, minute * 60)
        bench.store.put(ABOUT, 1, 600, seen_s=1_000)
    assert ALARM not in dict(short.changes(3_600)).values()
    assert (1_020, ALARM) in long.changes(3_600)


@pytest.mark.parametrize(
    ("statistic", "threshold", "rings"),
    [("SampleCount", 3, True), ("SampleCount", 4, False), ("Sum", 6, True), ("Sum", 7, False), ("Average", 2, True),
     ("Average", 3, False), ("Maximum", 3, True), ("Maximum", 4, False), ("Minimum", 1, True), ("Minimum", 2, False)],
)  # fmt: skip
def test_statistics_are_those_of_all_values_in_the_period(statistic: str, threshold: int, rings: bool) -> None:
    bench = Bench(alarm(Statistic=statistic, Threshold=threshold))
    for value, at_s in ((1, 600), (2, 630), (3, 659)):
        bench.store.put(ABOUT, value, at_s)
    assert (ALARM in [state for _, state in bench.changes(1_200)]) is rings


def test_a_silence_that_is_filled_in_rings_after_its_own_periods_and_one_that_is_not_two_periods_later() -> None:
    silence: dict[str, Any] = {
        "Threshold": 1, "ComparisonOperator": "LessThanThreshold", "EvaluationPeriods": 2,
        "TreatMissingData": "breaching",
    }  # fmt: skip
    filled, bare = (
        Bench(math("FILL(told, 0)", "SampleCount", **silence)),
        Bench(alarm(Statistic="SampleCount", **silence)),
    )
    for bench in (filled, bare):
        for at_s in range(0, 3_601, 300):
            bench.store.put(ABOUT, 0, at_s)
    assert filled.changes(7_200)[-1] == (3_660 + 600, ALARM)
    assert bare.changes(7_200)[-1] == (3_660 + 1_200, ALARM)


def test_growth_rings_for_the_first_letter_of_an_idle_queue_and_for_one_more_and_not_for_those_that_stay() -> None:
    bench = Bench(math("DIFF(FILL(told, 0))"))
    for minute in range(20, 60):
        bench.store.put(ABOUT, 1 if minute < 40 else 2, minute * 60)
    assert bench.changes(3_600) == [(60, OK), (1_260, ALARM), (1_560, OK), (2_460, ALARM), (2_760, OK)]


def test_a_loss_that_is_told_again_and_again_is_one_alarm_however_rarely_it_is_told() -> None:
    bench = Bench(alarm(Period=600))
    for number, value in enumerate((0, 0, 1, 1, 1, 0, 0)):
        if number != 3:  # a report that is missing
            bench.store.put(ABOUT, value, number * 360)
    assert bench.changes(2_400) == [(60, OK), (780, ALARM), (2_100, OK)]


def test_an_alarm_over_more_than_a_day_is_evaluated_each_hour() -> None:
    bench = Bench(alarm(Period=86_400, EvaluationPeriods=2, TreatMissingData="missing"))
    bench.store.put(ABOUT, 0, 60)
    assert bench.changes(7_200) == [(3_600, OK)]


def test_what_is_evaluated_in_pieces_is_the_same() -> None:
    whole, pieces = Bench(alarm()), Bench(alarm())
    for bench in (whole, pieces):
        bench.store.put(ABOUT, 1, 600)
    for until_s in (59, 61, 700, 705, 2_000):
        pieces.changes(until_s)
    assert pieces.changes(3_600) == whole.changes(3_600)


def test_what_nobody_has_ever_reported_is_told() -> None:
    bench = Bench(alarm(TreatMissingData="missing"))
    assert bench.changes(3_600) == []
    assert bench.alarms.states() == {"Due": INSUFFICIENT}
    assert bench.alarms.never_fed() == ["Due"]
    bench.store.put(ABOUT, 0, 3_600)
    assert bench.alarms.never_fed() == []
    (shown,) = bench.alarms.describe()
    assert shown["reported"] == {"Ours Due (service=prod)": 1}


def test_datapoints_that_nobody_will_look_at_are_forgotten() -> None:
    bench = Bench(alarm())
    for minute in range(600):
        bench.store.put(ABOUT, 0, minute * 60)
    bench.changes(36_000)
    assert bench.store.statistics(ABOUT, 0, 36_000, 36_000).count < 90
    assert bench.store.fed(ABOUT) == 600


def test_who_asks_after_months_is_told_of_the_last_eight_days() -> None:
    bench, day = Bench(alarm()), 86_400
    for at_s in (600, 95 * day):
        bench.store.put(ABOUT, 1, at_s)
    bench.alarms.forget(96 * day)
    assert bench.store.fed(ABOUT) == 2
    assert bench.store.statistics(ABOUT, 0, day, 96 * day).count == 0
    assert bench.changes(95 * day + 600) == [(87 * day + 660, OK), (95 * day + 60, ALARM)]


def test_what_an_alarm_looks_back_at_is_kept_however_long_that_is() -> None:
    day = 86_400
    bench = Bench(alarm(Period=day, EvaluationPeriods=7, DatapointsToAlarm=7))
    for number in range(20, 40):
        bench.store.put(ABOUT, 1, number * day + 600)
    bench.alarms.forget(40 * day)
    assert bench.changes(40 * day)[-1][1] == ALARM
    assert bench.store.statistics(ABOUT, 31 * day, 32 * day, 40 * day).count == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"ExtendedStatistic": "p99", "Statistic": None},
        {"Statistic": "p99"},
        {"Statistic": None},
        {"Period": 10},
        {"Period": 86_460},
        {"TreatMissingData": "whatever"},
        {"ComparisonOperator": "LessThanLowerOrGreaterThanUpperThreshold"},
        {"ThresholdMetricId": "band", "Threshold": None},
        {"Threshold": None},
        {"Unit": "Count"},
        {"EvaluateLowSampleCountPercentile": "ignore"},
    ],
    ids=str,
)
def test_an_alarm_that_cannot_be_evaluated_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TemplateError):
        alarm(**changes)


@pytest.mark.parametrize("expression", ["RATE(told)", "FILL(other, 0)", "told + other"])
def test_so_is_an_expression_over_what_is_not_there(expression: str) -> None:
    with pytest.raises(TemplateError):
        math(expression)
