"""What Step Functions demands of names and inputs (MOTO-18)."""

from __future__ import annotations

import re

from local.aws.calls import Call, Refusal
from local.executions.limits import DATA_BYTES

LONGEST_NAME = 80
_FORBIDDEN = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")


def _has_a_sound_name(call: Call) -> Refusal | None:
    name = call.parameters.get("name")
    if name is None:
        return None
    if not name or len(name) > LONGEST_NAME:
        bound = f"greater than or equal to 1 and less than or equal to {LONGEST_NAME}"
        return _invalid("name", f"Member must have length {bound}")
    if _FORBIDDEN.search(name):
        return Refusal("InvalidName", f"Invalid Name: '{name}'")
    return None


def _has_a_small_input(call: Call) -> Refusal | None:
    if len(str(call.parameters.get("input", "")).encode("utf-8", "surrogatepass")) <= DATA_BYTES:
        return None
    return _invalid("input", f"Member must have length less than or equal to {DATA_BYTES}")


def _has_short_reasons(call: Call) -> Refusal | None:
    for name, most in (("error", 256), ("cause", 32_768)):
        if len(str(call.parameters.get(name, ""))) > most:
            return _invalid(name, f"Member must have length less than or equal to {most}")
    return None


def _invalid(field: str, why: str) -> Refusal:
    """Without the value: it may be somebody's document."""
    text = f"1 validation error detected: Value at '{field}' failed to satisfy constraint: {why}"
    return Refusal("ValidationException", text)


RULES = {
    ("states", "CreateStateMachine"): (_has_a_sound_name,),
    ("states", "StartExecution"): (_has_a_sound_name, _has_a_small_input),
    ("states", "StopExecution"): (_has_short_reasons,),
}
