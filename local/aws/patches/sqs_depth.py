"""How deep a queue is, counted once when somebody asks.

Stock moto counts three times through the whole queue for every message that is sent or received, because the counts
are attributes and it collects all attributes to look at one: quadratic in the depth.
"""

from __future__ import annotations

from typing import Any

from moto.core.utils import camelcase_to_underscores, unix_time_millis
from moto.sqs.models import Message, Queue

from local.aws.patches.patch import Patch

_COUNTERS = {
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
}

_stock_attributes: Any = vars(Queue)["attributes"].fget


class _Attributes(dict[str, Any]):
    """A queue's attributes, its depths counted only when somebody reads them."""

    def __init__(self, queue: Queue, fixed: dict[str, Any]) -> None:
        super().__init__(fixed)
        self.update(dict.fromkeys(_COUNTERS))
        self._queue = queue

    def __getitem__(self, name: str) -> Any:
        if name in _COUNTERS:
            return getattr(self._queue, camelcase_to_underscores(name))
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self.keys() else default

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


def _attributes(queue: Queue) -> _Attributes:
    queue.BASE_ATTRIBUTES = [name for name in Queue.BASE_ATTRIBUTES if name not in _COUNTERS]
    try:
        return _Attributes(queue, _stock_attributes(queue))
    finally:
        del queue.__dict__["BASE_ATTRIBUTES"]


def _is_ready(message: Message, now: float) -> bool:
    return bool(now > message.visible_at and now >= message.delayed_until)


def ready(queue: Queue) -> list[Message]:
    now = unix_time_millis()
    return [message for message in queue._messages if _is_ready(message, now)]


def _delayed(queue: Queue) -> int:
    now = unix_time_millis()
    return sum(now < message.delayed_until for message in queue._messages)


def _in_flight(queue: Queue) -> int:
    now = unix_time_millis()
    return sum(now <= message.visible_at for message in queue._messages)


PATCHES = (
    Patch(Queue, "attributes", property(_attributes)),
    Patch(Queue, "messages", property(ready)),
    Patch(Queue, "approximate_number_of_messages_delayed", property(_delayed)),
    Patch(Queue, "approximate_number_of_messages_not_visible", property(_in_flight)),
)
