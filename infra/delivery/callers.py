"""Who invokes a function without waiting for its answer, as far as the template tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from infra.delivery.letters import EVENT_RULE, INVOKE_CONFIG, SCHEDULE, SUBSCRIPTION
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, dig, is_intrinsic, listed, text_of

BUCKET = "AWS::S3::Bucket"
BUCKET_NOTIFICATIONS = "Custom::S3BucketNotifications"  # what CDK makes of them
PERMISSION = "AWS::Lambda::Permission"
# services that hand an event over and go
_SERVICES = (
    "codecommit.amazonaws.com",
    "config.amazonaws.com",
    "events.amazonaws.com",
    "iot.amazonaws.com",
    "lambda.alarms.cloudwatch.amazonaws.com",
    "logs.amazonaws.com",
    "s3.amazonaws.com",
    "scheduler.amazonaws.com",
    "ses.amazonaws.com",
    "sns.amazonaws.com",
)
_INVOKES = {"*", "lambda:*", "lambda:Invoke*", "lambda:InvokeFunction", "lambda:InvokeAsync"}


def _of_subscription(one: Resource) -> list[Any]:
    return [one.get("Endpoint")] if one.get("Protocol") == "lambda" else []


def _of_topic(topic: Resource) -> list[Any]:
    inside = listed(topic.get("Subscription"))
    return [dig(one, "Endpoint") for one in inside if dig(one, "Protocol") == "lambda"]


def _of_rule(rule: Resource) -> list[Any]:
    return [dig(target, "Arn") for target in listed(rule.get("Targets"))]


def _of_bucket(bucket: Resource) -> list[Any]:
    inside = listed(bucket.get("NotificationConfiguration", "LambdaConfigurations"))
    return [dig(one, "Function") for one in inside]


def _of_notifications(custom: Resource) -> list[Any]:
    inside = listed(custom.get("NotificationConfiguration", "LambdaFunctionConfigurations"))
    return [dig(one, "LambdaFunctionArn") for one in inside]


def _of_permission(permission: Resource) -> list[Any]:
    return [permission.get("FunctionName")] if permission.get("Principal") in _SERVICES else []


def _of_destinations(config: Resource) -> list[Any]:
    return [config.get("DestinationConfig", on, "Destination") for on in ("OnSuccess", "OnFailure")]


_TARGETS: dict[str, Callable[[Resource], list[Any]]] = {
    SUBSCRIPTION: _of_subscription,
    "AWS::SNS::Topic": _of_topic,
    SCHEDULE: lambda one: [one.get("Target", "Arn")],
    EVENT_RULE: _of_rule,
    BUCKET: _of_bucket,
    BUCKET_NOTIFICATIONS: _of_notifications,
    PERMISSION: _of_permission,
    INVOKE_CONFIG: _of_destinations,
}


@lru_cache(maxsize=1)
def callers(template: Template) -> dict[str, list[tuple[Resource, Any]]]:
    """Functions that are invoked asynchronously, by logical id: by what, and by which name there."""
    found: dict[str, list[tuple[Resource, Any]]] = {}
    for caller in template.of(*_TARGETS):
        try:
            targets = _TARGETS[caller.kind](caller)
        except CannotTell:
            continue  # `within_reach` of invoked.py says so
        for target in filter(None, targets):
            try:
                found.setdefault(template.function(target).id, []).append((caller, target))
            except CannotTell:
                continue
    return found


def targets_in_question(template: Template, caller: Resource) -> Iterator[str]:
    """Targets that may be functions, but none of this template."""
    for target in filter(None, _TARGETS[caller.kind](caller)):
        try:
            template.follow(target)
        except CannotTell:
            arn = text_of(target)
            if ":lambda:" in arn or not arn.startswith("arn:"):
                yield arn or "its target"


CALLING_KINDS = tuple(kind for kind in _TARGETS if kind not in (PERMISSION, INVOKE_CONFIG))


def granted(template: Template, function: Resource) -> Iterator[Resource]:
    """Functions whose roles may invoke this one, itself among them. Stars permit much and tell nothing."""
    for caller in template.of(FUNCTION):
        try:
            role = template.follow(caller.get("Role"))
            documents = list(_documents(template, role))
            statements = [one for document in documents for one in listed(dig(document, "Statement"))]
            if any(_permits(template, one, function) for one in statements):
                yield caller
        except CannotTell:
            continue


def _documents(template: Template, role: Resource) -> Iterator[Any]:
    yield from (dig(inline, "PolicyDocument") for inline in listed(role.get("Policies")))
    for policy in template.of("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        roles = [*listed(policy.get("Roles")), *filter(None, [policy.get("RoleName")])]
        if any(one == {"Ref": role.id} for one in roles):
            yield policy.get("PolicyDocument")


def _permits(template: Template, statement: Any, function: Resource) -> bool:
    actions = listed(dig(statement, "Action"))
    if dig(statement, "Effect") != "Allow" or not _INVOKES & {one for one in actions if isinstance(one, str)}:
        return False
    resources = dig(statement, "Resource")
    return any(template.means(one, function) for one in ([resources] if is_intrinsic(resources) else listed(resources)))
