"""Cuts a long text into pieces that a model can read one by one: between paragraphs or sentences, where it has some.

A text is measured as everywhere: four bytes of UTF-8 a token (core/prices)."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from lambdas.core.prices import estimate_tokens

PIECE_TOKENS = 12_000
OVERLAP_TOKENS = 200
PIECES_MAX = 40
SMALLEST = 512  # of these each piece brings something new, whatever its characters are

_BYTES_PER_TOKEN = 4  # as core/prices estimates
# where a text may be cut, best first: a paragraph's end, a line's, a sentence's, a word's
_ENDS = (
    re.compile(r"\n[ \t\r]*\n\s*"),
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"')\]]*\s+|[\u3002\uff01\uff1f]"),
    re.compile(r"\s+"),
)
_JOINER = "\u200d"
_STEPS_MAX = 64  # a character that is drawn from more code points than this is no character that anybody reads


@dataclass(frozen=True)
class Piece:
    """`text[start:end]` of a whole: number `number`, from 1, of `of`. What lies before `fresh` is the overlap: the
    piece before has it, too."""

    start: int
    fresh: int
    end: int
    number: int
    of: int


def split(
    text: str, *, tokens: int = PIECE_TOKENS, overlap: int = OVERLAP_TOKENS, most: int = PIECES_MAX
) -> tuple[Piece, ...]:
    """The pieces of a text, in its order: each of at most `tokens`, or of more where there would be more than `most`;
    each but the first begins with the last `overlap` tokens of the one before, up to twice as many where a sentence or
    a word begins there. Every character is in a piece; a text that fits is one."""
    if overlap < 0 or most < 1 or tokens < max(SMALLEST, 8 * overlap):
        raise ValueError(f"a piece has at least {SMALLEST} tokens, and eight times as many as its overlap")
    whole = estimate_tokens(text)
    if whole <= tokens or most == 1:
        return (Piece(0, 0, len(text), 1, 1),)
    size = max(tokens, _size_for(whole, overlap, most))
    cuts = [(0, 0, _end(text, 0, size))]
    while cuts[-1][2] < len(text):
        before = cuts[-1][2]
        start = _start(text, before, overlap)
        cuts.append((start, before, _end(text, start, size)))
    return tuple(Piece(*cut, number, len(cuts)) for number, cut in enumerate(cuts, 1))


def _size_for(whole: int, overlap: int, most: int) -> int:
    """With pieces of so many tokens there are no more than `most`: each brings three quarters of itself, but for twice
    the overlap, and for a character at either end that must not be cut."""
    brought = -(-whole // most) + 2 * overlap + 2 * (_STEPS_MAX + 1)
    return -(-brought * 4 // 3)


def _end(text: str, start: int, tokens: int) -> int:
    """Where a piece that starts there ends: at the best place in the last quarter of what it can hold."""
    furthest = _reach(text, start, tokens)
    if furthest == len(text):
        return furthest
    low = _reach(text, start, tokens * 3 // 4)
    place = _last_end(text[low:furthest], _ENDS)
    return _whole_character(text, low + place if place else furthest)


def _start(text: str, before: int, overlap: int) -> int:
    """Where a piece begins whose predecessor ends at `before`: so many tokens earlier, and up to twice as many for the
    beginning of a sentence, else of a word."""
    if overlap == 0:
        return before
    low, nearest = _back(text, before, 2 * overlap), _back(text, before, overlap)
    place = _last_end(text[low:nearest], _ENDS[1:])
    return _whole_character(text, low + place if place else nearest)


def _last_end(window: str, kinds: tuple[re.Pattern[str], ...]) -> int:
    """Behind the last end of the first kind that occurs; 0 when none does."""
    lasts = (max((found.end() for found in ends.finditer(window)), default=0) for ends in kinds)
    return next((last for last in lasts if last), 0)


def _reach(text: str, start: int, tokens: int) -> int:
    """So many tokens further, and no more."""
    room = tokens * _BYTES_PER_TOKEN
    written = text[start : start + room].encode("utf-8", "replace")
    return start + len(written[:room].decode("utf-8", "ignore"))


def _back(text: str, end: int, tokens: int) -> int:
    """So many tokens back, and no fewer."""
    room = tokens * _BYTES_PER_TOKEN
    written = text[max(0, end - room) : end].encode("utf-8", "replace")
    return max(0, end - room) + len(written[: max(0, len(written) - room)].decode("utf-8", "ignore"))


def _whole_character(text: str, at: int) -> int:
    """The next place before `at`, if not `at` itself, that is not inside of what is drawn as one character."""
    for place in range(at, max(0, at - _STEPS_MAX), -1):
        if place == len(text) or not _joins(text, place):
            return place
    return at


def _joins(text: str, at: int) -> bool:
    """Whether what stands before and behind this place is one character to whoever reads it."""
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if _JOINER in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":  # skin tones, tags of flags
        return True
    if "\udc00" <= after <= "\udfff" and "\ud800" <= before <= "\udbff":
        return True
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, at) % 2 == 1
    return "\u1160" <= after <= "\u11ff" and "\u1100" <= before <= "\u11ff"  # Hangul, not yet composed


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_before(text: str, at: int) -> int:
    """Flags are pairs: how many of their halves stand in a row before this place, as far as anybody would count."""
    place, furthest = at, max(0, at - 1_000)
    while place > furthest and _is_regional(text[place - 1]):
        place -= 1
    return at - place
