"""Evaluates identity policies as IAM does, for what a role of ours may contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

Document = Mapping[str, Any]
Context = Mapping[str, str]


class UnknownConditionError(ValueError):
    """A policy uses a condition whose meaning is not known here: guessing would hide a mistake."""


def allows(documents: Iterable[Document], action: str, resource: str, context: Context | None = None) -> bool:
    """Whether the policies together allow `action` on `resource`: one Allow, and no Deny.

    `context` holds condition keys (`s3:prefix`), one with several values a line for each; a key that is missing makes a
    positive condition fail.
    """
    allowed = False
    for statement in _statements(documents):
        if not _applies(statement, action, resource, context or {}):
            continue
        if statement["Effect"] == "Deny":
            return False
        allowed = True
    return allowed


def denies(documents: Iterable[Document], action: str, resource: str, context: Context | None = None) -> bool:
    """Whether a Deny says so, as opposed to nothing allowing it."""
    return any(
        statement["Effect"] == "Deny" and _applies(statement, action, resource, context or {})
        for statement in _statements(documents)
    )


def allowing(
    documents: Iterable[Document], action: str, resource: str, context: Context | None = None
) -> list[tuple[str, str]]:
    """What allows it: each statement's patterns of the action and of the resource that match."""
    return [
        (action_pattern, resource_pattern)
        for statement in _statements(documents)
        if statement["Effect"] == "Allow" and _applies(statement, action, resource, context or {})
        for action_pattern, resource_pattern in _pairs(statement)
        if _like(action_pattern.lower(), action.lower()) and _like(resource_pattern, resource)
    ]


def grants(documents: Iterable[Document]) -> list[tuple[str, str]]:
    """Everything that is allowed at all, whatever the conditions: patterns of an action and a resource."""
    return [
        pair for statement in _statements(documents) if statement["Effect"] == "Allow" for pair in _pairs(statement)
    ]


def _pairs(statement: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return product(_as_list(statement["Action"]), _as_list(statement["Resource"]))


def _statements(documents: Iterable[Document]) -> Iterable[Mapping[str, Any]]:
    for document in documents:
        yield from _as_list(document["Statement"])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    actions = any(_like(pattern.lower(), action.lower()) for pattern in _as_list(statement["Action"]))
    if not actions or not any(_like(pattern, resource) for pattern in _as_list(statement["Resource"])):
        return False
    return all(
        _holds(operator, key, _as_list(wanted), context)
        for operator, keys in statement.get("Condition", {}).items()
        for key, wanted in keys.items()
    )


def _holds(operator: str, key: str, wanted: list[Any], context: Context) -> bool:
    if operator == "Bool" and key.lower() == "aws:securetransport":
        # Everything here is loopback; what a policy says of TLS is meant for the road.
        return str(wanted[0]).lower() == "true"
    if operator == "ForAllValues:StringLike":
        # of several values, one a line; of none at all, IAM says that all of them match
        found = next((text for known, text in context.items() if known.lower() == key.lower()), "")
        return all(any(_like(str(one), value) for one in wanted) for value in found.splitlines())
    name = operator.removesuffix("IfExists")
    if name not in _OPERATORS:
        raise UnknownConditionError(f"condition {operator} on {key}")
    value = next((text for known, text in context.items() if known.lower() == key.lower()), None)
    if value is None:
        return name != operator or name.startswith("StringNot")
    return _OPERATORS[name](value, [str(one) for one in wanted])


_OPERATORS: dict[str, Callable[[str, list[str]], bool]] = {
    "StringEquals": lambda value, wanted: value in wanted,
    "StringNotEquals": lambda value, wanted: value not in wanted,
    "StringLike": lambda value, wanted: any(_like(one, value) for one in wanted),
    "StringNotLike": lambda value, wanted: not any(_like(one, value) for one in wanted),
    "ArnEquals": lambda value, wanted: any(_like(one, value) for one in wanted),
    "ArnLike": lambda value, wanted: any(_like(one, value) for one in wanted),
}


def _like(pattern: str, text: str) -> bool:
    return bool(_compiled(pattern).fullmatch(text))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """`*` is any text, `?` any one character; everything else is itself."""
    return re.compile("".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern), re.DOTALL)
