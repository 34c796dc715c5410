"""Random walks through everything that can happen to two jobs; after each step what the protocol promises must hold.

Two workers, the dispatcher, the sweep, a user; crashes, duplicates, lost messages, lost stream records, lost replies,
unreachable stores, holders that outlive their lease. (`docs/architecture.md` says which promise is which.)"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from lambdas.contracts.names import (
    CANCELLED,
    COMPLETED,
    DELETED,
    DUE_SHARD,
    FAILED,
    FINAL,
    OPEN,
    PENDING,
    PROCESSING,
)
from lambdas.core.changes import OF_A_TOMBSTONE
from lambdas.core.lifecycle import cancel, delete, retry
from lambdas.core.ports import Unavailable
from tests.fakes import Trouble
from tests.unit.walk import ENDINGS, MAX_TRIES, Killed, Queued, World

LEGAL = {
    (PENDING, PROCESSING),
    (PENDING, FAILED),
    (PENDING, CANCELLED),
    (PROCESSING, PROCESSING),
    (PROCESSING, PENDING),
    (PROCESSING, COMPLETED),
    (PROCESSING, FAILED),
    (PROCESSING, CANCELLED),
    (FAILED, PENDING),
    (CANCELLED, PENDING),
    (COMPLETED, DELETED),
    (FAILED, DELETED),
    (CANCELLED, DELETED),
}
RULE_NAMES = (
    "claim",
    "complete",
    "retry",
    "park",
    "fail",
    "expire",
    "reap",
    "reopen",
    "hand_over",
    "push_due",
    "pull_due",
    "due",
)
STEPS = 90
WALKS = range(100)


class Walk:
    """One walk. Its seed is all that it depends on; what must hold is looked at after every step."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World()
        self.looked_at = 0
        self.sealed: dict[str, bytes] = {}
        self.troubled = seed % 3 == 0  # each third walk has stores that fail, each third workers that are killed
        self.crashing = seed % 3 == 1

    def steps(self) -> dict[Callable[[], None], float]:
        """What can happen, and how often it does."""
        return {
            self.dispatcher: 20,
            self.worker_receives: 24,
            self.worker_finishes: 12,
            self.time_passes: 14,
            self.sweep: 10,
            self.worker_is_killed: 3,
            self.stream_record_is_lost: 2,
            self.message_comes_twice: 3,
            self.message_is_lost: 2,
            self.letter_is_redriven: 4,
            self.user_cancels: 1,
            self.user_retries: 1,
            self.user_deletes: 0.3,
            self.store_will_be_in_trouble: 4 if self.troubled else 0,
            self.sends_will_be_refused: 2 if self.troubled else 0,
        }

    def go(self) -> None:
        steps = self.steps()
        for step in self.random.choices(list(steps), list(steps.values()), k=STEPS):
            self.world.calls_to_live = self.random.choice([None, 0, 1, 2, 3]) if self.crashing else None
            with contextlib.suppress(Killed, Unavailable):
                step()
            self.world.calls_to_live = None
            self.look()
        self.end()

    # --- what happens ------------------------------------------------------------------------------
    def dispatcher(self) -> None:
        self.world.dispatch_next(self.random.randint(1, 4), again=self.random.random() < 0.2)

    def worker_receives(self) -> None:
        free = [worker for worker, held in self.world.holding.items() if held is None]
        visible = self.world.visible()
        if free and visible:
            self.world.receive(free[0], self.random.choice(visible))

    def worker_finishes(self) -> None:
        busy = [worker for worker, held in self.world.holding.items() if held]
        if busy:
            self.world.finish(self.random.choice(busy), self.random.choice(ENDINGS))

    def worker_is_killed(self) -> None:
        self.world.holding[self.random.choice(list(self.world.holding))] = None

    def sweep(self) -> None:
        self.world.sweep()

    def stream_record_is_lost(self) -> None:
        self.world.handled = min(self.world.handled + 1, len(self.world.store.images))

    def message_comes_twice(self) -> None:
        if self.world.queue:
            self.world.queue.append(Queued(self.random.choice(self.world.queue).body, self.world.clock()))

    def message_is_lost(self) -> None:
        if self.world.queue:
            self.world.queue.remove(self.random.choice(self.world.queue))

    def letter_is_redriven(self) -> None:
        if self.world.letters:
            self.world.queue.append(Queued(self.random.choice(self.world.letters), self.world.clock()))

    def user_cancels(self) -> None:
        self.world.user(cancel, self.random.choice(list(self.world.store.records)))

    def user_retries(self) -> None:
        self.world.user(retry, self.random.choice(list(self.world.store.records)))

    def user_deletes(self) -> None:
        self.world.user(delete, self.random.choice(list(self.world.store.records)))

    def store_will_be_in_trouble(self) -> None:
        self.world.store.troubles.add(self.random.choice(RULE_NAMES), self.random.choice(list(Trouble)))

    def sends_will_be_refused(self) -> None:
        self.world.refusals = self.random.randint(1, 3)

    def time_passes(self) -> None:
        self.world.clock.advance(self.random.choice([1, 2, 31, 131, 301, 721, 3_600]))

    # --- what must hold ----------------------------------------------------------------------------
    def look(self) -> None:
        self.every_change_was_legal()
        self.what_is_not_settled_is_found_by_the_sweep()
        self.only_final_records_expire()
        self.tries_are_bounded()
        self.what_is_paid_for_nothing_is_bounded()
        self.a_holder_that_dies_is_looked_for_soon_after_its_lease()
        self.a_completed_result_is_there_and_never_changes()
        self.nobody_runs_one_attempt_twice()

    def standing(self) -> list[dict[str, Any]]:
        """Records that were not deleted."""
        return [record for record in self.world.store.records.values() if record["status"] != DELETED]

    def every_change_was_legal(self) -> None:
        for old, new in self.world.store.images[self.looked_at :]:
            if old is not None:
                _legal(dict(old), dict(new))
        self.looked_at = len(self.world.store.images)

    def what_is_not_settled_is_found_by_the_sweep(self) -> None:
        for record in self.standing():
            if record["status"] in OPEN or "handed_over_at" not in record:
                assert DUE_SHARD in record
                assert record["due_at"] <= record["deadline_at"]

    def only_final_records_expire(self) -> None:
        for record in self.world.store.records.values():
            assert ("expires_at" in record) == (record["status"] not in OPEN)

    def tries_are_bounded(self) -> None:
        for record in self.standing():
            assert 0 <= record["tries"] <= MAX_TRIES

    def what_is_paid_for_nothing_is_bounded(self) -> None:
        assert all(times <= MAX_TRIES for times in Counter(self.world.billed).values())

    def a_holder_that_dies_is_looked_for_soon_after_its_lease(self) -> None:
        for record in self.world.store.records.values():
            if record["status"] == PROCESSING and not (self.troubled or self.crashing):
                assert record["due_at"] <= record["lease_until"]

    def a_completed_result_is_there_and_never_changes(self) -> None:
        for record in self.world.store.records.values():
            if record["status"] == COMPLETED:
                stored = self.world.results.objects[record["result_key"]]
                assert f'"made by":["{record["pk"]}",{record["attempt"]}]' in stored.decode()
                assert self.sealed.setdefault(record["result_key"], stored) == stored

    def nobody_runs_one_attempt_twice(self) -> None:
        assert all(times == 1 for times in Counter(self.world.runs).values())

    # --- how it ends -------------------------------------------------------------------------------
    def end(self) -> None:
        world = self.world
        world.calm_down()
        self.every_change_was_legal()
        assert world.quiet(), {pk: record["status"] for pk, record in world.store.records.items()}
        told = set(world.events)
        for pk, record in world.store.records.items():
            if record["status"] == DELETED:
                assert any(f"{pk}.{record['attempt']}.{status}" in told for status in FINAL)
                continue
            assert f"{pk}.{record['attempt']}.{record['status']}" in told
            if record["status"] == FAILED:
                assert any(f'"event_id":"{pk}.{record["attempt"]}.FAILED"' in letter for letter in world.letters)


def _legal(old: dict[str, Any], new: dict[str, Any]) -> None:
    was, now = old["status"], new["status"]
    moved = (old["attempt"] != new["attempt"]) or was != now
    assert not moved or (was, now) in LEGAL, (was, now)
    if now == DELETED:
        assert DUE_SHARD not in old
        assert new.keys() <= OF_A_TOMBSTONE
        return
    claimed = now == PROCESSING and moved
    reopened = was in FINAL and now == PENDING
    assert new["attempt"] == old["attempt"] + (1 if claimed or reopened else 0)
    assert new["run"] == old["run"] + (1 if reopened else 0)
    if claimed and was == PROCESSING:
        assert old["lease_until"] < new["claimed_at"]
    if claimed:
        assert (old["tries"] < MAX_TRIES, new["tries"]) == (True, old["tries"] + 1)
        assert new["claimed_at"] < old["deadline_at"]
    elif not reopened:
        assert new["tries"] in {old["tries"], old["tries"] - 1}
    if was in FINAL and not reopened:
        assert {k: v for k, v in old.items() if k not in _AFTER_THE_END} == {
            k: v for k, v in new.items() if k not in _AFTER_THE_END
        }


_AFTER_THE_END = {"due_at", "due_shard", "late_cost", "handed_over_at"}


@pytest.mark.parametrize("first", [0, 1_000, 2_000, 3_000, 4_000])
def test_whatever_happens_no_job_is_lost_stuck_overwritten_or_left_untold(first: int) -> None:
    for seed in WALKS:
        try:
            Walk(first + seed).go()
        except AssertionError as broken:
            raise AssertionError(f"Walk({first + seed})") from broken


def test_the_walks_come_through_every_change_of_state_there_is() -> None:
    seen: set[tuple[str, str]] = set()
    for seed in WALKS:
        walk = Walk(seed)
        walk.go()
        seen |= {(str(old["status"]), str(new["status"])) for old, new in walk.world.store.images if old}
    assert seen >= LEGAL
