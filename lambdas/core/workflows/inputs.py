"""What a branch gets: taken from the workflow's input and from what earlier branches have given, as it is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.contracts.workflows import Branch, Workflow
from lambdas.core.outcomes import Permanent

NOWHERE: Any = object()

Output = Callable[[str], Any]  # of a branch by its name; NOWHERE where there is none


def input_of_branch(workflow: Workflow, branch: Branch, whole: Callable[[], Any], output: Output) -> Any:
    """`whole`: the workflow's own input, read only where it is wanted. Raises Permanent when what is declared is not
    there, and what `whole` and `output` raise."""
    wanted = {name: output(name) for name in workflow.reads(branch.name)}
    for name in branch.needs:
        if wanted[name] is NOWHERE:
            raise Permanent(f"it needs what {name} gives, and that is missing", "MISSING_PART")
    document: dict[str, Any] = {"parts": {name: value for name, value in wanted.items() if value is not NOWHERE}}
    if any(pointer == "" or pointer.split("/")[1] == "input" for pointer in branch.pointers):
        document["input"] = whole()
    return _built(branch, document)


def _built(branch: Branch, document: Mapping[str, Any]) -> Any:
    """A field whose pointer leads nowhere is left out: whether it may be, the task's own schema says."""
    if isinstance(branch.input, Mapping):
        fields = {name: at(document, pointer) for name, pointer in branch.input.items()}
        return {name: value for name, value in fields.items() if value is not NOWHERE}
    (pointer,) = branch.pointers
    found = at(document, pointer)
    if found is NOWHERE:
        raise Permanent(f"there is nothing at {pointer}", "INVALID_INPUT")
    return found


def at(document: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to, or NOWHERE."""
    found = document
    for step in pointer.split("/")[1:]:
        found = _step(found, step.replace("~1", "/").replace("~0", "~"))
        if found is NOWHERE:
            break
    return found


def _step(found: Any, step: str) -> Any:
    if isinstance(found, Mapping):
        return found.get(step, NOWHERE)
    is_index = step.isascii() and step.isdigit() and step == str(int(step))
    return found[int(step)] if isinstance(found, list) and is_index and int(step) < len(found) else NOWHERE
