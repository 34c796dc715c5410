"""The protocol's conditions mean the same in core (`holds`), in DynamoDB's language, and to the fake."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Operator, Param
from lambdas.core.ports import Applied, JobStore, Refused
from lambdas.core.protocol import RULES, Change, Rule
from tests.integration.records import an_id

TIMES = [f"2026-11-29T15:30:{second}.000Z" for second in (43, 44, 45)]
STATUSES = ["PENDING", "PROCESSING", "WAITING", "COMPLETED", "FAILED", "CANCELLED", "DELETED"]
BRANCHES = ["key-facts", "name"]  # the one has a hyphen, the other is a word of DynamoDB's own
WHO = st.sampled_from(["me", "you"])
KEY = st.sampled_from(["mine", "another's"])
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
    "run": st.integers(0, 2),
    "parts_run": st.integers(0, 2),
    "result_key": KEY,
    "parts": st.dictionaries(st.sampled_from(BRANCHES), st.fixed_dictionaries({}, optional={"by": WHO})),
    "booked_by": st.dictionaries(st.sampled_from(BRANCHES), WHO),
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
    "run": st.integers(0, 2),
    "next_run": st.integers(0, 3),
    "result_key": KEY,
    "branch": st.sampled_from(BRANCHES),
    "by": WHO,
    "seen_by": WHO,
    "seen_booked": WHO,
}
records = st.fixed_dictionaries({}, optional=RECORD)
params = st.fixed_dictionaries(PARAMS)
few = settings(max_examples=25)


def _named(condition: Condition | None) -> set[str]:
    match condition:
        case All(parts) | AnyOf(parts):
            return set().union(*(_named(part) for part in parts))
        case Absent(field) | In(field, _):
            return _steps(field)
        case Compare(field, _, operand):
            return _steps(field) | ({f":{operand.name}"} if isinstance(operand, Param) else set())
    return set()


def _steps(field: str) -> set[str]:
    """The attribute of the record, and the parameters that name what lies in it."""
    first, *others = field.split(".")
    return {first, *(step for step in others if step.startswith(":"))}


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
        record: dict[str, Any] = {"pk": an_id(), "sk": "job", **fields}
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
        record: dict[str, Any] = {"pk": an_id(), "sk": "job", **fields}
        job_store.create(record)
        change = Change(Rule("any", "0", (), None, condition), values, sets={"touched": "yes"})
        assert job_store.apply(record["pk"], change) == _expected(change, record)

    agree()


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_a_field_that_is_not_there_differs_from_every_value_and_compares_with_none(
    job_store: JobStore, operator: Operator
):
    record: dict[str, Any] = {"pk": an_id(), "sk": "job"}
    job_store.create(record)
    change = Change(Rule("any", "0", (), None, Compare("status", operator, "FAILED")), {}, sets={"touched": "yes"})
    applied = isinstance(job_store.apply(record["pk"], change), Applied)
    assert applied == (operator == "<>")
    assert change.may(record) == applied


@pytest.mark.parametrize("group", [All, AnyOf])
def test_a_group_of_one_is_written_without_parentheses_of_its_own(job_store: JobStore, group: type[All | AnyOf]):
    """DynamoDB refuses `((x))`: "The expression has redundant parentheses"."""
    record: dict[str, Any] = {"pk": an_id(), "sk": "job", "status": "FAILED"}
    job_store.create(record)
    condition = All((group((Compare("status", "=", "FAILED"),)),))
    change = Change(Rule("any", "0", (), None, condition), {}, sets={"touched": "yes"})
    assert job_store.apply(record["pk"], change) == Applied({**record, "touched": "yes"})


@pytest.mark.parametrize("word", ["status", "ttl", "data", "name", "value", "type", "count", "result", "error", "run"])
def test_ddb_11_a_reserved_word_may_name_a_field(job_store: JobStore, word: str):
    record: dict[str, Any] = {"pk": an_id(), "sk": "job", word: "before"}
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


@pytest.mark.parametrize("branch", BRANCHES)
def test_what_lies_in_a_map_is_set_by_its_path_and_nothing_beside_it(job_store: JobStore, branch: str):
    """A branch's name is no attribute's: it may have hyphens, and be any word."""
    record: dict[str, Any] = {"pk": an_id(), "sk": "job", "status": "PENDING", "run": 0, "parts_run": 0,
              "parts": {"other": {"state": "open"}, branch: {"state": "open"}}, "booked_by": {}}  # fmt: skip
    job_store.create(record)
    values = {"run": 0, "branch": branch, "by": "me", "seen_by": ""}
    written = {"state": "done", "by": "me", "error": {"code": "X", "message": ""}}
    sets = {"parts.:branch": written, "booked_by.:branch": "me", "progress_at": "now"}
    change = Change(RULES["part"], values, sets=sets, adds={"cost": 7})
    parts = {**record["parts"], branch: written}
    after = {**record, "parts": parts, "booked_by": {branch: "me"}, "progress_at": "now", "cost": 7}
    assert job_store.apply(record["pk"], change) == Applied(after) == Applied(change.applied_to(record))
    assert job_store.apply(record["pk"], change) == Applied(after)  # its own effect
    overtaken = Change(RULES["part"], {**values, "by": "you"}, sets=change.sets)
    assert job_store.apply(record["pk"], overtaken) == Refused(after)


def test_a_branch_that_the_record_does_not_name_yet_finds_its_place(job_store: JobStore):
    record: dict[str, Any] = {
        "pk": an_id(),
        "sk": "job",
        "status": "PENDING",
        "run": 0,
        "parts_run": 0,
        "parts": {},
        "booked_by": {},
    }
    job_store.create(record)
    values = {"run": 0, "branch": "a-b", "by": "me", "seen_by": "", "seen_booked": ""}
    job_store.apply(record["pk"], Change(RULES["part"], values, sets={"parts.:branch": {"by": "me"}}))
    job_store.apply(record["pk"], Change(RULES["late_part"], values, sets={"booked_by.:branch": "me"}))
    assert job_store.read(record["pk"]) == {**record, "parts": {"a-b": {"by": "me"}}, "booked_by": {"a-b": "me"}}


def test_names_that_differ_by_a_hyphen_alone_are_two(job_store: JobStore):
    record: dict[str, Any] = {"pk": an_id(), "sk": "job", "status": "PENDING", "attempt": 0, "parts": {}}
    job_store.create(record)
    values = {"seen_status": "PENDING", "seen_attempt": 0, "one": "a-b", "two": "a_b"}
    change = Change(RULES["push_due"], values, sets={"parts.:one": 1, "parts.:two": 2})
    assert job_store.apply(record["pk"], change) == Applied({**record, "parts": {"a-b": 1, "a_b": 2}})
