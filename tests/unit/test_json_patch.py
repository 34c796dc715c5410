"""A JSON patch is applied whole or not at all, and within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.json_patch import CHARS_MAX, OPERATIONS_MAX, BadPatch, apply


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({}, [{"op": "add", "path": "/a", "value": [1]}, {"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
        ("no JSON", [{"op": "replace", "path": "", "value": {"a": 1}}], {"a": 1}),
        (
            {"a": 1},
            [{"op": "test", "path": "/a", "value": 1}, {"op": "copy", "from": "/a", "path": "/b"}],
            {"a": 1, "b": 1},
        ),
    ],
)
def test_each_operation_does_what_the_rfc_says(document: Any, patch: list[Any], patched: Any) -> None:
    before = repr(document)
    assert apply(document, patch) == patched
    assert repr(document) == before


BAD = [
    [{"op": "replace", "path": "/none", "value": 1}],
    [{"op": "test", "path": "/a", "value": 2}],
    [{"op": "remove", "path": "/a/b/c"}],
    [{"op": "explode", "path": "/a"}],
    [{"path": "/a"}],
    [{"op": "add", "path": "a", "value": 1}],
    [{"op": "add", "path": "/a"}],
    [{"op": "add", "path": 7, "value": 1}],
    [{"op": "add", "path": "/list/9", "value": 1}],
    [{"op": "add", "path": "/list/x", "value": 1}],
    [{"op": "move", "from": "/none", "path": "/b"}],
    ["replace"],
    [None],
    [["op", "add"]],
]


@pytest.mark.parametrize("patch", BAD, ids=repr)
def test_what_cannot_be_applied_is_refused_with_its_place(patch: list[Any]) -> None:
    with pytest.raises(BadPatch) as refused:
        apply({"a": 1, "list": [1]}, [{"op": "test", "path": "/a", "value": 1}, *patch])
    assert refused.value.position == 1
    assert refused.value.detail


def test_a_patch_that_nests_deeper_and_deeper_is_refused() -> None:
    deep: Any = {}
    for _ in range(30):
        deep = {"a": deep}
    patch = [{"op": "add", "path": "/a" * (30 * step) + "/a", "value": deep} for step in range(90)]
    with pytest.raises(BadPatch) as refused:
        apply({}, patch)
    assert refused.value.position is not None


@pytest.mark.parametrize(
    "patch", [[{"op": "move", "from": "/a", "path": "/a/b"}], [{"op": "move", "from": "", "path": "/a"}]]
)
def test_nothing_is_moved_into_itself(patch: list[Any]) -> None:
    with pytest.raises(BadPatch):
        apply({"a": {}}, patch)


def test_a_patch_has_operations_and_not_too_many() -> None:
    for patch in ([], [{"op": "test", "path": "/a", "value": 1}] * (OPERATIONS_MAX + 1)):
        with pytest.raises(BadPatch) as refused:
            apply({"a": 1}, patch)
        assert refused.value.position is None


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    doubling = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(60)]
    with pytest.raises(BadPatch) as refused:
        apply({"a": "x" * 100}, doubling)
    assert f"{CHARS_MAX:,}" in refused.value.detail
