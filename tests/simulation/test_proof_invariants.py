"""Each invariant of the proof fails when what was seen is doctored, and none when it is as it must be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.target import Answer
from tests.simulation.proof.evidence import Ask, Delivered, Evidence, Post, State, Text
from tests.simulation.proof.invariants import INVARIANTS, accounts_balance, violations
from tests.simulation.proof.leftovers import Left
from tests.simulation.proof.watchers import Heard

JOB, TENANT, OTHER = "job-1", "proof-acme", "proof-globex"
WORKER, DISPATCHER, STRANGER = "worker-1", "dispatcher-1", "worker-2"
BODY = json.dumps({"text": "1: answer"}).encode()
DUE = {"due_at": "2026-11-29T15:30:44.123Z", "due_shard": "3"}
PENDING = {"pk": JOB, "tenant": TENANT, "status": "PENDING", "attempt": 0, "run": 0, "tries": 0, "cost": 0, **DUE}
HELD = {**PENDING, "status": "PROCESSING", "attempt": 1, "tries": 1, "claim_id": "claim-1"}
DONE = {**HELD, "status": "COMPLETED", "cost": 4, "result_key": f"results/{TENANT}/{JOB}/1", "result_bytes": len(BODY)}
TOLD = {name: value for name, value in DONE.items() if name not in DUE} | {"handed_over_at": "2026-11-29T15:31:00.000Z"}
FAILED = TOLD | {"status": "FAILED", "cost": 4, "error": {"code": "MODEL_PERMANENT", "message": "no"}}
EVENT = {"event_id": f"{JOB}.1.COMPLETED", "tenant_id": TENANT, "payload": {"status": "COMPLETED"}}
LETTER = {"tenant_id": TENANT, "payload": {"attempt": 1, "reason": "MODEL_PERMANENT"}}
CALL = Ask(3, WORKER, "1: answer", 4, 4)


def states(*records: tuple[str, dict[str, Any]]) -> tuple[State, ...]:
    """Written by whom, 10 numbers apart."""
    return tuple(State(10 * number, by, record) for number, (by, record) in enumerate(records))


GOOD = Evidence(
    case="plain@worker:model/throttle", job_id=JOB, tenant=TENANT, ends=("COMPLETED", ""), openings=1, blows=1,
    cut_off=frozenset(), struck=True,
    accepted_as=(JOB, JOB),
    states=states(("accept-1", PENDING), (WORKER, HELD), (WORKER, DONE), (DISPATCHER, TOLD)),
    asks=(replace(CALL, number=13),), stored=(15,), events=(EVENT,), letters=(), result=Answer(200, {}, BODY),
    result_object=BODY, by_others=(404, 404), listed_for=(TENANT,),
)  # fmt: skip
FAILED_EVENT = {**EVENT, "event_id": f"{JOB}.1.FAILED", "payload": {"status": "FAILED"}}
BAD = replace(
    GOOD, ends=("FAILED", "MODEL_PERMANENT"), result=Answer(409, {}, b""), result_object=None, letters=(LETTER,),
    states=states(("accept-1", PENDING), (WORKER, HELD), (WORKER, FAILED)), events=(FAILED_EVENT,),
)  # fmt: skip

LAPSED = states(
    ("accept-1", PENDING), (WORKER, HELD), ("sweep-1", {**PENDING, "attempt": 1, "tries": 1, "crashes": 1}),
    (STRANGER, {**HELD, "attempt": 2, "tries": 2, "crashes": 1, "claim_id": "claim-2"}),
    (STRANGER, {**TOLD, "attempt": 2, "tries": 2, "crashes": 1, "result_key": "results/2"}),
)  # fmt: skip
SECOND_EVENT = {**EVENT, "event_id": f"{JOB}.2.COMPLETED"}
RECOVERED = replace(
    GOOD, cut_off=frozenset({WORKER}), states=LAPSED, events=(SECOND_EVENT,),
    asks=(replace(CALL, number=13), replace(CALL, number=33, by=STRANGER)), stored=(35,),
)  # fmt: skip

CHUNKS = ((0, "1: an"), (1, "swer"))


def heard(*texts: str, attempt: int = 1, status: str = "COMPLETED", **more: Any) -> Heard:
    """Of somebody who was told the end."""
    final = {"job": {"status": status}, "result": {"text": "1: answer"}}
    return Heard(attempt, list(texts), final=final, **more)


TEXT = Text({1: CHUNKS}, ("1: answer",), (heard("1: an", "swer"), heard("1: an", "swer")))
STREAMED = replace(GOOD, text=TEXT)
STOPPED = replace(
    BAD, ends=("CANCELLED", ""), letters=(), events=({**EVENT, "event_id": f"{JOB}.1.CANCELLED"} | {
        "payload": {"status": "CANCELLED"}},),
    states=states(("accept-1", PENDING), (WORKER, HELD), (DISPATCHER, {**TOLD, "status": "CANCELLED"})),
    text=Text({1: CHUNKS}, ("1: answer",), (heard("1: an", status="CANCELLED"),)),
)  # fmt: skip

FACT = f"{JOB}.1.COMPLETED"
PLANNED = {"sk": f"delivery#callback#{FACT}", "event_id": FACT, "status": "PENDING", "body": "told", **DUE}
CALLING = {**PLANNED, "status": "PROCESSING"}
TAKEN = {name: value for name, value in CALLING.items() if name not in DUE} | {"status": "COMPLETED"}
POST = Post(25, "deliver-2", FACT, b"told", verifies=True)
DELIVERY = Delivered(
    states=states(
        ("deliver-1", PLANNED), ("deliver-2", CALLING), ("deliver-2", PLANNED), ("deliver-3", CALLING),
        ("deliver-3", TAKEN),
    ),
    posts=(replace(POST, number=15), replace(POST, number=35, by="deliver-3")), strangers=0, refused=1,
)  # fmt: skip
HANDED_ON = replace(GOOD, delivered=DELIVERY, found=TOLD, functions={"deliver-3": "deliver"})


def streamed(**changes: Any) -> Evidence:
    return replace(STREAMED, text=replace(TEXT, **changes))


def delivered(**changes: Any) -> Evidence:
    return replace(HANDED_ON, delivered=replace(DELIVERY, **changes))


DOCTORED: dict[str, tuple[str, Callable[[], Evidence]]] = {
    "it was never struck": ("struck_where_it_was_to_be", lambda: replace(GOOD, struck=False)),
    "two jobs of one request": ("accepted_under_one_id", lambda: replace(GOOD, accepted_as=(JOB, "job-2"))),
    "no record": ("one_final_state", lambda: replace(GOOD, states=())),
    "it stays open": ("one_final_state", lambda: replace(GOOD, states=GOOD.states[:2])),
    "a final state is left": (
        "one_final_state",
        lambda: replace(GOOD, states=(*GOOD.states, State(50, STRANGER, {**TOLD, "attempt": 2}))),
    ),
    "another end": ("ends_as_its_story_says", lambda: replace(GOOD, ends=("CANCELLED", ""))),
    "opened again": ("ends_as_its_story_says", lambda: replace(GOOD, openings=2)),
    "result unreadable": ("result_is_what_the_model_answered", lambda: replace(GOOD, result=Answer(404, {}, b""))),
    "result of a FAILED job": ("result_is_what_the_model_answered", lambda: replace(BAD, result=Answer(200, {}, BODY))),
    "result not what is stored": (
        "result_is_what_the_model_answered",
        lambda: replace(GOOD, result=Answer(200, {}, BODY.replace(b"1", b"2"))),
    ),
    "result of a dropped answer": (
        "result_is_what_the_model_answered",
        lambda: replace(GOOD, asks=(replace(CALL, number=13, answer="2: answer"),)),
    ),
    "asked twice at once": ("one_call_for_each_ask", lambda: replace(GOOD, asks=(CALL, CALL))),
    "asked though it was stored": (
        "no_call_once_its_answer_is_stored",
        lambda: replace(RECOVERED, stored=(14,)),
    ),
    "paid twice for nothing": (
        "called_again_only_when_the_answer_was_lost",
        lambda: replace(RECOVERED, cut_off=frozenset({STRANGER})),
    ),
    "not booked": (
        "books_cover_what_was_called",
        lambda: replace(GOOD, states=(*GOOD.states[:3], State(30, DISPATCHER, {**TOLD, "cost": 0}))),
    ),
    "booked twice": (
        "books_cover_what_was_called",
        lambda: replace(GOOD, states=(*GOOD.states[:3], State(30, DISPATCHER, {**TOLD, "cost": 8}))),
    ),
    "not told": ("told_of_each_fact", lambda: replace(GOOD, events=())),
    "told of two facts": ("told_of_each_fact", lambda: replace(GOOD, events=(EVENT, SECOND_EVENT))),
    "told wrongly": (
        "told_of_each_fact",
        lambda: replace(GOOD, events=({**EVENT, "payload": {"status": "FAILED"}},)),
    ),
    "still due": ("nothing_is_left_open", lambda: replace(GOOD, states=GOOD.states[:3])),
    "a message in flight": (
        "nothing_is_left_open",
        lambda: replace(GOOD, left=Left({"in flight": ["WorkQueueUrl: 1"]})),
    ),
    "no letter": ("each_failed_job_has_its_letter", lambda: replace(BAD, letters=())),
    "a letter of a job that did not fail": ("each_failed_job_has_its_letter", lambda: replace(GOOD, letters=(LETTER,))),
    "a lapse without a kill": (
        "nobody_lapses_who_was_not_cut_off",
        lambda: replace(RECOVERED, cut_off=frozenset({STRANGER})),
    ),
    "a crash that was none": (
        "claims_are_counted",
        lambda: replace(GOOD, states=(*GOOD.states[:3], State(30, DISPATCHER, {**TOLD, "crashes": 1}))),
    ),
    "a try that was not charged": (
        "claims_are_counted",
        lambda: replace(RECOVERED, states=(*LAPSED[:4], State(40, STRANGER, {**LAPSED[4].record, "tries": 0}))),
    ),
    "seen by another tenant": ("no_tenant_sees_anothers", lambda: replace(GOOD, by_others=(404, 200))),
    "in another's list": ("no_tenant_sees_anothers", lambda: replace(GOOD, listed_for=(TENANT, OTHER))),
    "in nobody's list": ("no_tenant_sees_anothers", lambda: replace(GOOD, listed_for=())),
    "a chunk is missing": ("its_text_is_in_chunks", lambda: streamed(chunks={1: ((0, "1: an"), (2, "swer"))})),
    "a chunk too few": ("its_text_is_in_chunks", lambda: streamed(chunks={1: CHUNKS[:1]})),
    "chunks of two answers": (
        "its_text_is_in_chunks",
        lambda: streamed(chunks={1: ((0, "2: an"), CHUNKS[1])}, said=("1: answer", "2: other")),
    ),
    "an end that a watcher was not told": ("watchers_have_its_text", lambda: streamed(heard=(Heard(1, ["1: an"]),))),
    "a watcher with less": ("watchers_have_its_text", lambda: streamed(heard=(heard("1: an"),))),
    "a watcher that was told of another end": (
        "watchers_have_its_text",
        lambda: streamed(heard=(heard("1: an", "swer", status="FAILED"),)),
    ),
    "a watcher of an older attempt": (
        "watchers_have_its_text",
        lambda: streamed(heard=(heard("1: an", "swer", attempt=0),)),
    ),
    "text of two answers": ("no_text_is_mixed", lambda: streamed(heard=(heard("1: an", "swer", voided=["1: b"]),))),
    "one number, two texts": ("no_text_is_mixed", lambda: streamed(heard=(heard("1: an", "swer", wrong=["chunk 0"]),))),
    "nothing of it is kept": (
        "cancelled_in_its_midst_it_keeps_what_was_said",
        lambda: replace(STOPPED, text=Text({}, ("1: answer",), ())),
    ),
    "no delivery": ("each_event_is_delivered", lambda: delivered(states=())),
    "not delivered": ("each_event_is_delivered", lambda: delivered(states=DELIVERY.states[:3])),
    "a delivery without an event": (
        "each_event_is_delivered",
        lambda: delivered(states=(*DELIVERY.states, State(60, "", {**TAKEN, "sk": "delivery#", "event_id": "none"}))),
    ),
    "taken, and its receiver was never called": ("each_event_is_delivered", lambda: delivered(posts=())),
    "a delivery still due": (
        "each_event_is_delivered",
        lambda: delivered(states=(*DELIVERY.states[:4], State(40, "deliver-3", {**TAKEN, **DUE}))),
    ),
    "other bytes": (
        "a_delivery_is_the_same_each_time",
        lambda: delivered(posts=(DELIVERY.posts[0], replace(POST, number=35, body=b"told otherwise"))),
    ),
    "another id": (
        "a_delivery_is_the_same_each_time",
        lambda: delivered(posts=(*DELIVERY.posts, replace(POST, id="another"))),
    ),
    "a signature that does not verify": (
        "a_delivery_is_the_same_each_time",
        lambda: delivered(posts=(DELIVERY.posts[0], replace(POST, verifies=False))),
    ),
    "a stranger hears": ("a_delivery_is_the_same_each_time", lambda: delivered(strangers=1)),
    "called after it was taken": (
        "a_receiver_that_has_taken_it_is_left_alone",
        lambda: delivered(posts=(*DELIVERY.posts, replace(POST, number=45, by="deliver-4"))),
    ),
    "called twice at once": (
        "a_receiver_that_has_taken_it_is_left_alone",
        lambda: delivered(posts=(*DELIVERY.posts, DELIVERY.posts[0])),
    ),
    "called too often": (
        "a_receiver_that_has_taken_it_is_left_alone",
        lambda: delivered(posts=tuple(replace(POST, number=n, by=f"deliver-{n}") for n in range(4))),
    ),
    "deliver writes the job": (
        "its_record_is_untouched_by_deliveries",
        lambda: replace(HANDED_ON, functions={DISPATCHER: "deliver"}),
    ),
    "the job is not as it was": (
        "its_record_is_untouched_by_deliveries",
        lambda: replace(HANDED_ON, found={**TOLD, "told": 1}),
    ),
    "told as another's": ("no_tenant_sees_anothers", lambda: replace(GOOD, events=({**EVENT, "tenant_id": OTHER},))),
}


@pytest.mark.parametrize(
    "evidence",
    [GOOD, BAD, RECOVERED, STREAMED, STOPPED, HANDED_ON],
    ids=["completed", "failed", "recovered", "streamed", "stopped", "delivered"],
)
def test_what_is_as_it_must_be_is_not_complained_about(evidence: Evidence) -> None:
    assert violations(evidence) == []


@pytest.mark.parametrize("invariant", [invariant for invariant, _ in DOCTORED.values()])
def test_each_invariant_that_is_doctored_is_one_of_those_that_judge(invariant: str) -> None:
    assert invariant in [one.__name__ for one in INVARIANTS]


def test_every_invariant_is_doctored() -> None:
    assert {one.__name__ for one in INVARIANTS} == {invariant for invariant, _ in DOCTORED.values()}


@pytest.mark.parametrize(("invariant", "doctored"), DOCTORED.values(), ids=DOCTORED)
def test_the_invariant_fails_on_doctored_evidence(invariant: str, doctored: Callable[[], Evidence]) -> None:
    assert invariant in [one.invariant for one in violations(doctored())]


def test_the_accounts_do_not_balance_when_one_is_still_open() -> None:
    assert list(accounts_balance([GOOD, BAD])) == []
    (why,) = accounts_balance([GOOD, replace(GOOD, states=GOOD.states[:2])])
    assert "PROCESSING" in why


# --- what a watcher puts together ----------------------------------------------------------------------------------
def chunks(attempt: int, first: int, *texts: str) -> dict[str, Any]:
    return {"type": "chunks", "attempt": attempt, "from": first, "texts": texts}


def test_a_watcher_begins_anew_when_its_text_is_void() -> None:
    one = Heard()
    for frame in (chunks(1, 0, "1: an"), {"type": "restarted", "attempt": 2}, chunks(1, 1, "swer"), chunks(2, 0, "2:")):
        one.hear(frame)
    assert (one.text, one.voided, one.wrong) == ("2:", ["1: an"], [])


@pytest.mark.parametrize("second", [chunks(1, 2, "wer"), chunks(1, 0, "2: an")], ids=["a gap", "another text"])
def test_a_watcher_tells_what_it_should_not_have_been_sent(second: dict[str, Any]) -> None:
    one = Heard()
    one.hear(chunks(1, 0, "1: an"))
    one.hear(chunks(1, 0, "1: an"))
    assert one.wrong == []
    one.hear(second)
    assert len(one.wrong) == 1
