"""How a queue hands out its messages: waiting without holding everybody up, buried when exhausted, fair to groups.

Stock moto keeps an expired message at the head for ever, where it hides all others, and knows no fair queues.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from copy import copy
from typing import Any

from moto.core.utils import unix_time_millis
from moto.sqs.models import Message, Queue, SQSBackend, _filter_message_attributes

from local.aws.lock import MESSAGES
from local.aws.patches.patch import Patch
from local.aws.patches.sqs_depth import ready

_stock_receive = SQSBackend.receive_message
_stock_add = Queue.add_message


class _Receivers:
    """Whether long polls may wait; the server closes them all when it stops."""

    closed = False

    def open(self) -> None:
        self.closed = False

    def close(self) -> None:
        with MESSAGES:
            self.closed = True
            MESSAGES.notify_all()


RECEIVERS = _Receivers()


def _add_message(queue: Queue, message: Message) -> None:
    _stock_add(queue, message)
    with MESSAGES:
        MESSAGES.notify_all()


def _receive(  # noqa: PLR0917 - moto's signature
    backend: SQSBackend,
    queue_name: str,
    count: int,
    wait_seconds_timeout: int,
    visibility_timeout: int,
    message_attribute_names: list[str] | None = None,
) -> list[Message]:
    """Long polling waits in real time and lets the lock go meanwhile."""
    queue = backend.get_queue(queue_name)
    names = message_attribute_names or []
    end = time.monotonic() + (wait_seconds_timeout or 0)
    with MESSAGES:
        while True:
            if queue.fifo_queue:
                taken = _stock_receive(backend, queue_name, count, 0, visibility_timeout, names)
            else:
                taken = [_copy(message, names) for message in _take(queue, count, visibility_timeout)]
            left = end - time.monotonic()
            if taken or left <= 0 or RECEIVERS.closed:
                return taken
            MESSAGES.wait(min(left, _until_next(queue)))


def _copy(message: Message, names: list[str]) -> Message:
    received = copy(message)
    _filter_message_attributes(received, names)
    return received


def _until_next(queue: Queue) -> float:
    """Seconds until a hidden or delayed message shows itself; at most one, because the clock may skip."""
    now = unix_time_millis()
    waits = (max(message.visible_at, message.delayed_until) - now for message in queue._messages)
    return min(1.0, max(0.01, min(waits, default=1000.0) / 1000 + 0.001))


def _take(queue: Queue, count: int, visibility_timeout: int) -> list[Message]:
    forget_expired(queue)
    chosen = _fairly(queue, _bury_exhausted(queue, ready(queue)), count)
    for message in chosen:
        message.mark_received(visibility_timeout=visibility_timeout)
        message.__dict__["received_ms"] = unix_time_millis()
    return chosen


def forget_expired(queue: Any) -> None:
    """What is older than the queue's retention is gone."""
    oldest = unix_time_millis() - queue.message_retention_period * 1000
    if any(message.sent_timestamp <= oldest for message in queue._messages):
        queue._messages = [message for message in queue._messages if message.sent_timestamp > oldest]


def _bury_exhausted(queue: Queue, shown: list[Message]) -> list[Message]:
    """Move what was received `maxReceiveCount` times to the dead-letter queue; its age goes on counting there."""
    dead_letters = queue.dead_letter_queue
    if dead_letters is None or not queue.redrive_policy:
        return shown
    limit = queue.redrive_policy["maxReceiveCount"]
    dead = {id(message) for message in shown if message.approximate_receive_count >= limit}
    if not dead:
        return shown
    queue._messages = [message for message in queue._messages if id(message) not in dead]
    for message in shown:
        if id(message) in dead:
            message.__dict__["dead_letter_source"] = queue.queue_arn
            message.visible_at = 0.0
            dead_letters.add_message(message)
    return [message for message in shown if id(message) not in dead]


def _fairly(queue: Queue, shown: list[Message], count: int) -> list[Message]:
    """The oldest first, but never from a message group that has more in flight than another that waits.

    Fair queues of standard queues; AWS does not publish its rule, this is the plainest one with the same effect.
    """
    if not any(message.group_id for message in shown):
        return shown[:count]
    now = unix_time_millis()
    busy = Counter(message.group_id for message in queue._messages if now <= message.visible_at)
    waiting: OrderedDict[str | None, list[Message]] = OrderedDict()
    for message in reversed(shown):
        waiting.setdefault(message.group_id, []).append(message)
    chosen: list[Message] = []
    while waiting and len(chosen) < count:
        group = min(waiting, key=lambda name: (busy[name], waiting[name][-1].sent_timestamp or 0))
        chosen.append(waiting[group].pop())
        busy[group] += 1
        if not waiting[group]:
            del waiting[group]
    return chosen


PATCHES = (
    Patch(Queue, "add_message", _add_message),
    Patch(SQSBackend, "receive_message", _receive),
)
