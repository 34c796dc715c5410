"""What DynamoDB demands of a Query and a Scan: key conditions, filters, and the key to start after."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.dynamodb.models.table import Table

from local.aws.strict.expressions import heads
from local.aws.strict.keys import check_sizes
from local.aws.strict.values import comparable, type_of

_KEY_TYPES = ("S", "N", "B")
_INVALID_START = "The provided starting key is invalid"
_NO_MATCH = "One or more parameter values were invalid: Condition parameter type does not match schema type"

_NAME, _VALUE = r"#?[A-Za-z_]\w*|#\w+", r":\w+"
_CONDITION = re.compile(
    rf"(?P<between>{_NAME})\s+BETWEEN\s+(?P<low>{_VALUE})\s+AND\s+(?P<high>{_VALUE})"
    rf"|begins_with\s*\(\s*(?P<begins>{_NAME})\s*,\s*(?P<prefix>{_VALUE})\s*\)"
    rf"|(?P<left>{_NAME})\s*(?P<operator><=|>=|=|<|>)\s*(?P<right>{_VALUE})",
    re.IGNORECASE,
)
_COMPARE = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NO_KEY_OPERATOR = re.compile(r"<>|(?<![\w#:])(?:OR|NOT|IN)(?!\w)", re.IGNORECASE)


@dataclass(frozen=True)
class _Condition:
    name: str
    operator: str
    values: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Schema:
    """The keys that a Query goes by: the table's or an index's."""

    hash: str
    range: str | None
    types: Mapping[str, str]
    start: frozenset[str]
    """The attributes of a key to start after."""


def check_query(table: Table, parameters: Mapping[str, Any]) -> str | None:
    """Why DynamoDB would refuse a Query of a table that exists, or None."""
    schema = _schema(table, parameters.get("IndexName"))
    if schema is None or not parameters.get("KeyConditionExpression"):
        return None
    text = str(parameters["KeyConditionExpression"])
    foreign = _NO_KEY_OPERATOR.search(text)
    if foreign:
        return f"Invalid operator used in KeyConditionExpression: {foreign.group().upper()}"
    conditions = list(_conditions(text, parameters))
    return (
        _check_conditions(conditions, schema)
        or _check_filter(parameters, schema)
        or _check_start(conditions, parameters.get("ExclusiveStartKey"), schema)
    )


def check_scan(table: Table, parameters: Mapping[str, Any]) -> str | None:
    """Why DynamoDB would refuse a Scan of a table that exists, or None."""
    schema = _schema(table, parameters.get("IndexName"))
    start = parameters.get("ExclusiveStartKey")
    if schema is None or not start or _is_key(start, schema):
        return None
    return f"{_INVALID_START}: The provided key element does not match the schema"


def _schema(table: Table, index_name: str | None) -> _Schema | None:
    """None for an index that moto refuses, or that has more than two keys."""
    index = next((one for one in table.all_indexes() if one.name == index_name), None)
    if index_name and index is None:
        return None
    names = list(index.schema_key_attrs) if index else list(table.table_key_attrs)
    if not 1 <= len(names) <= 2:
        return None
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in table.attr}
    return _Schema(names[0], names[1] if len(names) == 2 else None, types, frozenset({*names, *table.table_key_attrs}))


def _conditions(text: str, parameters: Mapping[str, Any]) -> Iterator[_Condition]:
    names = parameters.get("ExpressionAttributeNames") or {}
    values = parameters.get("ExpressionAttributeValues") or {}
    for match in _CONDITION.finditer(text):
        found = match.groupdict()
        name = str(found["between"] or found["begins"] or found["left"])
        sign = found["operator"] or ("BETWEEN" if found["between"] else "begins_with")
        used = [found[one] for one in ("low", "high", "prefix", "right") if found[one]]
        if all(one in values for one in used):  # others have been refused before
            yield _Condition(names.get(name, name), sign, tuple(values[one] for one in used))


def _check_conditions(conditions: list[_Condition], schema: _Schema) -> str | None:
    named = [one.name for one in conditions]
    if len(set(named)) < len(named):
        return "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key"
    for one in conditions:
        for value in one.values:
            problem = _check_operand(one, value, schema)
            if problem:
                return problem
    return None


def _check_operand(condition: _Condition, value: Mapping[str, Any], schema: _Schema) -> str | None:
    kind = type_of(value)
    unordered = condition.operator != "=" and kind not in _KEY_TYPES
    if unordered or (condition.operator == "begins_with" and kind == "N"):
        return (
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; operator or function: "
            f"{condition.operator}, operand type: {kind}"
        )
    if condition.name not in (schema.hash, schema.range):
        return None  # moto refuses it
    if kind != schema.types[condition.name]:
        return _NO_MATCH
    return check_sizes({condition.name: value}, schema.hash, schema.range)


def _check_filter(parameters: Mapping[str, Any], schema: _Schema) -> str | None:
    names = parameters.get("ExpressionAttributeNames") or {}
    for name in heads(str(parameters.get("FilterExpression") or "")):
        attribute = names.get(name, name)
        if attribute in (schema.hash, schema.range):
            return f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {attribute}"
    return None


def _check_start(conditions: list[_Condition], start: Any, schema: _Schema) -> str | None:
    if not start:
        return None
    if not _is_key(start, schema):
        return _INVALID_START
    for one in conditions:
        if one.name == schema.hash and not _meets(start[one.name], one):
            return "The provided starting key is outside query boundaries based on provided conditions"
        if one.name == schema.range and not _meets(start[one.name], one):
            return "The provided starting key does not match the range key predicate"
    return None


def _meets(value: Mapping[str, Any], condition: _Condition) -> bool:
    """Whether a value, of the type that the condition asks for, is one of those."""
    given, first = comparable(value), comparable(condition.values[0])
    if condition.operator == "BETWEEN":
        return bool(first <= given <= comparable(condition.values[1]))
    if condition.operator == "begins_with":
        return bool(given.startswith(first))
    return bool(_COMPARE[condition.operator](given, first))


def _is_key(start: Mapping[str, Mapping[str, Any]], schema: _Schema) -> bool:
    return {name: type_of(value) for name, value in start.items()} == {
        name: schema.types[name] for name in schema.start
    }
