"""What SNS reports of a topic: what was published, and what became of each message at each subscription."""

from __future__ import annotations

from collections.abc import Callable

from local.aws.patches.sns import DELIVERED, FAILED, FILTERED_OUT, PUBLISHED
from local.metrics.store import Store, metric

NAMESPACE = "AWS/SNS"
_NAMES = {
    PUBLISHED: "NumberOfMessagesPublished",
    DELIVERED: "NumberOfNotificationsDelivered",
    FAILED: "NumberOfNotificationsFailed",
    FILTERED_OUT: "NumberOfNotificationsFilteredOut",
}
NAMES = tuple(_NAMES.values())


class TopicMetrics:
    """Hears of every message."""

    def __init__(self, store: Store, now_s: Callable[[], float]) -> None:
        self._store = store
        self._now_s = now_s

    def tell(self, topic_arn: str, what: str) -> None:
        """One message at the topic, or at one of its subscriptions."""
        name = topic_arn.rpartition(":")[2]
        self._store.put(metric(NAMESPACE, _NAMES[what], {"TopicName": name}), 1, self._now_s())
