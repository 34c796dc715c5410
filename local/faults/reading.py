"""The fault that a request to the controls asks for."""

from __future__ import annotations

from typing import Any

from local.faults.fault import AT_CALLS, AT_HANDLERS, BEFORE, HANDLER, KINDS, Fault

_FIELDS = ("function", "kind", "when", "nth", "times", "service", "operation", "job_id")


class BadRequestError(ValueError):
    """What is wrong with a request to the controls; the text goes back to who sent it."""


def read(body: dict[str, Any], function: str) -> Fault:
    """The fault that a request asks for. BadRequestError says what would have been right."""
    unknown = sorted(set(body) - set(_FIELDS))
    if unknown:
        raise BadRequestError(f"unknown fields {unknown}; known are {list(_FIELDS)}")
    kind = body.get("kind")
    if kind not in KINDS:
        raise BadRequestError(f"kind must be one of {list(KINDS)}")
    service = _text(body, "service")
    fault = Fault(
        function=function,
        kind=kind,
        when=_text(body, "when") or _default(kind, service),
        nth=whole_number(body, "nth", 1),
        times=whole_number(body, "times", 1),
        service=service,
        operation=_text(body, "operation"),
        job_id=_text(body, "job_id"),
    )
    check(fault)
    return fault


def check(fault: Fault) -> None:
    """BadRequestError for a fault that means nothing."""
    if fault.problem:
        raise BadRequestError(fault.problem)


def whole_number(body: dict[str, Any], name: str, default: int | None) -> int:
    """A field from 1 on. BadRequestError for anything else."""
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequestError(f"{name} must be a whole number from 1 on, not {value!r}")
    return value


def _default(kind: str, service: str | None) -> str:
    """The only time at which the kind happens, else before."""
    return (AT_HANDLERS if service == HANDLER else AT_CALLS).get(kind, (BEFORE,))[0]


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise BadRequestError(f"{name} must be a text, not {value!r}")
    return value
