"""What befalls a call of the model, which is none of AWS's calls that faults reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.model.script import parse
from local.model.web import DroppedError
from tests.simulation.proof.cases import Blow
from tests.simulation.proof.chronicle import Asked
from tests.simulation.proof.scenarios import PIECE
from tests.simulation.stage import Stage

_SAYS: dict[str, dict[str, Any]] = {
    "throttle": {"error": "ThrottlingException"},
    "unavailable": {"error": "ServiceUnavailableException"},
    "lost_reply": {"cut_after": 0},
}
MIDWAY = 2  # frames: the first says that an answer begins, the second has a piece of it
_LOST = [f"{piece} of what is lost ".ljust(PIECE, ".") for piece in ("first", "second", "third")]
_IN_STREAMS: dict[str, dict[str, Any]] = {
    "cut": {"cut_after": MIDWAY},
    "corrupt": {"corrupt": MIDWAY},
    "broken": {"cut_after": MIDWAY, "error": "ModelStreamErrorException"},
    "throttle_midway": {"cut_after": MIDWAY, "error": "ThrottlingException"},
}


def strike(stage: Stage, word: str, blow: Blow, asked: Asked) -> None:
    """The model, or who asks it, as it is being asked for something with this word. What it answers to a dead process
    is paid for all the same."""
    if blow.kind.kind in _SAYS:
        _interrupt(stage, {"match": word, "times": 1, **_SAYS[blow.kind.kind]})
        return
    if blow.kind.kind in _IN_STREAMS:
        _interrupt(stage, {"match": word, "times": 1, "deltas": _LOST, **_IN_STREAMS[blow.kind.kind]})
        return
    if not strike_holder(stage, blow, asked.request_id):
        raise DroppedError


def strike_holder(stage: Stage, blow: Blow, request_id: str) -> bool:
    """Whoever runs this invocation, while he waits for an answer from outside. Whether he may still get one."""
    holder = stage.runtime.functions.environment_of(request_id)
    assert holder is not None
    if blow.kind.kind == "freeze":
        holder.stand_still()
    elif blow.kind.kind == "timeout":
        holder.freeze(outlives=False)
    else:
        holder.kill("crash")
        holder.gone.wait()
        return False
    return True


def _interrupt(stage: Stage, rule: Mapping[str, Any]) -> None:
    """Before whatever it would say: this once, it says that."""
    script = stage.runtime.model_server.script
    (checked,) = parse([dict(rule)])
    with script._lock:
        script._rules.insert(0, replace(checked, index=-1 - len(script._rules)))
