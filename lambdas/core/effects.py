"""`ctx.effect`: a task's side effects, each on a recorded intent and under a stable key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from lambdas.core.canonical import canonical, sha256_of
from lambdas.core.job import Job
from lambdas.core.outcomes import Permanent
from lambdas.core.ports import Effects, Notice

Act = Callable[[Any, str], Any]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PAYLOAD_BYTES = 100_000
RESULT_BYTES = 8_192


class Acting:
    """The effects of one try of one job. `scope`: of which part of the job; those of two parts are never one."""

    def __init__(self, job: Job, effects: Effects, notice: Notice, *, scope: Sequence[str] = ()) -> None:
        self._whose, self._effects, self._notice = [job.id, *scope], effects, notice
        self._names: set[str] = set()

    def effect(self, name: str, payload: Any, act: Act, *, once: bool = False) -> Any:
        """What `act(payload, key)` gave, in this try or in an earlier one of this job.

        The payload is recorded before anything happens: a later try acts on the recorded one, whatever it is given
        now. At least once, always under the same key (hand it on to whoever can tell a repeat by it). `once=True`: a
        start without a recorded end is never repeated, the job is FAILED with OUTCOME_UNKNOWN; unless `act` raised
        NotDone or Permanent, which say that it did not happen. Results and payloads are JSON. Raises Permanent,
        Unavailable, AnswerPending, and what `act` raises."""
        written = self._checked(name, payload)
        recorded = json.loads(self._effects.intend("#".join([*self._whose, name]), written))
        key = sha256_of([*self._whose, name, recorded])
        kept: dict[str, Any] = (self._effects.once if once else self._effects.repeatable)(
            key, lambda: self._act(name, recorded, key, act)
        )
        if kept.get("unusable"):
            raise Permanent(f"the effect {name} happened, but its result is no JSON of 8 KiB", "INVALID_EFFECT")
        return kept["result"]

    def _checked(self, name: str, payload: Any) -> str:
        if not NAME.fullmatch(name) or name in self._names:
            raise Permanent(
                f"an effect needs a name of its own, [A-Za-z0-9_.-]{{1,64}}; not {name[:80]!r}", "INVALID_EFFECT"
            )
        self._names.add(name)
        try:
            written = canonical(payload)
            size = len(written.encode())
        except (TypeError, ValueError, RecursionError) as error:
            raise Permanent(f"the payload of the effect {name} is not JSON: {error}", "INVALID_EFFECT") from error
        if size > PAYLOAD_BYTES:
            raise Permanent(
                f"the payload of the effect {name} has {size} bytes; {PAYLOAD_BYTES} are allowed", "INVALID_EFFECT"
            )
        return written

    def _act(self, name: str, payload: Any, key: str, act: Act) -> dict[str, Any]:
        """What is recorded of an effect that happened; it happened even if its result cannot be kept."""
        self._notice("effect_started", effect=name, key=key)
        result = act(payload, key)
        self._notice("effect_done", effect=name, key=key)
        try:
            written = canonical(result)
            fits = len(written.encode()) <= RESULT_BYTES
        except (TypeError, ValueError, RecursionError):
            fits = False
        return {"result": json.loads(written)} if fits else {"unusable": True}  # as a later try will read it
