"""Text becomes a chunk when there is enough of it, or when the oldest of it has waited long enough: not before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.streaming.batching import Batch
from lambdas.core.streaming.text import MOST_BYTES, json_bytes
from tests.builders import NOW, later


def test_text_waits_until_the_oldest_of_it_is_old_enough():
    batch = Batch(1_000, 200)
    assert [batch.hear("a", NOW), batch.hear("b", later(0.199)), batch.hear("c", later(0.2))] == [[], [], ["abc"]]
    assert [batch.hear("d", later(0.3)), batch.hear("e", later(0.5))] == [[], ["de"]]


@pytest.mark.parametrize(("piece", "due"), [("abcd", True), ("abc", False), ("éé", True), ("\U0001f600", True)])
def test_text_does_not_wait_once_there_are_enough_bytes_of_it(piece: str, due: bool):
    batch = Batch(4, 10_000)
    assert batch.hear(piece, NOW) == ([piece] if due else [])


def test_pieces_of_one_byte_can_be_chunks_of_their_own():
    batch = Batch(1, 10_000)
    assert [batch.hear(piece, NOW) for piece in "abc"] == [["a"], ["b"], ["c"]]


def test_what_is_left_comes_when_it_is_asked_for_and_once():
    batch = Batch(1_000, 200)
    batch.hear("ab", NOW)
    assert [batch.rest(), batch.rest()] == [["ab"], []]
    assert batch.hear("c", later(60)) == []  # its age counts from here


def test_what_is_held_is_never_due_by_itself():
    batch = Batch(1, 1)
    batch.hold("ab")
    batch.hold("cd")
    assert batch.rest() == ["abcd"]


def test_nothing_heard_starts_no_clock():
    batch = Batch(1_000, 200)
    assert batch.hear("", NOW) == []
    assert batch.hear("a", later(10)) == []


def test_more_than_a_chunk_may_hold_is_several():
    due = Batch(1, 1).hear('"' * 20_000, NOW)
    assert [json_bytes(text) <= MOST_BYTES for text in due] == [True, True]
    assert "".join(due) == '"' * 20_000


@given(
    st.lists(st.tuples(st.text(max_size=9), st.integers(0, 300)), max_size=20), st.integers(1, 30), st.integers(1, 400)
)
def test_whatever_is_heard_is_in_the_chunks_in_its_order(heard: list[tuple[str, int]], most: int, ms: int):
    batch, at, made = Batch(most, ms), 0.0, []
    for piece, waited in heard:
        at += waited / 1000
        made += batch.hear(piece, later(at))
    made += batch.rest()
    assert "".join(made) == "".join(piece for piece, _ in heard)
    assert all(made)
