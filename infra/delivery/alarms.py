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
_CHANGES = re.compile(r"\b(DIFF|DIFF_TIME|RATE)\s*\(")  # quiet again while letters still lie there


@dataclass(frozen=True)
class _Watch:
    """One metric of a queue in an alarm, and what is made of it there."""

    metric: str
    queue: Resource
    expression: str


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
    above = template.text(alarm.get("ComparisonOperator"))
    threshold = _threshold(template, alarm)
    if not (above == "GreaterThanOrEqualToThreshold" and 0 < threshold <= 1) and not (
        above == "GreaterThanThreshold" and 0 <= threshold < 1
    ):
        return f"fires at {above} {threshold:g}"
    if not tells(template, alarm):
        return "has no action"
    return ""


def _threshold(template: Template, alarm: Resource) -> float:
    told = template.text(alarm.get("Threshold"))
    try:
        return float(told or 0)
    except ValueError:
        raise CannotTell(f"its threshold {told} is no number before it is deployed") from None


def tells(template: Template, alarm: Resource) -> bool:
    """By an action of its own, or as part of a composite alarm that has one."""
    enabled = alarm.get("ActionsEnabled") is None or template.flag(alarm.get("ActionsEnabled"))
    if enabled and listed(alarm.get("AlarmActions")):
        return True
    name = text_of(alarm.get("AlarmName"))
    for composite in template.of(COMPOSITE):
        rule = composite.get("AlarmRule")
        named = alarm.id in names_in(rule) or (bool(name) and name in text_of(rule))
        if named and listed(composite.get("AlarmActions")):
            return True
    return False


def _watches(template: Template, alarm: Resource) -> Iterator[_Watch]:
    """Every queue metric that an alarm looks at. Raises CannotTell."""
    metrics = listed(alarm.get("Metrics"))
    expression = " ".join(text_of(dig(one, "Expression")) for one in metrics)
    for one in [alarm.properties, *(dig(metric, "MetricStat", "Metric") for metric in metrics)]:
        if one is None or dig(one, "Namespace") != "AWS/SQS":
            continue
        queue = _queue(template, dig(one, "Dimensions"))
        if queue is not None:
            yield _Watch(template.text(dig(one, "MetricName")), queue, expression)


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
