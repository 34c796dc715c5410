"""Conditions mean here what they mean to DynamoDB; judged against a naive reading."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.conditions import (
    Absent,
    All,
    AnyOf,
    Compare,
    Condition,
    In,
    Operator,
    Param,
    both,
    either,
    equal,
    holds,
    path,
)

FIELDS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["x", "y", "z", 1, 2, 3, True])
OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
RECORDS = st.dictionaries(FIELDS, VALUES, max_size=3)
PARAMS = st.fixed_dictionaries({"p": VALUES, "q": VALUES})
LEAVES: st.SearchStrategy[Condition] = st.one_of(
    st.builds(
        Compare,
        FIELDS,
        st.sampled_from(list(OPERATORS)),
        st.sampled_from([Param("p"), Param("q"), "x", "y", 1, 2]),
    ),
    st.builds(In, FIELDS, st.lists(st.sampled_from(["x", "y", "z"]), max_size=3).map(tuple)),
    st.builds(Absent, FIELDS),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=3).map(tuple).flatmap(lambda p: st.sampled_from([All(p), AnyOf(p)])),
    max_leaves=8,
)


def _naive(condition: Condition, record: dict[str, Any], params: dict[str, Any]) -> bool:
    """Read aloud: what each kind of condition says, without a thought for how it is done."""
    if isinstance(condition, All):
        return False not in [_naive(part, record, params) for part in condition.parts]
    if isinstance(condition, AnyOf):
        return True in [_naive(part, record, params) for part in condition.parts]
    if isinstance(condition, Absent):
        return condition.field not in record
    if isinstance(condition, In):
        return condition.field in record and record[condition.field] in list(condition.choices)
    right = params[condition.operand.name] if isinstance(condition.operand, Param) else condition.operand
    if condition.field not in record or type(record[condition.field]) is not type(right):
        return condition.operator == "<>"
    return bool(OPERATORS[condition.operator](record[condition.field], right))


@given(CONDITIONS, RECORDS, PARAMS)
def test_a_condition_holds_exactly_when_its_naive_reading_does(
    condition: Condition, record: dict[str, Any], params: dict[str, Any]
) -> None:
    assert holds(condition, record, params) == _naive(condition, record, params)


@pytest.mark.parametrize("compared", ["=", "<", "<=", ">", ">="])
def test_no_comparison_holds_for_an_attribute_that_is_not_there(compared: Operator) -> None:
    assert not holds(Compare("a", compared, 1), {}, {})
    assert not holds(Compare("a", compared, 1), None, {})


def test_what_is_not_there_is_unequal_to_anything_as_in_dynamodb() -> None:
    assert holds(Compare("a", "<>", 1), {}, {})


def test_values_of_other_types_are_unequal_and_never_ordered() -> None:
    assert holds(Compare("a", "<>", 1), {"a": "1"}, {})
    assert not any(holds(Compare("a", compared, 1), {"a": "1"}, {}) for compared in ("=", "<", "<=", ">", ">="))
    assert not holds(Compare("a", "=", 1), {"a": True}, {})


def test_absent_holds_for_a_record_that_is_not_there() -> None:
    assert holds(Absent("pk"), None, {})
    assert not holds(Absent("pk"), {"pk": "j"}, {})


def test_a_parameter_is_looked_up_when_the_write_is_made() -> None:
    mine = equal("attempt", Param("attempt"))
    assert holds(mine, {"attempt": 2}, {"attempt": 2})
    assert not holds(mine, {"attempt": 2}, {"attempt": 1})


def test_both_wants_every_part_and_either_wants_one() -> None:
    one, other = equal("a", 1), equal("b", 2)
    assert holds(both(one, other), {"a": 1, "b": 2}, {})
    assert not holds(both(one, other), {"a": 1, "b": 3}, {})
    assert holds(either(one, other), {"a": 0, "b": 2}, {})
    assert not holds(either(one, other), {"a": 0, "b": 3}, {})


@pytest.mark.parametrize("field", ["m.x", "m.:which", "m.:which.y", "gone.:which", "text.:which"])
def test_a_path_leads_into_maps_and_to_nothing_where_one_is_missing(field: str) -> None:
    """`:which` is a parameter: a name with a dot or a hyphen is one step."""
    record = {"m": {"x": 1, "a-b.c": {"y": 1}, "plain": 1}, "text": "x"}
    there = {"m.x": "-", "m.:which": "plain", "m.:which.y": "a-b.c"}
    params = {"which": there.get(field, "x")}
    assert holds(equal(field, 1), record, params) == (field in there)
    assert holds(Absent(field), record, params) == (field not in there)
    assert holds(Compare(field, "<>", 1), record, params) == (field not in there)
    assert not holds(equal(field, 1), None, params)
    assert path("m.:which.y", {"which": "a-b.c"}) == ("m", "a-b.c", "y")
