"""What a stranger sends as JSON is read exactly or refused with its place: API-04, ENV-03, ENV-04, ENV-05."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.strict_json import DEPTH_MAX, DIGITS_MAX, Malformed, at, parse, pointer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**90), 10**90)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXT, parts, max_size=4),
    max_leaves=15,
)


@given(JSON, st.booleans())
def test_whatever_is_valid_json_comes_back_as_the_same_value(value: Any, plain: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=plain).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed_and_nothing_else(raw: bytes) -> None:
    with contextlib.suppress(Malformed):
        json.dumps(parse(raw), allow_nan=False)


NESTED = b"[" * 100_000
MALFORMED = {
    "empty": b"",
    "blank": b"  ",
    "cut": b'{"a":',
    "bare word": b"{bad",
    "two values": b"1 2",
    "trailing comma": b"[1,]",
    "single quotes": b"{'a':1}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "not UTF-8": b'{"a":"\xff"}',
    "NaN": b'{"a":NaN}',
    "Infinity": b"[Infinity]",
    "-Infinity": b"[-Infinity]",
    "beyond a float": b"[1e400]",
    "beyond a float, below": b"[-1e400]",
    "5,000 digits": b"[" + b"9" * 5_000 + b"]",
    "name twice": b'{"a":1,"a":1}',
    "name twice, deep": b'{"x":[{"a":1,"b":2,"\\u0061":3}]}',
    "half a surrogate": b'"\\ud800"',
    "the other half": b'["\\udc00"]',
    "half a surrogate as a name": b'{"\\ud800":1}',
    "raw control character": b'"a\x0bb"',
    "100,000 arrays": NESTED,
    "100,000 objects": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_json_forbids_or_leaves_open_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse(raw)


@pytest.mark.parametrize(
    ("raw", "said"),
    [(b"\xef\xbb\xbf{}", "byte order mark"), (b'{"ab":1,"x":2,"ab":3}', "'ab' stands twice"), (b"[NaN]", "NaN")],
)
def test_the_refusal_says_what_is_wrong(raw: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said) as refused:
        parse(raw)
    assert str(refused.value) == refused.value.detail


def test_the_limits_are_32_levels_and_100_digits() -> None:
    assert (DEPTH_MAX, DIGITS_MAX) == (32, 100)


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_nesting_is_read_down_to_its_limit_and_no_deeper() -> None:
    assert json.dumps(parse(_nested(DEPTH_MAX))) == _nested(DEPTH_MAX).decode()
    with pytest.raises(Malformed, match="nested deeper"):
        parse(_nested(DEPTH_MAX + 1))


def test_objects_and_arrays_count_alike_against_the_depth() -> None:
    with pytest.raises(Malformed, match="nested deeper"):
        parse(b'{"a":[' * 17 + b"]}" * 17)
    assert parse(b'{"a":[' * 16 + b"]}" * 16)


def test_a_long_number_is_read_up_to_its_limit_and_no_further() -> None:
    assert parse(b"9" * DIGITS_MAX) == int("9" * DIGITS_MAX)
    with pytest.raises(Malformed, match="digits"):
        parse(b"9" * (DIGITS_MAX + 1))


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse(b'"\\ud83d\\ude80"') == "\N{ROCKET}"


def test_the_half_surrogate_is_pointed_at() -> None:
    with pytest.raises(Malformed) as refused:
        parse(b'{"a/b":[{"c~d":"\\ud800"}]}')
    assert refused.value.pointer == "/a~1b/0/c~0d"


def test_a_large_flat_body_takes_little_memory_beside_its_value() -> None:
    raw = b"[" + b'"",' * 400_000 + b'""]'
    tracemalloc.start()
    try:
        parse(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(raw)


@pytest.mark.parametrize(
    ("parts", "written"),
    [([], ""), (["a", 0], "/a/0"), (["a/b", "m~n", ""], "/a~1b/m~0n/"), (["~1"], "/~01")],
)
def test_a_pointer_escapes_as_rfc_6901_wants(parts: list[str | int], written: str) -> None:
    assert pointer(parts) == written


DOCUMENT = {"a": [{"b": 1}, 2], "": 3, "m~n": 4, "x/y": 5, "0": 6}


def test_a_stranger_does_not_decide_how_long_a_pointer_is() -> None:
    """It goes into answers, logs and dead letters."""
    assert pointer(["a" * 64, 0]) == f"/{'a' * 64}/0"
    assert pointer(["é" * 900_000, "b"]) == f"/{'é' * 64}…/b"


@pytest.mark.parametrize(
    ("pointer_", "found"),
    [("", DOCUMENT), ("/a/0/b", 1), ("/a/1", 2), ("/", 3), ("/m~0n", 4), ("/x~1y", 5), ("/0", 6)],
)
def test_a_pointer_leads_to_what_it_points_to(pointer_: str, found: Any) -> None:
    assert at(DOCUMENT, pointer_) == found


@pytest.mark.parametrize("nowhere", ["/b", "/a/2", "/a/-", "/a/-1", "/a/01", "/a/x", "/a/", "/a/0/b/c", "/a/²"])
def test_a_pointer_to_nothing_says_so(nowhere: str) -> None:
    with pytest.raises(LookupError):
        at(DOCUMENT, nowhere)
