"""Equal JSON values have one byte form, other values have another: a hash of it can stand for the value."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.canonical import canonical, sha256, sha256_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(TEXT, parts, max_size=4),
    max_leaves=12,
)


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shuffled(part) for name, part in reversed(list(value.items()))}
    return [_shuffled(part) for part in value] if isinstance(value, list) else value


@given(JSON)
def test_the_order_of_names_makes_no_difference_at_any_depth(value: Any) -> None:
    assert canonical(value) == canonical(_shuffled(value))


@given(JSON)
def test_the_canonical_form_is_json_of_the_same_value(value: Any) -> None:
    assert json.loads(canonical(value)) == value


@given(st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=5))
def test_no_two_lists_of_texts_share_a_hash_however_they_are_split(one: list[str], other: list[str]) -> None:
    assert (sha256_of(one) == sha256_of(other)) == (one == other)


def test_the_canonical_form_has_sorted_names_no_spaces_and_plain_letters() -> None:
    assert canonical({"b": [1, True, None], "a": "é"}) == '{"a":"é","b":[1,true,null]}'


def test_texts_are_hashed_as_utf_8() -> None:
    assert sha256("é") == hashlib.sha256("é".encode()).hexdigest()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [float("nan")]])
def test_not_a_number_and_infinities_have_no_canonical_form(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical(value)


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), {"a": 1, 2: "b"}])
def test_what_is_not_json_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical(value)
