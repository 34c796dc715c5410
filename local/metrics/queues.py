"""What SQS reports of a queue, once a minute while it is active: how many messages are visible, how old the oldest is.

Nothing looks every minute: the minutes that have passed are made up for when a call or a skip of the clock is about to
change what was true in them, from the messages' own times. A skip is a time in which nobody was there to work.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import unquote

from moto.sqs.models import Queue, sqs_backends

from local.aws.calls import Call
from local.aws.lock import MOTO
from local.metrics.store import MINUTE_S, Metric, Store, metric
from local.stack.place import ACCOUNT, REGION

NAMESPACE = "AWS/SQS"
VISIBLE, AGE = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
NAMES = (VISIBLE, AGE)
ACTIVE_S = 6 * 3600
"""A queue without messages is active for so long after its last call, and reports nothing afterwards."""
LONGEST_S = 2 * 86_400
"""Of a longer skip only that much is reported: its end."""
MANY_RECEIVES = 3
"""A message that was received so often moves to the back of its queue, and is not the oldest any more."""


class QueueMetrics:
    """Of all queues of a region. May be used from any thread."""

    def __init__(
        self, store: Store, now_s: Callable[[], float], wanted: Collection[Metric], region: str = REGION
    ) -> None:
        """`wanted`: what somebody looks at; nothing else is made up."""
        self._store = store
        self._wanted = frozenset(wanted)
        self._now_s = now_s
        self._region = region
        self._next_s: float = float("inf")  # not started
        self._called: dict[str, float] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """The first minute that is reported is the next one."""
        self._next_s = _following(self._now_s())

    def report_until(self, until_s: float) -> None:
        """Every full minute until then, as the queues stand now. Quick when there is none."""
        if until_s < self._next_s:
            return
        with MOTO, self._lock:
            first = max(int(self._next_s), _following(until_s - LONGEST_S))
            minutes = range(first, int(until_s) + 1, MINUTE_S)
            self._next_s = max(self._next_s, _following(until_s))
            for name, queue in sqs_backends[ACCOUNT][self._region].queues.items():
                self._report(name, queue, minutes)

    def before(self, call: Call) -> None:
        """Note that somebody uses the queue."""
        if call.service == "sqs" and (name := _queue_named_by(call)):
            self._called[name] = self._now_s()

    # -------------------------------------------------------------------------------------------------------

    def _report(self, name: str, queue: Queue, minutes: range) -> None:
        visible, age = (metric(NAMESPACE, one, {"QueueName": name}) for one in NAMES)
        if not {visible, age} & self._wanted:
            return
        held = _Held(queue)
        active_until = self._called.get(name, float("-inf")) + ACTIVE_S
        for minute in minutes:
            # what stands at the end of a minute belongs to it
            if minute <= active_until or held.any(minute):
                self._store.put(visible, held.visible(minute), minute - MINUTE_S, minute)
            if (oldest := held.oldest(minute)) is not None:
                self._store.put(age, max(0.0, minute - oldest), minute - MINUTE_S, minute)
            elif minute <= active_until and not held.any(minute):
                self._store.put(age, 0.0, minute - MINUTE_S, minute)


class _Held:
    """What a queue holds, sorted by its times, so that each minute is a look and no walk: a queue may be deep."""

    def __init__(self, queue: Queue) -> None:
        kept_s: int = queue.message_retention_period  # type: ignore[attr-defined]
        self._kept_s = kept_s
        shown, gone, sent = [], [], []
        for message in queue._messages:
            ends = (message.sent_timestamp or 0) / 1000 + kept_s
            begins = max(message.visible_at, message.delayed_until) / 1000
            gone.append(ends)
            shown.append(min(begins, ends))
            if message.approximate_receive_count < MANY_RECEIVES:
                sent.append(ends - kept_s)
        self._shown, self._gone, self._sent = sorted(shown), sorted(gone), sorted(sent)

    def any(self, at_s: float) -> bool:
        return bool(self._gone) and self._gone[-1] > at_s

    def visible(self, at_s: float) -> int:
        """Shown by then, and not yet gone."""
        return bisect_left(self._shown, at_s) - bisect_left(self._gone, at_s)

    def oldest(self, at_s: float) -> float | None:
        """When the oldest that counts was sent."""
        first = bisect_right(self._sent, at_s - self._kept_s)
        return self._sent[first] if first < len(self._sent) else None


def _following(moment_s: float) -> int:
    return (int(moment_s) // MINUTE_S + 1) * MINUTE_S


def _queue_named_by(call: Call) -> str:
    """By the URL among its parameters; operations that name none are about no single queue."""
    try:
        given: Any = call.parameters.get("QueueUrl", "")
    except ValueError:
        return ""
    return unquote(str(given).rstrip("/").rpartition("/")[2])
