"""What DynamoDB demands of expressions, where moto looks away: reserved words, and placeholders that match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from local.aws.calls import Refusal

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_LONGEST = 4096

_TOKEN = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_]*|[#:][A-Za-z0-9_]+")
_SYNTAX = frozenset({"ADD", "AND", "BETWEEN", "DELETE", "IN", "NOT", "OR", "REMOVE", "SET"})
_FUNCTION = re.compile(r"[A-Za-z_]+(?=\s*\()")


def check_expressions(parameters: Mapping[str, Any]) -> Refusal | None:
    """Why DynamoDB would refuse the expressions of one operation (or of one part of a transaction), or None."""
    given = {name: str(parameters[name]) for name in EXPRESSIONS if parameters.get(name)}
    for name, text in given.items():
        refusal = _check_length(name, text) or _check_reserved(name, text)
        if refusal:
            return refusal
    return _check_placeholders(parameters, given)


def _check_length(name: str, text: str) -> Refusal | None:
    size = len(text.encode())
    if size <= _LONGEST:
        return None
    return _invalid(f"Invalid {name}: Expression size has exceeded the maximum allowed size; expression size: {size}")


def _check_reserved(name: str, text: str) -> Refusal | None:
    reserved = ReservedKeywords.get_reserved_keywords()
    for word in _TOKEN.findall(_FUNCTION.sub(_only_attributes, text)):
        if word[0] not in "#:" and word.upper() in reserved and word.upper() not in _SYNTAX:
            return _invalid(f"Invalid {name}: Attribute name is a reserved keyword; reserved keyword: {word}")
    return None


def _only_attributes(match: re.Match[str]) -> str:
    """A word before a bracket is a function (`size(x)`) or syntax (`AND (…)`), no attribute."""
    return ""


def _check_placeholders(parameters: Mapping[str, Any], given: Mapping[str, str]) -> Refusal | None:
    used = {token for text in given.values() for token in _TOKEN.findall(text) if token[0] in "#:"}
    for kind, sign in (("Names", "#"), ("Values", ":")):
        declared = set(parameters.get(f"ExpressionAttribute{kind}") or {})
        unused = sorted(declared - used)
        if unused:
            return _invalid(f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{unused[0]}}}")
        missing = sorted(token for token in used - declared if token.startswith(sign))
        if missing:
            what = "name" if sign == "#" else "value"
            return _invalid(
                f"Invalid expression: An expression attribute {what} used in expression is not defined; attribute "
                f"{what}: {missing[0]}"
            )
    return None


def _invalid(message: str) -> Refusal:
    return Refusal("ValidationException", message)
