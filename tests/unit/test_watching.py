"""Watching a job: its text from any chunk on, as it comes, again after a restart, and how it ended."""

from __future__ import annotations

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED
from lambdas.core.streaming.ports import Chunk
from lambdas.core.watching.frames import FRAME_MAX
from lambdas.core.watching.serving import LINK_ABOVE
from tests.builders import JOB_ID, NOW, any_record, held_record, later
from tests.fakes import Trouble as StoreTrouble
from tests.unit.studio import ANNA, BEN, KEY, Studio


@pytest.fixture
def studio() -> Studio:
    studio = Studio()
    studio.connect(ANNA, BEN)
    return studio


# --- replay, live, end ---------------------------------------------------------------------------
def test_who_watches_gets_what_there_is_then_what_comes_then_the_end(studio: Studio) -> None:
    studio.stored("Once ", "upon ")
    assert studio.watch(ANNA) == [
        {"type": "watching", "job_id": JOB_ID, "attempt": 1, "from": 0, "status": "PROCESSING"},
        {"type": "chunks", "job_id": JOB_ID, "attempt": 1, "from": 0, "texts": ["Once ", "upon "]},
    ]
    studio.stored("a time")
    studio.push()
    assert studio.postman.sent[ANNA][-1]["from"] == 2
    studio.ends()
    studio.push()
    final = studio.postman.sent[ANNA][-1]
    assert (final["type"], final["chunks"], final["result"]) == ("final", 3, {"summary": "ok"})
    assert final["job"]["status"] == COMPLETED
    assert studio.heard_by(ANNA).text == "Once upon a time"
    assert studio.connections.watches == {}


def test_nothing_new_is_nothing_sent(studio: Studio) -> None:
    studio.stored("a")
    studio.watch(ANNA)
    before = len(studio.postman.posts)
    studio.push()
    assert len(studio.postman.posts) == before


def test_whom_nobody_watches_nothing_is_read_for(studio: Studio) -> None:
    studio.push()
    assert studio.store.calls == []


def test_a_watch_from_n_begins_there(studio: Studio) -> None:
    studio.stored("a", "b", "c")
    frames = studio.watch(ANNA, start=2, attempt=1)
    assert [frame["from"] for frame in frames] == [2, 2]
    assert frames[1]["texts"] == ["c"]
    assert studio.cursor(ANNA) == (1, 3)


def test_a_finished_job_answers_at_once(studio: Studio) -> None:
    studio.stored("all", " of it")
    studio.ends()
    assert [frame["type"] for frame in studio.watch(ANNA)] == ["watching", "chunks", "final"]
    assert [frame["type"] for frame in studio.watch(BEN, start=2, attempt=1)] == ["watching", "final"]
    assert studio.connections.watches == {}


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_an_end_without_a_result_keeps_the_text_there_was(studio: Studio, status: str) -> None:
    studio.stored("a part")
    studio.watch(ANNA)
    studio.ends(status)
    studio.push()
    listener = studio.heard_by(ANNA)
    assert listener.final is not None
    assert (listener.text, listener.final["job"]["status"]) == ("a part", status)
    assert not listener.final.keys() & {"result", "parts", "result_url"}


def test_a_job_without_a_stream_is_told_when_it_ends(studio: Studio) -> None:
    studio.becomes(held_record())
    assert [frame["type"] for frame in studio.watch(ANNA)] == ["watching"]
    studio.ends(stream=None)
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "final"]


def test_a_job_that_has_not_begun_is_watched_from_its_first_attempt(studio: Studio) -> None:
    studio.becomes(any_record(stream=True))
    assert studio.watch(ANNA)[0]["attempt"] == 0
    studio.becomes(held_record(stream=True))
    studio.push()  # it was claimed, and has said nothing
    studio.stored("a")
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "chunks"]
    assert studio.heard_by(ANNA).text == "a"


# --- a new attempt --------------------------------------------------------------------------------
def test_a_retry_starts_again_and_texts_never_mix(studio: Studio) -> None:
    studio.stored("half of", " it")
    studio.watch(ANNA)
    studio.becomes(held_record(stream=True, attempt=2))
    studio.push()
    assert studio.postman.sent[ANNA][-1] == {"type": "restarted", "job_id": JOB_ID, "attempt": 2}
    studio.stored("all ", "of it", attempt=2)
    studio.push()
    assert studio.heard_by(ANNA).text == "all of it"
    assert studio.postman.types(ANNA).count("restarted") == 1


def test_who_comes_back_with_text_of_an_older_attempt_is_told_so(studio: Studio) -> None:
    studio.becomes(held_record(stream=True, attempt=3))
    studio.stored("new", attempt=3)
    frames = studio.watch(ANNA, start=7, attempt=1)
    assert [(frame["type"], frame["attempt"]) for frame in frames] == [("watching", 3), ("restarted", 3), ("chunks", 3)]
    assert (frames[0]["from"], frames[2]["from"]) == (0, 0)


def test_who_counted_more_than_there_is_begins_again(studio: Studio) -> None:
    """It said no attempt, and meant an older one."""
    studio.stored("a", "b")
    frames = studio.watch(ANNA, start=5)
    assert [frame["type"] for frame in frames] == ["watching", "restarted", "chunks"]
    assert frames[2]["from"] == 0


def test_an_attempt_that_was_never_begun_is_refused(studio: Studio) -> None:
    (frame,) = studio.watch(ANNA, attempt=2)
    assert (frame["type"], frame["code"], frame["job_id"]) == ("error", "bad_request", JOB_ID)
    assert studio.connections.watches == {}


def test_an_attempt_that_ended_without_a_word_is_passed_over_in_the_final(studio: Studio) -> None:
    studio.stored("a")
    studio.watch(ANNA)
    studio.ends(FAILED, attempt=2)
    studio.push()
    assert studio.postman.types(ANNA)[-2:] == ["restarted", "final"]
    assert studio.heard_by(ANNA).text == ""


# --- the result -----------------------------------------------------------------------------------------------
def as_received(studio: Studio) -> str:
    listener = studio.heard_by(ANNA)
    assert listener.final is not None
    assert listener.final["parts"] == len(listener.parts)
    return "".join(listener.parts)


@pytest.mark.parametrize("letter", ["x", "é", "🚀", '\\"', "\\n"])
def test_a_result_above_a_frame_comes_in_parts_and_is_the_very_text(studio: Studio, letter: str) -> None:
    result = '{"text": "' + letter * (100_000 // len(letter.encode())) + '"}'
    studio.ends(result=result)
    studio.watch(ANNA)
    assert as_received(studio) == result
    assert max(map(len, studio.postman.frames)) <= FRAME_MAX


def test_a_result_just_as_large_as_a_frame_is_not_cut(studio: Studio) -> None:
    studio.ends(result='"' + "x" * 30_000 + '"')
    studio.watch(ANNA)
    assert studio.postman.sent[ANNA][-1]["result"] == "x" * 30_000


def test_ws_04_a_result_of_200_kb_is_a_link(studio: Studio) -> None:
    studio.ends(result='"' + "x" * 200_000 + '"')
    final = studio.watch(ANNA)[-1]
    assert final["result_url"].startswith(f"https://results.test/{KEY}")
    assert "result" not in final


def test_the_largest_result_that_is_sent_and_the_smallest_that_is_linked(studio: Studio) -> None:
    studio.ends(result='"' + "x" * (LINK_ABOVE - 2) + '"')
    assert "parts" in studio.watch(ANNA)[-1]
    studio.ends(result='"' + "x" * (LINK_ABOVE - 1) + '"')
    assert "result_url" in studio.watch(BEN)[-1]


def test_what_an_earlier_job_of_the_same_key_had_said_is_not_sent(studio: Studio) -> None:
    """Its record has expired, and its text not yet."""
    studio.chunks.at = lambda: later(days=-91)
    studio.stored("old ", "text")
    assert [frame["type"] for frame in studio.watch(ANNA)] == ["watching"]
    assert [frame["type"] for frame in studio.watch(BEN, start=2, attempt=1)] == ["watching", "restarted"]
    studio.chunks.at = lambda: NOW
    studio.chunks.append(JOB_ID, Chunk(1, 0, "new"), 1)
    studio.push()
    studio.ends()
    studio.push()
    assert studio.heard_by(ANNA).text == studio.heard_by(BEN).text == "new"
    assert studio.postman.sent[ANNA][-1]["chunks"] == 1


def test_where_an_end_is_delivered_is_not_told_to_who_has_a_ticket(studio: Studio) -> None:
    """That is perhaps a browser, and the URL may have a secret in it."""
    studio.ends(callback_url="https://hooks.example.com/jobs?key=hush")
    final = studio.watch(ANNA)[-1]
    assert final["job"]["status"] == COMPLETED
    assert "hush" not in str(studio.postman.sent[ANNA])


def test_a_result_that_is_gone_is_left_out(studio: Studio) -> None:
    studio.ends()
    studio.results.objects.clear()
    final = studio.watch(ANNA)[-1]
    assert (final["type"], final["job"]["status"]) == ("final", COMPLETED)
    assert not final.keys() & {"result", "parts", "result_url"}


def test_a_result_that_cannot_be_read_just_now_is_linked_to(studio: Studio) -> None:
    studio.ends()
    studio.results.troubles.add("get", StoreTrouble.REFUSED)
    assert "result_url" in studio.watch(ANNA)[-1]


def test_a_result_that_is_no_text_is_linked_to(studio: Studio) -> None:
    """Somebody has put it there by hand."""
    studio.ends()
    studio.results.objects[KEY] = b'"\xff"'
    assert "result_url" in studio.watch(ANNA)[-1]


def test_chunks_share_frames_as_far_as_they_fit(studio: Studio) -> None:
    studio.stored(*("é" * 5_000 for _ in range(20)))  # 200,000 bytes
    studio.watch(ANNA)
    frames = [frame for frame in studio.postman.sent[ANNA] if frame["type"] == "chunks"]
    assert [len(frame["texts"]) for frame in frames] == [3] * 6 + [2]
    assert max(map(len, studio.postman.frames)) <= FRAME_MAX
    assert studio.heard_by(ANNA).text == "é" * 100_000


@pytest.mark.parametrize("text", ['a"b\\c\n', "\0", "\u2028", "", "🚀"])
def test_any_text_can_be_sent(studio: Studio, text: str) -> None:
    studio.stored(text, "x")
    assert studio.watch(ANNA)[1]["texts"] == [text, "x"]
