"""A reader follows the record's attempt: it is told when its text is void, and when there is nothing more to come."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED
from lambdas.core.job import Job
from lambdas.core.problems import Problem
from lambdas.core.streaming.ports import Chunk
from lambdas.core.streaming.reading import MOST_BYTES, Look, Place, look, place_of, shown
from tests.builders import JOB_ID, NOW, final_job, held_job, later
from tests.fakes import FakeChunks
from tests.unit.test_views import _contract


def said(*texts: str, attempt: int = 1) -> FakeChunks:
    chunks = FakeChunks()
    for n, text in enumerate(texts):
        chunks.append(JOB_ID, Chunk(attempt, n, text), 1)
    return chunks


def seen(job: Job, place: Place, chunks: FakeChunks) -> Look:
    found = look(job, place, chunks)
    assert isinstance(found, Look)
    return found


def open_job(**over: Any) -> Job:
    return held_job(stream=True, **over)


def test_a_reader_gets_what_it_does_not_have_yet():
    found = seen(open_job(), Place(1), said("a", "b", "c"))
    assert (found.first, found.texts, found.restarted, found.final) == (1, ["b", "c"], False, False)
    assert found.is_news


def test_nothing_new_is_no_news():
    found = seen(open_job(), Place(3, 1), said("a", "b", "c"))
    assert (found.texts, found.is_news) == ([], False)


def test_what_an_earlier_job_of_the_same_key_had_said_is_not_shown():
    """Its record has expired, and its text not yet."""
    chunks = FakeChunks()
    chunks.at = lambda: later(days=-91)
    for n, text in enumerate(["old ", "text"]):
        chunks.append(JOB_ID, Chunk(1, n, text), 1)
    assert seen(open_job(), Place(), chunks).texts == []
    chunks.at = lambda: NOW
    chunks.append(JOB_ID, Chunk(1, 0, "new"), 1)
    found = seen(final_job(stream=True), Place(), chunks)
    assert (found.texts, found.final) == (["new"], True)


@pytest.mark.parametrize("status", [COMPLETED, FAILED, CANCELLED])
def test_a_final_job_says_that_this_was_all(status: str):
    found = seen(final_job(status, stream=True), Place(), said("a", "b"))
    assert (found.texts, found.final) == (["a", "b"], True)


def test_a_final_job_has_said_all_only_with_its_last_text():
    chunks = said(*["x" * (MOST_BYTES // 2)] * 3)
    first = seen(final_job(stream=True), Place(), chunks)
    assert (len(first.texts), first.final) == (2, False)
    last = seen(final_job(stream=True), Place(2, 1), chunks)
    assert (len(last.texts), last.final) == (1, True)


@pytest.mark.parametrize("first", [0, 1, 2, 7])
def test_text_of_an_earlier_attempt_is_void_and_the_new_one_begins_at_its_beginning(first: int):
    chunks = said("new", "text", attempt=2)
    chunks.append(JOB_ID, Chunk(1, 0, "old"), 1)
    found = seen(open_job(attempt=2), Place(first, 1), chunks)
    assert (found.restarted, found.first, found.texts) == (True, 0, ["new", "text"])


@pytest.mark.parametrize("job", [open_job(), final_job(stream=True), final_job(FAILED, stream=True)])
@pytest.mark.parametrize("attempt", [1, None])
@pytest.mark.parametrize("first", [3, 500])
def test_a_place_behind_the_end_is_none_of_this_text_which_is_told_from_its_beginning(
    job: Job, attempt: int | None, first: int
):
    """This id is another job's by now, which has said less: else its reader would take what it has for all of it."""
    found = seen(job, Place(first, attempt), said("a", "b"))
    assert (found.restarted, found.first, found.texts, found.final) == (True, 0, ["a", "b"], job.is_final)


@pytest.mark.parametrize("job", [open_job(), final_job(stream=True), held_job(), final_job()])
def test_a_place_in_a_text_that_is_not_there_is_none(job: Job):
    found = seen(job, Place(2, 1), FakeChunks())
    assert (found.restarted, found.first, found.texts, found.final) == (True, 0, [], job.is_final)


def test_who_stands_at_the_end_is_not_sent_back_and_one_read_tells_it():
    chunks, calls = said("a", "b"), list[str]()
    chunks.before = calls.append
    found = seen(open_job(), Place(2, 1), chunks)
    assert (found.restarted, found.first, found.texts, found.is_news, calls) == (False, 2, [], False, ["read chunks"])


@pytest.mark.parametrize(("first", "texts"), [(0, ["a"]), (1, [])])
def test_behind_a_gap_nothing_is_told_under_a_number_that_is_not_its_own(first: int, texts: list[str]):
    chunks = said("a")
    chunks.append(JOB_ID, Chunk(1, 2, "c"), 1)
    found = seen(open_job(), Place(first, 1), chunks)
    assert (found.restarted, found.first, found.texts) == (False, first, texts)


def test_that_it_starts_again_is_news_even_before_its_first_word():
    assert seen(open_job(attempt=2), Place(7, 1), FakeChunks()).is_news


def test_who_does_not_name_an_attempt_means_the_one_there_is():
    assert not seen(open_job(attempt=2), Place(0), said("new", attempt=2)).restarted


def test_an_attempt_that_never_was_is_a_mistake():
    assert isinstance(look(open_job(attempt=2), Place(0, 3), FakeChunks()), Problem)


def test_a_job_that_is_not_streamed_has_no_text_and_is_not_read_for_any():
    chunks = said("a")
    calls: list[str] = []
    chunks.before = calls.append
    assert (seen(held_job(), Place(), chunks).texts, calls) == ([], [])
    assert seen(final_job(), Place(), chunks).final


PLACES: list[tuple[dict[str, str], Place]] = [
    ({}, Place()),
    ({"from": "7"}, Place(7)),
    ({"from": "0", "attempt": "0"}, Place(0, 0)),
    ({"attempt": "2"}, Place(0, 2)),
]


@pytest.mark.parametrize(("query", "place"), PLACES)
def test_a_query_says_where_its_reader_stands(query: dict[str, str], place: Place):
    assert place_of(query) == place


@pytest.mark.parametrize("name", ["from", "attempt"])
@pytest.mark.parametrize("number", ["", "-1", "1.0", "1e3", "01", "1000000", "x", "1,2", " 1", "\u0661"])
def test_what_is_no_number_is_refused(name: str, number: str):
    found = place_of({name: number})
    assert isinstance(found, Problem)
    assert (found.status, name in found.detail) == (400, True)


def test_the_answer_says_where_to_go_on():
    answer = shown(seen(open_job(), Place(1, 1), said("a", "b", "c")))
    links = answer.pop("links")
    assert answer == {
        "job_id": JOB_ID, "status": "PROCESSING", "attempt": 1, "restarted": False, "from": 1, "texts": ["b", "c"],
        "next": 3, "final": False,
    }  # fmt: skip
    assert _contract("Chunks")({**answer, "links": links}) is None
    assert links["chunks"] == f"/jobs/{JOB_ID}/chunks"
