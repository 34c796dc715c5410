"""A redrive sends before it deletes, at its rate, and each letter once; its canary decides whether it goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, REDRIVE_SK
from lambdas.core.letters import canary, redrive
from lambdas.core.letters.letter import INBOX, URGENT, WORK, read
from lambdas.core.letters.redrive import DONE, ROUNDS_MAX, RUNNING, STOPPED
from lambdas.core.ports import Unavailable
from tests.builders import any_found, any_hint_body, any_letter_body, any_record, later, unreadable_found
from tests.fakes import FakeSender, Trouble
from tests.unit.mortuary import OLD, REDRIVE_ID, Mortuary, an_id, dead, failed

GROUP = read(WORK, dead(0)).group


def found(place: Mortuary) -> redrive.Run:
    run = redrive.find(REDRIVE_ID, place.ledger)
    assert run is not None
    return run


# --- what is sent ------------------------------------------------------------------------------------
def test_a_group_is_sent_to_its_queue_and_then_removed() -> None:
    place = Mortuary(23)
    place.work.add(dead(50, reason="MODEL_PERMANENT"))
    place.store.records[an_id(50)] = failed(50)
    place.ask(group=GROUP, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, run.failed, run.stale, run.skipped) == (DONE, 23, 0, 0, 0)
    assert sorted(place.moved()) == sorted(any_letter_body(an_id(n)) for n in range(23))
    (left,) = place.work.visible
    assert "MODEL_PERMANENT" in left.body
    assert len(run.first) == 10


def test_a_record_that_cannot_be_read_is_skipped_and_holds_up_no_other() -> None:
    place = Mortuary(3)
    place.store.spoilt = {an_id(1)}
    place.ask(group=GROUP, queue=WORK, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, run.skipped, run.stale) == (DONE, 2, 1, 0)
    assert len(place.work.visible) == 1


def test_a_canary_whose_record_cannot_be_read_by_now_stops_the_redrive() -> None:
    place = Mortuary(2)
    place.ask(group=GROUP, queue=WORK, canary=1, rate=1_000)

    def spoil() -> None:
        place.store.spoilt = {an_id(0), an_id(1)}

    place.passes = spoil
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (STOPPED, 1)
    assert "cannot be read" in run.why


def test_letters_are_sent_by_their_ids_wherever_they_lie() -> None:
    place = Mortuary(3)
    place.boxes[URGENT].add(dead(7))
    place.store.records[an_id(7)] = failed(7)
    place.ask(ids=[f"{an_id(n)}.1.FAILED" for n in (1, 7)])
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (DONE, 2)
    assert place.moved() == [any_letter_body(an_id(1))]
    assert place.moved(URGENT) == [any_letter_body(an_id(7))]


def test_an_event_goes_to_the_inbox_unwrapped_with_its_attributes() -> None:
    place = Mortuary()
    letter = any_found("{}", attributes={"source": "crm"}, moved=True, sent_at=OLD)
    place.inbox.add(letter)
    place.ask(group=read(INBOX, letter).group, queue=INBOX)
    place.round()
    (message,) = place.queues[INBOX].sent
    assert (message.body, message.attributes) == ("{}", {"source": "crm"})


def test_copies_of_a_letter_are_sent_once_and_all_removed() -> None:
    place = Mortuary(1)
    place.work.add(dead(0), dead(0))
    place.ask(group=GROUP)
    run = place.round()
    assert run is not None
    assert (run.moved, len(place.moved()), place.work.lying) == (1, 1, {})


def test_a_letter_lies_there_until_its_queue_has_taken_it() -> None:
    place = Mortuary(5)
    lying: list[int] = []
    place.queues[WORK] = FakeSender(lambda message: lying.append(len(place.work.lying)) or False)  # type: ignore[func-returns-value]
    place.ask(group=GROUP, rate=1_000)
    place.round()
    assert (lying, place.work.lying) == ([5] * 5, {})


def test_what_dies_again_meanwhile_is_left_for_the_next_redrive() -> None:
    """Else a cause that was not repaired would go round for ever."""
    place = Mortuary(12)

    def die_again(message: Any) -> bool:
        number = len(place.queues[WORK].sent)
        if number < 50:  # then whoever would go round stops as well
            place.store.records[an_id(number)] = failed(number, attempt=3)
            place.work.add(dead(number, attempt=3, sent_at=place.clock() + (later(1) - later(0))))
        return False

    place.queues[WORK] = FakeSender(die_again)
    place.ask(group=GROUP, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, len(place.work.visible)) == (DONE, 12, 12)


def test_stale_letters_are_removed_and_counted_and_not_sent() -> None:
    place = Mortuary(3)
    place.complete(1)
    place.ask(group=GROUP)
    run = place.round()
    assert run is not None
    assert (run.moved, run.stale, place.work.lying) == (2, 1, {})
    assert "stale_letter_removed" in place.notices.steps


def test_a_letter_without_a_record_is_neither_sent_nor_removed() -> None:
    place = Mortuary(2)
    del place.store.records[an_id(1)]
    place.ask(group=GROUP)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, run.skipped, len(place.work.visible)) == (DONE, 1, 1, 1)


def test_a_dry_run_counts_and_touches_nothing() -> None:
    place = Mortuary(30)
    place.complete(1)
    place.ask(group=GROUP, dry_run=True)
    run = place.round()
    assert run is not None
    assert (run.state, run.stale, place.moved(), len(place.work.visible)) == (DONE, 1, [], 30)
    told = redrive.shown(run, place.clock())
    assert told["would_move"] == 29
    assert "moved" not in told


# --- the rate ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rate", "letters", "seconds"), [(10, 40, 3), (2, 10, 4), (0.5, 3, 4), (1_000, 50, 0)])
def test_letters_go_at_the_rate(rate: float, letters: int, seconds: float) -> None:
    place = Mortuary(letters)
    place.ask(group=GROUP, rate=rate)
    place.round()
    assert len(place.moved()) == letters
    assert seconds <= (place.clock() - later(0)).total_seconds() <= seconds + max(1.0, 1 / rate) + 0.1


def test_the_rate_holds_from_one_round_to_the_next() -> None:
    place = Mortuary(2)
    place.ask(group=GROUP, rate=0.01)
    first = place.round(1, seconds=60)
    assert first is not None
    assert (first.state, first.moved) == (RUNNING, 1)
    assert len(place.work.visible) == 1
    second = place.round(2, seconds=300)
    assert second is not None
    assert (second.state, second.moved) == (DONE, 2)
    assert (place.clock() - later(0)).total_seconds() >= 100


# --- trouble -----------------------------------------------------------------------------------------
def test_what_the_queue_refuses_stays_a_letter_and_the_redrive_says_so() -> None:
    """SQS-14."""
    place = Mortuary(5)
    place.queues[WORK] = FakeSender(lambda message: an_id(3) in message.body)
    place.ask(group=GROUP)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, run.failed) == ("FAILED", 4, 1)
    (left,) = place.work.visible
    assert an_id(3) in left.body


def test_a_letter_that_could_not_be_removed_is_stale_the_next_time() -> None:
    place = Mortuary(1)
    (only,) = place.work.lying
    place.work.stuck.add(only)
    place.ask(group=GROUP)

    run = place.round()
    assert run is not None
    assert (run.state, run.moved, len(place.moved()), list(place.work.lying)) == (DONE, 1, 1, [only])
    place.complete(0)
    place.work.stuck.clear()
    place.clock.advance(181)
    place.ledger.items.clear()
    place.ask(group=GROUP)
    again = place.round()
    assert again is not None
    assert (again.moved, again.stale, place.work.lying) == (0, 1, {})


def test_a_queue_from_which_nothing_can_be_removed_is_not_sent_for_ever() -> None:
    place = Mortuary(200)
    place.work.stuck |= set(place.work.lying)
    place.ask(group=GROUP, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, len(place.moved())) == ("FAILED", 200, 200)
    assert "cannot be removed" in run.why


def test_letters_that_others_hide_meanwhile_are_waited_for() -> None:
    """A listing or a sweep that looks at the same time must not end it."""
    place = Mortuary(12)
    hidden = {one.message_id for one in place.work.receive(hide_s=60)}
    place.ask(group=GROUP, rate=1_000)
    run = place.round()
    assert run is not None
    assert len(hidden) == 10
    assert (run.state, run.moved, place.work.lying) == (DONE, 12, {})


def test_letters_that_are_never_shown_again_are_not_waited_for_for_ever() -> None:
    place = Mortuary(12)
    place.work.receive(hide_s=40_000)
    place.ask(group=GROUP, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (DONE, 2)


@pytest.mark.parametrize("canary_", [0, 6])
def test_no_letter_is_sent_that_others_may_see_by_now(canary_: int) -> None:
    """At a slow rate a handful outlives the time for which it is hidden: a second redrive would send it, too."""
    place = Mortuary(6)
    seen: list[bool] = []

    def hidden(message: Any) -> bool:
        seen.append(any(one.body == message.body for one in place.work.visible))
        return False

    place.queues[WORK] = FakeSender(hidden)
    place.ask(group=GROUP, rate=0.02, **({"canary": canary_} if canary_ else {}))
    place.passes = lambda: [place.complete(n) for n in range(6) if an_id(n) in "".join(place.moved())]  # type: ignore[assignment, func-returns-value]
    number = 1
    while (run := place.round(number)) and run.state == RUNNING:
        number += 1
    assert run is not None
    assert (run.state, run.moved, seen) == (DONE, 6, [False] * 6)


def test_what_it_has_hidden_is_shown_again_within_its_time() -> None:
    place = Mortuary(900)
    receives, shows = place.work.receive, place.work.show

    def receive(*, hide_s: int, wait_s: int = 0) -> Any:
        place.clock.advance(0.5)
        return receives(hide_s=hide_s, wait_s=wait_s)

    def show(receipts: Any) -> None:
        place.clock.advance(0.003 * len(receipts))
        shows(receipts)

    place.work.receive, place.work.show = receive, show  # type: ignore[method-assign]
    place.ask(group=GROUP, dry_run=True)
    run = place.round(seconds=60)
    assert run is not None
    assert place.time_left_s() > 19
    assert "not all letters were looked at" in run.why


def test_a_rare_cause_is_found_behind_many_others() -> None:
    """A look that has found nothing need not end early: it would see the same ones again and again."""
    place = Mortuary()
    place.work.add(*(dead(n, reason="MODEL_PERMANENT") for n in range(900)), dead(901))
    place.store.records[an_id(901)] = failed(901)
    receives = place.work.receive

    def receive(*, hide_s: int, wait_s: int = 0) -> Any:
        place.clock.advance(1)
        return receives(hide_s=hide_s, wait_s=wait_s)

    place.work.receive = receive  # type: ignore[method-assign]
    place.ask(group=GROUP)
    run = place.round(seconds=300)
    assert run is not None
    assert (run.state, run.moved) == (DONE, 1)


def test_an_invocation_that_another_has_replaced_sends_nothing_more() -> None:
    place = Mortuary(600)
    place.ask(group=GROUP, rate=1_000)

    def replaced() -> None:
        run = found(place)
        redrive.begin(REDRIVE_ID, run.round + 1, "the next", now=place.clock(), ledger=place.ledger)

    place.passes = replaced
    with pytest.raises(redrive.Superseded):
        place.round()
    assert len(place.moved()) <= 500


def test_one_that_nobody_goes_on_with_says_so() -> None:
    place = Mortuary(1)
    run = place.ask(group=GROUP)
    assert "stalled" not in redrive.shown(run, later(redrive.SILENT_S))
    told = redrive.shown(run, later(redrive.SILENT_S + 1))
    assert (told["state"], told["stalled"]) == (RUNNING, True)
    assert "stalled" not in redrive.shown(replace(run, state=DONE), later(99_999))


@pytest.mark.parametrize("waits_for", ["canary", "lease"])
def test_one_that_waits_is_seen_to_be_alive(waits_for: str) -> None:
    place = Mortuary(2)
    place.ask(group=GROUP, queue=WORK, **({"canary": 1} if waits_for == "canary" else {}))
    if waits_for == "lease":
        place.ledger.take("redrive-work", "another", place.clock(), later(9_999))
    run = place.round(seconds=290)
    assert run is not None
    assert run.state == RUNNING
    last = found(place).updated_at
    assert last is not None
    assert (place.clock() - last).total_seconds() <= 10


class Killed(BaseException):
    """The platform ends the process."""


@pytest.mark.parametrize("at", ["create", "save", "take", "send", "remove", "read"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_killed_anywhere_it_goes_on_and_no_letter_is_lost(at: str, nth: int) -> None:
    place = Mortuary(12)
    seen = 0

    def killing(name: str) -> None:
        nonlocal seen
        seen += name == at
        if name == at and seen == nth:
            raise Killed

    place.ledger.before = killing
    place.store.before = lambda name: killing(name) if at == "read" else None
    sends, removes = place.queues[WORK].send, place.work.remove

    def send(messages: Any) -> set[int]:
        refused = sends(messages)
        killing("send")
        return refused

    def remove(receipts: Any) -> set[int]:
        killing("remove")
        return removes(receipts)

    place.queues[WORK].send = send  # type: ignore[method-assign]
    place.work.remove = remove  # type: ignore[method-assign]
    for _ in range(3):
        try:
            if redrive.find(REDRIVE_ID, place.ledger) is None:
                place.ask(group=GROUP)
            run = place.round()
        except Killed:
            place.clock.advance(200)  # until what it hid is visible again
            continue
        if run is not None and run.state == DONE:
            break
    assert found(place).state == DONE
    assert {an_id(n) for n in range(12)} == {
        one for n in range(12) if an_id(n) in "".join(place.moved()) for one in [an_id(n)]
    }
    assert place.work.lying == {}


def test_a_second_delivery_of_a_round_does_nothing() -> None:
    place = Mortuary(3)
    place.ask(group=GROUP)
    assert redrive.begin(REDRIVE_ID, 1, "one", now=place.clock(), ledger=place.ledger) is not None
    assert redrive.begin(REDRIVE_ID, 1, "another", now=place.clock(), ledger=place.ledger) is None
    assert redrive.begin(REDRIVE_ID, 1, "one", now=place.clock(), ledger=place.ledger) is not None
    assert redrive.begin(REDRIVE_ID, 3, "one", now=place.clock(), ledger=place.ledger) is None
    assert redrive.begin("0" * 32, 1, "one", now=place.clock(), ledger=place.ledger) is None


def test_one_that_has_ended_at_this_moment_is_not_gone_on_with() -> None:
    place = Mortuary(3)
    place.ask(group=GROUP)

    def ends(call: str) -> None:
        if call == "save":
            place.ledger.items[f"redrive#{REDRIVE_ID}", REDRIVE_SK]["state"] = STOPPED

    place.ledger.before = ends
    assert redrive.begin(REDRIVE_ID, 1, "one", now=place.clock(), ledger=place.ledger) is None
    assert found(place).state == STOPPED


def test_two_redrives_of_one_queue_take_turns() -> None:
    place = Mortuary(3)
    place.ledger.take("redrive-work", "another", place.clock(), later(100))
    place.ask(group=GROUP, queue=WORK)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (DONE, 3)
    assert (place.clock() - later(0)).total_seconds() >= 100
    assert place.ledger.take("redrive-work", "the next", place.clock(), later(999)) is not None


def test_it_ends_after_so_many_rounds() -> None:
    place = Mortuary(1)
    place.ask(group=GROUP)
    place.ledger.items[f"redrive#{REDRIVE_ID}", "redrive"]["round"] = ROUNDS_MAX
    run = place.round(ROUNDS_MAX + 1)
    assert run is not None
    assert run.state == "FAILED"


def test_one_that_could_not_be_started_says_so() -> None:
    place = Mortuary(1)

    def unable(payload: Any) -> None:
        raise Unavailable("no")

    order = redrive.Order(redrive_id=REDRIVE_ID, by="eve", group=GROUP)
    with pytest.raises(Unavailable):
        redrive.ask(order, now=place.clock(), ledger=place.ledger, start=unable, keep_days=90)
    assert found(place).state == "FAILED"


def test_a_run_survives_being_written_and_read() -> None:
    place = Mortuary(1)
    run = place.ask(ids=["a", "b"], rate=0.25, canary=3, queue=INBOX)
    read_back = found(place)
    assert (read_back.rate, read_back.ids, read_back.queues, read_back.at) == (0.25, ("a", "b"), (INBOX,), run.at)


# --- the canary --------------------------------------------------------------------------------------
def test_the_rest_goes_when_the_canary_has_completed() -> None:
    place = Mortuary(10)
    place.ask(group=GROUP, canary=2, rate=1_000)
    sent_at: list[int] = []

    def passes() -> None:
        sent_at.append(len(place.moved()))
        for number in range(2):
            if len(sent_at) == 3:
                place.complete(number)

    place.passes = passes
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (DONE, 10)
    assert sent_at[:3] == [2, 2, 2]


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_a_canary_that_fails_stops_it_and_says_which_and_why(status: str) -> None:
    place = Mortuary(10)
    place.ask(group=GROUP, canary=2, rate=1_000)

    def passes() -> None:
        place.complete(0)
        place.complete(1, status)

    place.passes = passes
    run = place.round()
    assert run is not None
    assert (run.state, run.moved, len(place.work.visible)) == (STOPPED, 2, 8)
    assert f"job {an_id(1)} is {status}" in run.why


def test_a_canary_is_waited_for_over_rounds_and_for_an_hour() -> None:
    place = Mortuary(4)
    place.ask(group=GROUP, canary=1)
    number = 1
    while (run := place.round(number)) and run.state == RUNNING:
        assert run.moved == 1
        number += 1
    assert run is not None
    assert (run.state, run.moved) == (STOPPED, 1)
    assert "not done after 60 minutes" in run.why
    assert 3_600 <= (place.clock() - later(0)).total_seconds() < 4_000


def test_killed_between_canary_and_its_record_sends_no_second_canary() -> None:
    place = Mortuary(10)
    place.ask(group=GROUP, canary=2)

    def killing(name: str) -> None:
        if name == "save" and place.moved():
            raise Killed

    place.ledger.before = killing
    with pytest.raises(Killed):
        place.round()
    place.ledger.before = lambda name: None
    place.clock.advance(200)
    place.passes = lambda: (place.complete(0), place.complete(1))  # type: ignore[assignment, func-returns-value]
    run = place.round()
    assert run is not None
    assert (run.state, len(place.moved())) == (DONE, 10)
    assert len(run.canaries) == 2


def test_events_are_their_own_canary_when_they_do_not_die_again() -> None:
    place = Mortuary()
    letters = [any_found(f'"{n}"', attributes={"source": "crm"}, moved=True, sent_at=OLD) for n in range(5)]
    place.inbox.add(*letters)
    place.ask(group=read(INBOX, letters[0]).group, canary=1, rate=1_000)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (DONE, 5)
    assert (place.clock() - later(0)).total_seconds() >= canary.QUIET_S


def test_an_event_that_ingest_has_judged_at_once_stops_it() -> None:
    """Its new letter has another name, and comes before the last of a slow canary is sent."""
    place = Mortuary()
    events = [any_found(f'{{"n": {n}}}', attributes={"source": "crm"}, moved=True, sent_at=OLD) for n in range(9)]
    place.inbox.add(*events)
    place.ask(group=read(INBOX, events[0]).group, canary=4, rate=1)

    def judged(message: Any) -> bool:
        place.inbox.add(unreadable_found(message.body, "NO_EVENT_ID", "no id", sent_at=place.clock()))
        return False

    place.queues[INBOX] = FakeSender(judged)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (STOPPED, 4)


def test_an_event_that_died_again_and_is_hidden_at_that_moment_stops_it() -> None:
    place = Mortuary()
    events = [any_found(f'{{"n": {n}}}', attributes={"source": "crm"}, moved=True, sent_at=OLD) for n in range(3)]
    place.inbox.add(*events)
    place.ask(group=read(INBOX, events[0]).group, canary=1, rate=1_000)

    def judged(message: Any) -> bool:
        died = unreadable_found(message.body, "NO_EVENT_ID", "no id", sent_at=later(1))
        place.inbox.add(died)
        place.inbox.hidden_until[died.message_id] = later(canary.QUIET_S + 30)
        return False

    place.queues[INBOX] = FakeSender(judged)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (STOPPED, 1)


def test_a_canary_is_not_good_because_nobody_could_look() -> None:
    one = canary.canary_of(read(INBOX, any_found("{}", attributes={"source": "crm"}, moved=True)))

    def verdict(back: bool | None, waited_s: float) -> canary.Verdict:
        return canary.judge(one, None, back=back, sent_at=later(0), now=later(waited_s))

    assert isinstance(verdict(False, canary.QUIET_S), canary.Good)
    assert isinstance(verdict(None, canary.QUIET_S), canary.Waits)
    assert isinstance(verdict(None, canary.DEADLINE_S), canary.Bad)


def test_an_event_that_died_again_stops_it() -> None:
    place = Mortuary()
    letters = [any_found(f'"{n}"', attributes={"source": "crm"}, moved=True, sent_at=OLD) for n in range(5)]
    place.inbox.add(*letters)
    place.ask(group=read(INBOX, letters[0]).group, canary=1)
    died = any_found(letters[0].body, attributes={"source": "crm"}, sent_at=later(30))
    place.passes = lambda: place.inbox.add(died)
    run = place.round()
    assert run is not None
    assert (run.state, run.moved) == (STOPPED, 1)
    assert "among the dead letters again" in run.why


def test_a_message_that_can_be_read_by_now_names_the_job_that_it_is_a_canary_of() -> None:
    letter = read(WORK, unreadable_found(any_hint_body(an_id(4)), "UNKNOWN_JOB", "no record"))
    assert canary.canary_of(letter).job_id == an_id(4)
    assert canary.canary_of(read(WORK, unreadable_found("junk"))).job_id == ""


def test_a_canary_waits_while_its_letter_has_not_reopened_its_job() -> None:
    one = canary.canary_of(read(WORK, dead(1)))

    def verdict(record: dict[str, Any] | None) -> canary.Verdict:
        return canary.judge(one, record, back=False, sent_at=later(0), now=later(60))

    assert verdict(failed(1)) == canary.Waits()
    assert verdict(any_record(pk=an_id(1), attempt=2)) == canary.Waits()
    assert isinstance(verdict(failed(1, attempt=3)), canary.Bad)
    assert isinstance(verdict(None), canary.Bad)
    assert COMPLETED not in str(verdict(failed(1)))


def test_a_store_that_does_not_answer_hides_nothing_for_long() -> None:
    place = Mortuary(5)
    place.ask(group=GROUP)
    place.store.troubles.add("read", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        place.round()
    assert len(place.work.visible) == 5
