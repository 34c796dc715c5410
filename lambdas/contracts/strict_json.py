"""Reads JSON that a stranger sent: what is ambiguous, endless or unwritable is refused, with its place."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

DEPTH_MAX = 32
DIGITS_MAX = 100
NAME_MAX = 64  # characters of a name in a pointer


class Malformed(ValueError):
    """Not JSON as we take it. `pointer` is an RFC 6901 JSON pointer, "" for the whole."""

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer


def parse(raw: bytes) -> Any:
    """The value. Malformed for anything that RFC 8259 forbids or leaves open: encoding other than UTF-8, a byte order
    mark, NaN and infinities, repeated names, half surrogates, numbers beyond a float, nesting beyond 32."""
    try:
        written = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: byte {error.start} cannot be read") from error
    if written.startswith("\ufeff"):
        raise Malformed("starts with a byte order mark; send plain UTF-8")
    try:
        value = json.loads(
            written,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise Malformed(f"nested deeper than {DEPTH_MAX}") from error
    if isinstance(value, str | dict | list):
        _check_tree(value)
    return value


def pointer(parts: Sequence[str | int]) -> str:
    """As RFC 6901 writes it. Of a long name only the beginning: a stranger chooses it, and we repeat it."""
    return "".join("/" + _shown(str(part)).replace("~", "~0").replace("/", "~1") for part in parts)


def _shown(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"{name[:NAME_MAX]}…"


def at(value: Any, written: str) -> Any:
    """What an RFC 6901 JSON pointer points to. LookupError when nothing is there."""
    for part in written.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[name]
        elif isinstance(value, list) and (name == "0" or (name.isdecimal() and name.isascii() and name[0] != "0")):
            value = value[int(name)]
        else:
            raise LookupError(written)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Malformed(f"the name {twice[:40]!r} stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a JSON number")


def _finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise Malformed(f"the number {written[:20]} is too large")
    return value


def _short(written: str) -> int:
    if len(written) > DIGITS_MAX:
        raise Malformed(f"a number of more than {DIGITS_MAX} digits")
    return int(written)


def _check_tree(value: Any, path: tuple[str | int, ...] = ()) -> None:
    """Depth and half surrogates. Recursive, and no deeper than the depth that it allows."""
    if isinstance(value, str):
        _check_text(value, path)
        return
    if len(path) >= DEPTH_MAX:
        raise Malformed(f"nested deeper than {DEPTH_MAX}", pointer(path[:4]))
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        if isinstance(name, str):
            _check_text(name, path)
        if isinstance(part, str | dict | list):
            _check_tree(part, (*path, name))


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Malformed("half a surrogate pair: this text cannot be written as UTF-8", pointer(path)) from error
