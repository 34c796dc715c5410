"""The protocol's conditions mean the same in core (`holds`), in DynamoDB's language, and to the fake."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Operator, Param
from lambdas.core.ports import Applied, JobStore, Refused
from lambdas.core.protocol import RULES, Change, Rule
from tests.integration.records import an_id

TIMES = [f"2026-11-29T15:30:{second}.000Z" for second in (43, 44, 45)]
STATUSES = ["PENDING", "PROCESSING", "WAITING", "COMPLETED", "FAILED", "CANCELLED", "DELETED"]
RECORD: dict[str, st.SearchStrategy[Any]] = {
    "status": st.sampled_from(STATUSES),
    "attempt": st.integers(0, 2),
    "claim_id": st.sampled_from(["me", "you"]),
    "tries": st.integers(0, 3),
    "not_before": st.sampled_from(TIMES),
    "lease_until": st.sampled_from(TIMES),
    "deadline_at": st.sampled_from(TIMES),
    "due_shard": st.just("1"),
    "late_cost": st.integers(0, 9),
}
PARAMS: dict[str, st.SearchStrategy[Any]] = {
    "now": st.sampled_from(TIMES),
    "soon": st.sampled_from(TIMES),
    "attempt": st.integers(0, 2),
    "claim_id": st.sampled_from(["me", "you"]),
    "max_tries": st.integers(1, 3),
    "seen_status": st.sampled_from(STATUSES),
    "seen_attempt": st.integers(0, 2),
    "next_attempt": st.integers(0, 3),
    "late_cost": st.integers(0, 9),
}
records = st.fixed_dictionaries({}, optional=RECORD)
params = st.fixed_dictionaries(PARAMS)
few = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _named(condition: Condition | None) -> set[str]:
    match condition:
        case All(parts) | AnyOf(parts):
            return set().union(*(_named(part) for part in parts))
        case Absent(field) | In(field, _):
            return {field}
        case Compare(field, _, operand):
            return {field} | ({f":{operand.name}"} if isinstance(operand, Param) else set())
    return set()


def test_these_records_have_every_field_that_a_condition_names():
    named = set().union(*(_named(rule.condition) | _named(rule.effect) for rule in RULES.values()))
    assert {name for name in named if not name.startswith(":")} - {"pk"} <= RECORD.keys()
    assert {name[1:] for name in named if name.startswith(":")} <= PARAMS.keys()


def _expected(change: Change, record: dict[str, Any]) -> Applied | Refused:
    if change.may(record):
        return Applied(change.applied_to(record))
    return Applied(record) if change.is_own_effect(record) else Refused(record)


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"accept"}))
def test_a_rule_holds_in_the_store_exactly_where_it_holds_in_core(job_store: JobStore, name: str):
    @few
    @given(fields=records, values=params)
    def agree(fields: dict[str, Any], values: dict[str, Any]) -> None:
        record = {"pk": an_id(), "sk": "job", **fields}
        job_store.create(record)
        change = Change(RULES[name], values, sets={"touched": "yes"}, adds={"counter": 2}, removes=("claim_id",))
        assert job_store.apply(record["pk"], change) == _expected(change, record)

    agree()


equality, order = st.sampled_from(["=", "<>"]), st.sampled_from(["<", "<=", ">", ">="])
numbers = st.one_of(st.integers(-1, 2), st.just(Param("attempt")))
texts = st.one_of(st.sampled_from(STATUSES), st.just(Param("now")))
leaves = st.one_of(
    st.builds(Compare, st.just("attempt"), order, numbers),  # moto breaks when it shall order a text and a number
    st.builds(Compare, st.just("status"), order, texts),
    st.builds(Compare, st.sampled_from(["attempt", "status"]), equality, st.one_of(numbers, texts)),
    st.builds(Absent, st.sampled_from(["attempt", "status", "claim_id"])),
    st.builds(In, st.just("status"), st.lists(st.sampled_from(STATUSES), min_size=1, max_size=3).map(tuple)),
)
trees: st.SearchStrategy[Condition] = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda found: All(tuple(found))),
        st.lists(parts, min_size=2, max_size=3).map(lambda found: AnyOf(tuple(found))),
    ),
    max_leaves=6,
)


def test_any_condition_of_these_parts_holds_in_the_store_exactly_where_it_holds_in_core(job_store: JobStore):
    """Rules to come are made of the same parts: nested, over fields that are missing or of another kind."""

    @settings(few, max_examples=100)
    @given(fields=records, values=params, condition=trees)
    def agree(fields: dict[str, Any], values: dict[str, Any], condition: Condition) -> None:
        record = {"pk": an_id(), "sk": "job", **fields}
        job_store.create(record)
        change = Change(Rule("any", "0", (), None, condition), values, sets={"touched": "yes"})
        assert job_store.apply(record["pk"], change) == _expected(change, record)

    agree()


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_a_field_that_is_not_there_differs_from_every_value_and_compares_with_none(
    job_store: JobStore, operator: Operator
):
    record = {"pk": an_id(), "sk": "job"}
    job_store.create(record)
    change = Change(Rule("any", "0", (), None, Compare("status", operator, "FAILED")), {}, sets={"touched": "yes"})
    applied = isinstance(job_store.apply(record["pk"], change), Applied)
    assert applied == (operator == "<>")
    assert change.may(record) == applied


@pytest.mark.parametrize("group", [All, AnyOf])
def test_a_group_of_one_is_written_without_parentheses_of_its_own(job_store: JobStore, group: type[All | AnyOf]):
    """DynamoDB refuses `((x))`: "The expression has redundant parentheses"."""
    record = {"pk": an_id(), "sk": "job", "status": "FAILED"}
    job_store.create(record)
    condition = All((group((Compare("status", "=", "FAILED"),)),))
    change = Change(Rule("any", "0", (), None, condition), {}, sets={"touched": "yes"})
    assert job_store.apply(record["pk"], change) == Applied({**record, "touched": "yes"})


@pytest.mark.parametrize("word", ["status", "ttl", "data", "name", "value", "type", "count", "result", "error", "run"])
def test_ddb_11_a_reserved_word_may_name_a_field(job_store: JobStore, word: str):
    record = {"pk": an_id(), "sk": "job", word: "before"}
    job_store.create(record)
    rule = Rule("any", "0", (), None, Compare(word, "=", "before"))
    outcome = job_store.apply(record["pk"], Change(rule, {}, sets={word: "after"}))
    assert outcome == Applied({**record, word: "after"})


def test_what_a_record_may_hold_comes_back_as_it_was_put(job_store: JobStore):
    for number, value in enumerate(
        itertools.chain(
            ["", "text", "\u000b \U0001f600", 0, -7, 10**30, True, False], [[], [1, ["a"]], {}, {"a": {"b": [True]}}]
        )
    ):
        record: dict[str, Any] = {"pk": f"{number}-{an_id()}", "sk": "job", "kept": value}
        job_store.create(record)
        read = job_store.read(record["pk"])
        assert read == record
        assert read is not None
        assert type(read["kept"]) is type(value)
