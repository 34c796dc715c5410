"""What AWS sends by itself, from topics, schedules and rules: where it goes if it cannot be delivered."""

from __future__ import annotations

from collections.abc import Iterator

from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import EVENT_RULE, SCHEDULE, SUBSCRIPTION, redrive_of
from infra.delivery.template import Resource, Template, dig, listed, shown

TOPIC = "AWS::SNS::Topic"
# machines read these; mails and short messages go to people
_MACHINES = ("lambda", "sqs", "http", "https", "firehose")


def subscription(template: Template, one: Resource) -> Iterator[Problem]:
    """SNS drops what its retries could not deliver."""
    if template.text(one.get("Protocol")) in _MACHINES and redrive_of(one) is None:
        yield Problem(one, "what SNS cannot deliver is dropped", "set RedrivePolicy.deadLetterTargetArn to a queue")


def inline_subscription(template: Template, topic: Resource) -> Iterator[Problem]:
    """Written inside the topic, a subscription can have no dead letters."""
    inside = [one for one in listed(topic.get("Subscription")) if template.text(dig(one, "Protocol")) in _MACHINES]
    if inside:
        told = ", ".join(shown(dig(one, "Endpoint")) for one in inside)
        yield Problem(
            topic,
            f"what SNS cannot deliver to {told} is dropped",
            f"move it into an {SUBSCRIPTION} with a RedrivePolicy",
        )


def schedule(template: Template, one: Resource) -> Iterator[Problem]:
    """The Scheduler drops what it could not start within a day."""
    if one.get("Target", "DeadLetterConfig", "Arn") is None:
        yield Problem(one, "a start that does not succeed is dropped", "set Target.DeadLetterConfig.Arn to a queue")
    if one.get("Target", "RetryPolicy") is None:
        yield Problem(
            one,
            "a start that failed is repeated for a day, beside the starts that came after it",
            "set Target.RetryPolicy (MaximumEventAgeInSeconds, MaximumRetryAttempts)",
        )


def event_rule(template: Template, rule: Resource) -> Iterator[Problem]:
    """EventBridge drops what it could not deliver to a target within a day."""
    for number, target in enumerate(listed(rule.get("Targets"))):
        name = shown(dig(target, "Id")) if dig(target, "Id") is not None else str(number)
        if dig(target, "DeadLetterConfig", "Arn") is None:
            yield Problem(
                rule,
                f"events that cannot be delivered to its target {name} are dropped",
                "set DeadLetterConfig.Arn of the target to a queue",
            )
        if dig(target, "RetryPolicy") is None:
            yield Problem(
                rule,
                f"nothing says how long events for its target {name} are worth a try",
                "set RetryPolicy of the target (MaximumEventAgeInSeconds, MaximumRetryAttempts)",
            )


RULES = (
    Rule("subscription-letters", (SUBSCRIPTION,), subscription),
    Rule("subscription-letters", (TOPIC,), inline_subscription),
    Rule("schedule-letters", (SCHEDULE,), schedule),
    Rule("rule-letters", (EVENT_RULE,), event_rule),
)
