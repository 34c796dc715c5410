"""What befalls a call of the model, which is none of AWS's calls that faults reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.model.script import parse
from local.model.web import DroppedError
from tests.simulation.proof.cases import Blow
from tests.simulation.proof.chronicle import Asked
from tests.simulation.stage import Stage

_SAYS: dict[str, dict[str, Any]] = {
    "throttle": {"error": "ThrottlingException"},
    "unavailable": {"error": "ServiceUnavailableException"},
    "lost_reply": {"cut_after": 0},
}


def strike(stage: Stage, word: str, blow: Blow, asked: Asked) -> None:
    """The model, or who asks it, as it is being asked for something with this word. What it answers to a dead process
    is paid for all the same."""
    if blow.kind.kind in _SAYS:
        _interrupt(stage, {"match": word, "times": 1, **_SAYS[blow.kind.kind]})
        return
    holder = stage.runtime.functions.environment_of(asked.request_id)
    assert holder is not None
    if blow.kind.kind == "freeze":
        holder.stand_still()
    elif blow.kind.kind == "timeout":
        holder.freeze(outlives=False)
    else:
        holder.kill("crash")
        holder.gone.wait()
        raise DroppedError


def _interrupt(stage: Stage, rule: Mapping[str, Any]) -> None:
    """Before whatever it would say: this once, it says that."""
    script = stage.runtime.model_server.script
    (checked,) = parse([dict(rule)])
    with script._lock:
        script._rules.insert(0, replace(checked, index=-1 - len(script._rules)))
