"""One try's text is kept while it is said: no gap, no repeat, no word of it that the stored answer does not have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.policy import DAY_S, Limits
from lambdas.core.ports import Unavailable
from lambdas.core.streaming.recorder import PATIENCE_S, Recorder
from lambdas.core.streaming.text import MOST_BYTES, json_bytes
from tests.builders import JOB_ID, held_job, later
from tests.fakes import FakeChunks, FakeClock, Notices, Trouble

LIMITS = Limits(chunk_ms=200, chunk_bytes=4)


class Desk:
    """A recorder and what it writes to."""

    def __init__(self, limits: Limits = LIMITS, **over: Any) -> None:
        self.clock, self.chunks, self.notices = FakeClock(), FakeChunks(), Notices()
        self.recorder = Recorder(held_job(stream=True, **over), self.chunks, limits, self.clock, self.notices)

    def hear(self, *pieces: str) -> None:
        self.recorder.begin()
        for piece in pieces:
            self.recorder.heard(piece)

    def text(self, attempt: int = 1) -> str:
        return self.chunks.text_of(JOB_ID, attempt)


def test_text_is_stored_while_it_is_said_and_the_rest_when_the_answer_is():
    desk = Desk()
    desk.hear("Hell", "o th", "ere")
    assert desk.text() == "Hello th"
    desk.recorder.said("Hello there")
    assert desk.text() == "Hello there"
    assert desk.notices.of("streamed") == {"chunks": 3}


def test_a_chunk_waits_no_longer_than_it_may():
    desk = Desk(Limits(chunk_ms=200, chunk_bytes=1_000))
    desk.hear("a")
    desk.clock.advance(0.2)
    desk.recorder.heard("b")
    assert desk.text() == "ab"


def test_chunks_belong_to_the_attempt_and_live_longer_than_the_record_can():
    desk = Desk(Limits(record_days=30, deadline_s=600, chunk_bytes=1), attempt=7)
    desk.hear("a")
    (((job_id, attempt, n), (text, expires_at)),) = desk.chunks.items.items()
    assert (job_id, attempt, n, text) == (JOB_ID, 7, 0, "a")
    assert expires_at >= int(later(600).timestamp()) + 30 * DAY_S


def test_several_answers_are_one_sequence():
    desk = Desk()
    for answer in ("one. ", "two. "):
        desk.hear(*answer)
        desk.recorder.said(answer)
    assert desk.text() == "one. two. "


def test_an_answer_that_was_not_heard_comes_in_as_few_chunks_as_it_fits_in():
    desk = Desk()
    desk.recorder.begin()
    desk.recorder.said("x" * 30_000)
    assert desk.text() == "x" * 30_000
    assert [json_bytes(chunk.text) <= MOST_BYTES for chunk in desk.chunks.taken] == [True, True]


def test_an_empty_answer_has_no_chunk():
    desk = Desk()
    desk.recorder.begin()
    desk.recorder.said("")
    assert desk.text() == ""


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_after_one_failure_nothing_is_written_until_the_answer_is_safe(trouble: Trouble):
    desk = Desk()
    desk.chunks.troubles.add("append", trouble)
    desk.hear("Hell", "o th", "ere,", " you")
    landed = 1 if trouble is Trouble.UNHEARD else 0
    assert len(desk.chunks.taken) == landed
    assert desk.notices.of("chunk_put_off")["n"] == 0
    desk.recorder.said("Hello there, you")
    assert desk.text() == "Hello there, you"
    assert len(desk.chunks.items) == 2  # what came meanwhile is one chunk
    desk.hear("more")  # and then it goes on as before
    assert desk.text() == "Hello there, youmore"


def test_a_chunk_that_is_stored_again_is_the_same_chunk():
    desk = Desk()
    desk.chunks.troubles.add("append", Trouble.UNHEARD)
    desk.hear("Hell", "o th")
    desk.recorder.said("Hello th")
    assert [(chunk.n, chunk.text) for chunk in desk.chunks.taken] == [(0, "Hell"), (0, "Hell"), (1, "o th")]


def test_a_store_that_stays_away_is_told_once_the_answer_is_safe():
    desk = Desk()
    desk.hear("Hell", "o")
    desk.chunks.troubles.add("append", *[Trouble.UNSENT] * 3)
    with pytest.raises(Unavailable):
        desk.recorder.said("Hello")


def test_a_store_that_is_away_for_a_moment_then_is_asked_again():
    desk = Desk()
    desk.hear("Hell", "o")
    desk.chunks.troubles.add("append", *[Trouble.UNSENT] * 2)
    desk.recorder.said("Hello")
    assert desk.text() == "Hello"


def test_a_slow_store_does_not_eat_the_models_time():
    desk = Desk()
    desk.chunks.before = lambda name: desk.clock.advance(PATIENCE_S / 2 + 0.5)
    desk.hear("Hell", "o th", "ere,", " you")
    assert desk.text() == "Hello th"
    desk.recorder.said("Hello there, you")
    assert desk.text() == "Hello there, you"


def test_a_long_answer_is_shown_to_its_end_by_a_store_of_the_usual_speed():
    """Ten minutes of it, a chunk each second, each stored in 20 ms: longer than a short one may wait."""
    desk, pieces = Desk(), [f"{n} " for n in range(600)]
    desk.chunks.before = lambda name: desk.clock.advance(0.02)
    desk.recorder.begin()
    for piece in pieces:
        desk.clock.advance(1)
        desk.recorder.heard(piece)
    assert desk.text() == "".join(pieces[: len(desk.text().split())])
    assert len(desk.text().split()) >= 599


def test_what_was_heard_of_a_broken_answer_is_shown_and_has_no_continuation():
    desk = Desk()
    desk.hear("Hell", "o")
    desk.recorder.broke()
    assert desk.text() == "Hello"
    with pytest.raises(Unavailable):
        desk.recorder.begin()


def test_a_store_in_trouble_does_not_hide_why_an_answer_broke():
    desk = Desk()
    desk.hear("Hell", "o")
    desk.chunks.troubles.add("append", Trouble.UNSENT)
    desk.recorder.broke()
    assert desk.text() == "Hell"


def test_an_answer_of_which_nothing_was_heard_may_be_asked_for_again():
    desk = Desk()
    desk.recorder.begin()
    desk.recorder.broke()
    desk.hear("Hell", "o")
    desk.recorder.said("Hello")
    assert desk.text() == "Hello"


def test_another_answer_than_the_one_that_was_heard_is_never_mixed_with_it():
    desk = Desk()
    desk.hear("Hell", "o")
    with pytest.raises(Unavailable):
        desk.recorder.said("Goodbye")
    with pytest.raises(Unavailable):
        desk.recorder.begin()


def test_what_is_no_trouble_of_the_store_is_not_swallowed():
    desk = Desk()

    def killed(name: str) -> None:
        raise KeyboardInterrupt

    desk.chunks.before = killed
    with pytest.raises(KeyboardInterrupt):
        desk.hear("Hell")


@given(
    st.lists(st.lists(st.text(max_size=6), max_size=6), max_size=4),
    st.lists(st.sampled_from(list(Trouble)), max_size=4),
    st.integers(1, 12),
)
def test_whatever_befalls_the_store_a_finished_try_has_exactly_what_was_said(
    answers: list[list[str]], troubles: list[Trouble], chunk_bytes: int
):
    desk = Desk(Limits(chunk_bytes=chunk_bytes))
    desk.chunks.troubles.add("append", *troubles)
    try:
        for pieces in answers:
            desk.hear(*pieces)
            desk.recorder.said("".join(pieces))
    except Unavailable:
        return
    assert desk.text() == "".join("".join(pieces) for pieces in answers)
