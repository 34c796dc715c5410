"""EventBridge's default bus, as far as somebody here puts events on it: the status changes of Step Functions.

A rule with a target that is missing gives the event up at once, as AWS does; what else could fail for a while, a queue
or the invocation of a function, does not fail here. So a RetryPolicy is checked, and never needed.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moto.sqs.models import sqs_backends

from local.aws.lock import MOTO
from local.events.filters import BadPatternError, check, matches
from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

_log = logging.getLogger(__name__)
_KEPT = 1_000
_MOST_TARGETS = 5
_TARGET = frozenset({"Arn", "Id", "DeadLetterConfig", "RetryPolicy"})
_RETRIES = {"MaximumRetryAttempts": (0, 185), "MaximumEventAgeInSeconds": (60, 86_400)}
_SOURCES = {"source": "aws.states", "detail-type": "Step Functions Execution Status Change"}

Event = dict[str, Any]
Invoke = Callable[[str, Event], bool]
"""Has a function invoked, by its ARN and without waiting; False when there is none."""


@dataclass(frozen=True)
class Target:
    """Of one rule."""

    arn: str
    letters: str | None
    """The ARN of the queue for what could not be delivered."""

    @property
    def service(self) -> str:
        return self.arn.split(":")[2]


@dataclass(frozen=True)
class Rule:
    """Hears of the events that match its pattern."""

    logical_id: str
    arn: str
    pattern: dict[str, Any]
    targets: tuple[Target, ...]
    enabled: bool = True

    def takes(self, event: Event) -> bool:
        return self.enabled and matches(self.pattern, event)


class Rules:
    """All rules of a stack. May be used from any thread, also from one that holds moto's lock."""

    def __init__(self, rules: Iterable[Rule], invoke: Invoke, ring: Callable[[], None]) -> None:
        """`ring` is called whenever a queue has got something."""
        self.rules = tuple(rules)
        self._invoke = invoke
        self._ring = ring
        self._lock = threading.Lock()
        self._losing: tuple[float, str] = (0, "")
        self._lost: deque[Event] = deque(maxlen=_KEPT)

    def take(self, event: Event) -> None:
        """Hand it on to everybody who waits for it, unless it gets lost."""
        taking = [rule for rule in self.rules if rule.takes(event)]
        if not taking or self._loses(event):
            return
        for rule in taking:
            for target in rule.targets:
                self._deliver(rule, target, event)

    def lose(self, count: int | None, match: str) -> None:
        """The next `count` events (None: all) that a rule takes, and that have `match` in the execution's name."""
        with self._lock:
            self._losing = (float("inf") if count is None else count, match)
            self._lost.clear()

    def heed(self) -> None:
        """Lose none any more; those that were lost stay lost."""
        with self._lock:
            self._losing = (0, "")

    @property
    def lost(self) -> list[Event]:
        with self._lock:
            return list(self._lost)

    def _loses(self, event: Event) -> bool:
        with self._lock:
            left, match = self._losing
            if left <= 0 or match not in event["detail"]["name"]:
                return False
            self._losing = (left - 1, match)
            self._lost.append(event)
            return True

    def _deliver(self, rule: Rule, target: Target, event: Event) -> None:
        if target.service == "sqs":
            delivered = self._send(target.arn, json.dumps(event))
        else:
            delivered = self._invoke(target.arn, event)
        if delivered:
            return
        _log.warning("%s: there is no %s", rule.logical_id, target.arn)
        if target.letters is not None:
            self._send(target.letters, json.dumps(event), _why(rule, target))

    def _send(self, queue_arn: str, body: str, attributes: dict[str, Any] | None = None) -> bool:
        region, account, name = queue_arn.split(":")[3:6]
        with MOTO:
            queues = sqs_backends[account][region]
            if name not in queues.queues:
                return False
            queues.send_message(queue_name=name, message_body=body, message_attributes=attributes)
        self._ring()
        return True


def _why(rule: Rule, target: Target) -> dict[str, Any]:
    """The attributes of a dead letter: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html"""
    told = {
        "RULE_ARN": rule.arn,
        "TARGET_ARN": target.arn,
        "ERROR_CODE": "NO_RESOURCE",
        "ERROR_MESSAGE": f"There is no {target.arn}",
        "RETRY_ATTEMPTS": "0",
    }
    return {name: {"DataType": "String", "StringValue": value} for name, value in told.items()}


def read(stack: Stack) -> list[Rule]:
    """TemplateError, with the logical id, for a rule that is not played here."""
    found = []
    for resource in stack.of_type("AWS::Events::Rule"):
        try:
            found.append(_rule(resource))
        except (TemplateError, BadPatternError) as error:
            raise TemplateError(str(error)).at(resource.logical_id) from error
    return found


def _rule(resource: Resource) -> Rule:
    properties = resource.properties
    targets = properties.get("Targets", [])
    if len(targets) > _MOST_TARGETS:
        raise TemplateError(f"a rule has at most {_MOST_TARGETS} targets")
    if properties.get("State", "ENABLED") not in ("ENABLED", "DISABLED"):
        raise TemplateError(f"a rule cannot be {properties['State']} on this machine")
    return Rule(
        resource.logical_id,
        resource.attributes["Arn"],
        _pattern(properties.get("EventPattern")),
        tuple(map(_target, targets)),
        properties.get("State", "ENABLED") == "ENABLED",
    )


def _pattern(given: Any) -> dict[str, Any]:
    pattern = json.loads(given) if isinstance(given, str) else given
    if not isinstance(pattern, dict) or not pattern:
        raise TemplateError("a rule needs an EventPattern; schedules are played as AWS::Scheduler::Schedule only")
    check(pattern)
    for name, only in _SOURCES.items():
        if name in pattern and not matches({name: pattern[name]}, {name: only}):
            raise TemplateError(f"nobody on this machine puts such events on the bus: {name} is never but {only!r}")
    return pattern


def _target(given: Mapping[str, Any]) -> Target:
    unknown = sorted(set(given) - _TARGET)
    if unknown:
        raise TemplateError(f"{', '.join(unknown)} of a target is not played on this machine")
    for name, value in given.get("RetryPolicy", {}).items():
        least, most = _RETRIES[name]
        if not least <= int(value) <= most:
            raise TemplateError(f"{name} must be between {least} and {most}, not {value}")
    target = Target(given["Arn"], given.get("DeadLetterConfig", {}).get("Arn"))
    if target.service not in ("lambda", "sqs"):
        raise TemplateError(f"targets of the kind {target.service} are not played on this machine")
    return target
