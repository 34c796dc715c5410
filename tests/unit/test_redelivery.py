"""Deliveries that are asked for: a job's end once more, a test of an endpoint, and what the timeline tells of them."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lambdas.contracts.names import CALLBACK, COMPLETED, FAILED, FINAL, OPEN, PENDING, PROCESSING
from lambdas.contracts.validation import envelope_check
from lambdas.core import times, views
from lambdas.core.changes import error
from lambdas.core.job import from_record
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.protocol import Change
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import messages, pings, timeline
from lambdas.core.webhooks.delivery import Delivery, DeliveryLimits, read
from lambdas.core.webhooks.endpoint import EVENTS, Endpoint
from lambdas.core.webhooks.planning import body_of
from lambdas.core.webhooks.redelivery import Post, Redelivery, redeliver, told
from tests.builders import JOB_ID, NOW, TENANT, any_record, final_record, handed_over, later
from tests.fakes import FakeClock, FakeEndpoints, FakeJobStore, Trouble
from tests.fakes_webhooks import FakeDeliveries

Key = tuple[str, str]
LIMITS = DeliveryLimits()
OTHER = "globex"


class Shelf(FakeDeliveries):
    """`before`: what somebody else does before a write."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[Key], None] = lambda key: None

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        self.before(key)
        return super().apply(key, change)


class Room:
    """One job, a shelf of deliveries, endpoints."""

    def __init__(self, record: Mapping[str, Any], *urls: str) -> None:
        self.jobs = FakeJobStore(record)
        self.shelf, self.clock = Shelf(), FakeClock(later(60))
        self.endpoints = FakeEndpoints()
        self.ids = [self.add(url) for url in urls]
        self._numbers = itertools.count(1)
        self.post = Post(self.jobs, self.shelf, self.endpoints, LIMITS, self.clock, lambda *_, **__: None)

    def add(self, url: str, tenant: str = TENANT, **over: Any) -> str:
        made = endpoints.new(tenant, url, events=EVENTS, description="", now=NOW)
        self.endpoints.create({**endpoints.record_of(made), **over})
        return made.id

    def ask(self, tenant: str = TENANT, job_id: str = JOB_ID, **body: Any) -> Any:
        return redeliver(tenant, job_id, json.dumps(body).encode() if body else b"", self.post)

    def sent(self, **body: Any) -> dict[str, str]:
        found = self.ask(**body)
        assert isinstance(found, Redelivery), found
        return {one.endpoint: one.status for one in found.deliveries}

    def delivery(self, endpoint: str) -> Delivery:
        (record,) = [one for one in self.shelf.records.values() if one["endpoint"] == endpoint]
        return read(record)

    def apply(self, delivery: Delivery, change: Change) -> None:
        assert isinstance(self.shelf.apply(delivery.key, change), Applied)

    def claim(self, endpoint: str) -> Delivery:
        found = self.delivery(endpoint)
        claim = changes.claim(claim_id="c", now=self.clock(), invocation_ends=times.after(self.clock(), 60))
        self.apply(found, claim)
        return self.delivery(endpoint)

    def take(self, endpoint: str) -> None:
        held = self.claim(endpoint)
        self.apply(held, changes.complete(held, now=self.clock(), receipt={"status": 204, "ms": 3}, limits=LIMITS))

    def give_up(self, endpoint: str) -> None:
        held = self.claim(endpoint)
        why = error("HTTP_500", "no")
        self.apply(held, changes.fail(held, now=self.clock(), why=why, limits=LIMITS, receipt={"status": 500, "ms": 3}))

    def new_id(self) -> str:
        return f"{next(self._numbers):032x}"


A, B = "https://a.acme.test/", "https://b.acme.test/"
HOOK = "https://shop.acme.test/done?order=7"


def refused(found: Any) -> tuple[int, str]:
    assert isinstance(found, Problem), found
    return found.status, found.detail


# --- what is delivered --------------------------------------------------------------------------------
@pytest.mark.parametrize("status", FINAL)
def test_an_end_that_was_never_planned_goes_to_whoever_is_there_now(status: str) -> None:
    room = Room(handed_over(status), A, B)
    assert room.sent() == dict.fromkeys(room.ids, PENDING)
    for one in room.ids:
        delivery = room.delivery(one)
        assert (delivery.event_type, delivery.event_id) == (f"job.{status.lower()}", f"{JOB_ID}.1.{status}")
        said = json.loads(delivery.body)
        assert (said["payload"]["status"], said["payload"]["sequence"]) == (status, 1)


def test_what_was_delivered_or_given_up_is_opened_under_its_old_event_id_with_its_old_body() -> None:
    room = Room(handed_over(), A, B)
    room.sent()
    room.take(room.ids[0])
    room.give_up(room.ids[1])
    before = [room.delivery(one) for one in room.ids]
    room.clock.advance(3_600)
    assert room.sent() == dict.fromkeys(room.ids, PENDING)
    for old, new in zip(before, (room.delivery(one) for one in room.ids), strict=True):
        assert (new.event_id, new.body, new.opening, new.tries) == (old.event_id, old.body, 1, 0)
        assert new.attempt == old.attempt + 1


def test_what_waits_for_its_next_try_is_sent_at_once_and_what_is_under_way_is_left_alone() -> None:
    room = Room(handed_over(), A, B)
    room.sent()
    held = room.claim(room.ids[0])
    why = error("HTTP_503", "later")
    room.apply(
        held,
        changes.retry(
            held, now=room.clock(), at=times.after(room.clock(), 7_200), why=why, refused=False, limits=LIMITS,
            receipt={"status": 503, "ms": 3},
        ),
    )  # fmt: skip
    under_way = room.claim(room.ids[1])
    room.clock.at = times.after(room.clock(), 1)
    assert room.sent() == {room.ids[0]: PENDING, room.ids[1]: PROCESSING}
    hastened = room.delivery(room.ids[0])
    assert (hastened.not_before, hastened.tries, hastened.opening) == (room.clock(), 1, 0)
    assert room.delivery(room.ids[1]) == under_way


@pytest.mark.parametrize("state", ["due", "waits", "given up", "taken"])
def test_it_goes_to_an_endpoint_that_was_registered_anew_whatever_had_become_of_it(state: str) -> None:
    """It was for the one before, of the same URL: but for being asked for it would not be sent to this one."""
    room = Room(handed_over(), A)
    room.sent()
    (name,) = room.ids
    if state == "waits":
        held, when = room.claim(name), times.after(room.clock(), 7_200)
        why = error("HTTP_503", "later")
        room.apply(
            held, changes.retry(held, now=room.clock(), at=when, why=why, refused=False, limits=LIMITS, receipt={})
        )
    elif state != "due":
        (room.give_up if state == "given up" else room.take)(name)
    before = room.delivery(name).registration
    room.endpoints.remove(TENANT, name)
    assert room.add(A, created_at=times.text(later(90))) == name
    room.clock.advance(60)
    assert room.sent() == {name: PENDING}
    found = room.delivery(name)
    assert (before, found.registration) == (times.text(NOW), times.text(later(90)))
    assert (found.not_before, found.event_id) == (room.clock(), f"{JOB_ID}.1.COMPLETED")


NOT_YET = "An attempt for an endpoint of the same URL, which was removed, is still under way. Ask again in a minute."


def test_nothing_is_promised_while_an_attempt_for_an_endpoint_that_was_registered_before_is_under_way() -> None:
    room = Room(handed_over(), A, B)
    room.sent()
    name, other = room.ids
    room.take(other)
    held = room.claim(name)
    room.endpoints.remove(TENANT, name)
    room.add(A, created_at=times.text(later(90)))
    before = copy.deepcopy(room.shelf.records)
    assert refused(room.ask()) == (409, NOT_YET)
    assert room.shelf.records == before  # the other one is not sent anything twice
    assert room.sent(endpoint=other) == {other: PENDING}
    why = error("ENDPOINT_DELETED", "its endpoint was removed before it was delivered, and registered anew")
    room.apply(held, changes.fail(held, now=room.clock(), why=why, limits=LIMITS, receipt={}))
    assert room.sent() == dict.fromkeys(room.ids, PENDING)
    assert room.delivery(name).registration == times.text(later(90))


@pytest.mark.parametrize("what", ["claimed", "given up"])
def test_nothing_is_promised_of_what_was_claimed_at_that_moment_for_an_endpoint_that_was_registered_before(
    what: str,
) -> None:
    room = Room(handed_over(), A)
    room.sent()
    (name,) = room.ids
    room.endpoints.remove(TENANT, name)
    room.add(A, created_at=times.text(later(90)))

    def claimed(key: Key) -> None:
        room.shelf.before = lambda _: None
        (room.claim if what == "claimed" else room.give_up)(name)

    room.shelf.before = claimed
    assert refused(room.ask()) == (409, NOT_YET)
    assert room.delivery(name).registration == times.text(NOW)


def test_one_under_way_that_names_no_registration_is_for_whoever_is_registered() -> None:
    room = Room(handed_over(), A)
    room.sent()
    (name,) = room.ids
    room.claim(name)
    (record,) = room.shelf.records.values()
    del record["registration"]
    assert room.sent() == {name: PROCESSING}


def test_a_repeat_makes_nothing_twice() -> None:
    room = Room(handed_over(), A)
    room.sent()
    room.give_up(room.ids[0])
    room.sent()
    before = copy.deepcopy(room.shelf.records)
    assert room.sent() == {room.ids[0]: PENDING}
    assert room.shelf.records == before


@pytest.mark.parametrize("trouble", [Trouble.UNHEARD, Trouble.UNSENT, Trouble.LOST_REPLY])
def test_what_broke_off_in_the_middle_is_finished_by_a_repeat(trouble: Trouble) -> None:
    room = Room(handed_over(), A, B)
    room.sent()
    room.give_up(room.ids[0])
    room.give_up(room.ids[1])
    room.shelf.troubles.add("reopen", trouble)
    if trouble is not Trouble.LOST_REPLY:
        with pytest.raises(Unavailable):
            room.ask()
    assert room.sent() == dict.fromkeys(room.ids, PENDING)
    assert [room.delivery(one).opening for one in room.ids] == [1, 1]


def test_two_at_once_open_it_once() -> None:
    room = Room(handed_over(), A)
    room.sent()
    room.give_up(room.ids[0])

    def other(key: Key) -> None:
        room.shelf.before = lambda _: None
        room.sent()

    room.shelf.before = other
    assert room.sent() == {room.ids[0]: PENDING}
    assert room.delivery(room.ids[0]).opening == 1


def test_a_delivery_that_is_deleted_at_that_moment_ends_quietly() -> None:
    room = Room(handed_over(), A)
    room.sent()
    room.give_up(room.ids[0])
    room.shelf.before = lambda key: room.shelf.records.clear()
    assert room.sent() == {}


def test_a_jobs_own_url_is_among_them_and_can_be_meant_alone() -> None:
    room = Room(handed_over(callback_url=HOOK), A)
    sent = room.sent()
    (callback,) = sent.keys() - set(room.ids)
    assert callback.startswith(f"{CALLBACK}-")
    assert room.delivery(callback).url == HOOK
    for name in (CALLBACK, callback):
        room = Room(handed_over(callback_url=HOOK), A)
        assert room.sent(endpoint=name) == {callback: PENDING}


def test_one_endpoint_is_meant_alone() -> None:
    room = Room(handed_over(callback_url=HOOK), A, B)
    assert room.sent(endpoint=room.ids[1]) == {room.ids[1]: PENDING}
    assert len(room.shelf.records) == 1


def test_of_a_job_that_was_started_again_only_the_last_end_is_delivered() -> None:
    room = Room(handed_over(FAILED, attempt=4), A)
    room.sent()
    room.give_up(room.ids[0])
    room.jobs.records[JOB_ID] = handed_over(COMPLETED, attempt=6)
    assert room.sent() == {room.ids[0]: PENDING}
    states = {one["event_id"]: one["status"] for one in room.shelf.records.values()}
    assert states == {f"{JOB_ID}.4.FAILED": FAILED, f"{JOB_ID}.6.COMPLETED": PENDING}


def test_the_body_is_the_one_that_the_event_itself_would_have_had() -> None:
    from lambdas.core import routing

    record = handed_over(callback_url=HOOK)
    room = Room(record, A)
    room.sent()
    event = json.loads(routing.event(from_record(record), room.clock()).body)
    assert room.delivery(room.ids[0]).body == body_of(event)


# --- what is refused --------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", OPEN)
def test_an_open_job_has_no_end_to_deliver(status: str) -> None:
    room = Room(any_record(status=status, lease_until=times.text(later(130))), A)
    assert refused(room.ask())[0] == 409
    assert room.shelf.records == {}


@pytest.mark.parametrize("status", FINAL)
def test_an_end_that_is_not_handed_over_yet_is_delivered_then(status: str) -> None:
    room = Room(final_record(status), A)
    assert refused(room.ask()) == (409, "Its end is not handed over yet, and is delivered then. Ask again in a moment.")
    assert room.shelf.records == {}


@pytest.mark.parametrize(
    ("over", "body"),
    [({}, {}), ({"enabled": False}, {}), ({"events": ["job.failed"]}, {}), ({"enabled": False}, {"endpoint": "A"})],
)
def test_with_nowhere_to_go_it_is_409(over: dict[str, Any], body: dict[str, str]) -> None:
    room = Room(handed_over())
    name = room.add(A, **over) if over else ""
    wanted = {"endpoint": name} if body else {}
    status, detail = refused(room.ask(**wanted))
    assert (status, "nowhere to deliver job.completed to" in detail) == (409, True)
    assert room.shelf.records == {}


def test_a_job_without_a_callback_url_has_no_callback() -> None:
    assert refused(Room(handed_over(), A).ask(endpoint=CALLBACK))[0] == 409


def test_another_tenants_job_or_endpoint_is_404() -> None:
    room = Room(handed_over(), A)
    theirs = room.add("https://globex.test/", tenant=OTHER)
    assert refused(room.ask(tenant=OTHER))[0] == 404
    assert refused(room.ask(endpoint=theirs))[0] == 404
    assert refused(room.ask(endpoint="callback-0123456789abcdef"))[0] == 404
    assert refused(room.ask(job_id="x" * 129))[0] == 404
    assert room.shelf.records == {}


def test_a_deleted_job_is_410() -> None:
    record = handed_over()
    from lambdas.core import changes as job_changes

    room = Room(job_changes.delete(from_record(record)).applied_to(record), A)
    assert refused(room.ask())[0] == 410


@pytest.mark.parametrize("body", [b"[]", b'{"endpoint": 7}', b'{"endpoint": ""}', b'{"all": true}', b"{"])
def test_a_body_of_another_shape_is_400(body: bytes) -> None:
    assert refused(redeliver(TENANT, JOB_ID, body, Room(handed_over(), A).post))[0] == 400


def test_the_answer_names_each_endpoint_and_where_to_look() -> None:
    room = Room(handed_over(), A)
    found = room.ask()
    assert told(found) == {
        "job_id": JOB_ID,
        "event_id": f"{JOB_ID}.1.COMPLETED",
        "deliveries": [{"endpoint": room.ids[0], "status": PENDING}],
        "links": {"events": f"/jobs/{JOB_ID}/events"},
    }


# --- tests of an endpoint -----------------------------------------------------------------------------------
def found_in(room: Room, name: str, tenant: str = TENANT) -> Endpoint:
    return endpoints.read(room.endpoints.records[tenant, name])


def test_a_ping_is_a_delivery_without_a_job_and_its_endpoint_tells_what_became_of_it() -> None:
    room = Room(any_record(), A)
    name = room.ids[0]
    assert pings.last_ping(found_in(room, name), room.post) == {}
    event_id = pings.ping(found_in(room, name), room.post, room.new_id)
    delivery = room.delivery(name)
    assert (delivery.is_ping, delivery.event_type, delivery.event_id) == (True, "job.ping", event_id)
    assert delivery.registration == times.text(NOW)
    assert json.loads(delivery.body)["payload"] == {"endpoint": name, "sequence": 0}
    assert envelope_check()(json.loads(delivery.body)) is None
    assert delivery.key == messages.key(delivery.pk, name, delivery.event_id)
    assert pings.last_ping(found_in(room, name), room.post) == {"ping": {"event_id": event_id, "status": PENDING}}
    room.give_up(name)
    shown = pings.last_ping(found_in(room, name), room.post)["ping"]
    assert (shown["status"], shown["error"]["code"]) == (FAILED, "HTTP_500")


def test_each_ping_is_another_one_and_the_last_is_told() -> None:
    room = Room(any_record(), A)
    made = [pings.ping(found_in(room, room.ids[0]), room.post, room.new_id) for _ in range(2)]
    assert len(set(made)) == 2
    assert pings.last_ping(found_in(room, room.ids[0]), room.post)["ping"]["event_id"] == made[1]


def test_a_ping_of_another_tenant_is_not_told() -> None:
    room = Room(any_record(), A)
    pings.ping(found_in(room, room.ids[0]), room.post, room.new_id)
    assert pings.last_ping(replace(found_in(room, room.ids[0]), tenant="other"), room.post) == {}


def test_what_is_disabled_or_removed_is_not_pinged() -> None:
    room = Room(any_record(), A)
    found = found_in(room, room.ids[0])
    room.endpoints.save(TENANT, found.id, endpoints.disabled("x"), {})
    assert refused(pings.ping(found_in(room, found.id), room.post, room.new_id))[0] == 409
    assert refused(pings.ping(found, room.post, room.new_id))[0] == 409  # it was enabled when it was looked at
    room.endpoints.remove(TENANT, found.id)
    assert refused(pings.ping(found, room.post, room.new_id))[0] == 409
    assert room.shelf.records == {}


# --- the timeline -----------------------------------------------------------------------------------------------
def test_the_timeline_tells_of_deliveries_between_what_happened_to_the_job() -> None:
    record = handed_over(history=[{"at": times.text(later(n)), "what": "x", "attempt": 1} for n in (0, 90, 200)])
    room = Room(record, A)
    room.sent()
    room.clock.advance(60)
    room.take(room.ids[0])
    shown = views.timeline(from_record(record), timeline.lines([*room.shelf.beside(JOB_ID), record]))
    assert [line["what"] for line in shown["events"] if line["what"] != "handed_over"] == [
        "x", "delivery.planned", "x", "delivery.delivered", "x",
    ]  # fmt: skip
    (last,) = [line for line in shown["events"] if line["what"] == "delivery.delivered"]
    assert (last["endpoint"], last["status"], last["ms"]) == (room.ids[0], 204, 3)


def test_a_broken_delivery_hides_nothing_and_chunks_are_no_deliveries() -> None:
    room = Room(handed_over(), A)
    room.sent()
    (whole,) = room.shelf.beside(JOB_ID)
    broken = {**whole, "sk": "delivery#broken"}
    chunk = {"pk": JOB_ID, "sk": "chunk#000001#000000", "text": "x", "at": times.text(NOW)}
    found, left_out = timeline.lines([chunk, broken, whole])
    assert ([line["what"] for line in found], left_out) == (["delivery.planned"], 0)


def test_a_long_timeline_tells_the_latest_and_how_many_it_leaves_out() -> None:
    room = Room(handed_over(), A)
    room.sent()
    (one,) = room.shelf.beside(JOB_ID)
    many = [
        {**one, "history": [{"at": times.text(later(n)), "what": "planned", "attempt": 0}], "history_left_out": 1}
        for n in range(timeline.LINES_MAX + 5)
    ]
    found, left_out = timeline.lines(many)
    assert (len(found), left_out) == (timeline.LINES_MAX, 5 + len(many))
    assert found[0]["at"] == times.text(later(5))
