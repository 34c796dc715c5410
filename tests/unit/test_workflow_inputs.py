"""What a branch gets, by JSON pointers into the workflow's input and what earlier branches have given."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.workflows import parse
from lambdas.core.outcomes import Permanent
from lambdas.core.workflows.inputs import NOWHERE, at, input_of_branch

DOCUMENT = {"a": {"b/c": [10, {"d~e": None}], "": "empty"}, "n": 0}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT), ("/n", 0), ("/a/b~1c/0", 10), ("/a/b~1c/1/d~0e", None), ("/a/", "empty"),
        ("/x", NOWHERE), ("/n/x", NOWHERE), ("/a/b~1c/2", NOWHERE), ("/a/b~1c/-", NOWHERE), ("/a/b~1c/01", NOWHERE),
        ("/a/b~1c/-1", NOWHERE), ("/a/b~1c/\u00b2", NOWHERE), ("/a/b~1c/\u0661", NOWHERE), ("/a/b~1c/", NOWHERE),
    ],
)  # fmt: skip
def test_a_pointer_leads_to_a_value_or_nowhere(pointer: str, value: Any) -> None:
    assert at(DOCUMENT, pointer) is value or at(DOCUMENT, pointer) == value


def _input(
    declared: Any, *, parts: dict[str, Any] | None = None, whole: Any = None, before: Any = ("one", "two")
) -> Any:
    last = {"name": "last", "task": "last", **({} if declared is None else {"input": declared})}
    raw = {"description": "Tests.", "stages": [list(before), last]}
    workflow = parse("flow", raw, {"input": {"type": "object"}})
    given = {"one": {"x": 1}, "two": {"y": [2]}} if parts is None else parts
    return input_of_branch(
        workflow,
        workflow.branch("last"),
        lambda: {"text": "long", "lang": "en"} if whole is None else whole(),
        lambda name: given.get(name, NOWHERE),
    )


@pytest.mark.parametrize(
    ("declared", "got"),
    [
        (None, {"text": "long", "lang": "en"}),
        ("/input", {"text": "long", "lang": "en"}),
        ("/input/text", "long"),
        ("/parts/one", {"x": 1}),
        ("/parts/two/y/0", 2),
        ("/parts", {"one": {"x": 1}, "two": {"y": [2]}}),
        ("", {"input": {"text": "long", "lang": "en"}, "parts": {"one": {"x": 1}, "two": {"y": [2]}}}),
        ({"a": "/input/text", "b": "/parts/one/x"}, {"a": "long", "b": 1}),
    ],
)
def test_an_input_is_made_as_declared(declared: Any, got: Any) -> None:
    assert _input(declared) == got


def test_a_field_whose_pointer_leads_nowhere_is_left_out() -> None:
    assert _input({"a": "/input/text", "b": "/input/none", "c": "/parts/one/none"}) == {"a": "long"}


def test_a_whole_input_that_is_nowhere_is_none() -> None:
    with pytest.raises(Permanent, match="/input/none") as raised:
        _input("/input/none")
    assert raised.value.code == "INVALID_INPUT"


@pytest.mark.parametrize("declared", ["/parts/two", "/parts/two/y", {"a": "/parts/one", "b": "/parts/two/z"}])
def test_a_part_that_it_names_and_that_is_missing_is_told(declared: Any) -> None:
    with pytest.raises(Permanent, match="two") as raised:
        _input(declared, parts={"one": {}})
    assert raised.value.code == "MISSING_PART"


@pytest.mark.parametrize("declared", ["/parts", {"all": "/parts"}])
def test_who_takes_all_parts_takes_those_that_there_are(declared: Any) -> None:
    got = _input(declared, parts={"one": {"x": 1}})
    assert got in ({"one": {"x": 1}}, {"all": {"one": {"x": 1}}})


def test_an_output_that_is_null_is_there() -> None:
    assert _input("/parts/one", parts={"one": None, "two": 1}) is None


def test_the_workflows_own_input_is_read_only_where_it_is_wanted() -> None:
    def read() -> Any:
        raise AssertionError("was read")

    assert _input({"a": "/parts/one/x"}, whole=read) == {"a": 1}
