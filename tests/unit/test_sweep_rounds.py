"""Leases, cursors and certificates: one sweep at a time for each part, gone on with whatever dies."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas.contracts.names import SWEEP_PARTS
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Unavailable
from lambdas.core.sweeping import asking
from lambdas.core.sweeping.asking import Order, ask, certificate_of, known_parts, order_of
from lambdas.core.sweeping.report import PartFailed, Report, Stepwise, Turn
from lambdas.core.sweeping.rounds import ROUNDS_MAX, STARTS_MAX, Rounds
from tests.fakes import FakeClock, FakeLedger, FakeObjects, Notices, Trouble

INVOCATION_S = 120


class Killed(BaseException):
    """The platform ended the invocation here."""


@dataclass
class Counting:
    """A part that finds things 1 to `end`, one after the other, each repaired once for all."""

    end: int = 6
    done: list[int] = field(default_factory=list)
    touched: list[int] = field(default_factory=list)
    before: Callable[[int], None] = lambda number: None
    always_save: bool = False

    def run(self, report: Report, turn: Turn) -> bool:
        for number in range(int(report.cursor or 0) + 1, self.end + 1):
            if not turn.in_time():
                return False
            self.before(number)
            self.touched.append(number)
            if number not in self.done:
                if not report.dry_run:
                    self.done.append(number)
                report.repaired(f"{number}")
            report.count("seen")
            report.cursor = number
            turn.save()
        return True


class World:
    """A ledger, parts, and invocations that come one after the other."""

    def __init__(self, **parts: Any) -> None:
        self.clock, self.certificates, self.notices = FakeClock(), FakeObjects(), Notices()
        self.ledger = FakeLedger()
        self.parts: dict[str, Any] = parts or {"stuck": Counting()}
        self.started: list[dict[str, Any]] = []
        self.told: list[tuple[str, int]] = []
        self.start_trouble: Exception | None = None
        self.steps = 1_000
        self.invocations = 0

    def start(self, payload: Any) -> None:
        if self.start_trouble:
            raise self.start_trouble
        self.started.append(json.loads(json.dumps(payload)))

    def invoke(self, event: dict[str, Any], *, holder: str = "") -> Rounds:
        self.invocations += 1
        holder = holder or f"request-{self.invocations}"
        left = iter(range(self.steps))
        rounds = Rounds(
            parts=self.parts,
            ledger=self.ledger,
            certificates=self.certificates,
            start=self.start,
            now=self.clock,
            holder=holder,
            until=times.after(self.clock(), INVOCATION_S + 10),
            in_time=lambda: next(left, None) is not None,
            tell=lambda report: self.told.append((report.part, report.found)),
            notice=self.notices,
        )
        self.complete = rounds.run(order_of(event, request_id=holder, usual=("stuck",)))
        return rounds

    def certificate(self, sweep_id: str) -> dict[str, Any]:
        found = certificate_of(sweep_id, now=self.clock(), ledger=self.ledger, certificates=self.certificates)
        assert found is not None
        return found


def test_a_sweep_ends_in_a_certificate_that_says_what_was_repaired() -> None:
    world = World()
    world.invoke({"sweep_id": "s1", "by": "arn:someone"})
    told = world.certificate("s1")
    assert (told["status"], told["by"], told["repaired"], told["troubles"]) == ("DONE", "arn:someone", 6, 0)
    assert told["parts"]["stuck"]["repaired_ids"] == ["1", "2", "3", "4", "5", "6"]
    assert json.loads(world.certificates.objects["sweeps/s1.json"]) == told
    assert world.told == [("stuck", 6)]


def test_an_event_that_says_nothing_is_the_schedules_own_sweep() -> None:
    world = World()
    world.invoke({}, holder="request-x")
    told = world.certificate("request-x")
    assert (told["by"], told["dry_run"], list(told["parts"])) == ("schedule", False, ["stuck"])


def test_a_second_sweep_of_a_part_that_is_under_way_says_which_one_covers_it() -> None:
    world = World()
    other = World()
    other.ledger = world.ledger

    def asked_meanwhile(number: int) -> None:
        if number == 3:
            other.invoke({"sweep_id": "s2"}, holder="another")

    world.parts["stuck"].before = asked_meanwhile
    world.invoke({"sweep_id": "s1"})
    covered = other.certificate("s2")
    assert (covered["status"], covered["parts"]["stuck"]["state"]) == ("DONE", "COVERED")
    assert "s1" in covered["parts"]["stuck"]["why"]
    assert other.parts["stuck"].done == []
    assert other.told == []
    assert world.certificate("s1")["repaired"] == 6


def test_a_sweep_without_time_goes_on_in_a_new_invocation_under_the_same_certificate() -> None:
    world = World()
    world.steps = 4  # one to begin the part, three inside
    world.invoke({"sweep_id": "s1", "by": "me"})
    assert (world.complete, world.parts["stuck"].done) == (False, [1, 2, 3])
    assert world.started == [{"sweep_id": "s1", "parts": ["stuck"], "dry_run": False, "by": "me", "round": 1}]
    assert world.certificate("s1")["status"] == "RUNNING"
    world.steps = 100
    world.invoke(world.started[0])
    assert world.parts["stuck"].touched == [1, 2, 3, 4, 5, 6]
    told = world.certificate("s1")
    assert (told["status"], told["repaired"], told["parts"]["stuck"]["seen"]) == ("DONE", 6, 6)
    assert world.told == [("stuck", 6)]


def test_when_nobody_can_be_started_the_next_schedule_goes_on_first_and_sweeps_then() -> None:
    world = World()
    world.steps = 4
    world.start_trouble = Unavailable("no")
    world.invoke({"sweep_id": "s1"})
    world.steps = 100
    world.clock.advance(300)
    world.invoke({"sweep_id": "s2"})
    assert world.parts["stuck"].touched == [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]
    assert (world.certificate("s1")["repaired"], world.certificate("s2")["repaired"]) == (6, 0)
    assert world.told == [("stuck", 6), ("stuck", 0)]


def test_who_was_started_late_finds_that_somebody_else_has_ended_it() -> None:
    world = World()
    world.steps = 4
    world.invoke({"sweep_id": "s1"})
    world.steps = 100
    world.invoke({"sweep_id": "s2"})
    before = world.certificate("s1")
    world.invoke(world.started[0])
    assert world.certificate("s1") == before
    assert world.told == [("stuck", 6), ("stuck", 0)]


@pytest.mark.parametrize("nth", range(1, 12))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sweep_that_is_killed_at_any_of_its_calls_is_gone_on_with_by_the_next(nth: int, when: str) -> None:
    """Each thing is repaired once, and the sweep that comes next ends with nothing left to do."""
    world, calls = World(), iter(range(1, 1_000))

    def kill(name: str) -> None:
        if next(calls) == nth:
            raise Killed

    if when == "before":
        world.ledger.before = kill
    else:
        world.parts["stuck"].before = lambda number: kill("part")
    killed = False
    try:
        world.invoke({"sweep_id": "s1"})
    except Killed:
        killed = True
    world.ledger.before = lambda name: None
    world.parts["stuck"].before = lambda number: None
    world.clock.advance(INVOCATION_S + 11)
    world.invoke({"sweep_id": "s2"})
    assert sorted(world.parts["stuck"].done) == [1, 2, 3, 4, 5, 6]
    assert world.certificate("s2")["status"] == "DONE"
    assert killed or world.certificate("s1")["status"] == "DONE"
    assert world.ledger.items["lease#sweep/stuck", "lease"]["state"] == {}


def test_a_killed_sweeps_successor_goes_on_from_its_saved_cursor_under_its_certificate() -> None:
    world = World()

    def slow(number: int) -> None:
        world.clock.advance(11)
        if number == 5:
            raise Killed

    world.parts["stuck"].before = slow
    with pytest.raises(Killed):
        world.invoke({"sweep_id": "s1"})
    world.parts["stuck"].before = lambda number: None
    world.clock.advance(INVOCATION_S + 11)
    world.invoke({"sweep_id": "s2"})
    assert world.parts["stuck"].touched == [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]
    assert (world.certificate("s1")["status"], world.certificate("s1")["repaired"]) == ("DONE", 6)


def test_who_has_lost_its_lease_stops_and_leaves_the_rest_to_its_successor() -> None:
    world, other = World(), World()
    other.ledger, other.clock = world.ledger, world.clock

    def frozen(number: int) -> None:
        if number == 3:
            world.clock.advance(INVOCATION_S + 11)
            other.invoke({"sweep_id": "s2"}, holder="another")

    world.parts["stuck"].before = frozen
    world.invoke({"sweep_id": "s1"})
    assert world.parts["stuck"].touched == [1, 2, 3]
    assert "lease_lost" in world.notices.steps
    assert (world.told, other.parts["stuck"].done) == ([], [1, 2, 3, 4, 5, 6])


def test_a_sweep_that_goes_on_without_end_is_ended_by_the_number_of_its_rounds() -> None:
    world = World()
    world.steps = 4
    world.invoke({"sweep_id": "s1", "round": ROUNDS_MAX})
    assert (world.complete, world.started) == (False, [])
    world.invoke({"sweep_id": "s2", "round": ROUNDS_MAX - 1})
    assert [one["round"] for one in world.started] == [ROUNDS_MAX]


def test_what_dies_at_one_place_again_and_again_is_given_up_and_begun_anew() -> None:
    world = World()

    def die(number: int) -> None:
        if number == 3:
            raise Killed

    world.parts["stuck"].before = die
    for _ in range(STARTS_MAX):
        with pytest.raises(Killed):
            world.invoke({"sweep_id": f"s{world.invocations}"})
        world.clock.advance(INVOCATION_S + 11)
    world.parts["stuck"].before = lambda number: None
    world.invoke({"sweep_id": "last"})
    first = world.certificate("s0")
    assert (first["status"], first["parts"]["stuck"]["state"], first["troubles"]) == ("FAILED", "FAILED", 1)
    assert "died at the same place" in first["parts"]["stuck"]["why"]
    assert world.certificate("last")["status"] == "DONE"


@pytest.mark.parametrize("trouble", [PartFailed, Unavailable, UnreadableRecord])
def test_a_part_that_fails_says_why_and_the_others_do_theirs(trouble: type[Exception]) -> None:
    class Broken:
        def run(self, report: Report, turn: Turn) -> bool:
            report.count("seen")
            raise trouble("its list was not answered")

    world = World(shop=Broken(), stuck=Counting())
    world.invoke({"sweep_id": "s1", "parts": ["shop", "stuck"]})
    told = world.certificate("s1")
    assert (told["status"], told["troubles"], told["repaired"]) == ("FAILED", 1, 6)
    assert told["parts"]["shop"]["why"] == "its list was not answered"
    assert world.told == [("shop", 0), ("stuck", 6)]
    assert world.ledger.items["lease#sweep/shop", "lease"]["state"] == {}


def test_a_part_that_does_not_exist_is_said_to_be_absent() -> None:
    world = World()
    world.invoke({"sweep_id": "s1", "parts": ["no-such", "stuck"]})
    told = world.certificate("s1")
    assert (told["status"], told["parts"]["no-such"]["state"]) == ("DONE", "ABSENT")


def test_a_dry_run_holds_nobody_up_takes_nothing_over_and_tells_no_metric() -> None:
    world = World()
    world.steps = 4
    world.invoke({"sweep_id": "s1"})
    world.steps = 100
    world.invoke({"sweep_id": "dry", "dry_run": True})
    told = world.certificate("dry")
    assert (told["would_repair"], told["parts"]["stuck"]["would_repair_ids"]) == (3, ["4", "5", "6"])
    assert world.told == []
    world.invoke(world.started[0])
    assert world.certificate("s1")["repaired"] == 6


def test_each_part_has_a_lease_of_its_own() -> None:
    world = World(stuck=Counting(), drift=Counting())
    world.ledger.take("sweep/drift", "somebody", world.clock(), times.after(world.clock(), 60))
    world.invoke({"sweep_id": "s1", "parts": ["drift", "stuck"]})
    parts = world.certificate("s1")["parts"]
    assert (parts["drift"]["state"], parts["stuck"]["state"]) == ("COVERED", "DONE")


def test_a_report_that_was_told_is_recorded_when_the_ledger_can_be_reached_again() -> None:
    world = World()
    world.ledger.troubles.add("save", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        world.invoke({"sweep_id": "s1"})
    world.clock.advance(INVOCATION_S + 11)
    world.invoke({"sweep_id": "s2"})
    assert (world.certificate("s1")["status"], world.certificate("s2")["status"]) == ("DONE", "DONE")


def test_a_certificate_that_cannot_be_stored_is_stored_by_the_next_sweep() -> None:
    world = World()
    world.certificates.troubles.add("put", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        world.invoke({"sweep_id": "s1"})
    assert world.certificate("s1")["status"] == "RUNNING"
    world.clock.advance(INVOCATION_S + 11)
    world.invoke({"sweep_id": "s2"})
    assert world.certificate("s1")["status"] == "DONE"


def test_bounded_work_ends_with_its_time_and_is_not_gone_on_with() -> None:
    class Steps:
        closed = False

        def run(self, report: Report) -> Any:
            try:
                for _ in range(10):
                    report.count("seen")
                    yield
            finally:
                self.closed = True

    steps = Steps()
    world = World(letters=Stepwise(steps))
    world.steps = 4
    world.invoke({"sweep_id": "s1", "parts": ["letters"]})
    part = world.certificate("s1")["parts"]["letters"]
    assert (part["state"], part["seen"], part["cut_short"], steps.closed) == ("DONE", 4, 1, True)
    assert world.started == []


# --- asking for one ----------------------------------------------------------------------------------
def test_a_sweep_that_was_asked_for_is_known_at_once_and_started() -> None:
    world = World()
    order = Order("0" * 32, ("stuck", "uploads"), dry_run=True, by="arn:me")
    ask(order, now=world.clock(), ledger=world.ledger, start=world.start)
    assert world.certificate("0" * 32)["status"] == "RUNNING"
    assert world.certificate("0" * 32)["parts"] == {"stuck": {"state": "RUNNING"}, "uploads": {"state": "RUNNING"}}
    assert order_of(world.started[0], request_id="r", usual=()) == order


def test_nobody_knows_a_sweep_that_nobody_asked_for() -> None:
    world = World()
    assert certificate_of("no", now=world.clock(), ledger=world.ledger, certificates=world.certificates) is None


@pytest.mark.parametrize(("chars", "read"), [(128, 1), (129, 0)])
def test_a_longer_id_than_any_sweep_has_is_not_looked_for(chars: int, read: int) -> None:
    """A store refuses a longer key, which is no reason to ask again."""
    world = World()
    asked: list[str] = []
    world.ledger.before = asked.append
    found = certificate_of("s" * chars, now=world.clock(), ledger=world.ledger, certificates=world.certificates)
    assert (found, asked) == (None, ["read"] * read)


def test_a_certificate_whose_object_was_deleted_is_told_from_the_record() -> None:
    world = World()
    world.invoke({"sweep_id": "s1"})
    before = world.certificate("s1")
    world.certificates.objects.clear()
    assert world.certificate("s1") == before


def test_a_sweeps_record_is_not_kept_for_ever() -> None:
    world = World()
    world.invoke({"sweep_id": "s1"})
    kept = world.ledger.items["sweep#s1", "sweep"]
    assert kept["expires_at"] == int(world.clock().timestamp()) + asking.KEPT_DAYS * 86_400


def test_all_parts_are_known_by_name() -> None:
    parts = ("stuck", "deliveries", "letters", "uploads", "crm", "shop", "drift")
    assert known_parts({"shop": {}, "crm": {}}) == parts
    assert known_parts({}) == SWEEP_PARTS  # which no source may be named


def test_a_sweep_that_nobody_began_or_will_go_on_with_is_stalled_after_a_while() -> None:
    world = World()
    ask(Order("s1", ("stuck",)), now=world.clock(), ledger=world.ledger, start=world.start)
    assert "stalled" not in world.certificate("s1")
    world.clock.advance(asking.STALLED_S)
    assert world.certificate("s1")["stalled"] is True


def test_a_sweep_whose_cursor_waits_for_the_next_one_is_not_stalled() -> None:
    world = World()
    world.steps = 3
    world.start_trouble = Unavailable("no Lambda")
    world.invoke({"sweep_id": "s1"})
    world.clock.advance(2 * asking.STALLED_S)
    told = world.certificate("s1")
    assert (told["status"], "stalled" in told) == ("RUNNING", False)
