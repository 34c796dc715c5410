"""The Workers port: a bounded queue of items, a few threads, one common pace that gives way to whoever throttles."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic

from lambdas.core.ports import Answer, Item, Unavailable

AHEAD = 4  # acts begun for each thread, at most
QUEUE = 1_000  # items taken and not yet told
REPEATS = 5
SLOWEST = 0.5  # acts a second: slower than that is no pace but an outage, and the repeats end


class Pace:
    """Additive increase, multiplicative decrease: at most `rate` acts a second, half of it after each throttle."""

    def __init__(
        self,
        rate: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._most, self._rate = rate, rate
        self._now, self._sleep = now, sleep
        self._next = 0.0
        self._lock = threading.Lock()

    @property
    def rate(self) -> float:
        return self._rate

    def wait(self) -> None:
        """Until it is my turn. Turns are given out one after the other, however many threads ask."""
        with self._lock:
            now = self._now()
            turn = max(self._next, now)
            self._next = turn + 1 / self._rate
        if turn > now:
            self._sleep(turn - now)

    def slower(self) -> None:
        with self._lock:
            self._rate = max(SLOWEST, self._rate / 2)
            self._next = max(self._next, self._now() + 1 / self._rate)

    def faster(self) -> None:
        """Back at the full rate after some twenty acts that went well."""
        with self._lock:
            self._rate = min(self._most, self._rate + self._most / 20)


@dataclass(frozen=True)
class _Taken(Generic[Item, Answer]):
    item: Item
    answer: Future[Answer | Unavailable] | None

    @property
    def is_ready(self) -> bool:
        return self.answer is None or self.answer.done()

    def told(self) -> tuple[Item, Answer | Unavailable | None]:
        """Waits for it."""
        return self.item, self.answer.result() if self.answer else None


class Pipeline:
    """Threads are there only while `each` runs: one that is left behind would go on in the next invocation."""

    def __init__(self, width: int, pace: Pace) -> None:
        self._width, self._pace = width, pace

    def call(self, act: Callable[[], Answer]) -> Answer:
        for _ in range(REPEATS):
            self._pace.wait()
            try:
                answer = act()
            except Unavailable as trouble:
                if not trouble.throttled:
                    raise
                self._pace.slower()
                last = trouble
            else:
                self._pace.faster()
                return answer
        raise last

    def each(
        self,
        items: Iterable[Item],
        act: Callable[[Item], Answer],
        *,
        needs: Callable[[Item], bool] = lambda item: True,
    ) -> Iterator[tuple[Item, Answer | Unavailable | None]]:
        def attempt(item: Item) -> Answer | Unavailable:
            try:
                return self.call(lambda: act(item))
            except Unavailable as trouble:
                return trouble

        threads = ThreadPoolExecutor(self._width, "sweep")
        try:
            yield from self._in_order(items, lambda item: threads.submit(attempt, item) if needs(item) else None)
        finally:
            threads.shutdown(wait=True, cancel_futures=True)

    def _in_order(
        self, items: Iterable[Item], begin: Callable[[Item], Future[Answer | Unavailable] | None]
    ) -> Iterator[tuple[Item, Answer | Unavailable | None]]:
        """What was begun is seen through and told, also when there are no more items because a store has failed."""
        queue: deque[_Taken[Item, Answer]] = deque()
        source, under_way = _Source(items), 0
        for item in source:
            queue.append(_Taken(item, begin(item)))
            under_way += queue[-1].answer is not None
            while queue and (under_way > self._width * AHEAD or len(queue) > QUEUE or queue[0].is_ready):
                under_way -= queue[0].answer is not None
                yield queue.popleft().told()
        while queue:
            yield queue.popleft().told()
        if source.failed is not None:
            raise source.failed


class _Source(Generic[Item]):
    """The items, until there are no more of them; `failed`: why."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self.failed: Unavailable | None = None

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except Unavailable as trouble:
            self.failed = trouble
