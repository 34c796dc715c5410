"""Who else hears of job events: the declared subscriptions, each with dead letters of its own."""

from __future__ import annotations

from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import subscriptions
from infra.notifications import Notifications
from infra.queues import dead_letters
from infra.settings import Settings
from infra.subscriptions import EMAIL, HTTPS, SQS, Subscription

_PROTOCOLS = {
    EMAIL: sns.SubscriptionProtocol.EMAIL,
    HTTPS: sns.SubscriptionProtocol.HTTPS,
    SQS: sns.SubscriptionProtocol.SQS,
}


class Subscribers(Construct):
    """`dead_letters` by the names of the subscriptions: what SNS could not deliver to them."""

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, notifications: Notifications
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters: dict[str, sqs.Queue] = {}
        for name, declared in subscriptions.read(settings.subscriptions).items():
            # a construct of its own: its name as it is, so that no two spellings become one
            place = Construct(self, name)
            self.dead_letters[name] = dead_letters(place, "DeadLetters", settings)
            self._subscribe(place, declared, self.dead_letters[name], notifications)

    def _subscribe(
        self, place: Construct, declared: Subscription, letters: sqs.Queue, notifications: Notifications
    ) -> None:
        """It lets SNS send to the dead letters, too: what this topic could not deliver, and nothing else."""
        wanted = {attribute: sns.SubscriptionFilter(values) for attribute, values in declared.filter.items()}
        sns.Subscription(
            place,
            "Subscription",
            topic=notifications.job_events,
            protocol=_PROTOCOLS[declared.protocol],
            endpoint=declared.endpoint,
            # the envelope itself; over HTTPS the wrapping stays, for SNS signs it and nobody else proves who sent it
            raw_message_delivery=declared.protocol == SQS or None,
            filter_policy=wanted or None,
            dead_letter_queue=letters,
        )
