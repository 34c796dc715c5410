"""What a fault is: its kind, which calls or invocations it is meant for, and which combinations mean something."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from local.aws.calls import Call

BEFORE, AFTER = "before", "after"
HANDLER, INVOKE = "handler", "Invoke"
"""Service and operation of what is no call: an invocation, which begins (before) and ends (after)."""

AT_CALLS = {
    "crash": (BEFORE, AFTER),
    "timeout": (BEFORE, AFTER),
    "freeze": (BEFORE, AFTER),
    "throttle": (BEFORE,),
    "lost_reply": (AFTER,),
    "ghost": (AFTER,),
}
AT_HANDLERS = {
    "crash": (BEFORE, AFTER),
    "timeout": (BEFORE, AFTER),
    "freeze": (BEFORE, AFTER),
    "throttle": (BEFORE,),
    "drop": (BEFORE,),
    "duplicate": (AFTER,),
    "late": (AFTER,),
}
KINDS = tuple({**AT_CALLS, **AT_HANDLERS})


@dataclass(eq=False)
class Fault:
    """What happens, and to what: the nth of an invocation's calls that fit, or the nth invocation that fits.

    `job_id` is any text that the call's body, path or query, or the invocation's event, has in it."""

    function: str
    kind: str
    when: str
    nth: int = 1
    times: int = 1
    service: str | None = None
    operation: str | None = None
    job_id: str | None = None
    fired: int = 0

    @property
    def spent(self) -> bool:
        """Whether it will not happen again."""
        return self.fired >= self.times

    @property
    def at_handler(self) -> bool:
        """Whether it strikes invocations and not calls."""
        return self.service == HANDLER

    @property
    def problem(self) -> str:
        """Why it means nothing; an empty text if it does."""
        kinds, place = (AT_HANDLERS, "a handler") if self.at_handler else (AT_CALLS, "a call")
        if self.kind not in KINDS:
            return f"kind must be one of {list(KINDS)}"
        if self.kind not in kinds:
            hint = "" if self.at_handler else f': that takes "service": "{HANDLER}"'
            return f"a {self.kind} does not happen at {place}{hint}"
        if self.when not in (BEFORE, AFTER):
            return f"when must be {BEFORE!r} or {AFTER!r}, not {self.when!r}"
        if self.when not in kinds[self.kind]:
            return f"a {self.kind} happens {kinds[self.kind][0]} {place}'s effect, never {self.when} it"
        if self.at_handler and self.operation not in (None, INVOKE):
            return f"the operation of a handler is {INVOKE!r}, not {self.operation!r}"
        return ""

    def fits(self, call: Call) -> bool:
        """Whether the call is of the kind that is counted."""
        return (
            call.caller is not None
            and call.caller.function == self.function
            and self.service in (None, call.service)
            and self.operation in (None, call.operation)
            and (self.job_id is None or self._names_job(call))
        )

    def fits_event(self, role: str, event: Any) -> bool:
        """Whether an invocation with this event, or a record of one, is counted."""
        if not self.at_handler or self.function != role:
            return False
        return self.job_id is None or self.job_id in json.dumps(event, ensure_ascii=False)

    def _names_job(self, call: Call) -> bool:
        job = str(self.job_id)
        return job.encode() in call.body or job in call.path or job in call.query

    def describe(self) -> dict[str, Any]:
        """For the controls."""
        values = {one.name: getattr(self, one.name) for one in fields(Fault)}
        return {name: value for name, value in values.items() if value is not None}
