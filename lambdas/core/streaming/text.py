"""Text in pieces: half surrogates mended over the seams, and cut into what one chunk may hold."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator

MOST_BYTES = 24_000  # of a chunk as JSON text: a WebSocket frame of 32 KB has room for it and what is around it


def clean(text: str) -> str:
    """Half surrogates, which nothing downstream can write, become U+FFFD; two that belong together their character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Cleaner:
    """Cleans text that comes in pieces: what it gives back is, put together, `clean` of the whole."""

    def __init__(self) -> None:
        self._half = ""  # the first half of a pair: its second may begin the next piece

    def feed(self, piece: str) -> str:
        text = self._half + piece
        split = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
        self._half = text[split:]
        return clean(text[:split])

    def end(self) -> str:
        """What no further piece completed."""
        half, self._half = self._half, ""
        return clean(half)


def json_bytes(text: str) -> int:
    """Its size as JSON text, quotation marks included."""
    return len(json.dumps(text, ensure_ascii=False).encode())


def fitting(text: str, most: int = MOST_BYTES) -> Iterator[str]:
    """The text in pieces of at most so many bytes as JSON text, whole characters each."""
    while json_bytes(text) > most:
        end = bisect_right(range(most), most, key=lambda length: json_bytes(text[:length])) - 1
        yield text[:end]
        text = text[end:]
    if text:
        yield text
