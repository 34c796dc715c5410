"""What lies among the dead letters is recognised by what nobody can forge, and grouped by its cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED
from lambdas.core import times
from lambdas.core.envelope import written
from lambdas.core.job import from_record
from lambdas.core.letters import letter as letters
from lambdas.core.letters.canary import canary_of
from lambdas.core.letters.letter import DELIVERIES, INBOX, URGENT, WORK, Letter, message_of, read, standing
from lambdas.core.ports import Found
from lambdas.core.routing import letter as letter_of
from tests.builders import (
    JOB_ID,
    NOW,
    TENANT,
    any_delivery_hint_body,
    any_envelope,
    any_event_body,
    any_found,
    any_hint_body,
    any_letter_body,
    any_record,
    final_record,
    handed_over,
    held_record,
    later,
    unreadable_found,
)


def dead(reason: str = "TASK_ERROR", detail: str = "no", queue: str = WORK, **payload: Any) -> Letter:
    body = any_envelope(
        event_type="job.dead_lettered", payload={"attempt": 1, "reason": reason, "detail": detail, **payload}
    )
    return read(queue, any_found(json.dumps(body)))


# --- what it is ------------------------------------------------------------------------------------
def test_the_letter_that_the_dispatcher_sends_tells_its_job_cause_and_cost() -> None:
    record = final_record(FAILED, cost=7, tries=3, error={"code": "MODEL_PERMANENT", "message": "no such model"})
    message = letter_of(from_record(record), later(5))
    found = read(WORK, any_found(message.body, attributes=message.attributes, group=message.group))
    assert (found.kind, found.job_id, found.attempt, found.tries, found.cost) == ("job", JOB_ID, 1, 3, 7)
    assert (found.reason, found.detail, found.task, found.schema) == (
        "MODEL_PERMANENT",
        "no such model",
        "summarize",
        1,
    )
    assert (found.id, found.at) == (f"{JOB_ID}.1.FAILED", later(5))
    back = message_of(found)
    assert (back.body, back.attributes, back.group) == (message.body, message.attributes, TENANT)


def test_a_hint_that_sqs_moved_names_its_job_and_no_cause() -> None:
    found = read(URGENT, any_found(any_hint_body(attempt=2), moved=True, attributes={"type": "summarize"}))
    assert (found.kind, found.job_id, found.attempt, found.task) == ("hint", JOB_ID, 2, "summarize")
    assert (found.reason, found.is_malformed, message_of(found).urgent) == (letters.NOT_ACKNOWLEDGED, False, True)


def test_a_letter_about_a_message_stands_for_that_message() -> None:
    body = any_hint_body("f" * 32)
    found = read(WORK, unreadable_found(body, "UNKNOWN_JOB", "there is no record"))
    assert (found.kind, found.reason, found.body, found.schema) == ("unreadable", "UNKNOWN_JOB", body, 1)
    assert found.job_id == "f" * 32
    assert found.id.startswith("message.")
    assert message_of(found).body == body


def test_a_letter_of_the_inbox_holds_the_attributes_of_its_event() -> None:
    envelope = json.loads(unreadable_found("{").body)
    envelope["payload"]["attributes"] = {"source": "crm", "encoding": "base64"}
    sent = {"event_type": "job.unreadable", "type": "summarize", "origin": "crm"}
    found = read(INBOX, any_found(written(envelope), attributes=sent))
    assert (found.kind, found.task) == ("unreadable", "summarize")
    assert message_of(found).attributes == {"source": "crm", "encoding": "base64"}


STRANGERS = [
    any_letter_body(),
    any_hint_body(),
    written(json.loads(unreadable_found("x").body)),
    json.dumps(any_envelope(event_type="job.completed")),
    "{}",
    "not JSON",
]


@pytest.mark.parametrize("body", STRANGERS)
@pytest.mark.parametrize("moved", [True, False])
def test_what_a_stranger_sends_to_the_inbox_is_an_event_whatever_it_says(body: str, moved: bool) -> None:
    found = read(INBOX, any_found(body, moved=moved, attributes={"source": "crm"}))
    assert (found.kind, found.job_id, found.body) == ("event", None, body)
    assert message_of(found).attributes == {"source": "crm"}


def test_an_event_too_large_for_a_letter_has_its_reason_beside_it_and_goes_back_without() -> None:
    beside = {"source": "crm", "reason": "BAD_SIGNATURE", "detail": "no signature of ours"}
    found = read(INBOX, any_found("{}", attributes=beside))
    assert (found.reason, found.detail) == ("BAD_SIGNATURE", "no signature of ours")
    assert message_of(found).attributes == {"source": "crm"}


@pytest.mark.parametrize(
    ("body", "reason", "schema"),
    [
        ("junk", letters.SENT_HERE, None),
        ("[]", letters.SENT_HERE, None),
        (json.dumps(any_envelope(schema=2, more=1)), letters.NEWER_SCHEMA, 2),
        (json.dumps(any_envelope(event_type="job.completed")), letters.SENT_HERE, 1),
    ],
)
def test_what_is_no_letter_of_ours_is_foreign(body: str, reason: str, schema: int | None) -> None:
    found = read(WORK, any_found(body))
    assert (found.kind, found.reason, found.schema, found.is_malformed) == ("foreign", reason, schema, True)


@pytest.mark.parametrize("name", ["../x", "a/b", "x" * 200, " "])
def test_an_id_that_does_not_fit_into_a_path_is_the_hash_of_its_body(name: str) -> None:
    found = read(WORK, any_found(any_letter_body(name[:128])))
    assert len(found.id) == 64


def test_a_payload_of_wrong_kinds_is_read_as_far_as_it_goes() -> None:
    found = dead(tries="three", cost_micros=-1, type=5)
    assert (found.tries, found.cost, found.task) == (None, 0, None)


# --- causes ------------------------------------------------------------------------------------------
def test_ids_numbers_and_times_do_not_split_a_cause() -> None:
    details = [
        "record 0123456789abcdef is gone after 3 tries",
        "record 0f0e0d0c is gone  after 17 tries",
        "record 3b241101-e2bb-4255-8caf-4136c566a962 is gone after 1 tries",
    ]
    assert len({dead(detail=detail).group for detail in details}) == 1
    assert dead(detail=details[0]).error == "record # is gone after # tries"


def test_queue_reason_error_task_and_schema_each_make_a_cause_of_their_own() -> None:
    found = [
        dead(),
        dead("MODEL_PERMANENT"),
        dead(detail="another"),
        dead(type="classify"),
        dead(queue=URGENT),
        read(WORK, any_found("junk")),
        read(WORK, any_found(json.dumps(any_envelope(schema=2)))),
    ]
    assert len({one.group for one in found}) == len(found)


# --- whether it still means something ----------------------------------------------------------------
GONE_ON = [
    any_record(attempt=2, run=1),
    held_record(attempt=3),
    handed_over(attempt=4),
    final_record(FAILED, attempt=2),
    {**final_record(FAILED), "status": DELETED},
]


@pytest.mark.parametrize("record", GONE_ON)
def test_a_letter_is_stale_when_its_job_has_certainly_gone_on(record: dict[str, Any]) -> None:
    assert standing(dead(), record) == "stale"


def test_a_letter_is_due_while_its_job_is_failed_at_its_attempt() -> None:
    assert standing(dead(), final_record(FAILED)) == "due"


@pytest.mark.parametrize("record", [None, any_record(), held_record(), final_record(FAILED, attempt=0), {"pk": "x"}])
def test_of_a_letter_that_is_ahead_of_its_record_nobody_says_that_it_is_stale(record: dict[str, Any] | None) -> None:
    """A restored table: the letter may be the last trace of what happened."""
    assert standing(dead(), record) == "unknown"


def test_a_hint_is_due_while_its_job_is_open_and_stale_when_it_is_final() -> None:
    hint = read(WORK, any_found(any_hint_body(), moved=True))
    assert [standing(hint, record) for record in (any_record(), held_record(attempt=5))] == ["due", "due"]
    assert {standing(hint, final_record(status)) for status in (COMPLETED, FAILED, CANCELLED)} == {"stale"}
    assert standing(hint, None) == "unknown"


def test_zero_attempts_is_what_died_without_a_try() -> None:
    def without(found: Found, record: dict[str, Any] | None = None, queue: str = WORK) -> bool:
        return letters.had_no_attempt(read(queue, found), letters.job_of(record))

    hint, event = any_found(any_hint_body(), moved=True), any_found("{}", moved=True, attributes={"source": "crm"})
    assert without(hint, any_record())
    assert not without(hint, any_record(tries=1))
    assert not without(hint, None)
    assert without(event, queue=INBOX)
    assert not without(unreadable_found("x"))
    assert letters.had_no_attempt(dead(tries=0), None)
    assert not letters.had_no_attempt(dead(tries=1), None)
    assert not letters.had_no_attempt(dead(), None)


def test_its_age_is_that_of_the_letter_for_ours_and_of_the_message_for_others() -> None:
    assert dead().at == NOW
    assert read(WORK, any_found("junk", sent_at=later(9))).at == later(9)
    assert times.text(NOW) in any_letter_body()


# --- what was to be delivered ------------------------------------------------------------------------
@pytest.mark.parametrize("body", [any_event_body(attempt=2), any_delivery_hint_body(attempt=2)])
@pytest.mark.parametrize(("moved", "reason"), [(True, letters.NOT_ACKNOWLEDGED), (False, letters.SENT_HERE)])
def test_an_event_or_a_hint_that_was_not_taken_is_a_letter_that_may_go_back(
    body: str, moved: bool, reason: str
) -> None:
    found = read(DELIVERIES, any_found(body, moved=moved, attributes={"tenant": "acme"}))
    assert (found.kind, found.reason, found.is_malformed) == ("delivery", reason, False)
    assert (found.job_id, found.schema) == (JOB_ID, 1)
    assert found.task == json.loads(body)["event_type"]
    assert standing(found, None) == standing(found, final_record(FAILED, attempt=9)) == "due"
    assert letters.had_no_attempt(found, None) is moved
    back = message_of(found)
    assert (back.body, back.group) == (body, "acme")


@pytest.mark.parametrize("body", [any_hint_body(), any_letter_body(), any_event_body(event_type="job.started"), "{}"])
def test_what_is_for_another_queue_is_foreign_among_deliveries(body: str) -> None:
    found = read(DELIVERIES, any_found(body, moved=True))
    assert (found.kind, found.is_malformed) == ("foreign", True)


def test_what_was_to_be_delivered_is_foreign_in_other_queues() -> None:
    assert read(WORK, any_found(any_event_body())).kind == "foreign"
    assert read(WORK, any_found(any_delivery_hint_body())).kind == "foreign"


def test_the_first_of_a_redrive_of_deliveries_names_no_job_to_wait_for() -> None:
    """Whether it has arrived is told by its silence."""
    for body in (any_event_body(), any_delivery_hint_body()):
        found = read(DELIVERIES, any_found(body, moved=True))
        assert (canary_of(found).job_id, canary_of(found).subject) == ("", found.subject)
