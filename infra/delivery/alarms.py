"""Dead letters wake somebody: an alarm on what is visible in their queue, from the first one on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import letters
from infra.delivery.sources import QUEUE
from infra.delivery.template import CannotTell, Resource, Template, dig, listed, names_in, text_of

ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE = "AWS::CloudWatch::CompositeAlarm"
VISIBLE = "ApproximateNumberOfMessagesVisible"
LATEST_S = 3600
"""A letter is told of within the hour."""
_COUNTS = ("", "Average", "Maximum", "Minimum", "Sum")  # SampleCount counts reports, not letters
_MANAGED_KEY = "alias/aws/sns"  # its policy cannot be changed, and lets no CloudWatch in
_CHANGES = re.compile(r"\b(DIFF|DIFF_TIME|RATE)\s*\(")  # quiet again while letters still lie there


@dataclass(frozen=True)
class _Watch:
    """One metric of a queue in an alarm, and what is made of it there."""

    metric: str
    queue: Resource
    expression: str
    statistic: str
    period_s: int


def alarmed(template: Template, queue: Resource) -> Iterator[Problem]:
    """One alarm that is right is enough; if there is none, what is wrong with those that come near."""
    if queue.id not in letters(template):
        return
    wrong: list[str] = []
    unread: list[str] = []
    for alarm in template.of(ALARM):
        try:
            faults = [_fault(template, alarm, one) for one in _watches(template, alarm) if one.queue is queue]
        except CannotTell as why:
            unread.append(f"{alarm.id}: {why}")
            continue
        if "" in faults:
            return
        wrong += [f"{alarm.id} {fault}" for fault in dict.fromkeys(faults)]
    if unread and not wrong:
        raise CannotTell(f"none of the alarms is certain to watch it ({'; '.join(unread)})")
    yield Problem(
        queue,
        f"nobody is told of dead letters in it{': ' if wrong else ''}{', '.join(wrong)}",
        f"add an alarm on {VISIBLE} ≥ 1 of this queue, with an action",
    )


def _fault(template: Template, alarm: Resource, watch: _Watch) -> str:
    """Why this alarm does not tell of the first letter; empty if it does."""
    if watch.metric != VISIBLE:
        return f"watches {watch.metric}"
    if _CHANGES.search(watch.expression):
        return "sees only changes"
    if watch.statistic not in _COUNTS:
        return f"looks at {watch.statistic}"
    late = watch.period_s * _periods(template, alarm)
    if late > LATEST_S:
        return f"fires only after {late} s"
    if not _crosses(template, alarm):
        return f"fires at {template.text(alarm.get('ComparisonOperator'))} {_threshold(template, alarm):g}"
    if not tells(template, alarm):
        return "has no action that CloudWatch can carry out"
    return ""


def _periods(template: Template, alarm: Resource) -> int:
    """How many have to be above the threshold: M of N, or all."""
    periods = template.number(alarm.get("EvaluationPeriods"), 1)
    return template.number(alarm.get("DatapointsToAlarm"), periods)


def _crosses(template: Template, alarm: Resource) -> bool:
    """Whether the first letter is above the threshold, and none is not."""
    above = template.text(alarm.get("ComparisonOperator"))
    threshold = _threshold(template, alarm)
    if above == "GreaterThanOrEqualToThreshold":
        return 0 < threshold <= 1
    return above == "GreaterThanThreshold" and 0 <= threshold < 1


def _threshold(template: Template, alarm: Resource) -> float:
    told = template.text(alarm.get("Threshold"))
    try:
        return float(told or 0)
    except ValueError:
        raise CannotTell(f"its threshold {told} is no number before it is deployed") from None


def tells(template: Template, alarm: Resource) -> bool:
    """By an action of its own, or as part of a composite alarm that has one."""
    enabled = alarm.get("ActionsEnabled") is None or template.flag(alarm.get("ActionsEnabled"))
    if enabled and _is_heard(template, alarm):
        return True
    name = text_of(alarm.get("AlarmName"))
    for composite in template.of(COMPOSITE):
        rule = composite.get("AlarmRule")
        named = alarm.id in names_in(rule) or (bool(name) and name in text_of(rule))
        if named and _is_heard(template, composite):
            return True
    return False


def _is_heard(template: Template, alarm: Resource) -> bool:
    """Whether one of its actions is none that must fail."""
    return any(not _is_sealed(template, action) for action in listed(alarm.get("AlarmActions")))


def _is_sealed(template: Template, action: Any) -> bool:
    """A topic under a key that CloudWatch cannot use."""
    try:
        topic = template.follow(action)
    except CannotTell:
        return False  # of somebody else
    return text_of(topic.get("KmsMasterKeyId")).endswith(_MANAGED_KEY)


def _watches(template: Template, alarm: Resource) -> Iterator[_Watch]:
    """Every queue metric that an alarm looks at. Raises CannotTell."""
    metrics = listed(alarm.get("Metrics"))
    expression = " ".join(text_of(dig(one, "Expression")) for one in metrics)
    stats = [dig(one, "MetricStat") for one in metrics]
    for one in (alarm.properties, *(stat for stat in stats if stat is not None)):
        metric = one if one is alarm.properties else dig(one, "Metric")
        if dig(metric, "Namespace") != "AWS/SQS":
            continue
        queue = _queue(template, dig(metric, "Dimensions"))
        if queue is not None:
            yield _Watch(
                template.text(dig(metric, "MetricName")),
                queue,
                expression,
                template.text(dig(one, "Statistic") or dig(one, "Stat")),
                template.number(dig(one, "Period"), 60),
            )


def _queue(template: Template, dimensions: Any) -> Resource | None:
    for dimension in listed(dimensions):
        if dig(dimension, "Name") == "QueueName":
            try:
                found = template.follow(dig(dimension, "Value"))
            except CannotTell:
                return None  # a queue of somebody else
            return found if found.kind == QUEUE else None
    return None


RULES = (Rule("letters-alarm", (QUEUE,), alarmed),)
