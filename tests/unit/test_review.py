"""A repair is recorded, sent, and then the letter goes; whoever repeats it finishes it, and nobody decides twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lambdas.contracts.names import FAILED, INBOX_REVIEW, REVIEW_PK
from lambdas.contracts.sources import Source
from lambdas.contracts.validation import compile_schema
from lambdas.core.canonical import sha256
from lambdas.core.inbox.repaired_events import Fits
from lambdas.core.job import from_record
from lambdas.core.letters import letter as letters
from lambdas.core.letters import review, reviews
from lambdas.core.letters.letter import DELIVERIES, INBOX, WORK
from lambdas.core.letters.review import Decision, Desk, decide
from lambdas.core.ports import Found, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.webhooks import messages
from tests.builders import any_envelope, any_event_body, any_found, any_hint_body, any_record, unreadable_found
from tests.fakes import FakeSender, Trouble
from tests.unit.mortuary import OLD, Mortuary, an_id, dead

EVE, BOB = "arn:aws:iam::1:user/eve", "arn:aws:iam::1:user/bob"
FIX: list[Any] = [{"op": "replace", "path": "/payload/attempt", "value": 0}]
BROKEN = json.dumps(any_envelope(payload={"attempt": "none"}))
CRM = Source(tenant="acme", task="summarize", scheme="hmac-sha256", secret="x", header="x", id="/id", input="/call")
SCHEMA = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
FITS = Fits(
    {"crm": CRM, "not deployed here": replace(CRM, task="soon")},
    {"summarize": compile_schema(SCHEMA)},
)


def desk_of(place: Mortuary) -> Desk:
    return Desk(
        ledger=place.ledger,
        store=place.store,
        boxes=place.boxes,
        queues=place.queues,
        fits=FITS,
        now=place.clock,
        in_time=lambda: True,
        keep_days=90,
    )


def repairing(found: Found, patch: list[Any] | None = FIX, *, queue: str = WORK, who: str = EVE) -> Decision:
    return Decision(letters.read(queue, found).id, who, "the sender was fixed", patch)


def holding(found: Found, queue: str = WORK) -> Mortuary:
    place = Mortuary()
    place.boxes[queue].add(found)
    return place


def decided(decision: Decision, place: Mortuary) -> dict[str, Any]:
    outcome = decide(decision, desk_of(place))
    assert not isinstance(outcome, Problem), outcome
    return dict(outcome)


def refused(decision: Decision, place: Mortuary) -> Problem:
    outcome = decide(decision, desk_of(place))
    assert isinstance(outcome, Problem)
    return outcome


def event(body: str, **attributes: str) -> Found:
    return any_found(body, attributes={"source": "crm", **attributes}, moved=True, sent_at=OLD)


# --- repair ------------------------------------------------------------------------------------------
def test_a_repaired_message_goes_back_to_its_queue_and_its_letter_goes() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    told = decided(repairing(letter), place)
    (message,) = place.queues[WORK].sent
    assert json.loads(message.body)["payload"] == {"attempt": 0, "crashes": 0}
    assert (place.work.lying, told["status"], told["done"], told["who"]) == ({}, "repaired", True, EVE)
    assert told["why"] == "the sender was fixed"
    assert json.loads(told["patch"]) == FIX
    assert told["body_sha"] == sha256(message.body)


def test_an_event_is_sent_with_its_attributes_and_the_name_of_its_review() -> None:
    letter = event('{"id": 1, "call": {}}', signature="s", received_ms="1")
    place = holding(letter, INBOX)
    decision = repairing(letter, [{"op": "add", "path": "/call/text", "value": "hello"}], queue=INBOX)
    told = decided(decision, place)
    (message,) = place.queues[INBOX].sent
    assert json.loads(message.body)["call"] == {"text": "hello"}
    assert message.attributes == {"source": "crm", "signature": "s", "received_ms": "1", INBOX_REVIEW: told["sk"]}
    standing = place.ledger.read(REVIEW_PK, message.attributes[INBOX_REVIEW])
    assert standing is not None
    assert (standing["status"], standing["body_sha"]) == ("repaired", sha256(message.body))


def test_the_review_stands_before_the_message_is_sent() -> None:
    """Else ingest would look for it too early, and refuse the signature."""
    letter = event('{"id": 1, "call": {}}')
    place = holding(letter, INBOX)
    seen: list[Any] = []

    def look(message: Any) -> bool:
        seen.append(place.ledger.read(REVIEW_PK, message.attributes[INBOX_REVIEW]))
        return False

    place.queues[INBOX] = FakeSender(look)
    decided(repairing(letter, [{"op": "add", "path": "/call/text", "value": "hello"}], queue=INBOX), place)
    assert [(one["status"], one["done"]) for one in seen] == [("repaired", False)]


def test_what_is_no_json_is_replaced_whole() -> None:
    letter = unreadable_found("{cut")
    place = holding(letter)
    whole = any_envelope()
    decided(repairing(letter, [{"op": "replace", "path": "", "value": whole}]), place)
    assert json.loads(place.moved()[0]) == whole


def test_the_job_that_the_message_names_gets_a_line_in_its_history_once() -> None:
    letter = unreadable_found(json.dumps(any_envelope(run_id=an_id(1), payload={"attempt": "none"})))
    place = holding(letter)
    place.store.records[an_id(1)] = any_record(pk=an_id(1))
    decided(repairing(letter), place)
    decided(repairing(letter), place)
    lines = [line for line in from_record(place.store.records[an_id(1)]).history if line["what"] == "repaired"]
    assert [line["note"] for line in lines] == [f"by {EVE}: the sender was fixed"]


def test_a_letter_is_discarded_though_its_jobs_record_cannot_be_read() -> None:
    place = Mortuary(1)
    place.store.spoilt = {an_id(0)}
    told = decided(repairing(dead(0), None), place)
    assert (told["status"], told["done"], place.work.lying) == ("discarded", True, {})


@pytest.mark.parametrize(("chars", "status"), [(129, 404), (128, 503)])
def test_no_letter_has_a_longer_id_than_a_key_may_be_and_nobody_looks_for_it(chars: int, status: int) -> None:
    """A store refuses a longer key, which is no reason to ask again."""
    place = Mortuary(1)
    place.ledger.troubles.add("read", Trouble.REFUSED)
    desk = desk_of(place)

    def answer() -> int:
        try:
            outcome = decide(Decision("x" * chars, EVE, "why"), desk)
        except Unavailable:
            return 503
        assert isinstance(outcome, Problem)
        return outcome.status

    assert (answer(), "receive" in place.work.calls) == (status, status == 503)


TENANT = [{"op": "replace", "path": "/tenant_id", "value": "globex"}, *FIX]
JOB = [{"op": "replace", "path": "/run_id", "value": an_id(9)}, *FIX]
WHOLE = [{"op": "replace", "path": "", "value": any_envelope(tenant_id="globex")}]
GONE = [{"op": "remove", "path": "/tenant_id"}, *FIX]


@pytest.mark.parametrize("patch", [TENANT, JOB, WHOLE, GONE], ids=["tenant", "job", "whole", "gone"])
def test_hole_40_a_repair_changes_neither_tenant_nor_job(patch: list[Any]) -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    problem = refused(repairing(letter, patch), place)
    assert (problem.status, problem.pointer) == (422, "/patch")
    assert (place.moved(), len(place.work.visible), place.ledger.items) == ([], 1, {})


NO_GOOD = [
    [{"op": "replace", "path": "/payload/attempt", "value": "some"}],
    [{"op": "replace", "path": "/payload/attempt", "value": 1.5}],
    [{"op": "replace", "path": "/schema", "value": 2}, *FIX],
    [{"op": "test", "path": "/payload/attempt", "value": 1}],
    [{"op": "test", "path": "/payload/attempt", "value": "none"}],
    [{"op": "replace", "path": "/event_type", "value": "job.completed"}, *FIX],
    [{"op": "replace", "path": "", "value": "text"}],
]


def test_hole_40_a_repaired_message_wraps_no_other() -> None:
    """A letter about a message stands for that message, whoever is named outside."""
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    wrapping = [
        {"op": "replace", "path": "/event_type", "value": "job.unreadable"},
        {"op": "replace", "path": "/payload", "value": {"reason": "x", "detail": "", "body": any_hint_body(an_id(9))}},
    ]
    assert refused(repairing(letter, wrapping), place).status == 422
    assert place.moved() == []


def test_a_fraction_can_be_repaired_to_the_whole_number_that_it_equals() -> None:
    letter = unreadable_found(json.dumps(any_envelope(payload={"attempt": 1.0, "crashes": 0})), "INVALID_ENVELOPE")
    place = holding(letter)
    decided(repairing(letter, [{"op": "replace", "path": "/payload/attempt", "value": 1}]), place)
    assert len(place.moved()) == 1


@pytest.mark.parametrize("patch", NO_GOOD, ids=repr)
def test_what_is_still_no_good_is_not_sent(patch: list[Any]) -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    assert refused(repairing(letter, patch), place).status == 422
    assert (place.moved(), len(place.work.visible), place.ledger.items) == ([], 1, {})


@pytest.mark.parametrize(
    ("body", "attributes", "fits"),
    [
        ('{"id": 1, "call": {"text": "x"}}', {"source": "crm"}, True),
        ('{"call": {"text": "x"}}', {"source": "crm"}, False),
        ('{"id": {}, "call": {"text": "x"}}', {"source": "crm"}, False),
        ('{"id": 1, "call": {"text": 1}}', {"source": "crm"}, False),
        ('{"id": 1, "call": {}}', {"source": "crm"}, False),
        ('{"id": 1}', {"source": "crm"}, False),
        ("{}", {"source": "crm"}, False),
        ("no JSON", {"source": "crm"}, False),
        ("", {"source": "crm"}, False),
        ("eyJpZCI6MSwiY2FsbCI6eyJ0ZXh0IjoieCJ9fQ==", {"source": "crm", "encoding": "base64"}, True),
        ("eA==", {"source": "crm", "encoding": "base64"}, False),
        ("no base64", {"source": "crm", "encoding": "base64"}, False),
        ("{}", {"source": "not declared here"}, True),
        ("no JSON", {"source": "not declared here"}, True),
        ("no JSON", {"source": "not deployed here"}, True),
        ('{"Records": []}', {}, True),
        ("no JSON", {}, False),
    ],
)
def test_an_event_must_be_one_that_its_task_can_read(body: str, attributes: dict[str, str], fits: bool) -> None:
    assert (FITS(body, attributes) is None) == fits


def test_of_a_source_of_texts_any_text_is_an_input() -> None:
    text = Source(tenant="a", task="summarize", scheme="hmac-sha256", secret="x", id="header:id", input="text")
    fits = Fits({"notes": text}, FITS.types)
    assert fits("any text", {"source": "notes", "event_id": "1"}) is None
    assert "NO_EVENT_ID" in str(fits("any text", {"source": "notes"}))


def test_an_event_must_not_be_larger_than_ingest_takes() -> None:
    body = json.dumps({"id": 1, "call": {"text": "x" * 1_000_000}})
    assert "INPUT_TOO_LARGE" in str(FITS(body, {"source": "crm"}))


def test_a_letter_about_a_job_is_redriven_and_not_repaired() -> None:
    place = Mortuary(1)
    problem = refused(Decision(f"{an_id(0)}.1.FAILED", EVE, "why", FIX), place)
    assert (problem.status, len(place.work.visible)) == (409, 1)


def test_a_letter_that_is_not_there_is_404() -> None:
    assert refused(Decision("nothing", EVE, "why", FIX), Mortuary(3)).status == 404


# --- discard -----------------------------------------------------------------------------------------
def test_a_discarded_letter_is_gone_and_its_job_stays_as_it_is_but_for_a_line() -> None:
    place = Mortuary(1)
    told = decided(Decision(f"{an_id(0)}.1.FAILED", EVE, "a test call"), place)
    assert (told["status"], told["done"], told["job_id"], place.work.lying) == ("discarded", True, an_id(0), {})
    job = from_record(place.store.records[an_id(0)])
    assert (job.status, job.history[-1]["what"]) == (FAILED, "discarded")
    assert place.moved() == []


# --- crashes and races -------------------------------------------------------------------------------
class Killed(BaseException):
    """The platform ends the process."""


@pytest.mark.parametrize("step", range(1, 8))
@pytest.mark.parametrize("patch", [FIX, None], ids=["repair", "discard"])
def test_killed_at_any_step_the_same_request_finishes_it(step: int, patch: list[Any] | None) -> None:
    letter = unreadable_found(json.dumps(any_envelope(run_id=an_id(1), payload={"attempt": "none"})))
    place = holding(letter)
    place.store.records[an_id(1)] = any_record(pk=an_id(1))
    steps = 0

    def killing(_name: str) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            raise Killed

    removes = place.work.remove

    def remove(receipts: Any) -> set[int]:
        left = removes(receipts)
        killing("remove")
        return left

    place.ledger.before = place.store.before = killing
    place.queues[WORK] = FakeSender(lambda message: killing("send") or False)  # type: ignore[func-returns-value]
    place.work.remove = remove  # type: ignore[method-assign]
    for _ in range(2):
        try:
            told = decided(repairing(letter, patch), place)
        except Killed:
            place.clock.advance(31)
    steps = step  # nobody is killed any more
    told = decided(repairing(letter, patch), place)
    assert (told["done"], place.work.lying) == (True, {})
    assert len(set(place.moved())) == (1 if patch else 0)
    assert (place.ledger.read(REVIEW_PK, told["sk"]) or {})["done"]
    history = from_record(place.store.records[an_id(1)]).history
    assert [line["what"] for line in history if line["what"] in ("repaired", "discarded")] == [told["status"]]


def test_while_one_decision_is_under_way_there_is_no_other() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.queues[WORK] = FakeSender(lambda message: True)
    assert refused(repairing(letter), place).status == 503
    assert len(place.work.visible) == 1
    assert refused(repairing(letter, None, who=BOB), place).status == 409
    place.clock.advance(review.UNDER_WAY_S)
    told = decided(repairing(letter, None, who=BOB), place)
    assert (told["status"], [one["who"] for one in told["earlier"]]) == ("discarded", [EVE])


def _decided_by_another(place: Mortuary, letter: Found) -> Callable[[str], None]:
    """To be called before each write to the ledger: at this very moment somebody else's decision is recorded."""

    def other(call: str) -> None:
        if call == "save":
            item = place.ledger.items[REVIEW_PK, letters.read(WORK, letter).id]
            item |= {"digest": "another", "who": "arn:aws:iam::1:user/carol", "done": False}

    return other


def test_of_two_who_decide_at_one_moment_one_is_refused_and_does_nothing() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.queues[WORK] = FakeSender(lambda message: True)
    assert refused(repairing(letter), place).status == 503
    place.clock.advance(review.UNDER_WAY_S)
    place.ledger.before = _decided_by_another(place, letter)
    assert refused(repairing(letter, None, who=BOB), place).status == 409
    assert len(place.work.visible) == 1
    assert place.ledger.items[REVIEW_PK, letters.read(WORK, letter).id]["who"] == "arn:aws:iam::1:user/carol"


def test_a_decision_that_ends_late_does_not_mark_anothers_as_done() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.ledger.before = _decided_by_another(place, letter)
    decided(repairing(letter), place)
    assert place.ledger.items[REVIEW_PK, letters.read(WORK, letter).id]["done"] is False


def test_who_decides_otherwise_about_a_letter_that_is_gone_is_not_told_that_it_was_done() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    decided(repairing(letter, None), place)
    assert refused(repairing(letter, who=BOB), place).status == 404
    assert decided(repairing(letter, None), place)["done"]


def test_a_letter_that_cannot_be_removed_is_told_and_the_repeat_removes_it() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.work.stuck.add(letter.message_id)
    assert refused(repairing(letter), place).status == 503
    place.work.stuck.clear()
    assert decided(repairing(letter), place)["done"]


def test_the_same_message_dead_once_more_can_be_decided_once_more() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    decided(repairing(letter), place)
    place.work.add(unreadable_found(BROKEN))
    told = decided(repairing(letter, None, who=BOB), place)
    assert (told["status"], told["who"], [one["status"] for one in told["earlier"]]) == ("discarded", BOB, ["repaired"])


def test_all_copies_of_a_letter_go_with_it() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.work.add(unreadable_found(BROKEN))
    decided(repairing(letter), place)
    assert (len(place.moved()), place.work.lying) == (1, {})


# --- what is listed ----------------------------------------------------------------------------------
def test_open_are_the_malformed_that_lie_there_and_not_the_letters_of_jobs() -> None:
    letter = unreadable_found(BROKEN)
    place = Mortuary(2)
    place.work.add(letter)
    place.inbox.add(event("{}"))
    found = reviews.open_(place.boxes, place.ledger, lambda: True)
    assert {(one["queue"], one["status"]) for one in found["reviews"]} == {(WORK, "open"), (INBOX, "open")}
    assert found["complete"]
    assert len(place.work.visible) == 3


def test_open_are_looked_up_while_there_is_time() -> None:
    """The gateway gives up after half a minute, and reading the review of each letter takes its time, too."""
    place = Mortuary()
    place.inbox.add(*(event(f'"{n}"') for n in range(100)))
    reads = 0

    def counting(name: str) -> None:
        nonlocal reads
        reads += name == "read"

    place.ledger.before = counting
    found = reviews.open_(place.boxes, place.ledger, lambda: reads < 30)
    assert (found["complete"], len(found["reviews"])) == (False, 30)


def test_decisions_are_listed_by_status_with_who_and_why() -> None:
    letter = unreadable_found(BROKEN)
    place = Mortuary(1)
    place.work.add(letter)
    decided(repairing(letter), place)
    decided(Decision(f"{an_id(0)}.1.FAILED", BOB, "a test call"), place)
    repaired = reviews.decided("repaired", "", place.ledger)["reviews"]
    discarded = reviews.decided("discarded", "", place.ledger)["reviews"]
    assert [(one["who"], one["why"]) for one in repaired] == [(EVE, "the sender was fixed")]
    assert [(one["who"], one["why"], one["job_id"]) for one in discarded] == [(BOB, "a test call", an_id(0))]
    assert len(reviews.decided(None, "", place.ledger)["reviews"]) == 2


def test_many_decisions_are_paged_without_a_gap() -> None:
    place = Mortuary(120)
    for number in range(120):
        decided(Decision(f"{an_id(number)}.1.FAILED", EVE, "why"), place)
    seen, cursor = [], ""
    while True:
        page = reviews.decided(None, cursor, place.ledger)
        seen += [one["letter_id"] for one in page["reviews"]]
        if "cursor" not in page:
            break
        cursor = page["cursor"]
    assert len(seen) == len(set(seen)) == 120


def test_one_that_is_not_finished_is_open_with_who_began() -> None:
    letter = unreadable_found(BROKEN)
    place = holding(letter)
    place.queues[WORK] = FakeSender(lambda message: True)
    refused(repairing(letter), place)
    (waiting,) = reviews.open_(place.boxes, place.ledger, lambda: True)["reviews"]
    assert (waiting["status"], waiting["who"]) == ("open", EVE)


def test_dead_letters_of_jobs_are_not_malformed() -> None:
    assert not letters.read(WORK, dead(1)).is_malformed
    assert not letters.read(WORK, any_found(any_hint_body(), moved=True)).is_malformed


# --- what was to be delivered ------------------------------------------------------------------------
def test_a_repaired_event_goes_back_to_deliveries_and_only_if_it_is_one() -> None:
    found = unreadable_found(any_event_body(step_index="one"))
    place = holding(found, DELIVERIES)
    for value, fits in (("two", False), (1, True)):
        patch = [{"op": "replace", "path": "/step_index", "value": value}]
        outcome = decide(repairing(found, patch, queue=DELIVERIES), desk_of(place))
        assert isinstance(outcome, Problem) is not fits
    (sent,) = place.queues[DELIVERIES].sent
    assert messages.read(sent.body) == messages.read(any_event_body())
    assert place.boxes[DELIVERIES].lying == {}


def test_a_hint_for_a_worker_does_not_fit_among_deliveries() -> None:
    found = unreadable_found("no JSON")
    place = holding(found, DELIVERIES)
    patch = [{"op": "replace", "path": "", "value": any_hint_body()}]
    assert "not for the deliveries queue" in refused(repairing(found, patch, queue=DELIVERIES), place).detail
