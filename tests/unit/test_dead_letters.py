"""Looking through dead letters takes nothing away, counts a letter once, and says when it did not see everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lambdas.contracts.names import FAILED
from lambdas.core.letters import dead_letters
from lambdas.core.letters.dead_letters import LETTERS_MAX, Held, Looking, NotFound
from lambdas.core.letters.letter import INBOX, URGENT, WORK
from lambdas.core.ports import Unavailable
from tests.builders import any_found, any_hint_body, any_record, final_record, later, unreadable_found
from tests.fakes import Trouble
from tests.unit.mortuary import OLD, Mortuary, an_id, dead, failed


def always() -> bool:
    return True


def listed(place: Mortuary, in_time: Any = always) -> dict[str, Any]:
    return dead_letters.listing(place.boxes, place.store, in_time)


def test_letters_of_one_cause_are_one_group_and_different_causes_are_not() -> None:
    place = Mortuary(25)
    place.work.add(dead(30, reason="MODEL_PERMANENT"))
    place.store.records |= {an_id(30): failed(30)}
    found = listed(place)
    assert [(group["reason"], group["count"]) for group in found["groups"]] == [
        ("TASK_ERROR", 25), ("MODEL_PERMANENT", 1),
    ]  # fmt: skip
    assert (found["scanned"], found["total"], found["complete"]) == (26, 26, True)
    assert len(found["groups"][0]["ids"]) == 5


def test_everything_is_visible_again_after_a_look() -> None:
    place = Mortuary(25)
    listed(place)
    assert len(place.work.visible) == 25


def test_everything_is_visible_again_after_a_look_that_broke_off() -> None:
    place = Mortuary(25)

    def refuse(job_ids: Sequence[str]) -> list[Any]:
        raise Unavailable("no")

    place.store.read_many = refuse  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        listed(place)
    assert len(place.work.visible) == 25


def test_copies_of_a_letter_are_one_and_the_newest_counts() -> None:
    place = Mortuary(1)
    place.work.add(dead(0), dead(0))
    (group,) = listed(place)["groups"]
    assert (group["count"], group["ids"]) == (1, [f"{an_id(0)}.1.FAILED"])
    again = unreadable_found("x")
    place.inbox.add(again, unreadable_found("x", sent_at=later(60)))
    assert sum(group["count"] for group in listed(place)["groups"]) == 2


def test_a_group_tells_first_and_last_cost_and_how_many_are_stale() -> None:
    place = Mortuary()
    place.store.records |= {
        an_id(1): any_record(pk=an_id(1), cost=5),
        an_id(2): any_record(pk=an_id(2), cost=4, late_cost=5),
        an_id(3): final_record(pk=an_id(3), cost=2, attempt=4, tries=1),
    }
    place.work.add(
        *(any_found(any_hint_body(an_id(n)), moved=True, sent_at=later(n)) for n in (1, 2, 3)),
    )
    (group,) = listed(place)["groups"]
    assert (group["count"], group["cost_micros"], group["stale"], group["zero_attempts"]) == (3, 16, 1, False)
    assert group["first_seen"] < group["last_seen"]


def test_zero_attempts_is_told_of_a_group_in_which_nobody_had_one() -> None:
    place = Mortuary()
    place.store.records |= {an_id(n): any_record(pk=an_id(n)) for n in (1, 2)}
    place.boxes[URGENT].add(*(any_found(any_hint_body(an_id(n)), moved=True) for n in (1, 2)))
    (group,) = listed(place)["groups"]
    assert (group["queue"], group["zero_attempts"], group["count"]) == (URGENT, True, 2)


def test_a_look_that_runs_out_of_time_says_so() -> None:
    place = Mortuary(30)
    found = listed(place, lambda: place.work.calls.count("receive") < 2)
    assert (found["scanned"], found["total"], found["complete"]) == (20, 30, False)
    assert len(place.work.visible) == 30


def test_a_look_ends_at_its_bound() -> None:
    place = Mortuary()
    place.work.add(*(dead(n) for n in range(LETTERS_MAX + 10)))
    found = listed(place)
    assert (found["scanned"], found["complete"]) == (LETTERS_MAX, False)


def test_a_look_that_takes_longer_than_it_hides_ends_and_counts_nothing_twice() -> None:
    place = Mortuary(20)
    with Looking(WORK, place.work, always) as looking:
        for _ in looking.pages():
            place.clock.advance(31)
    assert (looking.scanned, looking.complete) == (10, False)


def test_a_queue_that_does_not_answer_is_told() -> None:
    place = Mortuary(1)
    place.work.troubles.add("receive", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        listed(place)


# --- one letter ------------------------------------------------------------------------------------
def test_one_letter_is_held_with_its_copies_and_the_others_are_shown() -> None:
    place = Mortuary(15)
    place.work.add(dead(3))
    found = dead_letters.take(f"{an_id(3)}.1.FAILED", place.boxes, always)
    assert isinstance(found, Held)
    assert (len(found.copies), len(place.work.visible)) == (2, 14)
    found.show()
    assert len(place.work.visible) == 16


def test_a_letter_that_is_not_there_is_not_found_and_nothing_is_hidden() -> None:
    place = Mortuary(15)
    assert dead_letters.take("nothing", place.boxes, always) == NotFound(15, True)
    assert len(place.work.visible) == 15


def test_one_letter_is_shown_with_all_it_holds() -> None:
    place = Mortuary()
    place.inbox.add(any_found('{"a": 1}', moved=True, attributes={"source": "crm"}, sent_at=OLD))
    (group,) = listed(place)["groups"]
    held = dead_letters.take(group["ids"][0], {INBOX: place.inbox}, always)
    assert isinstance(held, Held)
    told = dead_letters.whole(held, place.store)
    assert (told["value"], told["body"], told["attributes"]) == ({"a": 1}, '{"a": 1}', {"source": "crm"})
    assert (told["kind"], told["moved_by_sqs"], told["group"]) == ("event", True, group["group"])


def test_a_letter_whose_jobs_record_cannot_be_read_is_shown_and_says_so() -> None:
    place = Mortuary(1)
    place.store.spoilt = {an_id(0)}
    assert [group["count"] for group in listed(place)["groups"]] == [1]
    held = dead_letters.take(f"{an_id(0)}.1.FAILED", place.boxes, always)
    assert isinstance(held, Held)
    told = dead_letters.whole(held, place.store)
    assert (told["job_status"], told["standing"]) == ("UNREADABLE", "unknown")


def test_a_letter_about_a_job_is_shown_with_what_its_job_is_now() -> None:
    place = Mortuary(1)
    held = dead_letters.take(f"{an_id(0)}.1.FAILED", place.boxes, always)
    assert isinstance(held, Held)
    told = dead_letters.whole(held, place.store)
    assert (told["job_id"], told["attempt"], told["job_status"], told["standing"]) == (an_id(0), 1, FAILED, "due")
