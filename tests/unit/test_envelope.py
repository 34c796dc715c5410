"""A message is read for what it is: a hint, a letter that came back, something newer, or nothing of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.validation import envelope_check
from lambdas.core.envelope import (
    DISPATCHED,
    Hint,
    Newer,
    ReturnedLetter,
    Unreadable,
    envelope,
    letter_about_message,
    read,
    written,
)
from tests.builders import (
    JOB_ID,
    NOW,
    TENANT,
    any_envelope,
    any_hint_body,
    any_job,
    any_letter_body,
    later,
)


def test_a_dispatched_message_is_a_hint_about_its_job() -> None:
    assert read(any_hint_body("j", attempt=3, crashes=1)) == Hint("j", 3, 1)


def test_a_dead_letter_on_the_work_queue_came_back() -> None:
    assert read(any_letter_body("j", attempt=4)) == ReturnedLetter("j", 4)


def test_a_letter_of_ours_with_all_its_fields_is_read_as_one() -> None:
    job = any_job(status="FAILED", attempt=2)
    body = envelope(job, "job.dead_lettered", {"attempt": 2, "reason": "X", "detail": "", "type": "t", "tries": 1}, NOW)
    assert read(written(body)) == ReturnedLetter(JOB_ID, 2)


@pytest.mark.parametrize("schema", [2, 3, 10**20])
def test_a_newer_schema_is_left_for_the_newer_code_whatever_else_it_holds(schema: int) -> None:
    assert read(json.dumps({"schema": schema, "new": True})) == Newer(schema)


@pytest.mark.parametrize("schema", [0, -1, False])
def test_an_older_schema_that_nobody_reads_any_more_is_unsupported(schema: Any) -> None:
    found = read(json.dumps(any_envelope(schema=schema)))
    assert isinstance(found, Unreadable)


@pytest.mark.parametrize("schema", [True, "1", None, 1.5, [1]])
def test_a_schema_that_is_no_whole_number_is_invalid(schema: Any) -> None:
    found = read(json.dumps(any_envelope(schema=schema)))
    assert isinstance(found, Unreadable)
    assert found.reason in {"INVALID_ENVELOPE", "UNSUPPORTED_SCHEMA"}


def test_a_whole_number_written_as_a_float_is_never_read_as_another_version() -> None:
    assert not isinstance(read(json.dumps(any_envelope(schema=2.0))), Hint)


def test_the_numbers_of_a_hint_are_whole_numbers() -> None:
    found = read(json.dumps(any_envelope(payload={"attempt": 1.0, "crashes": 0.0})))
    if isinstance(found, Hint):
        assert (type(found.attempt), type(found.crashes)) == (int, int)


@pytest.mark.parametrize(
    "body",
    ["", "not json", '{"job":', "\ud800", "\x00", "NaN", "[" * 100_000, '{"schema":1,"schema":1}'],
    ids=["empty", "text", "cut", "half surrogate", "control", "NaN", "deep", "name twice"],
)
def test_env_09_what_is_no_json_is_malformed(body: str) -> None:
    found = read(body)
    assert isinstance(found, Unreadable)
    assert found.reason == "MALFORMED_MESSAGE"


@pytest.mark.parametrize("body", ["null", "[]", "1", '"text"', "{}", '{"foo":1}'])
def test_json_that_is_no_envelope_is_invalid(body: str) -> None:
    found = read(body)
    assert isinstance(found, Unreadable)
    assert found.reason == "INVALID_ENVELOPE"


@pytest.mark.parametrize("missing", ["attempt", "crashes"])
def test_a_hint_without_its_numbers_is_invalid_and_says_which(missing: str) -> None:
    message = any_envelope()
    del message["payload"][missing]
    found = read(json.dumps(message))
    assert isinstance(found, Unreadable)
    assert f"/payload/{missing}" in found.detail


@pytest.mark.parametrize("number", [1_000_000_001, 10**12])
@pytest.mark.parametrize("name", ["attempt", "crashes"])
def test_a_hint_whose_numbers_no_record_could_hold_is_invalid_and_says_which(name: str, number: int) -> None:
    found = read(json.dumps(any_envelope(payload={name: number})))
    assert isinstance(found, Unreadable)
    assert found.reason == "INVALID_ENVELOPE"
    assert f"/payload/{name}" in found.detail


def test_a_number_of_a_hundred_digits_is_buried_at_once_too() -> None:
    assert isinstance(read(any_hint_body(attempt=10**100)), Unreadable)


def test_a_message_without_a_type_is_told_to_lack_its_type() -> None:
    message = any_envelope()
    del message["event_type"]
    found = read(json.dumps(message))
    assert isinstance(found, Unreadable)
    assert "/event_type" in found.detail


@pytest.mark.parametrize("event_type", ["job.completed", "job.failed", "job.unreadable"])
def test_an_event_that_is_not_for_the_work_queue_is_foreign(event_type: str) -> None:
    found = read(json.dumps(any_envelope(event_type=event_type)))
    assert isinstance(found, Unreadable)
    assert found.reason == "FOREIGN_EVENT"


@given(
    st.text(st.characters(exclude_categories=()), max_size=80)
    | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps)
)
def test_reading_never_raises(body: str) -> None:
    read(body)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


@given(ANY_TEXT)
def test_moto_03_a_written_message_is_plain_ascii_that_sqs_and_sns_take(text: str) -> None:
    body = written({"text": text})
    assert body.isascii()
    assert body.isprintable()
    assert json.loads(body) == {"text": text}


def test_the_same_fact_has_the_same_event_id_whoever_says_it_and_whenever() -> None:
    job = any_job(status="COMPLETED", attempt=3)
    assert envelope(job, "job.completed", {}, NOW)["event_id"] == f"{JOB_ID}.3.COMPLETED"


def test_our_own_envelopes_keep_the_contract() -> None:
    job = any_job()
    hint = envelope(job, DISPATCHED, {"attempt": 0, "crashes": 0}, NOW)
    assert envelope_check()(hint) is None
    assert (hint["run_id"], hint["tenant_id"], hint["trace_id"]) == (JOB_ID, TENANT, JOB_ID)


@given(ANY_TEXT)
def test_a_letter_about_any_message_can_be_written_and_keeps_the_contract(body: str) -> None:
    letter = letter_about_message(body, Unreadable("MALFORMED_MESSAGE", "not JSON"), NOW)
    assert envelope_check()(letter) is None
    assert written(letter).isascii()


def test_repeats_of_an_unreadable_message_have_one_letter_id_and_others_have_another() -> None:
    why = Unreadable("MALFORMED_MESSAGE", "not JSON")
    seen = (("{bad", NOW), ("{bad", later(60)), ("{bad ", NOW))
    ids = [letter_about_message(body, why, at)["event_id"] for body, at in seen]
    assert ids[0] == ids[1] != ids[2]


def test_a_letter_holds_its_message_whole_unless_that_would_be_more_than_sqs_takes() -> None:
    def quoted(body: str) -> str:
        letter = letter_about_message(body, Unreadable("MALFORMED_MESSAGE", ""), NOW)
        assert len(written(letter).encode()) < 1_000_000
        quoted: str = letter["payload"]["body"]
        return quoted

    assert quoted("x" * 900_000) == "x" * 900_000
    for large in ("x" * 980_000, '"' * 490_000, "é" * 170_000):
        assert quoted(large) == large[:10_000]


def test_letters_about_one_body_differ_by_what_is_told_about_it() -> None:
    def id_of(**about: str) -> str:
        letter = letter_about_message("{", Unreadable("MALFORMED_MESSAGE", ""), NOW, about=about or None)
        return str(letter["event_id"])

    assert len({id_of(), id_of(queue="inbox"), id_of(queue="work")}) == 3
    assert id_of(queue="inbox") == id_of(queue="inbox")


@pytest.mark.parametrize("field", ["schema", "step_index"])
def test_a_whole_number_of_an_envelope_written_as_a_float_is_read_as_whole_or_refused(field: str) -> None:
    found = read(json.dumps(any_envelope(**{field: 1.0})))
    assert isinstance(found, Unreadable)


def test_a_letter_about_a_message_that_came_back_means_the_message_itself() -> None:
    """Redriven after a fix, it has another chance; still unreadable, it is buried under the same id, not nested."""
    hint = any_hint_body(attempt=2)
    for body, meaning in ((hint, read(hint)), ("not JSON", read("not JSON"))):
        letter = written(letter_about_message(body, Unreadable("INVALID_ENVELOPE", "x"), NOW))
        assert read(letter) == meaning
