"""Queues that services write to by themselves: the service needs the queue's policy, and its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from infra.delivery.callers import BUCKET, BUCKET_NOTIFICATIONS
from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import EVENT_RULE, SUBSCRIPTION, redrive_of
from infra.delivery.sources import QUEUE
from infra.delivery.template import CannotTell, Resource, Template, dig, listed, text_of

_SENDS = {"*", "sqs:*", "sqs:Send*", "sqs:SendMessage"}
_ENCRYPTS = {"*", "kms:*", "kms:GenerateDataKey", "kms:GenerateDataKey*"}


def _of_subscription(one: Resource) -> list[Any]:
    return [redrive_of(one), one.get("Endpoint") if one.get("Protocol") == "sqs" else None]


def _of_rule(rule: Resource) -> list[Any]:
    places = [(dig(one, "Arn"), dig(one, "DeadLetterConfig", "Arn")) for one in listed(rule.get("Targets"))]
    return [place for pair in places for place in pair]


def _of_bucket(bucket: Resource) -> list[Any]:
    return [dig(one, "Queue") for one in listed(bucket.get("NotificationConfiguration", "QueueConfigurations"))]


def _of_notifications(custom: Resource) -> list[Any]:
    return [dig(one, "QueueArn") for one in listed(custom.get("NotificationConfiguration", "QueueConfigurations"))]


# the Scheduler and Lambda's destinations write with a role of ours, whose failure is their caller's
_WRITERS: dict[str, tuple[str, Callable[[Resource], list[Any]]]] = {
    SUBSCRIPTION: ("sns.amazonaws.com", _of_subscription),
    EVENT_RULE: ("events.amazonaws.com", _of_rule),
    BUCKET: ("s3.amazonaws.com", _of_bucket),
    BUCKET_NOTIFICATIONS: ("s3.amazonaws.com", _of_notifications),
}


def reach(template: Template, writer: Resource) -> Iterator[Problem]:
    """Without permission the service fails alone: whoever sent the event hears nothing of it."""
    service, places = _WRITERS[writer.kind]
    for place in filter(None, places(writer)):
        try:
            queue = template.follow(place)
        except CannotTell:
            continue  # letters and targets out of reach have notes of their own
        if queue.kind == QUEUE:
            yield from _policy(template, queue, service, writer)
            yield from _key(template, queue, service, writer)


def _policy(template: Template, queue: Resource, service: str, writer: Resource) -> Iterator[Problem]:
    policies = [
        policy.get("PolicyDocument")
        for policy in template.of("AWS::SQS::QueuePolicy", "AWS::SQS::QueueInlinePolicy")
        if any(template.means(one, queue) for one in [*listed(policy.get("Queues")), policy.get("Queue")])
    ]
    if not any(_lets_in(document, service, _SENDS) for document in policies):
        yield Problem(
            queue,
            f"its policy does not let {service} in: nothing that {writer.id} sends arrives",
            f"allow sqs:SendMessage to {service} in an AWS::SQS::QueuePolicy",
        )


def _key(template: Template, queue: Resource, service: str, writer: Resource) -> Iterator[Problem]:
    key = queue.get("KmsMasterKeyId")
    if key is None or key == "":
        return
    if text_of(key).endswith("alias/aws/sqs"):
        yield Problem(
            queue,
            f"services such as {service} cannot use the key that AWS manages: nothing that {writer.id} sends arrives",
            "set SqsManagedSseEnabled instead of KmsMasterKeyId, or take a key of your own",
        )
        return
    found = template.follow(key)
    if found.kind == "AWS::KMS::Alias":
        found = template.follow(found.get("TargetKeyId"))
    if not _lets_in(found.get("KeyPolicy"), service, _ENCRYPTS):
        yield Problem(
            found,
            f"its policy does not let {service} in: nothing that {writer.id} sends to {queue.id} arrives",
            f"allow kms:GenerateDataKey* and kms:Decrypt to {service} in KeyPolicy",
        )


def _lets_in(document: Any, service: str, actions: set[str]) -> bool:
    for statement in listed(dig(document, "Statement")):
        allowed = {one for one in listed(dig(statement, "Action")) if isinstance(one, str)}
        if dig(statement, "Effect") == "Allow" and allowed & actions and _is(dig(statement, "Principal"), service):
            return True
    return False


def _is(principal: Any, service: str) -> bool:
    if isinstance(principal, str):
        return principal == "*"
    named = [*listed(dig(principal, "Service")), *listed(dig(principal, "AWS"))]
    return service in named or "*" in named


RULES = (Rule("reach", tuple(_WRITERS), reach),)
