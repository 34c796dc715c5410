"""The environments of one function: how many may run at once, who waits for one, and which are idle."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from local.compute.definition import Definition
from local.compute.environment import Environment
from local.compute.invocation import Invocation, Order


@dataclass(frozen=True, eq=False)
class _Ticket:
    """A place in the queue for a slot."""

    begun: bool


class Slot:
    """The right to run one invocation; whoever holds it uses it or gives it back."""

    def __init__(self, pool: Pool) -> None:
        self.role = pool.definition.role
        self._pool = pool
        self._used = False

    def invoke(self, order: Order) -> Invocation:
        """Run one invocation to its end and give the slot back."""
        self._used = True
        self._pool.begin()
        try:
            return self._pool.run(order)
        finally:
            self._pool.release(reserved=False)

    def release(self) -> None:
        """Give an unused slot back."""
        if not self._used:
            self._used = True
            self._pool.release(reserved=True)


class Pool:
    """First come, first served. Idle environments are used again, the latest first, as Lambda does."""

    def __init__(self, definition: Definition, limit: int, create: Callable[[Definition, int], Environment]) -> None:
        self.definition = definition
        self.limit = limit
        self.paused = False
        self._held = False
        self._create = create
        self._changed = threading.Condition()
        self._queue: deque[_Ticket] = deque()
        self._taken = 0  # slots, reserved or running
        self._reserved = 0
        self._idle: list[Environment] = []
        self._all: set[Environment] = set()
        self._generation = 0
        self._closed = False

    # --- slots -----------------------------------------------------------------------------------------

    def acquire(self, timeout_s: float, *, begun: bool = False) -> Slot | None:
        """Wait for room, in the order of arrival; None when it took too long or the function is paused. `begun`: it is
        a part of what has begun already, and does not wait at the door."""
        ticket = _Ticket(begun)
        end = time.monotonic() + timeout_s
        with self._changed:
            self._queue.append(ticket)
            try:
                while not self._has_room_for(ticket):
                    left = end - time.monotonic()
                    if left <= 0 or self._closed:
                        return None
                    self._changed.wait(left)
                self._taken += 1
                self._reserved += 1
                return Slot(self)
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def begin(self) -> None:
        """A reserved slot is being used."""
        with self._changed:
            self._reserved -= 1
            self._changed.notify_all()

    def release(self, *, reserved: bool) -> None:
        """A slot comes back."""
        with self._changed:
            self._taken -= 1
            self._reserved -= reserved
            self._changed.notify_all()

    def pause(self) -> None:
        """Let nothing new begin; returns when nobody is about to begin either."""
        with self._changed:
            self.paused = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._reserved == 0 or self._closed, timeout=30)

    def resume(self) -> None:
        """Undo `pause`."""
        with self._changed:
            self.paused = False
            self._changed.notify_all()

    def hold(self) -> None:
        """Let whoever would begin wait at the door."""
        with self._changed:
            self._held = True

    def let_go(self) -> None:
        """Undo `hold`."""
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def wait_until_empty(self, end: float) -> bool:
        """Whether nobody is within or about to be, before `time.monotonic` is at `end`."""
        with self._changed:
            return self._changed.wait_for(lambda: self._taken == 0, max(0.0, end - time.monotonic()))

    def set_limit(self, limit: int) -> None:
        """Allow so many invocations at once; those under way go on."""
        with self._changed:
            self.limit = limit
            self._changed.notify_all()

    @property
    def busy(self) -> int:
        """Invocations under way."""
        return self._taken - self._reserved

    def _has_room_for(self, ticket: _Ticket) -> bool:
        if self.paused or self._closed:
            return False
        first = next((one for one in self._queue if one.begun or not self._held), None)
        return first is ticket and self._taken < self.limit

    # --- environments ------------------------------------------------------------------------------------

    def run(self, order: Order) -> Invocation:
        """One invocation in an idle environment, or in a new one."""
        environment = self._check_out()
        try:
            return environment.invoke(order)
        finally:
            self._check_in(environment)

    def warm(self) -> None:
        """Have an idle environment ready, before anybody asks."""
        with self._changed:
            if self._idle or self._closed:
                return
        environment = self._add()
        with self._changed:
            self._idle.insert(0, environment)

    def environments(self) -> list[Environment]:
        """All that are alive, as far as known."""
        with self._changed:
            self._all = {environment for environment in self._all if not environment.dead}
            return list(self._all)

    def reload(self) -> None:
        """Discard what is idle now, and what is busy as soon as it has answered."""
        with self._changed:
            self._generation += 1
            discarded, self._idle = self._idle, []
        for environment in discarded:
            environment.kill("reload")

    def close(self) -> None:
        """No more invocations."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _check_out(self) -> Environment:
        with self._changed:
            while self._idle:
                environment = self._idle.pop()
                if not environment.dead:
                    return environment
        return self._add()

    def _add(self) -> Environment:
        environment = self._create(self.definition, self._generation)
        with self._changed:
            self._all.add(environment)
        return environment

    def _check_in(self, environment: Environment) -> None:
        with self._changed:
            current = environment.generation == self._generation
            if current and not environment.dead and not environment.condemned:
                self._idle.append(environment)
                return
        environment.kill("reload")
