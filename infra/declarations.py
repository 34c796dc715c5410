"""The workflows that are deployed, as `lambdas/workflows` declares them, and what of them cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.settings import Settings
from infra.workflow_definition import GROWING, MORE_TRIES, STARTING_S, WAIT_S
from lambdas.contracts import workflows
from lambdas.contracts.validation import compile_schema
from lambdas.contracts.workflows import Workflow

LEASE_MARGIN_S = 60  # of a job's lease, beyond its state machine's timeout: lambdas/core/workflows/changes.py
CALLS_MAX = 6  # of the model, for one question of one job, whatever dies and however often
EVENTS_MAX = 24_000  # of the 25,000 of an execution's history; the rest are those of its states
EVENTS_OF_CALL = 3  # scheduled, started, failed
MOST = 12  # ARNs of 142 characters at most: a rule's pattern, in which all of them stand, may have 2,048
_ARN = 62  # arn:aws-us-gov:states:us-gov-west-1:<account>:stateMachine:, the longest
_NAME = 38  # what CloudFormation makes of a type: `WorkflowsMachines` before it, 8 and 13 behind, 80 in all


def read(folder: Path | None = None) -> dict[str, Workflow]:
    """By type; `problems` has those that are broken."""
    return workflows.load(folder)[0]


def environment_bytes(declared: Mapping[str, Workflow]) -> int:
    """What they take at most of a function's environment, as a JSON object of ARNs."""
    return sum(len(type_) + _ARN + min(80, _NAME + len(type_)) + len('"": "", ') for type_ in declared)


def problems(settings: Settings, folder: Path | None = None) -> Iterator[str]:
    """What is wrong with the declarations, by themselves and under these settings, each with what to do."""
    declared, broken = workflows.load(folder)
    for type_, why in broken.items():
        yield f"lambdas/workflows/{type_.replace('-', '_')}: {why}"
    if len(declared) > MOST:
        yield f"{len(declared)} workflows, but a deployment has room for {MOST}: deploy a second environment for some"
    yield from _names(declared)
    yield from _schemas(declared)
    yield from _calls(declared)
    yield from _times(settings, declared)
    yield from _histories(declared)


def pascal(type_: str) -> str:
    """`analyze-document` as constructs and outputs are named."""
    return "".join(part.capitalize() for part in type_.split("-"))


def _names(declared: Mapping[str, Workflow]) -> Iterator[str]:
    named: dict[str, str] = {}
    for type_ in declared:
        other = named.setdefault(pascal(type_), type_)
        if other != type_:
            yield f"{other} and {type_} would both be named {pascal(type_)} in the stack: rename the folder of one"


def _schemas(declared: Mapping[str, Workflow]) -> Iterator[str]:
    """By what the door checks with: it would leave out such a type, and the rest would be deployed."""
    for type_, workflow in declared.items():
        try:
            compile_schema(workflow.input_schema)
        except Exception as error:  # a schema may be wrong in more ways than the library has errors for
            place = f"lambdas/workflows/{type_.replace('-', '_')}/schema.json"
            yield f"{place}: `input` is no usable JSON Schema (draft 7): {type(error).__name__}: {error}"


def _calls(declared: Mapping[str, Workflow]) -> Iterator[str]:
    tries = 1 + MORE_TRIES
    for type_, workflow in declared.items():
        if tries * workflow.max_runs > CALLS_MAX:
            yield (
                f"max_runs of {type_} ({workflow.max_runs}) must be at most {CALLS_MAX // tries}: a branch is tried "
                f"{tries} times in each run, and one question could be paid {tries * workflow.max_runs} times"
            )


def _histories(declared: Mapping[str, Workflow]) -> Iterator[str]:
    """Step Functions ends an execution with the last event that its history has room for, and that is no timeout: all
    its branches may wait at once, for as long as it runs."""
    for type_, workflow in declared.items():
        calls = workflow.timeout_s // WAIT_S + GROWING + MORE_TRIES + 1
        if EVENTS_OF_CALL * calls * len(workflow.branches) > EVENTS_MAX:
            most = (EVENTS_MAX // (EVENTS_OF_CALL * len(workflow.branches)) - GROWING - MORE_TRIES - 1) * WAIT_S
            yield (
                f"timeout_s of {type_} ({workflow.timeout_s}) must be at most {most}: with {len(workflow.branches)} "
                f"branches that wait for so long its history would have more than the {EVENTS_MAX} events that it may"
            )


def _times(s: Settings, declared: Mapping[str, Workflow]) -> Iterator[str]:
    for type_, workflow in declared.items():
        stages = len(workflow.stages)
        once = stages * (s.branch_timeout_s + STARTING_S) + s.collect_timeout_s + STARTING_S
        if workflow.timeout_s < once:
            yield (
                f"timeout_s of {type_} ({workflow.timeout_s}) must be at least {once}: one try for each of its stages "
                f"({stages}: branch_timeout_s {s.branch_timeout_s} + {STARTING_S}) and its collector (collect_timeout_s"
                f" {s.collect_timeout_s} + {STARTING_S}), or an execution is ended that does what it should"
            )
        repaired = workflow.timeout_s + LEASE_MARGIN_S + s.sweep_period_s
        if s.deadline_s <= repaired:
            yield (
                f"deadline_s ({s.deadline_s}) must exceed timeout_s of {type_}, the {LEASE_MARGIN_S} s that its lease "
                f"is longer, and a sweep ({repaired}), or no execution that died is repaired"
            )
