"""SNS topics that do not remember every message they ever sent, and that bear it when a subscriber is gone.

Stock moto fails a `Publish` whose subscriber's queue was deleted. SNS takes the message, tries to deliver it, counts
the failure and puts the message into the subscription's dead letters; whoever published does not hear of it. Stock moto
never counts a topic's subscriptions, either.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable
from typing import Any

from moto.sns.models import Subscription, Topic

from local.aws.patches.patch import Patch

KEPT = 100
PUBLISHED, DELIVERED, FAILED, FILTERED_OUT = "published", "delivered", "failed", "filtered_out"

_log = logging.getLogger(__name__)
_stock_publish = Topic.publish
_stock_deliver = Subscription.publish


class Deliveries:
    """Tells whoever listens what became of each message: `tell(topic's ARN, what)`."""

    def __init__(self) -> None:
        self._listener: Callable[[str, str], None] | None = None

    def listen(self, listener: Callable[[str, str], None]) -> None:
        self._listener = listener

    def stop(self) -> None:
        self._listener = None

    def tell(self, topic_arn: str, what: str) -> None:
        if self._listener is not None:
            self._listener(topic_arn, what)


DELIVERIES = Deliveries()


def _publish(topic: Topic, *args: Any, **kwargs: Any) -> str:
    message_id: str = _stock_publish(topic, *args, **kwargs)
    del topic.sent_notifications[:-KEPT]
    DELIVERIES.tell(topic.arn, PUBLISHED)
    return message_id


def _deliver(subscription: Subscription, message: str, message_id: str, *args: Any, **kwargs: Any) -> None:
    matcher = subscription._filter_policy_matcher
    if matcher is not None and not matcher.matches(kwargs.get("message_attributes"), message):
        DELIVERIES.tell(subscription.topic.arn, FILTERED_OUT)
        return
    try:
        _stock_deliver(subscription, message, message_id, *args, **kwargs)
    except Exception as error:  # whatever it is, the subscriber has not got it
        _log.warning("%s cannot be notified: %s", subscription.endpoint, error)
        DELIVERIES.tell(subscription.topic.arn, FAILED)
        _bury(subscription, message, message_id, *args, **kwargs)
    else:
        DELIVERIES.tell(subscription.topic.arn, DELIVERED)


def _bury(subscription: Subscription, *args: Any, **kwargs: Any) -> None:
    """As it would have been delivered, so it lies among the dead letters, if the subscription has some."""
    letters = json.loads(subscription.attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn")
    if not letters:
        return
    grave = copy.copy(subscription)
    grave.protocol, grave.endpoint = "sqs", letters
    try:
        _stock_deliver(grave, *args, **kwargs)
    except Exception as error:
        _log.warning("nor can its dead letters: %s", error)


def _confirmed(topic: Topic) -> int:
    return len(topic.sns_backend._get_topic_subscriptions(topic))


def _ignore(topic: Topic, _: int) -> None:
    """Stock moto sets it to 0 once and for all."""


PATCHES = (
    Patch(Topic, "subscriptions_confimed", property(_confirmed, _ignore)),  # moto's spelling
    Patch(Topic, "publish", _publish),
    Patch(Subscription, "publish", _deliver),
)
