"""Dead letters, wherever they come from: in a queue of this template, kept for long, and with somebody told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from infra.delivery.findings import Problem, Rule
from infra.delivery.sources import MAPPING, QUEUE
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, dig, listed

SUBSCRIPTION = "AWS::SNS::Subscription"
SCHEDULE = "AWS::Scheduler::Schedule"
EVENT_RULE = "AWS::Events::Rule"
INVOKE_CONFIG = "AWS::Lambda::EventInvokeConfig"

FOUR_DAYS_S = 345_600  # what SQS keeps a message for, unless told
TWO_WEEKS_S = 1_209_600  # the most that it does


def redrive_of(resource: Resource) -> Any:
    """Where a queue or a subscription sends its dead letters."""
    return resource.get("RedrivePolicy", "deadLetterTargetArn")


def failures_of(resource: Resource) -> Any:
    """Where a mapping or asynchronous invokes send what has failed."""
    return resource.get("DestinationConfig", "OnFailure", "Destination")


def _of_targets(rule: Resource) -> list[Any]:
    return [dig(target, "DeadLetterConfig", "Arn") for target in listed(rule.get("Targets"))]


_PLACES: dict[str, Callable[[Resource], list[Any]]] = {
    QUEUE: lambda one: [redrive_of(one)],
    SUBSCRIPTION: lambda one: [redrive_of(one)],
    MAPPING: lambda one: [failures_of(one)],
    INVOKE_CONFIG: lambda one: [failures_of(one)],
    FUNCTION: lambda one: [one.get("DeadLetterConfig", "TargetArn")],
    SCHEDULE: lambda one: [one.get("Target", "DeadLetterConfig", "Arn")],
    EVENT_RULE: _of_targets,
}


@lru_cache(maxsize=1)
def letters(template: Template) -> dict[str, list[Resource]]:
    """Queues that hold dead letters, by logical id, and whose; without those that `places` cannot follow."""
    found: dict[str, list[Resource]] = {}
    for owner in template.of(*_PLACES):
        try:
            places = _PLACES[owner.kind](owner)
        except CannotTell:
            continue
        for place in filter(None, places):
            try:
                queue = template.follow(place)
            except CannotTell:
                continue
            if queue.kind == QUEUE and owner not in found.setdefault(queue.id, []):
                found[queue.id].append(owner)
    return found


def within_reach(template: Template, owner: Resource) -> Iterator[Problem]:
    """Finds nothing: raises CannotTell for letters that go to where the other rules cannot look."""
    for place in filter(None, _PLACES[owner.kind](owner)):
        template.follow(place)
    yield from ()


def retention(template: Template, queue: Resource) -> Iterator[Problem]:
    """Moving a message of a standard queue does not restart its clock: letters need more time than their source."""
    owners = letters(template).get(queue.id)
    if not owners:
        return
    kept = template.number(queue.get("MessageRetentionPeriod"), FOUR_DAYS_S)
    if kept < TWO_WEEKS_S:
        yield Problem(
            queue,
            f"it keeps dead letters for {kept} s: what happens on a Friday may be gone when somebody is back",
            f"set MessageRetentionPeriod to {TWO_WEEKS_S}, the 14 days that SQS offers",
        )
    if template.flag(queue.get("FifoQueue")):
        return  # there the clock does restart
    for source in (one for one in owners if one.kind == QUEUE):
        before = template.number(source.get("MessageRetentionPeriod"), FOUR_DAYS_S)
        if before >= max(kept, TWO_WEEKS_S):
            yield Problem(
                source,
                f"it keeps messages for {before} s and so do its dead letters in {queue.id}, counted from the same "
                "moment: one that comes late is gone at once",
                f"set MessageRetentionPeriod below {TWO_WEEKS_S}",
            )


RULES = (
    Rule("letters-within-reach", tuple(_PLACES), within_reach),
    Rule("letters-retention", (QUEUE,), retention),
)
