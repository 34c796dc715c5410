"""Each invariant of the proof fails when what was seen is doctored, and none when it is as it must be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.target import Answer
from tests.simulation.proof.evidence import Ask, Evidence, State
from tests.simulation.proof.invariants import INVARIANTS, accounts_balance, violations
from tests.simulation.proof.leftovers import Left

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
    "told as another's": ("no_tenant_sees_anothers", lambda: replace(GOOD, events=({**EVENT, "tenant_id": OTHER},))),
}


@pytest.mark.parametrize("evidence", [GOOD, BAD, RECOVERED], ids=["completed", "failed", "recovered"])
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
