"""The record is read as it was written or not at all, and its history and texts never outgrow their caps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import PENDING
from lambdas.core import times
from lambdas.core.job import (
    HISTORY_HEAD,
    HISTORY_TAIL,
    NOTE_BYTES,
    Job,
    UnreadableRecord,
    cut,
    entry,
    from_record,
    history_with,
)
from tests.builders import FINALS, NOW, any_job, any_record, final_job, final_record, handed_over, held_record, later


def test_a_record_is_read_with_its_times_as_instants() -> None:
    job = from_record(final_record(attempt=3, tries=2, cost=250))
    assert (job.attempt, job.tries, job.cost) == (3, 2, 250)
    assert (job.created_at, job.lease_until, job.finished_at) == (NOW, later(130), NOW)
    assert isinstance(job.expires_at, int)


def test_a_record_just_accepted_has_counters_of_zero_and_nothing_of_later() -> None:
    counters = ("crashes", "run", "sample", "unusable", "waits", "backoff_ms", "cost", "late_cost", "history_left_out")
    bare = {name: value for name, value in any_record().items() if name not in counters}
    job = from_record(bare)
    assert [getattr(job, name) for name in counters] == [0] * len(counters)
    assert (job.fresh, job.claim_id, job.lease_until, job.error, job.handed_over_at) == (False, None, None, None, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("crashes", 1),
        ("run", 2),
        ("sample", 3),
        ("unusable", 3),
        ("waits", 4),
        ("backoff_ms", 5),
        ("cost", 6),
        ("late_cost", 7),
        ("history_left_out", 8),
        ("fresh", True),
        ("input", "{}"),
        ("trace_id", "t"),
        ("claim_id", "c"),
        ("result_key", "k"),
        ("result_bytes", 9),
        ("expires_at", 10),
        ("error", {"code": "X", "message": "y"}),
        ("body_sha", "s"),
        ("type", "t"),
    ],
)
def test_every_field_of_a_record_is_read(name: str, value: Any) -> None:
    assert getattr(any_job(**{name: value}), name) == value


@pytest.mark.parametrize(
    "name", ["claimed_at", "lease_until", "finished_at", "handed_over_at", "due_at", "deadline_at"]
)
def test_every_time_of_a_record_is_read(name: str) -> None:
    assert getattr(any_job(**{name: later(7)}), name) == later(7)


def test_the_caps_are_three_first_and_seven_last_lines_and_200_bytes_a_note() -> None:
    assert (HISTORY_HEAD, HISTORY_TAIL, NOTE_BYTES) == (3, 7, 200)


@pytest.mark.parametrize(
    "missing",
    ["pk", "sk", "tenant", "type", "status", "attempt", "tries", "created_at", "not_before", "deadline_at", "body_sha"],
)
def test_a_record_without_what_every_record_has_is_unreadable(missing: str) -> None:
    record = any_record()
    del record[missing]
    with pytest.raises(UnreadableRecord):
        from_record(record)


def test_a_record_that_says_processing_and_not_until_when_is_unreadable() -> None:
    """Nobody could claim, reap or expire it: it would be stuck without a word."""
    record = held_record()
    del record["lease_until"]
    with pytest.raises(UnreadableRecord, match="lease_until"):
        from_record(record)
    for status in (PENDING, *FINALS):
        assert from_record({**record, "status": status}).lease_until is None


@pytest.mark.parametrize(
    "broken",
    [
        {"not_before": "soon"},
        {"due_at": 17},
        {"lease_until": "2026-11-29T15:30:44"},
        {"deadline_at": "9999-12-31T23:59:59-01:00"},
        {"handed_over_at": "soon"},
        {"sk": "event#000001"},
        {"history": 7},
        {"attempt": "1"},
        {"attempt": True},
        {"tries": "0"},
        {"cost": "0"},
        {"unusable": "0"},
        {"tenant": 7},
        {"status": None},
        {"status": "DONE"},
        {"status": "DELETED"},
        {"input": 7},
        {"trace_id": 7},
        {"claim_id": 7},
        {"result_bytes": "7"},
        {"expires_at": "7"},
        {"fresh": "yes"},
        {"error": "oops"},
        {"error": {"message": "no code"}},
    ],
)
def test_a_record_with_a_broken_field_is_unreadable(broken: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRecord):
        from_record({**any_record(), **broken})


def test_a_tombstone_is_no_job() -> None:
    with pytest.raises(UnreadableRecord):
        from_record({"pk": "j", "sk": "job", "tenant": "t", "status": "DELETED", "attempt": 3, "body_sha": "x"})


@pytest.mark.parametrize("status", FINALS)
def test_a_final_job_is_handed_over_once_it_is_no_longer_due(status: str) -> None:
    assert not final_job(status).is_handed_over
    assert from_record(handed_over(status)).is_handed_over


def test_an_open_job_is_never_handed_over() -> None:
    assert not from_record(any_record(due_at=None)).is_handed_over


LINES = st.lists(st.integers(), max_size=60)


@given(st.lists(LINES, max_size=8))
def test_a_history_keeps_the_first_few_and_the_last_few_and_counts_the_rest(writes: list[list[int]]) -> None:
    job, written = any_job(history=None), 0
    for lines in writes:
        fields = history_with(job, *({"n": written + n} for n in range(len(lines))))
        written += len(lines)
        job = from_record({**any_record(), **_fields(job), **fields})
    kept = [line["n"] for line in job.history]
    head, tail = list(range(min(written, HISTORY_HEAD))), list(range(written))[HISTORY_HEAD:][-HISTORY_TAIL:]
    assert kept == head + tail
    assert job.history_left_out == written - len(kept)


def _fields(job: Job) -> dict[str, Any]:
    return {"history": list(job.history), "history_left_out": job.history_left_out}


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=400)  # half surrogates included


@given(ANY_TEXT, st.integers(0, 50))
def test_cut_text_has_at_most_so_many_bytes_and_can_be_written(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode("utf-8")) <= limit


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), st.integers(0, 60))
def test_cut_text_is_the_beginning_of_the_text_and_ends_on_a_whole_character(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert text.startswith(short)
    following = text[len(short) :][:1]
    assert not following or len((short + following).encode()) > limit


def test_half_a_surrogate_becomes_something_that_can_be_written() -> None:
    assert cut("a\ud800b", 200) == "a?b"


def test_text_within_the_limit_is_left_as_it_is() -> None:
    assert cut("é" * 100, 200) == "é" * 100
    assert cut("é" * 101, 201) == "é" * 100


def test_a_line_of_history_cuts_its_note_and_leaves_an_empty_one_out() -> None:
    line = entry(NOW, "failed", 2, "x" * 1_000)
    assert line == {"at": times.text(NOW), "what": "failed", "attempt": 2, "note": "x" * NOTE_BYTES}
    assert "note" not in entry(NOW, "accepted", 0)
