"""The sweep among the dead letters: what died without a try goes back, noise goes, and everything else stays."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import FAILED, INBOX_RETURNS, WAITING
from lambdas.core.envelope import read
from lambdas.core.letters.letter import DELIVERIES, INBOX, URGENT, WORK
from lambdas.core.letters.stray_letters import RETURNS_MAX, StrayLetters
from lambdas.core.ports import MESSAGE_BYTES, Found, Message, Unavailable
from tests.builders import (
    any_delivery_hint_body,
    any_event_body,
    any_found,
    any_hint_body,
    any_record,
    final_record,
    held_record,
    later,
    unreadable_found,
)  # fmt: skip
from tests.fakes import FakeOutbox, FakeSender, Trouble
from tests.unit.mortuary import OLD, Mortuary, an_id, dead, failed


class Told:
    """A report."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self.counts: dict[str, int] = {}
        self.ids: list[str] = []
        self.troubles = 0

    def count(self, name: str, n: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + n

    def repaired(self, id_: str, n: int = 1) -> None:
        self.ids.append(id_)

    def trouble(self, n: int = 1) -> None:
        self.troubles += n


def part(place: Mortuary) -> StrayLetters:
    return StrayLetters(place.boxes, place.store, place.outbox, place.queues, place.clock)


def swept(place: Mortuary, *, dry_run: bool = False) -> Told:
    told = Told(dry_run=dry_run)
    for _ in part(place).run(told):
        pass
    return told


def stray(number: int, **over: Any) -> Found:
    return any_found(any_hint_body(an_id(number)), **{"moved": True, "sent_at": OLD, **over})


def holding(*found: Found, queue: str = WORK, record: dict[str, Any] | None = None) -> Mortuary:
    place = Mortuary()
    place.boxes[queue].add(*found)
    if record:
        place.store.records[record["pk"]] = record
    return place


# --- work messages -----------------------------------------------------------------------------------
def test_a_job_that_no_worker_ever_saw_is_sent_anew_and_its_letter_goes() -> None:
    place = holding(stray(1), record=any_record(pk=an_id(1)))
    told = swept(place)
    (message,) = place.outbox.work
    assert getattr(read(message.body), "job_id", None) == an_id(1)
    assert (place.work.lying, told.counts["sent_again"], told.ids) == ({}, 1, [an_id(1)])


def test_an_urgent_one_is_sent_as_an_urgent_one() -> None:
    place = holding(stray(1), queue=URGENT, record=any_record(pk=an_id(1), urgent=True))
    swept(place)
    assert [message.urgent for message in place.outbox.work] == [True]


def test_several_letters_of_a_job_are_one_message() -> None:
    place = holding(stray(1), stray(1), stray(1), record=any_record(pk=an_id(1)))
    told = swept(place)
    assert (len(place.outbox.work), place.work.lying, told.counts["sent_again"]) == (1, {}, 1)


def test_a_letter_stays_while_its_message_is_refused() -> None:
    place = holding(stray(1), record=any_record(pk=an_id(1)))
    place.outbox = FakeOutbox(lambda kind, message: True)
    told = swept(place)
    assert (len(place.work.visible), told.troubles) == (1, 1)


@pytest.mark.parametrize(
    "record",
    [
        held_record(pk=an_id(1)),
        any_record(pk=an_id(1), status=WAITING),
        any_record(pk=an_id(1), not_before=later(hours=2)),
        None,
        {"pk": an_id(1), "sk": "job", "status": "DONE"},
    ],
)
def test_a_hint_whose_job_is_in_other_hands_or_not_there_stays(record: dict[str, Any] | None) -> None:
    place = holding(stray(1), record=record)
    swept(place)
    assert (len(place.work.visible), place.outbox.work) == (1, [])


def test_a_hint_that_somebody_has_put_there_stays() -> None:
    place = holding(stray(1, moved=False), record=any_record(pk=an_id(1)))
    swept(place)
    assert (len(place.work.visible), place.outbox.work) == (1, [])


@pytest.mark.parametrize("record", [final_record(pk=an_id(1)), failed(1), {**failed(1), "status": "DELETED"}])
def test_a_hint_of_a_job_that_has_ended_is_noise(record: dict[str, Any]) -> None:
    place = holding(stray(1), record=record)
    told = swept(place)
    assert (place.work.lying, place.outbox.work, told.counts["noise"]) == ({}, [], 1)


def test_a_record_that_cannot_be_read_leaves_its_letter_and_holds_up_no_other() -> None:
    place = holding(stray(1), stray(2), dead(3), record=any_record(pk=an_id(1)))
    place.store.records |= {an_id(2): any_record(pk=an_id(2)), an_id(3): failed(3)}
    place.store.spoilt = {an_id(1), an_id(3)}
    place.clock.advance(999_999)
    told = swept(place)
    assert (told.ids, len(place.work.visible), told.counts["noise"]) == ([an_id(2)], 2, 0)


# --- letters about jobs ------------------------------------------------------------------------------
def test_a_letter_of_a_failed_job_is_the_operators() -> None:
    place = Mortuary(3)
    place.clock.advance(999_999)
    told = swept(place)
    assert (len(place.work.visible), place.moved(), told.counts["seen"]) == (3, [], 3)


def test_a_letter_whose_job_has_gone_on_goes_after_a_while() -> None:
    place = holding(dead(1), record=failed(1, attempt=3))
    swept(place)
    assert len(place.work.visible) == 1
    place.clock.advance(3_600)
    assert (swept(place).counts["noise"], place.work.lying) == (1, {})


def test_a_letter_that_is_ahead_of_its_record_is_never_removed() -> None:
    place = holding(dead(1, attempt=5), record=any_record(pk=an_id(1)))
    place.clock.advance(999_999)
    swept(place)
    assert len(place.work.visible) == 1


# --- events ------------------------------------------------------------------------------------------
def test_an_event_that_never_became_a_job_goes_back_so_often_and_then_stays() -> None:
    place = holding(any_found("{}", attributes={"source": "crm"}, moved=True), queue=INBOX)
    for round_ in range(1, RETURNS_MAX + 1):
        swept(place)
        message = place.queues[INBOX].sent[-1]
        assert message.attributes == {"source": "crm", INBOX_RETURNS: str(round_)}
        assert place.inbox.lying == {}
        place.inbox.add(any_found(message.body, attributes=message.attributes, moved=True))
    told = swept(place)
    assert (len(place.inbox.visible), told.counts["put_back"]) == (1, 0)


@pytest.mark.parametrize(
    "found",
    [
        any_found("{}", attributes={"source": "crm"}),
        any_found("{}", attributes={"source": "crm", INBOX_RETURNS: "many"}, moved=True),
        any_found("{}", attributes={"source": "crm", INBOX_RETURNS: "9" * 5_000}, moved=True),
        unreadable_found("x"),
    ],
)
def test_what_ingest_has_judged_or_somebody_sent_stays(found: Found) -> None:
    place = holding(found, queue=INBOX)
    swept(place)
    assert (len(place.inbox.visible), place.moved(INBOX)) == (1, [])


def test_an_event_stays_while_the_inbox_refuses_it() -> None:
    place = holding(any_found("{}", moved=True), queue=INBOX)
    place.queues[INBOX] = FakeSender(lambda message: True)
    assert (swept(place).troubles, len(place.inbox.visible)) == (1, 1)


@pytest.mark.parametrize(("room", "back"), [(len(INBOX_RETURNS) + len("String1"), 1), (0, 0)])
def test_an_event_that_is_too_large_for_its_returns_stays_and_is_no_trouble(room: int, back: int) -> None:
    body = "x" * (MESSAGE_BYTES - Message("", {"source": "crm"}, "").size - room)
    place = holding(any_found(body, attributes={"source": "crm"}, moved=True), queue=INBOX)
    place.queues[INBOX] = FakeSender(lambda message: message.size > MESSAGE_BYTES)
    told = swept(place)
    assert (told.counts["put_back"], told.troubles, len(place.inbox.visible)) == (back, 0, 1 - back)


# --- what is to be delivered -------------------------------------------------------------------------
@pytest.mark.parametrize("body", [any_event_body(), any_delivery_hint_body()])
@pytest.mark.parametrize("moved", [True, False])
def test_what_was_to_be_delivered_goes_back_so_often_and_then_stays(body: str, moved: bool) -> None:
    """Whether SQS has moved it or SNS could not deliver it: to bring it back is harmless."""
    place = holding(any_found(body, attributes={"tenant": "acme"}, moved=moved), queue=DELIVERIES)
    for round_ in range(1, RETURNS_MAX + 1):
        assert swept(place).counts["put_back"] == 1
        message = place.queues[DELIVERIES].sent[-1]
        assert (message.body, message.group) == (body, "acme")
        assert message.attributes == {"tenant": "acme", INBOX_RETURNS: str(round_)}
        assert place.boxes[DELIVERIES].lying == {}
        place.boxes[DELIVERIES].add(any_found(message.body, attributes=message.attributes, moved=True))
    assert swept(place).counts["put_back"] == 0
    assert len(place.boxes[DELIVERIES].visible) == 1
    assert place.queues[INBOX].sent == []


def test_what_deliver_has_buried_is_the_operators() -> None:
    place = holding(unreadable_found("no event of ours"), queue=DELIVERIES)
    assert swept(place).counts["put_back"] == 0
    assert len(place.boxes[DELIVERIES].visible) == 1


def test_what_was_to_be_delivered_stays_while_its_queue_refuses_it() -> None:
    place = holding(any_found(any_event_body(), moved=True), queue=DELIVERIES)
    place.queues[DELIVERIES] = FakeSender(lambda message: True)
    assert swept(place).troubles == 1
    assert len(place.boxes[DELIVERIES].visible) == 1


# --- the whole ---------------------------------------------------------------------------------------
def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    place = holding(stray(1), stray(2), dead(3), record=any_record(pk=an_id(1)))
    place.store.records |= {an_id(2): final_record(pk=an_id(2)), an_id(3): failed(3)}
    place.inbox.add(any_found("{}", moved=True))
    told = swept(place, dry_run=True)
    assert told.counts == {"seen": 4, "would_send_again": 1, "would_remove": 1, "would_leave": 1, "would_put_back": 1}
    assert (len(place.work.visible), len(place.inbox.visible), place.outbox.work) == (3, 1, [])


def test_a_sweep_that_is_stopped_shows_what_it_had_hidden() -> None:
    place = Mortuary(25)
    running = part(place).run(Told())
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert len(place.work.visible) == 25


def test_a_queue_that_cannot_be_read_keeps_no_letter_of_another() -> None:
    place = holding(stray(1), record=any_record(pk=an_id(1)))
    place.inbox.add(any_found("{}", moved=True))
    place.work.troubles.add("receive", Trouble.REFUSED)
    told = Told()
    with pytest.raises(Unavailable, match="work: receive"):
        for _ in part(place).run(told):
            pass
    assert (told.troubles, told.counts["put_back"], place.inbox.lying) == (1, 1, {})
    assert len(place.work.visible) == 1


def test_a_store_that_does_not_answer_ends_the_part_and_nothing_is_lost() -> None:
    place = holding(stray(1), record=any_record(pk=an_id(1)))
    place.store.troubles.add("read", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        swept(place)
    assert len(place.work.visible) == 1


def test_the_letter_of_a_job_that_failed_without_a_try_stays_failed_and_the_operators() -> None:
    """Its deadline is over: that it failed has been told. It is listed as one of zero attempts."""
    place = holding(dead(1), record=failed(1, tries=0))
    swept(place)
    assert (len(place.work.visible), place.store.records[an_id(1)]["status"]) == (1, FAILED)
