"""The setting `subscriptions`: who else hears of job events, checked before anything is deployed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.addresses import HOST, MAILBOX, PORT
from lambdas.contracts import names

MOST = 20  # each is five resources of the 500 that a stack may have, and two alarms
EMAIL, HTTPS, SQS = "email", "https", "sqs"
COMBINATIONS_MAX = 150  # what SNS counts: the values of each attribute, multiplied
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_ENDPOINTS: Mapping[str, tuple[re.Pattern[str], str]] = {
    EMAIL: (
        re.compile(MAILBOX),
        "an address, like ops@example.com; a name that is not ASCII in its xn-- form",
    ),
    HTTPS: (
        re.compile(rf"https://{HOST}(?::(?:{PORT}))?(?:[/?][!-\"$-~]*)?"),
        "a URL that begins with https:// and the name of a host, in ASCII, and has no user name in it",
    ),
    SQS: (
        re.compile(r"arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,80}"),
        "the ARN of a standard queue, arn:aws:sqs:<region>:<account>:<name> (a topic like this one feeds no .fifo)",
    ),
}
# what the dispatcher says of an event beside its body (lambdas/core/routing.py), and what it can be
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "event_type": tuple(f"job.{status.lower()}" for status in names.FINAL),
    "tenant": (),
    "type": (),
    "status": names.FINAL,
    "partial": ("true",),  # of a result without all parts; no other event has it
}
_FIELDS = ("protocol", "endpoint", "filter")
_MATCHERS = ("prefix", "anything-but")
_ABSENT: tuple[str, Mapping[str, bool]] = ("partial", {"exists": False})  # the one attribute that may not be there

Declared = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Subscription:
    """Who hears: `filter` by the attributes of an event, each with what it may be; without one, of everything."""

    protocol: str
    endpoint: str
    filter: Mapping[str, list[Any]] = field(default_factory=dict)


def read(declared: Declared) -> dict[str, Subscription]:
    """The subscriptions by name; `declared` has no problems."""
    return {
        name: Subscription(one["protocol"], one["endpoint"], dict(one.get("filter") or {}))
        for name, one in declared.items()
    }


def problems(declared: Declared) -> Iterator[str]:
    """What is wrong with the declarations, each with what to do."""
    if len(declared) > MOST:
        yield f"subscriptions has {len(declared)} entries, and {MOST} are the most: let one queue feed several readers"
    for name, one in declared.items():
        yield from (f"subscriptions.{name}{said}" for said in _wrong(name, one))
    yield from _twice(declared)


def _twice(declared: Declared) -> Iterator[str]:
    """SNS knows one subscription of an endpoint, whatever its filter: the second would replace the first, or fail."""
    first: dict[tuple[Any, Any], str] = {}
    for name, one in declared.items():
        if not isinstance(one, Mapping):
            continue
        pair = str(one.get("protocol")), str(one.get("endpoint"))
        other = first.setdefault(pair, name)
        if other != name:
            yield (
                f"subscriptions.{name} and .{other} have the same endpoint, which SNS subscribes once: join their "
                "filters"
            )


def _wrong(name: str, one: Any) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f": a subscription is named {_NAME.pattern}"
    if not isinstance(one, Mapping):
        yield " must be an object: protocol, endpoint, filter"
        return
    for unknown in sorted(set(one) - set(_FIELDS)):
        yield f".{unknown} is not known: a subscription has {', '.join(_FIELDS)}"
    protocol, endpoint = one.get("protocol"), one.get("endpoint")
    if not isinstance(protocol, str) or protocol not in _ENDPOINTS:
        yield f".protocol is {protocol!r}, but must be one of {', '.join(_ENDPOINTS)}"
    else:
        pattern, meaning = _ENDPOINTS[protocol]
        if not isinstance(endpoint, str) or not pattern.fullmatch(endpoint):
            yield f".endpoint is {endpoint!r}, but with {protocol} must be {meaning}"
    if "filter" in one:
        yield from _wrong_filter(one["filter"])


def _wrong_filter(found: Any) -> Iterator[str]:
    if not isinstance(found, Mapping) or not found:
        yield '.filter must be an object of lists, like {"event_type": ["job.failed"]}; leave it out to hear of all'
        return
    for attribute, values in found.items():
        if attribute not in ATTRIBUTES:
            yield f".filter.{attribute} is no attribute of an event: they are {', '.join(ATTRIBUTES)}"
        elif not isinstance(values, list) or not values:
            yield f".filter.{attribute} must be a list of at least one value"
        else:
            yield from (
                f".filter.{attribute} has {said}" for value in values for said in _wrong_value(attribute, value)
            )
    combinations = math.prod(len(values) for values in found.values() if isinstance(values, list))
    if combinations > COMBINATIONS_MAX:
        yield (
            f".filter has {combinations} combinations of values, and SNS takes {COMBINATIONS_MAX}: name fewer, or "
            'use {"prefix": …}'
        )


def _wrong_value(attribute: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        known = ATTRIBUTES[attribute]
        if known and value not in known:
            yield f"{value!r}, which it never is: it is one of {', '.join(known)}"
        elif not value:
            yield "an empty text, which it never is"
    elif not _is_absence(attribute, value):
        yield from _wrong_matcher(attribute, value)


def _is_absence(attribute: str, value: Any) -> bool:
    """0 is as good as false here, and not for SNS."""
    return (attribute, value) == _ABSENT and value["exists"] is False


def _wrong_matcher(attribute: str, value: Any) -> Iterator[str]:
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in _MATCHERS:
        yield f"{value!r}, but must have {_WORDS}"
        return
    ((kind, operand),) = value.items()
    if not _OPERANDS[kind](operand):
        yield f"{value!r}, but must have {_WORDS}"
        return
    known = ATTRIBUTES[attribute]
    if known and not _FITS[kind](known, operand):
        yield f"{value!r}, which {_NEVER[kind]}: it is one of {', '.join(known)}"


_WORDS = 'a text, {"prefix": text} or {"anything-but": [texts]}'


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) and bool(operand)


_OPERANDS: Mapping[str, Callable[[Any], bool]] = {
    "prefix": _is_text,
    "anything-but": lambda operand: isinstance(operand, list) and bool(operand) and all(map(_is_text, operand)),
}
_FITS: Mapping[str, Callable[[tuple[str, ...], Any], bool]] = {
    "prefix": lambda known, operand: any(one.startswith(operand) for one in known),
    "anything-but": lambda known, operand: {*operand} < {*known},
}
_NEVER = {"prefix": "it never begins with", "anything-but": "leaves out what it never is, or all that it can be"}
