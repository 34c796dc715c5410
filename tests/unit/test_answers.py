"""The JSON object in what a model said, or a rejection that asks it anew."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.core.answers import json_object
from lambdas.core.outcomes import Rejected


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"a": 1}', {"a": 1}),
        (' \n{"a": "é"}\n ', {"a": "é"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\n', {"a": 1}),
        ('\n```json \r\n{"a": 1}\r\n```', {"a": 1}),
        ('```json\n{"a": "```"}\n```', {"a": "```"}),
        ("{}", {}),
    ],
)
def test_an_object_is_found_bare_or_in_a_fence(said: str, meant: dict[str, Any]) -> None:
    assert json_object(said) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "I cannot do that.",
        'Here it is: {"a": 1}',
        '{"a": 1} Hope this helps!',
        '{"a": 1',
        "[1]",
        "null",
        '"text"',
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        '```json\n{"a": 1}',
        "[" * 100_000,
        '"\ud800"',
        '{"a": "\ud800"}',
        '{"a": "\\ud800"}',
    ],
)
def test_anything_else_is_rejected(said: str) -> None:
    with pytest.raises(Rejected):
        json_object(said)
