"""The sweep: each job that is due gets its repair, whatever is wrong with the others, the queue or the stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import changes, ids, times
from lambdas.core.job import Job, from_record
from lambdas.core.policy import Limits
from lambdas.core.ports import Message
from lambdas.core.sweeping import stuck
from lambdas.core.sweeping.batches import CROWD, HAND_OVER_PAGE
from lambdas.core.sweeping.plan import HAND_OVER_AGE_S
from lambdas.core.sweeping.report import Report
from lambdas.core.sweeping.stuck import COUNTS, Stuck
from tests.builders import NOW, any_record, final_record, handed_over, held_record, later
from tests.fakes import (
    FakeClock,
    FakeJobStore,
    FakeOutbox,
    FakeQueue,
    FakeTurn,
    FakeWorkers,
    Notices,
    Trouble,
)
from tests.fakes_workflows import FakeExecutions, any_workflow, machines

LIMITS = Limits()
OLD = later(-HAND_OVER_AGE_S)


Swept = make_dataclass("Swept", [*((name, int, 0) for name in COUNTS), ("complete", bool, True)])
PAGE = CROWD  # hints at once


class World:
    """Everything a sweep works with; due an hour ago unless a record says otherwise."""

    def __init__(self, *records: dict[str, Any], depth: int = 0, seconds: float = 60) -> None:
        self.store = FakeJobStore(*records)
        self.outbox, self.queue, self.notices, self.clock = FakeOutbox(), FakeQueue(depth), Notices(), FakeClock()
        self.executions = FakeExecutions(now=self.clock)
        self.time_left_s: Callable[[], float] = lambda: seconds
        self.report = Report("sweep-1", "stuck")

    def sweep(self, *, dry_run: bool = False) -> Any:
        """A whole new sweep, as far as time goes."""
        self.report = Report("sweep-1", "stuck", dry_run)
        return self.go_on()

    def go_on(self) -> Any:
        """The same sweep, from its cursor."""
        part = Stuck(
            store=self.store,
            outbox=self.outbox,
            queue=self.queue,
            limits=LIMITS,
            now=self.clock,
            max_tries=lambda job: 5,
            notice=self.notices,
            workers=FakeWorkers(),
            machines=machines(self.executions, any_workflow()),
        )
        self.turn = FakeTurn(lambda: self.time_left_s() >= 2 * LIMITS.settle_s)
        complete = part.run(self.report, self.turn)
        return Swept(**{name: self.report.counts[name] for name in COUNTS}, complete=complete)

    def job(self, pk: str) -> Job:
        return from_record(self.store.records[pk])


def _due(pk: str, **over: Any) -> dict[str, Any]:
    return any_record(**{"pk": pk, "not_before": later(-60), "due_at": later(-1), **over})


def _crowd(count: int = CROWD, **over: Any) -> list[dict[str, Any]]:
    return [_due(f"{n:03d}", **over) for n in range(count)]


def _ended(count: int) -> list[dict[str, Any]]:
    """So many failed jobs that nobody was told of."""
    return [final_record(FAILED, pk=f"{n:03d}", finished_at=OLD, due_at=later(-1)) for n in range(count)]


def _one_of(shard: str) -> str:
    return next(pk for pk in (f"{n}" for n in range(1_000)) if ids.due_shard(pk) == shard)


def _lapsed(pk: str, **over: Any) -> dict[str, Any]:
    return held_record(**{"pk": pk, "lease_until": later(-1), "due_at": later(-1), **over})


def _jobs(messages: list[Message]) -> set[str]:
    return {json.loads(message.body)["run_id"] for message in messages}


def test_a_lapsed_job_is_reaped_and_its_message_sent_in_the_same_sweep() -> None:
    world = World(_lapsed("a"))
    assert world.sweep().reaped == 1
    assert (world.job("a").status, world.job("a").crashes) == (PENDING, 1)
    assert [json.loads(message.body)["payload"] for message in world.outbox.work] == [{"attempt": 1, "crashes": 1}]


def test_an_expired_job_is_failed_and_left_to_be_handed_over_when_it_is_two_minutes_old() -> None:
    world = World(_due("a", tries=5))
    assert world.sweep().expired == 1
    assert world.job("a").status == FAILED
    assert world.outbox.order == []
    world.clock.advance(HAND_OVER_AGE_S + 1)
    assert world.sweep().handed_over == 1
    assert world.outbox.order == ["letter", "event"]
    assert world.job("a").is_handed_over


def test_a_job_without_a_message_is_sent_again_first_and_pushed_then() -> None:
    world = World(_due("a"))
    world.store.before = world.outbox.order.append
    swept = world.sweep()
    assert (swept.due, swept.sent, swept.held_back) == (1, 1, 0)
    assert world.outbox.order[-2:] == ["work", "push_due"]
    assert world.job("a").due_at == later(300)


def test_a_job_that_is_not_due_is_not_touched() -> None:
    world = World(any_record(pk="a"))
    assert world.sweep().due == 0
    assert world.outbox.order == []


def test_swp_05_the_record_is_read_again_before_anything_is_done() -> None:
    world = World(_due("a"))
    found = [(times.text(later(-1)), pk) for pk in ("a", "gone")]
    world.store.due = lambda shard, *_: found if shard == "0" else []  # type: ignore[method-assign]
    world.store.records["a"] = handed_over(COMPLETED, pk="a")
    swept = world.sweep()
    assert (swept.due, swept.left) == (1, 1)
    assert world.outbox.order == []
    assert "read_many" not in world.store.calls  # which may be behind


# --- the depth gate --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("depth", "sent", "held_back"), [(0, CROWD, 0), (CROWD - 1, CROWD, 0), (CROWD, 0, CROWD), (10_000, 0, CROWD)]
)
def test_the_depth_gate_holds_a_crowd_back_when_the_queue_has_a_message_for_each_of_them(
    depth: int, sent: int, held_back: int
) -> None:
    world = World(*_crowd(), depth=depth)
    swept = world.sweep()
    assert (swept.sent, swept.held_back) == (sent, held_back)
    assert len(world.outbox.work) == sent
    assert {world.job(pk).due_at for pk in world.store.records} == {later(300)}


def test_fewer_jobs_than_a_crowd_are_sent_whatever_the_queue_holds() -> None:
    swept = World(*_crowd(CROWD - 1), depth=10_000).sweep()
    assert (swept.sent, swept.held_back) == (CROWD - 1, 0)


@pytest.mark.parametrize(("depth", "repaired"), [(0, 3), (2, 3), (3, 0), (10_000, 0)])
def test_what_a_slow_queue_may_still_hold_is_sent_again_and_is_no_repair(depth: int, repaired: int) -> None:
    world = World(*_crowd(3), depth=depth)
    swept = world.sweep()
    assert (swept.sent, world.report.found) == (3, repaired)


def test_a_crowd_is_a_hundred_jobs() -> None:
    assert CROWD == 100


def test_the_depth_gate_does_not_hold_back_reaped_jobs() -> None:
    world = World(_lapsed("a"), *_crowd(), depth=10_000)
    swept = world.sweep()
    assert _jobs(world.outbox.work) == {"a"}
    assert (swept.reaped, swept.held_back) == (1, CROWD)


def test_who_certainly_has_no_message_or_has_waited_an_hour_is_sent_while_the_crowd_is_held_back() -> None:
    urgent = [
        _due("left to the sweep", not_before=later(-1), due_at=later(-1)),
        _due("an hour old", not_before=later(-3_600)),
    ]
    world = World(*_crowd(not_before=later(-3_599)), *urgent, depth=10_000)
    swept = world.sweep()
    assert (swept.sent, swept.held_back) == (2, CROWD)
    assert _jobs(world.outbox.work) == {"left to the sweep", "an hour old"}
    assert (world.job("left to the sweep").due_at, world.job("an hour old").due_at) == (later(300), later(3_600))
    assert world.job("000").due_at == later(3_599)


def test_on_a_queue_that_is_never_empty_a_long_wait_and_a_lost_message_are_both_sent_at_their_first_look() -> None:
    """The queue's fifty messages are of other jobs, at every sweep of the day."""
    world = World(any_record(pk="lost"), depth=50)
    long_wait = changes.park(
        from_record(held_record(pk="long")), now=NOW, until=later(minutes=20), why={"code": "X", "message": "y"},
        cost=0, refund=True, limits=LIMITS,
    )  # fmt: skip
    world.store.records["long"] = long_wait.applied_to(held_record(pk="long"))
    sent_after: dict[str, float] = {}
    for _ in range(8):
        world.clock.advance(LIMITS.sweep_period_s)
        world.outbox.work.clear()
        assert world.sweep().held_back == 0
        for pk in _jobs(world.outbox.work):
            sent_after.setdefault(pk, (world.clock() - NOW).total_seconds())
    assert sent_after["lost"] <= LIMITS.grace_s + LIMITS.sweep_period_s
    assert 20 * 60 <= sent_after["long"] <= 20 * 60 + LIMITS.sweep_period_s


# --- what goes wrong with some of them -------------------------------------------------------------


def test_a_hint_that_the_queue_refused_keeps_its_job_due() -> None:
    world = World(_due("a"), _due("b"))
    world.outbox.refuse = lambda kind, message: '"run_id":"a"' in message.body
    swept = world.sweep()
    assert (swept.sent, swept.failed) == (1, 1)
    assert world.job("a").due_at == later(-1)
    assert world.job("b").due_at == later(300)


def test_a_letter_that_was_refused_keeps_its_job_due() -> None:
    world = World(final_record(FAILED, pk="a", finished_at=OLD, due_at=later(-1)))
    world.outbox.refuse = lambda kind, message: kind == "letter"
    swept = world.sweep()
    assert (swept.handed_over, swept.failed) == (0, 1)
    assert not world.job("a").is_handed_over


@pytest.mark.parametrize("poison", ["a", "b", "c"])
def test_one_job_that_the_store_refuses_leaves_the_others_their_repair(poison: str) -> None:
    world = World(_lapsed("a"), _due("b"), _due("c", tries=5))
    world.store.broken = {poison}
    swept = world.sweep()
    assert swept.failed == 1
    assert world.notices.of("not_swept")["job_id"] == poison
    done = {"a": world.outbox.work and "a" in _jobs(world.outbox.work), "b": "b" in _jobs(world.outbox.work)}
    done["c"] = world.store.records["c"]["status"] == FAILED
    assert {pk for pk, repaired in done.items() if repaired} == {"a", "b", "c"} - {poison}


def test_an_unreadable_record_is_counted_told_and_passed_over() -> None:
    broken = _due("a")
    del broken["body_sha"]
    world = World(broken, _due("b"))
    swept = world.sweep()
    assert (swept.unreadable, swept.sent) == (1, 1)
    assert world.notices.of("unreadable_record")["job_id"] == "a"
    assert world.store.records["a"] == broken


def test_a_queue_that_does_not_tell_its_depth_does_not_stop_the_repair() -> None:
    world = World(*_crowd(), depth=10_000)
    world.queue.troubles.add("depth", Trouble.REFUSED)
    assert world.sweep().sent == CROWD
    assert "depth_unknown" in world.notices.steps
    assert len(world.outbox.work) == CROWD
    assert {world.job(pk).due_at for pk in world.store.records} == {later(300)}


def test_a_look_that_could_not_be_put_off_is_counted_told_and_leaves_the_others() -> None:
    world = World(_due("a"), _due("b"))
    world.store.troubles.add("push_due", Trouble.UNSENT)
    swept = world.sweep()
    assert (swept.sent, swept.failed) == (2, 1)
    assert {world.job(pk).due_at for pk in "ab"} == {later(-1), later(300)}
    told = world.notices.of("not_swept")
    assert world.job(told["job_id"]).due_at == later(-1)
    assert told["detail"]


def test_a_shard_that_cannot_be_read_is_counted_told_and_leaves_the_others_their_repair() -> None:
    pks = {shard: _one_of(shard) for shard in ids.due_shards()}
    world = World(*(_due(pk) for pk in pks.values()))
    world.store.troubles.add("due 9", Trouble.REFUSED)
    swept = world.sweep()
    assert (swept.sent, swept.failed) == (len(pks) - 1, 1)
    assert world.notices.of("shard_not_read")["shard"] == "9"
    assert _jobs(world.outbox.work) == set(pks.values()) - {pks["9"]}
    assert world.job(pks["9"]).due_at == later(-1)
    assert world.sweep().sent == 1


def test_a_reap_that_somebody_else_was_faster_with_sends_nothing() -> None:
    world = World(_lapsed("a"))

    def claimed(name: str) -> None:
        if name == "reap":
            world.store.records["a"] = held_record(pk="a", attempt=2, due_at=later(-1))

    world.store.before = claimed
    assert world.sweep().reaped == 0
    assert world.outbox.order == []
    assert world.job("a").status == PROCESSING


def test_a_lost_reply_of_a_reap_counts_one_crash_and_still_sends() -> None:
    world = World(_lapsed("a"))
    world.store.troubles.add("reap", Trouble.LOST_REPLY)
    assert world.sweep().reaped == 1
    assert world.job("a").crashes == 1
    assert len(world.outbox.work) == 1


def test_a_second_sweep_at_the_same_time_sends_nothing_again() -> None:
    world = World(_due("a"), _lapsed("b"), final_record(FAILED, pk="c", finished_at=OLD, due_at=later(-1)))
    world.sweep()
    sent = list(world.outbox.order)
    assert world.sweep() == Swept()
    assert world.outbox.order == sent


def test_what_the_time_does_not_suffice_for_stays_due_and_is_said_to_be_left() -> None:
    left = iter([60.0, 20.0, 19.9])
    world = World(*(_due(f"{n}", tries=5) for n in range(5)))
    world.time_left_s = lambda: next(left, 19.0)
    swept = world.sweep()
    assert (swept.due, swept.expired, swept.complete) == (2, 2, False)
    assert sum(world.job(f"{n}").status == PENDING for n in range(5)) == 3


def test_the_time_is_looked_at_between_batches_of_hints() -> None:
    world = World(*_crowd(2 * PAGE + 50))
    world.time_left_s = lambda: 20 if len(world.outbox.work) < PAGE else 19.9
    swept = world.sweep()
    assert (swept.sent, swept.held_back, swept.complete) == (PAGE, 0, False)
    sent = {pk for pk in world.store.records if world.job(pk).due_at == later(300)}
    assert sent == _jobs(world.outbox.work)


def test_the_time_is_looked_at_between_batches_of_looks_that_are_put_off() -> None:
    world = World(*_crowd(2 * PAGE + 50), depth=10_000)
    world.time_left_s = lambda: 20 if world.store.calls.count("push_due") < PAGE else 19.9
    swept = world.sweep()
    assert (swept.sent, swept.held_back, swept.complete) == (0, PAGE, False)
    assert sum(world.job(pk).due_at == later(-1) for pk in world.store.records) == PAGE + 50


def test_the_time_is_looked_at_between_batches_of_hand_overs() -> None:
    world = World(*_ended(25), _due("a"))
    world.time_left_s = lambda: 20 if len(world.outbox.events) < HAND_OVER_PAGE else 19.9
    swept = world.sweep()
    assert (swept.handed_over, swept.sent, swept.complete) == (HAND_OVER_PAGE, 0, False)
    assert sum(world.store.records[f"{n:03d}"].get("handed_over_at") is None for n in range(25)) == 15
    world.time_left_s = lambda: 60
    swept = world.sweep()
    assert (swept.handed_over, swept.sent, swept.complete) == (15, 1, True)


# --- hand-overs ------------------------------------------------------------------------------------
def test_hand_overs_are_told_ten_at_a_time() -> None:
    world = World(*_ended(25))
    sizes: list[int] = []
    publish = world.outbox.publish

    def counted(messages: Sequence[Message]) -> set[int]:
        sizes.append(len(messages))
        return publish(messages)

    world.outbox.publish = counted  # type: ignore[method-assign]
    assert world.sweep().handed_over == 25
    assert sizes == [10, 10, 5]
    assert all(world.job(pk).is_handed_over for pk in world.store.records)


@pytest.mark.parametrize("refused", [("letter", "event", "work"), ("letter",), ("event",)])
def test_during_an_outage_a_sweep_stops_telling_after_the_first_batch(refused: tuple[str, ...]) -> None:
    world = World(*_ended(35))
    world.outbox.refuse = lambda kind, message: kind in refused
    swept = world.sweep()
    assert (swept.handed_over, swept.failed) == (0, HAND_OVER_PAGE)
    assert world.outbox.order.count("letter") == HAND_OVER_PAGE
    assert not any(world.job(pk).is_handed_over for pk in world.store.records)
    world.outbox.refuse = lambda kind, message: False
    assert world.sweep().handed_over == 35


def test_a_batch_of_which_one_was_taken_is_no_outage() -> None:
    world = World(*_ended(25))
    taken: list[str] = []

    def refuse(kind: str, message: Message) -> bool:
        taken.append(message.body)
        return 1 < len(taken) <= HAND_OVER_PAGE  # all but the first of the first batch's letters

    world.outbox.refuse = refuse
    swept = world.sweep()
    assert (swept.handed_over, swept.failed) == (16, 9)


def test_an_outage_of_letters_and_events_does_not_keep_the_hints_back() -> None:
    world = World(*_ended(25), _due("a"), _lapsed("b"))
    world.outbox.refuse = lambda kind, message: kind != "work"
    world.sweep()
    assert _jobs(world.outbox.work) == {"a", "b"}


# --- which shard first -----------------------------------------------------------------------------
def test_each_sweep_begins_one_shard_further_and_looks_through_all() -> None:
    world = World()
    due = world.store.due
    orders: list[list[str]] = []

    def looked(shard: str, *more: Any) -> list[tuple[str, str]]:
        orders[-1].append(shard)
        return due(shard, *more)

    world.store.due = looked  # type: ignore[method-assign, assignment]
    shards = ids.due_shards()
    for _ in range(len(shards) + 1):
        orders.append([])
        world.sweep()
        world.clock.advance(LIMITS.sweep_period_s)
    begun = [int(order[0]) for order in orders]
    assert [(begun[0] + n) % len(shards) for n in range(len(shards) + 1)] == begun
    assert [[str((int(order[0]) + n) % len(shards)) for n in range(len(shards))] for order in orders] == orders


def test_sweeps_that_never_get_beyond_one_job_still_reach_every_shard() -> None:
    pks = [_one_of(shard) for shard in ids.due_shards()]
    world = World(*(_due(pk, tries=5) for pk in pks))
    for _ in pks:
        left = iter([60.0])
        world.time_left_s = lambda left=left: next(left, 0.0)  # type: ignore[misc]
        world.sweep()
        world.clock.advance(LIMITS.sweep_period_s)
    assert {world.job(pk).status for pk in pks} == {FAILED}


# --- what it tells ---------------------------------------------------------------------------------


def test_a_shard_is_looked_through_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck, "DUE_PAGE", 2)
    same_shard = [pk for pk in (f"{n}" for n in range(200)) if ids.due_shard(pk) == "3"][:5]
    world = World(*(_due(pk) for pk in same_shard))
    swept = world.sweep()
    assert (swept.due, swept.complete) == (5, True)
    assert world.store.calls.count("due") == ids.DUE_SHARDS + 2


def test_a_sweep_with_nothing_to_send_does_not_ask_the_queue_for_its_depth() -> None:
    world = World(_due("a", tries=5))
    world.queue.troubles.add("depth", Trouble.REFUSED)
    world.sweep()
    assert world.notices.steps == ["expired"]


def test_the_depth_is_that_of_the_queue_as_it_was_found() -> None:
    world = World(_lapsed("a"), _due("b"), depth=0)
    world.queue.depth = lambda: len(world.outbox.work)  # type: ignore[method-assign]
    world.sweep()
    assert world.report.counts["depth"] == 0
    assert sorted(world.report.ids) == ["a", "b"]


def test_what_was_repaired_is_told() -> None:
    world = World(_lapsed("a"), _due("b", tries=5), _due("c"))
    world.sweep()
    told = {step: fields["job"].id for step, fields in world.notices.told if "job" in fields}
    assert (told["reaped"], told["expired"], told["dispatched"]) == ("a", "b", "c")
    assert world.notices.of("expired")["job"].status == FAILED


def test_a_look_that_is_put_off_is_counted_and_sends_nothing() -> None:
    world = World(_due("a", not_before=later(3_600)), held_record(pk="b", lease_until=later(3_600), due_at=later(-1)))
    assert world.sweep().pushed == 2
    assert {world.job(pk).due_at for pk in "ab"} == {later(3_600)}
    assert world.outbox.order == []


def test_all_shards_are_looked_through() -> None:
    pks = [f"{n}" for n in range(100)]
    assert {ids.due_shard(pk) for pk in pks} == set(ids.due_shards())
    world = World(*(_due(pk) for pk in pks))
    assert world.sweep().sent == 100
    assert _jobs(world.outbox.work) == set(pks)


def test_the_oldest_open_job_is_measured_from_when_it_could_start_and_final_ones_do_not_count() -> None:
    world = World(
        _due("a", not_before=later(-90)),
        _due("b", not_before=later(-30)),
        final_record(COMPLETED, pk="c", not_before=later(-9_000), due_at=later(-1), finished_at=OLD),
    )
    assert world.sweep().oldest_s == 90


def test_a_sweep_that_found_nothing_says_so() -> None:
    assert World().sweep() == Swept()
    assert Swept().complete
    assert World(any_record(not_before=later(3_600), due_at=later(-1))).sweep().oldest_s == 0


def test_n5_a_crashed_job_runs_again_within_its_lease_and_one_sweep_though_the_stream_is_dead() -> None:
    world = World(held_record(pk="a", lease_until=later(130), due_at=later(120)))
    for _ in range(2):
        world.clock.advance(LIMITS.sweep_period_s)
        world.sweep()
        if world.outbox.work:
            break
    assert (world.clock() - NOW).total_seconds() <= 130 + LIMITS.sweep_period_s
    assert _jobs(world.outbox.work) == {"a"}


# --- what counts as a repair -----------------------------------------------------------------------
def test_what_was_put_back_is_named_but_waits_that_were_left_to_the_sweep_are_no_repair() -> None:
    world = World(
        _lapsed("reaped"),
        _due("sent"),
        _due("left to us", not_before=later(-1), due_at=later(-1)),
        _due("given up", tries=5),
        _due("put off", not_before=later(3_600)),
        final_record(COMPLETED, pk="handed over", finished_at=OLD, due_at=later(-1)),
    )
    swept = world.sweep()
    assert (swept.reaped, swept.sent, swept.expired, swept.pushed, swept.handed_over) == (1, 2, 1, 1, 1)
    assert sorted(world.report.ids) == ["handed over", "reaped", "sent"]
    assert world.report.found == 3


def test_a_dry_run_says_the_same_and_writes_and_sends_nothing() -> None:
    records = [_lapsed("a"), _due("b"), _due("c", tries=5), *_ended(3), _due("d", not_before=later(3_600))]
    wet, dry = World(*records), World(*records)
    before = dict(dry.store.records)
    assert dry.sweep(dry_run=True) == wet.sweep()
    assert sorted(dry.report.ids) == sorted(wet.report.ids)
    assert dry.store.records == before
    assert dry.outbox.order == []


# --- page by page ----------------------------------------------------------------------------------
def test_the_queue_is_asked_once_a_sweep_and_found_jobs_add_up_against_that_depth() -> None:
    """A sweep that went by the queue's present depth would count its own messages."""
    world = World(*_crowd(3 * CROWD), depth=2 * CROWD)
    asked: list[int] = []
    depth = world.queue.depth
    world.queue.depth = lambda: asked.append(1) or depth()  # type: ignore[method-assign, func-returns-value]
    swept = world.sweep()
    assert (swept.held_back, swept.sent, len(asked)) == (2 * CROWD, CROWD, 1)


def test_nobody_is_held_back_for_more_than_an_hour_by_the_messages_of_others() -> None:
    """A crowd whose messages are all lost, behind a queue that is full of others': the gate must let them through."""
    world = World(*(any_record(pk=f"{n:03d}") for n in range(2 * CROWD)), depth=10_000)
    sent: set[str] = set()
    for _ in range(20):
        world.clock.advance(LIMITS.sweep_period_s)
        world.sweep()
        sent |= _jobs(world.outbox.work)
    assert sent == set(world.store.records)


def test_a_sweep_goes_on_from_its_cursor_and_counts_no_job_twice() -> None:
    world = World(*(_lapsed(f"{n:03d}") for n in range(45)))
    world.sweep()
    whole = world.report
    world = World(*(_lapsed(f"{n:03d}") for n in range(45)))
    for turn in range(9):
        left = iter([60.0] * 10)
        world.time_left_s = lambda left=left: next(left, 0.0)  # type: ignore[misc]
        swept = world.go_on() if turn else world.sweep()
        if swept.complete:
            break
    assert (swept.reaped, sorted(world.report.ids)) == (45, sorted(whole.ids))
    assert _jobs(world.outbox.work) == set(world.store.records)


def test_jobs_that_need_nothing_do_not_keep_the_next_round_at_the_same_place() -> None:
    """They stay due: without a cursor each round would look at the same ones."""
    world = World(*(held_record(pk=f"{n:03d}", lease_until=later(60), due_at=later(-1)) for n in range(40)))
    rounds = 0
    while True:
        left = iter([60.0] * 10)
        world.time_left_s = lambda left=left: next(left, 0.0)  # type: ignore[misc]
        swept = world.go_on() if rounds else world.sweep()
        rounds += 1
        if swept.complete or rounds > 10:
            break
    assert (rounds, swept.left) == (4, 40)


def test_what_was_reaped_is_sent_although_time_is_over() -> None:
    world = World(*(_lapsed(f"{n}") for n in range(3)))
    left = iter([60.0, 60.0])
    world.time_left_s = lambda: next(left, 0.0)
    swept = world.sweep()
    assert (swept.reaped, swept.complete) == (2, False)
    assert len(world.outbox.work) == 2


def test_a_few_hints_do_not_keep_the_cursor_from_moving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck, "LOOKS", 10)
    held = [held_record(pk=f"{n:03d}", lease_until=later(60), due_at=later(-1)) for n in range(30)]
    world = World(_due("999", due_at=later(-2)), *held)
    world.sweep()
    assert len(world.outbox.work) == 1
    assert world.report.cursor["job_id"] != "999"
    assert world.turn.saves > 10


def test_wherever_a_sweep_may_be_killed_its_cursor_has_passed_over_nothing_that_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was gathered for a batch is in the memory of the one that dies."""
    held = [held_record(pk=f"{n:03d}", lease_until=later(60), due_at=later(-1)) for n in range(30)]
    hints = [_due(f"{n}", due_at=later(-2)) for n in range(500, 503)]
    world = World(*held, *hints)
    shards = len(ids.due_shards())

    def unsent() -> set[str]:
        at = world.report.cursor
        passed = {
            one["pk"]
            for one in hints
            if ((int(one["due_shard"]) - at["first"]) % shards, one["due_at"], one["pk"])
            <= (at["number"], at["due_at"], at["job_id"])
        }
        return passed - _jobs(world.outbox.work)

    left_behind: list[set[str]] = []
    monkeypatch.setattr(stuck, "LOOKS", 7)
    monkeypatch.setattr(FakeTurn, "save", lambda turn: left_behind.append(unsent()))
    world.sweep()
    assert len(left_behind) > 3
    assert set().union(*left_behind) == set()
    assert len(world.outbox.work) == len(hints)


def test_jobs_for_the_urgent_queue_are_never_held_back_for_the_ordinary_queues_sake() -> None:
    world = World(*_crowd(), _due("urgent", urgent=True), depth=10_000)
    swept = world.sweep()
    assert (swept.sent, swept.held_back) == (1, CROWD)
    assert _jobs(world.outbox.work) == {"urgent"}
