"""A long text in pieces: nothing is lost, each overlaps the one before, and nothing is cut that is one to a reader."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lambdas.core.prices import estimate_tokens
from lambdas.core.splitting import OVERLAP_TOKENS, PIECE_TOKENS, PIECES_MAX, SMALLEST, Piece, split

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
PARTS = [
    "word ", "and one more sentence. ", "A line.\n", "\n\n", "日本語。", "é", "x" * 40, "\r\n", "e\u0301", FAMILY,
    "\U0001f1e8\U0001f1ed", "\U0001f44d\U0001f3fd", "\u1112\u1161\u11ab", "한글 ", "\ud83d", "\ude00", "   \n   ",
]  # fmt: skip
TEXTS = st.lists(st.tuples(st.sampled_from(PARTS), st.integers(1, 300)), max_size=30).map(
    lambda runs: "".join(part * times for part, times in runs)
)
STEP_TOKENS = 65  # a place inside of a character moves by so many, at most
SENTENCE = "This is sentence number {} of a long report about nothing in particular. "


def prose(sentences: int) -> str:
    return "".join(SENTENCE.format(n) + ("\n\n" if n % 12 == 11 else "") for n in range(sentences))


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(SMALLEST, 900), st.integers(0, 64), st.integers(1, 6))
def test_pieces_cover_the_text_with_the_overlap_that_was_asked_for(text: str, tokens: int, overlap: int, most: int):
    pieces = split(text, tokens=tokens, overlap=overlap, most=most)
    assert len(pieces) <= most
    assert [(piece.number, piece.of) for piece in pieces] == [(n, len(pieces)) for n in range(1, len(pieces) + 1)]
    assert "".join(text[piece.fresh : piece.end] for piece in pieces) == text
    assert (pieces[0].start, pieces[0].fresh, pieces[-1].end) == (0, 0, len(text))
    for before, piece in itertools.pairwise(pieces):
        assert piece.fresh == before.end
        assert before.start < piece.start <= piece.fresh < piece.end
        again = estimate_tokens(text[piece.start : piece.fresh])
        assert overlap <= again <= 2 * overlap + STEP_TOKENS
    enlarged = (
        estimate_tokens(text) if most == 1 else (estimate_tokens(text) / most + 2 * (overlap + STEP_TOKENS)) * 4 / 3
    )
    assert all(estimate_tokens(text[one.start : one.end]) <= max(tokens, enlarged + 2) for one in pieces)


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_a_text_that_needs_no_larger_pieces_gets_none_above_the_size(text: str):
    pieces = split(text, tokens=SMALLEST, overlap=32, most=10_000)
    assert all(estimate_tokens(text[piece.start : piece.end]) <= SMALLEST for piece in pieces)


def test_a_text_that_fits_is_one_piece() -> None:
    text = "a" * (4 * PIECE_TOKENS)
    assert split(text) == (Piece(0, 0, len(text), 1, 1),)
    assert split("") == (Piece(0, 0, 0, 1, 1),)
    assert len(split(text + "a")) == 2


def test_prose_is_cut_between_paragraphs_and_overlaps_from_the_beginning_of_a_sentence() -> None:
    text = prose(2_000)
    pieces = split(text, tokens=1_000, overlap=50)
    assert len(pieces) > 20
    for piece in pieces[1:]:
        assert text[: piece.fresh].endswith("\n\n")
        assert text[piece.start :].startswith("This is sentence")
        assert 50 <= estimate_tokens(text[piece.start : piece.fresh]) <= 100


def test_without_paragraphs_it_is_cut_between_sentences_and_without_those_between_words() -> None:
    sentences = prose(900).replace("\n\n", "")
    assert all(sentences[: piece.fresh].endswith(". ") for piece in split(sentences, tokens=1_000, overlap=0)[1:])
    words = "word " * 4_000
    assert all(words[: piece.fresh].endswith("word ") for piece in split(words, tokens=1_000, overlap=9)[1:])
    japanese = "これは長い文書です。" * 900
    assert all(japanese[: piece.fresh].endswith("。") for piece in split(japanese, tokens=1_000, overlap=50)[1:])


@pytest.mark.parametrize(
    "character",
    [FAMILY, "e\u0301\u0323", "\U0001f1e8\U0001f1ed", "\U0001f44d\U0001f3fd", "\u1112\u1161\u11ab", "\ud83d\ude00",
     "\u2764\ufe0f", "\r\n"],
    ids=["family", "accents", "flag", "skin tone", "Hangul", "surrogates", "heart", "line end"],
)  # fmt: skip
def test_what_is_one_character_to_a_reader_stays_whole(character: str) -> None:
    for shift in ("", "a", "ab", "abc"):
        text = shift + character * 6_000
        pieces = split(text, tokens=SMALLEST, overlap=20, most=10_000)
        assert len(pieces) > 5
        for piece in pieces:
            assert (piece.start - len(shift)) % len(character) == 0 or piece.start == 0
            assert (piece.end - len(shift)) % len(character) == 0


def test_a_text_of_one_endless_character_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 20_000
    pieces = split(text, tokens=SMALLEST, overlap=20, most=10_000)
    assert "".join(text[piece.fresh : piece.end] for piece in pieces) == text


def test_a_document_of_1_1_mb_is_split_into_pieces_of_the_usual_size() -> None:
    text = prose(15_000)
    assert 1_100_000 <= len(text) < 1_200_000
    pieces = split(text)
    assert 23 <= len(pieces) <= 27
    assert all(estimate_tokens(text[piece.start : piece.end]) <= PIECE_TOKENS for piece in pieces)
    assert all(
        OVERLAP_TOKENS <= estimate_tokens(text[piece.start : piece.fresh]) <= 2 * OVERLAP_TOKENS for piece in pieces[1:]
    )


@pytest.mark.parametrize("unit", ["word ", "x", "日", "\U0001f600", "\n", "\U0001f1e8", ". ", FAMILY])
def test_the_largest_upload_has_no_more_pieces_than_the_most(unit: str) -> None:
    text = unit * (10_000_000 // len(unit.encode()))
    assert 20 <= len(split(text)) <= PIECES_MAX


@pytest.mark.parametrize(
    "wrong", [{"tokens": SMALLEST - 1, "overlap": 1}, {"tokens": 799, "overlap": 100}, {"overlap": -1}, {"most": 0}]
)
def test_pieces_that_could_bring_nothing_new_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a piece has at least"):
        split("a", **wrong)
