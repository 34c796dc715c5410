"""Streamed text in pieces is, put together, the text: mended over every seam, cut where a frame ends, lost nowhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.streaming.text import MOST_BYTES, Cleaner, clean, fitting, json_bytes

HALVES = st.text(st.sampled_from(["a", "é", "\U0001f600", "\ud83d", "\ude00", "\ud800", "\udfff", "\n"]), max_size=12)


@given(st.lists(HALVES, max_size=8))
def test_env_04_text_cleaned_in_pieces_is_the_whole_text_cleaned(pieces: list[str]):
    cleaner = Cleaner()
    assert "".join([*map(cleaner.feed, pieces), cleaner.end()]) == clean("".join(pieces))


def test_env_04_a_pair_that_two_deltas_share_is_one_character():
    cleaner = Cleaner()
    assert [cleaner.feed("so \ud83d"), cleaner.feed("\ude00!"), cleaner.end()] == ["so ", "\U0001f600!", ""]


def test_env_04_a_half_that_stays_alone_is_replaced_where_it_stood():
    cleaner = Cleaner()
    assert [cleaner.feed("a\ud83d"), cleaner.feed("b\ud800"), cleaner.end()] == ["a", "\ufffdb", "\ufffd"]


@given(st.text(max_size=200), st.integers(14, 60))
def test_pieces_fit_and_are_the_text_again(text: str, most: int):
    """14 bytes: the longest character as JSON, twice over, with its quotation marks."""
    pieces = list(fitting(text, most))
    assert "".join(pieces) == text
    assert all(json_bytes(piece) <= most for piece in pieces)
    assert all(pieces)


@pytest.mark.parametrize("character", ["a", '"', "\n", "\x00", "é", "漢", "\U0001f600"])
def test_the_largest_chunk_has_24_000_bytes_as_json(character: str):
    pieces = list(fitting(character * 30_000))
    sizes = [len(json.dumps(piece, ensure_ascii=False).encode()) for piece in pieces]
    assert "".join(pieces) == character * 30_000
    assert max(sizes) <= MOST_BYTES == 24_000
    assert all(size > MOST_BYTES - 8 for size in sizes[:-1])
