"""Jobs that are made of several tasks: their declarations, as `lambdas/workflows` has them. Read by infra and handlers.

A declaration is data: a mistake in it is found here, before anything is deployed, and told with what to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lambdas.contracts import strict_json
from lambdas.contracts.branches import PARTS, TYPE, TYPE_MAX, Branch, branch_of, only

__all__ = ["Branch", "Workflow", "load", "parse", "task_types", "type_of"]

ALL: Final = "all"
QUORUM: Final = "quorum"
BEST_EFFORT: Final = "best_effort"
LAST: Final = "last"

BRANCHES_MAX: Final = 40
TIMEOUT_S: Final = (60, 86_400)
RUNS: Final = (1, 3)  # how many are deployed, infra says by the tries in each

HERE: Final = Path(__file__).resolve().parent.parent / "workflows"
_FIELDS: Final = ("description", "stages", "partial", "result", "timeout_s", "max_runs")


@dataclass(frozen=True)
class Workflow:
    """A job type. The branches of a stage run side by side, the stages one after the other.

    `partial`: `all`, `best_effort` or {"quorum": n}: how many parts must be there. `result`: `parts` for all of them by
    name, `last` for what the last branch makes of them. `timeout_s` bounds one execution, `max_runs` how many there may
    be before the job fails."""

    type: str
    description: str
    stages: tuple[tuple[Branch, ...], ...]
    partial: str | Mapping[str, int] = ALL
    result: str = PARTS
    timeout_s: int = 1_800
    max_runs: int = 2
    input_schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def branches(self) -> tuple[Branch, ...]:
        return tuple(branch for stage in self.stages for branch in stage)

    @property
    def counted(self) -> tuple[str, ...]:
        """The branches that may not be missing, as far as `partial` says so."""
        return tuple(branch.name for branch in self.branches if not branch.may_fail)

    @property
    def needed(self) -> int:
        """How many of those that count must be done."""
        if isinstance(self.partial, Mapping):
            return self.partial[QUORUM]
        return 1 if self.partial == BEST_EFFORT else len(self.counted)

    def branch(self, name: str) -> Branch:
        """KeyError when there is none of this name."""
        return {branch.name: branch for branch in self.branches}[name]

    def reads(self, name: str) -> tuple[str, ...]:
        """The branches of earlier stages whose outputs this one gets, where they are done."""
        before: list[str] = []
        for stage in self.stages:
            for branch in stage:
                if branch.name == name:
                    return tuple(before) if branch.reads_all else branch.needs
            before += [branch.name for branch in stage]
        raise KeyError(name)


def load(folder: Path | None = None) -> tuple[dict[str, Workflow], dict[str, str]]:
    """All workflows by type, and what is wrong with those that cannot be used: one broken one harms no other. Their
    tasks are those of the folder `tasks` beside; where there is none, any task will do."""
    place = folder or HERE
    beside = place.parent / "tasks"
    tasks = task_types(beside) if beside.is_dir() else None
    made: dict[str, Workflow] = {}
    broken: dict[str, str] = {}
    for one in sorted(place.iterdir()) if place.is_dir() else ():
        if not (one / "workflow.json").is_file():
            continue
        type_ = type_of(one)
        try:
            well_named(one)
            workflow = parse(type_, _read(one / "workflow.json"), _read(one / "schema.json"))
            _known(workflow, tasks)
            made[type_] = workflow
        except (OSError, ValueError) as error:
            broken[type_] = str(error)
    return made, broken


def task_types(folder: Path) -> frozenset[str]:
    """The types of the tasks in a folder; whether they are any good is not asked."""
    return frozenset(type_of(place) for place in folder.iterdir() if (place / "task.py").is_file())


def type_of(place: Path) -> str:
    """`analyze_document/` is the job type `analyze-document`."""
    return place.name.replace("_", "-")


def well_named(place: Path) -> None:
    """Two folders are never one type. ValueError says how to name it."""
    right = type_of(place).replace("-", "_")
    if place.name != right:
        raise ValueError(f"the folder {place.name} must be named {right}: the type is made of it, with - for each _")


def parse(type_: str, raw: Any, schema: Any) -> Workflow:
    """The workflow that a declaration and its schema mean. ValueError says what is wrong and what to do."""
    if not TYPE.fullmatch(type_) or len(type_) > TYPE_MAX:
        raise ValueError(
            f"{type_!r} is no job type: name the folder with lower-case words joined by _, at most 64 long"
        )
    if not isinstance(raw, dict):
        raise ValueError("workflow.json must be an object with `description` and `stages`")
    only(raw, _FIELDS, "workflow.json")
    if not isinstance(schema, dict) or not isinstance(schema.get("input"), dict):
        raise ValueError('schema.json must be an object with `input`, a JSON Schema: {"input": {"type": "object", …}}')
    only(schema, ("input",), "schema.json")
    stages = _stages(raw.get("stages"))
    return Workflow(
        type=type_,
        description=_description(raw.get("description")),
        stages=stages,
        partial=_partial(raw.get("partial", ALL), stages),
        result=_result(raw.get("result", PARTS), stages),
        timeout_s=_number(raw, "timeout_s", 1_800, TIMEOUT_S),
        max_runs=_number(raw, "max_runs", 2, RUNS),
        input_schema=schema["input"],
    )


def _read(path: Path) -> Any:
    try:
        return strict_json.parse(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing: put it beside workflow.json") from None
    except strict_json.Malformed as error:
        raise ValueError(f"{path.name}: {error.detail}") from error


def _known(workflow: Workflow, tasks: Collection[str] | None) -> None:
    """Its tasks are there, and none has its name."""
    if tasks is None:
        return
    if workflow.type in tasks:
        raise ValueError(
            f"there is a task {workflow.type} as well: a job type is one of both, rename one of the folders"
        )
    for branch in workflow.branches:
        if branch.task not in tasks:
            raise ValueError(
                f"the branch {branch.name} wants the task {branch.task}, which is not there: name one of "
                f"{', '.join(sorted(tasks))}, or make it with `make new-task NAME={branch.task}`"
            )


def _stages(raw: Any) -> tuple[tuple[Branch, ...], ...]:
    if not isinstance(raw, list) or not raw:
        raise ValueError('stages must be a list of at least one stage: ["extract-dates"] or [["a", "b"], "c"]')
    stages: list[tuple[Branch, ...]] = []
    names: list[str] = []
    for number, stage in enumerate(raw):
        branches = stage if isinstance(stage, list) else [stage]
        if not branches:
            raise ValueError(f"/stages/{number} is empty: name its tasks, or remove it")
        made = tuple(branch_of(one, f"/stages/{number}", names) for one in branches)
        stages.append(made)
        names += [branch.name for branch in made]
        _unique(names)
    if len(names) > BRANCHES_MAX:
        raise ValueError(f"{len(names)} branches, but a workflow has at most {BRANCHES_MAX}: make two of it")
    return tuple(stages)


def _unique(names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ValueError(f'two branches are named {twice}: give one another name, {{"name": "…", "task": "…"}}')


def _description(raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError("description must say in one sentence what the workflow is for")
    return raw


def _partial(raw: Any, stages: tuple[tuple[Branch, ...], ...]) -> str | Mapping[str, int]:
    counted = [branch for stage in stages for branch in stage if not branch.may_fail]
    if not counted:
        raise ValueError("every branch may fail: then nothing would be a result as well; take may_fail from one")
    if raw in (ALL, BEST_EFFORT):
        return str(raw)
    if not isinstance(raw, dict) or raw.keys() != {QUORUM}:
        raise ValueError(f'partial is "all", "best_effort" or {{"quorum": 3}}, not {raw!r}')
    if not _is_whole(raw[QUORUM]) or not 1 <= raw[QUORUM] <= len(counted):
        raise ValueError(
            f"a quorum is from 1 to {len(counted)} here, the branches that may not fail: not {raw[QUORUM]!r}"
        )
    return raw


def _result(raw: Any, stages: tuple[tuple[Branch, ...], ...]) -> str:
    if raw not in (PARTS, LAST):
        raise ValueError(f'result is "parts" or "last", not {raw!r}')
    if raw == LAST and len(stages[-1]) != 1:
        raise ValueError(
            '"result": "last" wants one branch in the last stage: add a stage with the task that assembles'
        )
    if raw == LAST and stages[-1][0].may_fail:
        raise ValueError(f'{stages[-1][0].name} makes the result ("result": "last"): it cannot have may_fail')
    return str(raw)


def _number(raw: Mapping[str, Any], name: str, default: int, bounds: tuple[int, int]) -> int:
    value, (low, high) = raw.get(name, default), bounds
    if not _is_whole(value) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
    return int(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
