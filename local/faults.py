"""Faults on demand, at a named call of a function: crashes, timeouts, throttles, lost replies."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from local.aws.calls import Call, Refusal, Response
from local.compute.environments import Functions

KINDS = ("crash", "timeout", "throttle", "lost_reply")
BEFORE, AFTER = "before", "after"
_THROTTLES = {
    "dynamodb": Refusal("ProvisionedThroughputExceededException", "The level of configured provisioned throughput "
                        "for the table was exceeded. Consider increasing your provisioning level."),
    "lambda": Refusal("TooManyRequestsException", "Rate Exceeded.", 429),
    "s3": Refusal("SlowDown", "Please reduce your request rate.", 503),
    "sqs": Refusal("RequestThrottled", "Request is throttled."),
    "sns": Refusal("Throttling", "Rate exceeded", 400),
}  # fmt: skip
_THROTTLED_ELSEWHERE = Refusal("ThrottlingException", "Rate exceeded")
_NOTHING_HAPPENED = Refusal(lost=True)
_FIELDS = ("function", "kind", "when", "nth", "times", "service", "operation", "job_id")
_ONLY = {"throttle": BEFORE, "lost_reply": AFTER}


class BadRequestError(ValueError):
    """What is wrong with a request to the controls; the text goes back to who sent it."""


@dataclass(eq=False)
class Fault:
    """What happens, and to which call: the nth of an invocation's calls that fit."""

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

    def fits(self, call: Call) -> bool:
        """Whether the call is of the kind that is counted."""
        return (
            call.caller is not None
            and call.caller.function == self.function
            and self.service in (None, call.service)
            and self.operation in (None, call.operation)
            and (self.job_id is None or self._names_job(call))
        )

    def _names_job(self, call: Call) -> bool:
        job = str(self.job_id)
        return job.encode() in call.body or job in call.path

    def describe(self) -> dict[str, Any]:
        """For the controls."""
        return {name: value for name, value in vars(self).items() if value is not None}


class Faults:
    """A gate of the AWS server. Outermost, so that a call that it stops is neither metered nor checked."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._counts: defaultdict[tuple[int, str], int] = defaultdict(int)
        self._struck: dict[int, list[Fault]] = {}

    def add(self, fault: Fault) -> None:
        """Have it happen."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """No more faults."""
        with self._lock:
            self._faults.clear()
            self._counts.clear()

    def describe(self) -> list[dict[str, Any]]:
        """Those that were asked for, and how often each has happened."""
        with self._lock:
            return [fault.describe() for fault in self._faults]

    # --- the gate ------------------------------------------------------------------------------------------

    def before(self, call: Call) -> Refusal | None:
        """Strike here, or remember what is to strike when the call has been carried out."""
        struck = self._count(call)
        if not struck:
            return None
        later = [fault for fault in struck if fault.when == AFTER]
        if later:
            self._struck[id(call)] = later
        for fault in struck:
            if fault.when == BEFORE:
                self._struck.pop(id(call), None)
                return self._strike(fault, call)
        return None

    def after(self, call: Call, response: Response) -> Response:
        """The call had its effect: now its caller must not hear of it."""
        for fault in self._struck.pop(id(call), ()):
            self._strike(fault, call)
            response = response.without_reply()
        return response

    def _count(self, call: Call) -> list[Fault]:
        if call.caller is None:
            return []
        with self._lock:
            struck = []
            for fault in self._faults:
                if fault.spent or not fault.fits(call):
                    continue
                key = (id(fault), call.caller.request_id)
                self._counts[key] += 1
                if self._counts[key] == fault.nth:
                    fault.fired += 1
                    struck.append(fault)
            return struck

    def _strike(self, fault: Fault, call: Call) -> Refusal:
        if fault.kind == "throttle":
            return _THROTTLES.get(call.service, _THROTTLED_ELSEWHERE)
        environment = None if call.caller is None else self._functions.environment_of(call.caller.request_id)
        if environment is not None and fault.kind in ("crash", "timeout"):
            if fault.kind == "crash":
                environment.kill("crash")
            else:
                environment.freeze(outlives=False)  # held as it is; the deadline ends it
            environment.gone.wait()  # not even a lost connection may be noticed by somebody still alive
        return _NOTHING_HAPPENED


def read(body: dict[str, Any], function: str) -> Fault:
    """The fault that a request asks for. BadRequestError says what would have been right."""
    unknown = sorted(set(body) - set(_FIELDS))
    if unknown:
        raise BadRequestError(f"unknown fields {unknown}; known are {list(_FIELDS)}")
    kind = body.get("kind")
    if kind not in KINDS:
        raise BadRequestError(f"kind must be one of {list(KINDS)}")
    return Fault(
        function=function,
        kind=kind,
        when=_when(kind, body.get("when")),
        nth=whole_number(body, "nth", 1),
        times=whole_number(body, "times", 1),
        service=_text(body, "service"),
        operation=_text(body, "operation"),
        job_id=_text(body, "job_id"),
    )


def whole_number(body: dict[str, Any], name: str, default: int | None) -> int:
    """A field from 1 on. BadRequestError for anything else."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequestError(f"{name} must be a whole number from 1 on, not {value!r}")
    return value


def _when(kind: str, when: Any) -> str:
    only = _ONLY.get(kind)
    chosen = when or only or BEFORE
    if chosen not in (BEFORE, AFTER):
        raise BadRequestError(f"when must be {BEFORE!r} or {AFTER!r}, not {when!r}")
    if only is not None and chosen != only:
        raise BadRequestError(f"a {kind} happens {only} the call's effect, never {chosen} it")
    return str(chosen)


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise BadRequestError(f"{name} must be a text, not {value!r}")
    return value
