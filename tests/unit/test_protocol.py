"""The table of the protocol, clause by clause: examples say what each rule applies to, and mutants prove the examples.

Removing, weakening or turning round any one clause of any condition must contradict an example here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lambdas.contracts.names import FAILED, FINAL, OPEN, PENDING, PROCESSING
from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Operator, holds
from lambdas.core.protocol import RULES, Change
from tests.builders import any_record, final_record, held_record, later
from tests.unit import protocol_examples, workflow_examples
from tests.unit.protocol_examples import MINE, SOON, Record, seen

CONDITIONS = {**protocol_examples.CONDITIONS, **workflow_examples.CONDITIONS}
EFFECTS = {**protocol_examples.EFFECTS, **workflow_examples.EFFECTS}


def condition_of(example: str) -> Condition:
    return RULES[example.partition(" ")[0]].condition


def effect_of(rule: str) -> Condition:
    effect = RULES[rule].effect
    assert effect is not None
    return effect


def test_every_rule_has_its_examples_and_every_effect_too() -> None:
    assert {name.partition(" ")[0] for name in CONDITIONS} == RULES.keys()
    assert {rule.name for rule in RULES.values() if rule.effect is not None} == EFFECTS.keys()


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_record_that_satisfies_every_clause_is_written(name: str) -> None:
    params, applied, _ = CONDITIONS[name]
    assert [record for record in applied if not holds(condition_of(name), record, params)] == []


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_record_that_violates_one_clause_is_refused(name: str) -> None:
    params, _, refused = CONDITIONS[name]
    assert [record for record in refused if holds(condition_of(name), record, params)] == []


@pytest.mark.parametrize("name", EFFECTS)
def test_a_writer_recognises_its_own_lost_reply_and_nothing_else(name: str) -> None:
    params, own, others = EFFECTS[name]
    change = Change(RULES[name], params)
    assert [record for record in own if not change.is_own_effect(record)] == []
    assert [record for record in others if change.is_own_effect(record)] == []


# --- the examples, proved -------------------------------------------------------------------------
_TURNED: dict[Operator, tuple[Operator, ...]] = {
    "=": ("<>", "<=", ">="),
    "<>": ("=",),
    "<": ("<=", ">"),
    "<=": ("<", ">"),
    ">": (">=", "<"),
    ">=": (">", "<"),
}


def mutants(condition: Condition) -> Iterator[Condition]:
    """The condition with one part left out, one operator turned, or one choice missing."""
    match condition:
        case All() | AnyOf():
            yield from _with_one_part_changed(condition)
        case Compare(operator=compared):
            for turned in _TURNED[compared]:
                yield replace(condition, operator=turned)
        case In(choices=choices):
            for choice in choices:
                yield replace(condition, choices=tuple(other for other in choices if other != choice))
        case Absent():
            yield All(())


def _with_one_part_changed(condition: All | AnyOf) -> Iterator[Condition]:
    parts = condition.parts
    for at, part in enumerate(parts):
        if len(parts) > 1:
            yield replace(condition, parts=parts[:at] + parts[at + 1 :])
        for mutant in mutants(part):
            yield replace(condition, parts=(*parts[:at], mutant, *parts[at + 1 :]))


def _survives(mutant: Condition, examples: Sequence[tuple[dict[str, Any], Sequence[Record], Sequence[Record]]]) -> bool:
    return all(
        holds(mutant, record, params) == expected
        for params, yes, no in examples
        for records, expected in ((yes, True), (no, False))
        for record in records
    )


@pytest.mark.parametrize("rule", RULES)
def test_no_clause_of_a_condition_can_be_dropped_or_turned_round_unnoticed(rule: str) -> None:
    examples = [found for name, found in CONDITIONS.items() if name.partition(" ")[0] == rule]
    changed = list(mutants(RULES[rule].condition))
    assert changed
    assert [mutant for mutant in changed if _survives(mutant, examples)] == []


@pytest.mark.parametrize("rule", EFFECTS)
def test_no_clause_of_an_effect_can_be_dropped_or_turned_round_unnoticed(rule: str) -> None:
    params, own, others = EFFECTS[rule]
    examples = [(params, own, [record for record in others if record is not None])]
    assert [mutant for mutant in mutants(effect_of(rule)) if _survives(mutant, examples)] == []


# --- the shape of the table -----------------------------------------------------------------------
def test_only_reopening_and_deleting_lead_out_of_a_final_state() -> None:
    leaving = {rule.name for rule in RULES.values() if rule.to is not None and set(rule.frm) & set(FINAL)}
    assert leaving == {"reopen", "delete"}


@pytest.mark.parametrize("status", FINAL)
@pytest.mark.parametrize("rule", [rule.name for rule in RULES.values() if rule.frm and set(rule.frm) <= set(OPEN)])
def test_no_rule_for_open_jobs_holds_for_a_final_record(rule: str, status: str) -> None:
    record = final_record(status, lease_until=later(-60))
    for seen_status in RULES[rule].frm:
        params = {**SOON, **MINE, **seen(seen_status), **workflow_examples.WRITTEN, "run": 0, "max_tries": 5}
        assert not holds(RULES[rule].condition, record, params)


def test_a_change_sets_adds_and_removes_and_leaves_the_rest() -> None:
    change = Change(RULES["fail"], MINE, {"status": FAILED}, {"cost": 5, "waits": 1}, ("error",))
    before = held_record(cost=2, error={"code": "X", "message": ""})
    after = change.applied_to(before)
    assert after == {**{k: v for k, v in before.items() if k != "error"}, "status": FAILED, "cost": 7, "waits": 1}
    assert before["status"] == PROCESSING


def test_a_rule_without_an_effect_recognises_nothing_as_its_own() -> None:
    assert not Change(RULES["push_due"], seen(PENDING)).is_own_effect(any_record(attempt=1))
    assert not Change(RULES["complete"], MINE).is_own_effect(None)
