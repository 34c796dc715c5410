"""Every order of events around one job, for few faults; and that the model finds what is wrong with simpler protocols.

`make prove-races` plays the larger sets and prints the counter-examples (docs/adr/0011)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.simulation.races import approvals, assembling, attempts, deliveries, hours, properties, workflows
from tests.simulation.races.explore import explore, fault_sets, spelled
from tests.simulation.races.law import Law
from tests.simulation.races.long_runs import InStep, SeveralJobs
from tests.simulation.races.record import read, written
from tests.simulation.races.reviewed import REVIEWED, Needed, Needless, named, wrong_without
from tests.simulation.races.world import World
from tests.simulation.races.wrong import WRONG, Wrong, rules_of
from tests.simulation.races.wrong_ahead import WORLDS, WRONG_AHEAD, Make, WrongAhead
from tests.simulation.races.wrong_deliveries import WRONG_DELIVERIES, WrongDelivery
from tests.simulation.races.wrong_workflows import REVIEWED_WORK, ROWS, WRONG_WORKFLOWS, WrongWorkflow, work_without

AnyWrong = Wrong | WrongAhead | WrongDelivery | WrongWorkflow
OURS, TIMED = Law(), Law(clock=hours.seconds)  # what the core does is remembered from one test to the next
FEW = ("crash", "cancel", "fail", "unheard")
HOW = (*assembling.TOLD, workflows.NOT_TAKEN)  # how an execution is, and no property
NEEDED = [name for name, review in REVIEWED.items() if isinstance(review, Needed)]
NEEDED_WORK = [name for name, review in REVIEWED_WORK.items() if isinstance(review, Needed)]
NEEDLESS_WORK = [name for name, review in REVIEWED_WORK.items() if isinstance(review, Needless)]
NEEDLESS = [name for name, review in REVIEWED.items() if isinstance(review, Needless)]


def _nothing_breaks(world: World) -> int:
    found = explore(world)
    assert found.whole
    assert not found.broken, "\n".join(f"{spelled(world.faults)}: {found.line(name)}" for name in found.broken)
    return found.states


# --- ours ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", [0, 1])
def test_no_order_of_events_and_no_single_fault_breaks_a_promise(number: int) -> None:
    for faults in fault_sets(number):
        _nothing_breaks(World(OURS, faults))


@pytest.mark.slow
def test_no_two_faults_break_a_promise() -> None:
    states = sum(_nothing_breaks(World(OURS, faults)) for faults in fault_sets(2))
    assert states > 150_000  # else the model has lost some of its world


def test_a_worker_that_outlives_its_lease_breaks_no_promise() -> None:
    assert _nothing_breaks(World(OURS, {}, weak=True, attempts=3, queue_max=1)) > 10_000


@pytest.mark.parametrize("begin", hours.STARTS)
@pytest.mark.parametrize("first_s", hours.PHASES)
def test_recovery_and_deadline_keep_to_their_time_under_any_single_fault(begin: hours.Begin, first_s: int) -> None:
    for faults in [{}, *fault_sets(1)]:
        _nothing_breaks(hours.Hours(TIMED, faults, begin=begin, first_s=first_s))


def test_no_order_of_events_and_no_single_fault_loses_a_delivery() -> None:
    for faults in ({}, *fault_sets(1, deliveries.FAULTS_OF_IT)):
        _nothing_breaks(deliveries.world(faults))


def test_no_order_of_events_and_no_single_fault_breaks_a_workflow() -> None:
    law = Law()
    for faults in ({}, *fault_sets(1, workflows.FAULTS_OF_IT)):
        _nothing_breaks(replace(workflows.world(faults), law=law))


@pytest.mark.parametrize("fault", ["cancel", "fail", "unheard", "ghost"])
def test_no_single_fault_breaks_a_workflow_of_two_branches(fault: str) -> None:
    _nothing_breaks(workflows.pair({fault: 1}))


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__module__.rpartition(".")[2])
def test_the_rows_that_are_not_built_yet_break_no_promise(make: Make) -> None:
    for faults in ({}, {"crash": 1}, {"dup": 1}, {"loss": 1}):
        _nothing_breaks(make(faults))


EVERY_WRONG: list[AnyWrong] = [*WRONG, *WRONG_AHEAD, *WRONG_DELIVERIES, *WRONG_WORKFLOWS]


# --- others ----------------------------------------------------------------------------------------
def _breaks(wrong: AnyWrong) -> None:
    found = explore(wrong.world(), until=wrong.breaks, limit=150_000)
    assert wrong.breaks in found.broken, f"{found.states} states, and nothing but {sorted(found.broken)}"


@pytest.mark.parametrize("wrong", EVERY_WRONG, ids=lambda wrong: wrong.name)
def test_a_simpler_protocol_is_found_out(wrong: AnyWrong) -> None:
    _breaks(wrong)


@pytest.mark.parametrize("name", NEEDED)
def test_a_protocol_without_this_clause_is_found_out(name: str) -> None:
    _breaks(wrong_without(name))


@pytest.mark.parametrize("name", NEEDED_WORK)
def test_workflows_without_this_clause_are_found_out(name: str) -> None:
    _breaks(work_without(name))


def test_every_property_is_broken_by_some_protocol() -> None:
    """One that nothing can break says nothing about ours."""
    protocols: list[AnyWrong] = [*EVERY_WRONG, *map(wrong_without, NEEDED), *map(work_without, NEEDED_WORK)]
    broken = {wrong.breaks for wrong in protocols}
    named_here = {
        value
        for module in (properties, hours, approvals, workflows, deliveries, attempts)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and " " in value and value not in HOW
    }
    assert named_here == broken


def test_every_clause_of_the_protocol_is_reviewed() -> None:
    assert set(REVIEWED) | set(REVIEWED_WORK) == named()
    assert {name.partition(":")[0].removesuffix(" effect") for name in REVIEWED_WORK} == set(ROWS)


@pytest.mark.parametrize("name", [*NEEDLESS, *(name for name in NEEDED if REVIEWED[name].with_)])  # type: ignore[union-attr]
def test_a_clause_that_has_a_second_or_other_reasons_is_not_missed_alone(name: str) -> None:
    """Else its review is out of date: it is needed by now."""
    law = Law(rules=rules_of(name)())
    for faults in fault_sets(1):
        _nothing_breaks(World(law, faults))


@pytest.mark.parametrize("name", [*NEEDLESS_WORK, *(name for name in NEEDED_WORK if REVIEWED_WORK[name].with_)])  # type: ignore[union-attr]
def test_a_clause_of_workflows_that_has_other_reasons_is_not_missed_alone(name: str) -> None:
    law = Law(rules=rules_of(name)())
    for faults in fault_sets(1, FEW):
        _nothing_breaks(replace(workflows.world(faults), law=law))


# --- longer runs, and the model held against the core -------------------------------------------------
def _run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps, derandomize=False)
    )


def test_several_jobs_in_long_runs_keep_every_promise() -> None:
    _run(SeveralJobs, examples=25, steps=40)


def test_the_model_does_what_the_core_does() -> None:
    _run(InStep, examples=60, steps=40)


def test_a_record_is_read_as_it_was_written() -> None:
    for faults in fault_sets(1):
        explore(World(OURS, faults))
    assert len(OURS.records) > 50
    assert all(read(written(rec), OURS.clock) == OURS.clock(rec) for rec in OURS.records)
