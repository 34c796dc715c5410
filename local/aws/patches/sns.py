"""SNS topics that do not remember every message they ever sent."""

from __future__ import annotations

from typing import Any

from moto.sns.models import Topic

from local.aws.patches.patch import Patch

KEPT = 100

_stock_publish = Topic.publish


def _publish(topic: Topic, *args: Any, **kwargs: Any) -> str:
    message_id: str = _stock_publish(topic, *args, **kwargs)
    del topic.sent_notifications[:-KEPT]
    return message_id


PATCHES = (Patch(Topic, "publish", _publish),)
