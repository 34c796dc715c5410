"""Wakes event sources when there may be work, so that they look at once without looking all the time."""

from __future__ import annotations

import threading
import time

from local.aws.calls import Call, Refusal, Response
from local.clock import VirtualClock

_RUNG_BY = {
    "sqs": {"SendMessage", "SendMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch"},
    "sns": {"Publish", "PublishBatch"},
    "dynamodb": {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "ExecuteStatement"},
}
QUEUES, STREAMS = "queues", "streams"
_RINGS = {"sqs": QUEUES, "sns": QUEUES, "dynamodb": STREAMS}


class Bell:
    """Something to wait on, in virtual time: it also rings whenever the clock skips. Any number of threads may wait,
    and each hears every ring: those that it was not waiting for when it waits next."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._rings = 0
        self._heard = threading.local()
        clock.on_advance(lambda _: self.ring())

    def ring(self) -> None:
        """Wake who waits, or who will wait next."""
        with self._changed:
            self._rings += 1
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Until somebody rings, at most so many real seconds; whether somebody did."""
        heard = getattr(self._heard, "rings", 0)
        with self._changed:
            rung = self._changed.wait_for(lambda: self._rings != heard, timeout_s)
            self._heard.rings = self._rings
        return rung

    def now(self) -> float:
        """Virtual time, in epoch seconds."""
        return self._clock.now().timestamp()

    def sleep_until(self, moment_s: float, stop: threading.Event, longest_s: float | None = None) -> None:
        """Until the virtual clock shows `moment_s`, `stop` is set, or `longest_s` real seconds have passed."""
        end = None if longest_s is None else time.monotonic() + longest_s
        while not stop.is_set():
            left = moment_s - self.now()
            if end is not None:
                left = min(left, end - time.monotonic())
            if left <= 0:
                return
            self.wait(min(left, 1.0))


class Bells:
    """A gate of the AWS server that rings when a call may have made work for queue or stream mappings."""

    def __init__(self) -> None:
        self._bells: dict[str, list[Bell]] = {QUEUES: [], STREAMS: []}

    def on(self, kind: str, bell: Bell) -> None:
        """Have `bell` rung for QUEUES or for STREAMS."""
        self._bells[kind].append(bell)

    def ring(self, kind: str) -> None:
        """Something happened that no call has announced."""
        for bell in self._bells[kind]:
            bell.ring()

    def before(self, call: Call) -> Refusal | None:
        """Let everything pass."""
        return None

    def after(self, call: Call, response: Response) -> Response:
        """Ring if the call changed something that event sources look at."""
        if call.operation in _RUNG_BY.get(call.service, ()):
            self.ring(_RINGS[call.service])
        return response
