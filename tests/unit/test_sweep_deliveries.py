"""The sweep among deliveries: each that is due gets its repair, whatever is wrong with the others or the stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.changes import first_look
from lambdas.core.policy import Limits
from lambdas.core.ports import Message, Unavailable
from lambdas.core.sweeping import deliveries as part
from lambdas.core.sweeping.batches import CROWD
from lambdas.core.sweeping.deliveries import Deliveries
from lambdas.core.sweeping.delivery_plan import SendAgain, plan
from lambdas.core.sweeping.report import Report
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, new_record
from lambdas.core.webhooks.ports import Key
from lambdas.core.webhooks.schedule import TRIES_MAX
from tests.builders import NOW, TENANT, later
from tests.fakes import FakeClock, FakeJobStore, FakeSender, FakeTurn, FakeWorkers, Notices, Trouble, Troubles

LIMITS = DeliveryLimits(Limits())
ENDPOINT = "e1"


class Store(FakeJobStore):
    """The DeliveryStore port: its records have both keys."""

    def __init__(self, *records: Mapping[str, Any], before: Callable[[str], None] = lambda name: None) -> None:
        super().__init__(before=before)
        self.records = {(one["pk"], one["sk"]): dict(one) for one in records}  # type: ignore[misc]

    def due(  # type: ignore[override]
        self, shard: str, before: datetime, after: tuple[str, Key] | None, limit: int
    ) -> list[tuple[str, Key]]:
        self._called("due")
        if trouble := self.troubles.take("due"):
            raise Unavailable(trouble.value)
        rows = [(one["due_at"], key) for key, one in self.records.items() if one.get("due_shard") == shard]
        found = sorted(row for row in rows if row[0] < times.text(before) and (after is None or row > after))
        return found[:limit]  # type: ignore[return-value]


class Queue(FakeSender):
    """Where hints go, as full as the test says."""

    def __init__(self, depth: int = 0) -> None:
        super().__init__()
        self.found, self.troubles = depth, Troubles()

    def depth(self) -> int:
        if self.troubles.take("depth"):
            raise Unavailable("nobody can say")
        return self.found


class World:
    """Everything the part works with."""

    def __init__(self, *records: Mapping[str, Any], depth: int = 0) -> None:
        self.store, self.queue, self.notices, self.clock = Store(*records), Queue(depth), Notices(), FakeClock()
        self.in_time: Callable[[], bool] = lambda: True
        self.report = Report("sweep-1", "deliveries")

    def sweep(self, *, dry_run: bool = False) -> Any:
        self.report = Report("sweep-1", "deliveries", dry_run)
        return self.go_on()

    def go_on(self) -> Any:
        own = Deliveries(self.store, self.queue, LIMITS, self.clock, self.notices, FakeWorkers())  # type: ignore[arg-type]
        self.turn = FakeTurn(self.in_time)
        self.complete = own.run(self.report, self.turn)
        return self.report.counts

    def of(self, pk: str = "a") -> Delivery:
        (found,) = (record for key, record in self.store.records.items() if key[0] == pk)
        return deliveries.read(found)

    @property
    def hinted(self) -> list[str]:
        return [json.loads(message.body)["run_id"] for message in self.queue.sent]


def planned(pk: str = "a", **over: Any) -> dict[str, Any]:
    """One that was made an hour ago, and is due."""
    record = new_record(
        pk=pk, tenant=TENANT, endpoint=ENDPOINT, event_type="job.completed", event_id=f"{pk}.1.COMPLETED", sequence=1,
        body="{}", now=later(-60), limits=LIMITS,
    )  # fmt: skip
    return {**record, "due_at": times.text(later(-1)), **over}


def waiting(pk: str = "a", *, until_s: float) -> dict[str, Any]:
    """It waits for its next try; looked for when row 5 says."""
    at, deadline = later(until_s), LIMITS.deadline(later(-3_600))
    look = first_look(later(-1_000), at, deadline, LIMITS.limits)
    return planned(pk, not_before=times.text(at), due_at=times.text(look), attempt=3, tries=3)


def held(pk: str = "a", *, lease_s: float = -1, **over: Any) -> dict[str, Any]:
    claim = changes.claim(claim_id="holder", now=later(-50), invocation_ends=later(lease_s - 10))
    return {**claim.applied_to(planned(pk)), **over}


def crowd(count: int = CROWD, **over: Any) -> list[dict[str, Any]]:
    return [planned(f"{number:03d}", **over) for number in range(count)]


# --- what each needs -------------------------------------------------------------------------------
def test_a_lapsed_delivery_is_reaped_and_its_hint_sent_in_the_same_sweep() -> None:
    world = World(held())
    assert (world.sweep()["reaped"], world.report.found, world.report.ids) == (1, 1, ["a"])
    found = world.of()
    assert (found.status, found.crashes, found.tries, found.claim_id) == (PENDING, 1, 1, None)
    assert [json.loads(message.body)["payload"] for message in world.queue.sent] == [
        {"endpoint": ENDPOINT, "event_id": "a.1.COMPLETED", "attempt": 1, "crashes": 1}
    ]
    assert [message.group for message in world.queue.sent] == [TENANT]


@pytest.mark.parametrize("lease_s", [0, 30])
def test_one_that_somebody_holds_is_left_until_its_lease_is_over(lease_s: float) -> None:
    world = World(held(lease_s=lease_s))
    assert world.sweep()["left"] == 1
    assert (world.of().status, world.queue.sent, world.store.images) == (PROCESSING, [], [])


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"deadline_at": times.text(NOW)}, "DEADLINE_EXCEEDED"),
        ({"tries": TRIES_MAX, "attempt": TRIES_MAX}, "ATTEMPTS_EXHAUSTED"),
    ],
)
@pytest.mark.parametrize("made", [planned, held])
def test_one_that_is_used_up_or_past_its_deadline_is_given_up_and_counted(
    made: Callable[..., dict[str, Any]], over: dict[str, Any], code: str
) -> None:
    world = World(made(**over))
    counts = world.sweep()
    assert (counts["expired"], counts[part.GIVEN_UP], world.report.found) == (1, 1, 0)
    found = world.of()
    assert (found.status, (found.error or {})["code"], found.due_at) == (FAILED, code, None)
    assert "due_shard" not in world.store.records[found.key]  # type: ignore[index]
    assert world.queue.sent == []


def test_one_that_is_held_is_not_given_up_however_late_it_is() -> None:
    world = World(held(lease_s=30, deadline_at=times.text(NOW), tries=TRIES_MAX))
    counts = world.sweep()
    assert (counts["expired"], counts["left"], world.of().status) == (0, 1, PROCESSING)


def test_a_test_of_an_endpoint_that_is_given_up_wakes_nobody() -> None:
    world = World(planned("ping#1", tries=TRIES_MAX))
    counts = world.sweep()
    assert (counts["expired"], counts[part.GIVEN_UP]) == (1, 0)


def test_one_without_a_hint_is_sent_again_first_and_pushed_then() -> None:
    world = World(planned())
    order: list[str] = []
    world.store.before = order.append

    def refuses(message: Message) -> bool:
        order.append("send")
        return False

    world.queue.refuses = refuses
    counts = world.sweep()
    assert (counts["due"], counts["sent"], counts["held_back"], world.report.found) == (1, 1, 0, 1)
    assert order[-2:] == ["send", "push_due"]
    assert world.of().due_at == later(300)


def test_each_time_it_is_sent_again_after_twice_the_time() -> None:
    """Hole 24: who sends again at each sweep makes a storm."""
    world = World(planned(not_before=times.text(later(-1_000))))
    world.sweep()
    assert world.of().due_at == later(1_000)


@pytest.mark.parametrize(("until_s", "looks_at"), [(3_000, 3_000), (200, None)])
def test_one_that_waits_is_looked_for_when_it_may_be_tried(until_s: float, looks_at: float | None) -> None:
    world = World(planned(not_before=times.text(later(until_s))))
    counts = world.sweep()
    assert (counts["pushed"], counts["left"], world.queue.sent) == (int(looks_at is not None), int(not looks_at), [])
    assert world.of().due_at == (later(looks_at) if looks_at else later(-1))


def test_a_wait_that_no_message_can_hold_back_is_ended_by_the_sweep_and_is_no_repair() -> None:
    """N12: waits above a quarter of an hour are nobody else's."""
    world = World(waiting(until_s=-5))
    counts = world.sweep()
    assert (counts["sent"], world.report.found, world.hinted) == (1, 0, ["a"])


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_one_that_has_ended_is_left_where_the_index_is_behind(status: str) -> None:
    world = World(planned(status=status))
    assert (world.sweep()["left"], world.queue.sent, world.store.images) == (1, [], [])


def test_one_that_is_gone_by_now_is_nothing_to_count() -> None:
    world = World(planned())
    rows = world.store.due(ids.delivery_shard("a", f"delivery#{ENDPOINT}#a.1.COMPLETED"), NOW, None, 10)
    world.store.records.clear()
    world.store.due = lambda shard, *_: rows if shard == ids.delivery_shards()[0] else []  # type: ignore[method-assign]
    assert (world.sweep()["due"], world.complete) == (0, True)


# --- the depth gate --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("depth", "sent", "held_back", "repaired"),
    [(0, CROWD, 0, CROWD), (CROWD - 1, CROWD, 0, CROWD), (CROWD, 0, CROWD, 0), (10_000, 0, CROWD, 0)],
)
def test_the_depth_gate_holds_a_crowd_back_while_the_queue_has_a_hint_for_each_of_them(
    depth: int, sent: int, held_back: int, repaired: int
) -> None:
    world = World(*crowd(), depth=depth)
    counts = world.sweep()
    assert (counts["sent"], counts["held_back"], world.report.found) == (sent, held_back, repaired)
    assert {world.of(f"{number:03d}").due_at for number in range(CROWD)} == {later(300)}


def test_it_holds_back_nobody_who_has_waited_for_an_hour_or_has_no_message_for_certain() -> None:
    old = [planned(f"old{number}", not_before=times.text(later(-3_600))) for number in range(3)]
    world = World(*crowd(), *old, waiting("late", until_s=-5), depth=10_000)
    assert world.sweep()["sent"] == 4
    assert sorted(world.hinted) == ["late", "old0", "old1", "old2"]


def test_a_few_are_sent_again_from_a_slow_queue_and_are_no_repair() -> None:
    world = World(*crowd(3), depth=10)
    assert (world.sweep()["sent"], world.report.found) == (3, 0)


def test_while_nobody_knows_how_full_the_queue_is_everything_is_sent() -> None:
    world = World(*crowd(), depth=10_000)
    world.queue.troubles.add("depth", Trouble.REFUSED, Trouble.REFUSED)
    assert world.sweep()["sent"] == CROWD
    assert "depth_unknown" in world.notices.steps


# --- troubles --------------------------------------------------------------------------------------
def test_how_full_it_was_is_asked_before_anything_is_sent() -> None:
    world = World(*(held(f"h{number}") for number in range(3)), *crowd(3))
    world.queue.depth = lambda: len(world.queue.sent)  # type: ignore[method-assign]
    world.sweep()
    assert world.report.found == 6


def test_hints_go_in_batches_and_each_once() -> None:
    world = World(held("h"), *crowd(2 * CROWD + 50))
    batches: list[int] = []
    send = world.queue.send

    def counted(messages: Sequence[Message]) -> set[int]:
        batches.append(len(messages))
        return send(messages)

    world.queue.send = counted  # type: ignore[method-assign]
    world.sweep()
    assert sorted(world.hinted) == sorted(["h", *(f"{number:03d}" for number in range(2 * CROWD + 50))])
    assert len(batches) <= 4


def test_what_the_queue_does_not_take_stays_due_and_is_a_trouble() -> None:
    world = World(planned("a"), planned("b"))
    world.queue.refuses = lambda message: json.loads(message.body)["run_id"] == "a"
    counts = world.sweep()
    assert (counts["sent"], counts["failed"], world.report.troubles) == (1, 1, 1)
    assert (world.of("a").due_at, world.of("b").due_at) == (later(-1), later(300))


def test_one_that_cannot_be_read_or_written_keeps_nobody_else_from_his_repair() -> None:
    world = World(planned("a"), planned("b"), planned("c"), held("d"))
    world.store.broken = {key for key in world.store.records if key[0] in "ad"}
    del world.store.records[world.of("b").key]["body"]  # type: ignore[index]
    counts = world.sweep()
    assert (counts["failed"], counts["unreadable"], counts["sent"], world.report.troubles) == (2, 1, 1, 3)
    assert world.hinted == ["c"]
    assert {fields["job_id"] for step, fields in world.notices.told if step == "unreadable_record"} == {"b"}


def test_a_shard_that_cannot_be_read_is_a_trouble_and_the_others_are_swept() -> None:
    world = World(*crowd(20))
    world.store.troubles.add("due", Trouble.REFUSED)
    counts = world.sweep()
    assert (counts["failed"], world.complete) == (1, True)
    first = sum(one["due_shard"] == ids.delivery_shards()[0] for one in crowd(20))
    assert 0 < first < 20
    assert counts["sent"] == 20 - first


def test_a_push_that_fails_leaves_it_due_and_is_a_trouble() -> None:
    world = World(planned())
    world.store.troubles.add("push_due", Trouble.REFUSED)
    assert (world.sweep()["sent"], world.report.troubles, world.of().due_at) == (1, 1, later(-1))


def test_of_two_sweeps_at_once_one_crash_is_counted() -> None:
    world = World(held())
    read = world.store.read
    stale = read(world.of().key)  # type: ignore[arg-type]
    world.sweep()
    world.store.read = lambda job_id: stale  # type: ignore[method-assign]
    world.store.records[world.of().key]["due_at"] = times.text(later(-1))  # type: ignore[index]
    world.sweep()
    assert world.of().crashes == 1


def test_one_that_has_gone_on_since_it_was_read_is_no_repair() -> None:
    world = World(held())
    stale = dict(world.store.records[world.of().key])  # type: ignore[index]
    again = changes.claim(claim_id="next", now=later(0), invocation_ends=later(60)).applied_to(stale)
    world.store.records[world.of().key] = {**again, "due_at": times.text(later(-1))}  # type: ignore[index]
    world.store.read = lambda job_id: stale  # type: ignore[method-assign]
    assert (world.sweep()["reaped"], world.report.found, world.hinted) == (0, 0, [])
    assert world.of().claim_id == "next"


# --- time, and going on ----------------------------------------------------------------------------
def test_what_time_does_not_reach_is_gone_on_with_from_the_cursor_and_nothing_is_left_out() -> None:
    world = World(*crowd(2 * CROWD + 50))
    left = iter([True] * (CROWD + 20))
    world.in_time = lambda: next(left, False)
    world.sweep()
    assert not world.complete
    assert len(world.hinted) < 2 * CROWD
    saved = dict(world.report.cursor)
    assert saved.keys() == {"shard", "due_at", "pk", "sk"}
    world.in_time = lambda: True
    asked: list[tuple[str, Any]] = []
    due = world.store.due
    world.store.due = lambda shard, *more: (asked.append((shard, more[1])), due(shard, *more))[1]  # type: ignore
    world.go_on()
    assert asked[0] == (
        ids.delivery_shards()[saved["shard"]], (saved["due_at"], (saved["pk"], saved["sk"])),
    )  # fmt: skip
    assert world.complete
    assert set(world.hinted) == {f"{number:03d}" for number in range(2 * CROWD + 50)}


def test_the_cursor_does_not_pass_what_is_not_sent() -> None:
    world = World(*crowd(10))
    world.in_time = lambda: world.report.counts["due"] < 5
    world.sweep()
    assert (world.hinted, world.report.cursor, world.turn.saves) == ([], None, 0)


def test_a_reaped_one_is_sent_though_the_time_is_over() -> None:
    """It has no hint and is in nobody's hands: the stream may be dead."""
    world = World(held(), planned("b"))
    world.in_time = lambda: world.report.counts["due"] < 1 and not world.store.images
    world.store.due = _in_order(world.store)  # type: ignore[method-assign]
    world.sweep()
    assert world.hinted == ["a"]


def _in_order(store: Store) -> Callable[..., list[tuple[str, Key]]]:
    rows = [(one["due_at"], key) for key, one in store.records.items()]
    return lambda shard, *_: rows if shard == ids.delivery_shards()[0] else []  # type: ignore[return-value]


def test_a_page_is_followed_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "DUE_PAGE", 2)
    world = World(*crowd(25))
    assert world.sweep()["sent"] == 25


def test_a_dry_run_counts_and_does_nothing() -> None:
    world = World(
        held("a"), planned("b"), planned("c", tries=TRIES_MAX), planned("d", not_before=times.text(later(999)))
    )
    counts = world.sweep(dry_run=True)
    assert {name: counts[name] for name in ("due", "reaped", "sent", "expired", "pushed", part.GIVEN_UP)} == {
        "due": 4, "reaped": 1, "sent": 1, "expired": 1, "pushed": 1, part.GIVEN_UP: 0,
    }  # fmt: skip
    assert (world.store.images, world.queue.sent) == ([], [])


def test_how_long_the_oldest_has_waited_is_told() -> None:
    world = World(planned(not_before=times.text(later(-500))), planned("b"))
    assert world.sweep()["oldest_s"] == 500


def test_a_message_says_nothing_of_the_url_or_of_the_body() -> None:
    world = World(planned(url="https://example.com/hook?key=secret", body='{"secret": 1}'))
    world.sweep()
    (message,) = world.queue.sent
    assert isinstance(message, Message)
    assert "secret" not in message.body + json.dumps(dict(message.attributes))
    assert "secret" not in json.dumps(world.notices.told, default=str)


def test_the_plan_of_one_that_waits_longer_than_a_sweep_is_to_look_then() -> None:
    found = plan(deliveries.read(planned()), NOW, LIMITS)
    assert isinstance(found, SendAgain)
    assert (found.urgent, found.left_to_us) == (False, False)
