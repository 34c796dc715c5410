"""`socket` and `push` beside each other, in any order, dying anywhere: what a watcher puts together has no gap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lambdas.contracts.names import COMPLETED
from lambdas.core import ids
from lambdas.core.streaming.ports import Chunk
from lambdas.core.watching import serving
from lambdas.core.watching.conversation import Switchboard, heard, opened
from lambdas.core.watching.ports import Grant, Trouble
from lambdas.core.watching.serving import Relay, serve
from tests.audience import FakeConnections, FakePostman, GapError, Listener
from tests.builders import JOB_ID, NOW, TENANT, final_record, held_record
from tests.fakes import FakeChunks, FakeJobStore, FakeObjects

ANNA = "anna="
GOING_ON = 5  # so much more often than something happens that should not
TURN_S = 120  # far beyond any turn: a test that hangs must end


class Killed(BaseException):
    """The function's environment is gone."""


class Actor:
    """An invocation that goes on from call to call, one at a time, when it is told to."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.done = self.killed = False
        self.trouble: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        assert self._go.acquire(timeout=TURN_S)
        try:
            self._act()
        except Killed:
            self.killed = True
        except BaseException as trouble:
            self.trouble = trouble
        self.done = True
        self._stopped.release()

    def pause(self) -> None:
        """Before each call that it makes."""
        self._stopped.release()
        assert self._go.acquire(timeout=TURN_S)
        if self.killed:
            raise Killed

    def turn(self, kill: bool = False) -> None:
        self.killed = kill
        self._go.release()
        assert self._stopped.acquire(timeout=TURN_S)
        if self.trouble:
            raise self.trouble


class World:
    """A worker that says two attempts' text, a client, and the functions in between. The client watches a second time,
    over the same connection: from where it is or, `anew`, having forgotten all."""

    def __init__(self, first: int, second: int, anew: bool = False) -> None:
        self.anew, self.forgotten, self.troubled = anew, 0, False
        self.running: list[Actor] = []
        self.store = FakeJobStore(held_record(stream=True), before=self._call)
        self.chunks = FakeChunks(self._call)
        self.connections, self.postman = FakeConnections(self._call), FakePostman(self._call)
        results = FakeObjects({ids.result_key(TENANT, JOB_ID, 1): b'{"ok": true}'})
        self.relay = Relay(self.store, self.chunks, results, self.connections, self.postman, lambda *_a, **_b: None)
        marks = iter(range(1_000))
        self.board = Switchboard(self.relay, lambda: NOW, lambda: f"mark-{next(marks)}")
        opened(ANNA, Grant(TENANT, (JOB_ID,)), self.board)
        self.attempt = 2 if second else 1
        self.size = {"result_bytes": 12}
        self.writes: list[Callable[[], None]] = [self._chunk(1, n) for n in range(first)]
        if second:
            self.writes += [self._again, *(self._chunk(2, n) for n in range(second))]
        self.writes.append(self._end)
        self.hints = 0
        self.pushes: dict[int, int] = {}  # of running ones, the hints that they hold
        self.watches = 0

    def _call(self, _name: str) -> None:
        for actor in self.running:
            if actor.thread is threading.current_thread():
                actor.pause()

    # --- the worker -------------------------------------------------------------------------------------
    def _chunk(self, attempt: int, n: int) -> Callable[[], None]:
        return lambda: self.chunks.append(JOB_ID, Chunk(attempt, n, f"{attempt}.{n} "), 0)

    def _again(self) -> None:
        self.store.records[JOB_ID] = held_record(stream=True, attempt=2)

    def _end(self) -> None:
        self.store.records[JOB_ID] = final_record(COMPLETED, stream=True, attempt=self.attempt, **self.size)

    def write(self) -> None:
        self.writes.pop(0)()
        self.hints += 1

    # --- the functions ------------------------------------------------------------------------------------
    def start_push(self) -> None:
        held, self.hints = self.hints, 0
        actor = Actor(lambda: serve(self.connections.watchers_of(JOB_ID), self.relay))
        self.running.append(actor)
        self.pushes[id(actor)] = held

    def start_watch(self) -> None:
        self.watches += 1
        if self.watches == 2 and self.anew:
            self.forgotten = len(self.postman.sent[ANNA])
        client = self.client
        more = f', "attempt": {client.attempt}' if client.attempt else ""
        message = f'{{"action": "watch", "job_id": "{JOB_ID}", "from": {len(client.texts)}{more}}}'
        self.running.append(Actor(lambda: heard(ANNA, message.encode(), self.board)))

    def go_on(self, actor: Actor, *, kill: bool = False) -> None:
        actor.turn(kill)
        if actor.done:
            self.running.remove(actor)
            held = self.pushes.pop(id(actor), 0)
            self.hints += held if actor.killed else 0  # the stream gives them once more

    # --- whatever may happen next -----------------------------------------------------------------------------
    def moves(self) -> list[Callable[[], None]]:
        steps = [partial(self.go_on, actor) for actor in self.running]
        found: list[Callable[[], None]] = [*steps * GOING_ON]
        if self.writes:
            found += [self.write] * GOING_ON
        if self.hints and len(self.pushes) < 2:
            found.append(self.start_push)
        if self.watches < 2:
            found.append(self.start_watch)
        pushing = [actor for actor in self.running if id(actor) in self.pushes]
        return [*found, *(partial(self.go_on, actor, kill=True) for actor in pushing[:1]), self.trouble]

    def trouble(self) -> None:
        self.troubled = True
        self.postman.outcomes[ANNA].append(Trouble("429"))

    def to_the_end(self) -> None:
        self.postman.outcomes.clear()
        if not self.watches:
            self.start_watch()
        while self.writes or self.running or self.hints:
            if self.writes:
                self.write()
            for actor in [*self.running]:
                while not actor.done:
                    self.go_on(actor)
            if self.hints:
                self.start_push()
        if self.troubled:
            heard(ANNA, b'{"action": "ping"}', self.board)

    @property
    def client(self) -> Listener:
        """What the client has by now. After it has forgotten all, what is sent to its first watch may still come."""
        listener = Listener(strict=not self.forgotten)
        for frame in self.postman.sent[ANNA][self.forgotten :]:
            listener.hear(frame)
        return listener


def played(first: int, second: int, anew: bool, choices: Sequence[int]) -> World:
    world = World(first, second, anew)
    try:
        for choice in choices:
            moves = world.moves()
            moves[choice % len(moves)]()
    finally:
        world.to_the_end()
    return world


SCRIPT: Any = {
    "first": st.integers(0, 3),
    "second": st.integers(0, 3),
    "anew": st.booleans(),
    "choices": st.lists(st.integers(0, 99), min_size=25, max_size=70),
}


@given(**SCRIPT)
@settings(max_examples=200, deadline=None)
@example(first=2, second=0, anew=False, choices=[])
def test_in_any_order_the_text_is_whole_and_the_end_comes_last(
    first: int, second: int, anew: bool, choices: list[int]
) -> None:
    world = played(first, second, anew, choices)
    client = world.client  # a gap raises
    assert client.final is not None
    assert client.final["result"] == {"ok": True}
    attempt, count = (2, second) if second else (1, first)
    assert client.attempt == attempt
    assert client.texts == [f"{attempt}.{n} " for n in range(count)]
    assert client.final["chunks"] == count
    assert world.connections.watches == {}


def test_the_test_would_notice_a_cursor_that_is_saved_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `serve` must not do: then a push that dies in between leaves a gap."""
    honest = serving._bring

    def hasty(watch: Any, story: Any, greeting: Any, relay: Relay) -> None:
        relay.connections.advance(watch, story.job.attempt, story.first + len(story.texts))
        honest(watch, story, greeting, relay)

    monkeypatch.setattr(serving, "_bring", hasty)
    world = World(2, 0)
    world.start_watch()
    for actor in [*world.running]:
        while not actor.done:
            world.go_on(actor)
    world.write()
    world.start_push()
    (push,) = world.running
    for _ in ("watchers", "record", "chunks", "no more chunks", "advance", "post"):  # it stops before each
        world.go_on(push)
    world.go_on(push, kill=True)
    world.to_the_end()
    with pytest.raises(GapError):
        _ = world.client
