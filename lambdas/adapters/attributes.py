"""Records as DynamoDB's items: plain values to its attributes and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.core.job import UnreadableRecord


def record_in(item: Mapping[str, Any]) -> dict[str, Any]:
    """The record that an item holds. UnreadableRecord for what no writer of ours can have put there."""
    try:
        return from_item(item)
    except (TypeError, ValueError) as error:
        raise UnreadableRecord(f"{item.get('pk')}: {error}") from error


def to_item(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_attribute(value) for name, value in record.items()}


def from_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_attribute(attribute) for name, attribute in item.items()}


def to_attribute(value: Any) -> dict[str, Any]:
    """Text, whole numbers, booleans, lists and maps. Anything else (a float above all) is a mistake: TypeError."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case list() | tuple():
            return {"L": [to_attribute(part) for part in value]}
        case Mapping():
            return {"M": to_item(value)}
        case _:
            raise TypeError(f"{type(value).__name__} does not belong in a record")


def from_attribute(attribute: Mapping[str, Any]) -> Any:
    """TypeError for kinds that no record of ours has."""
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return int(value)
        case "L":
            return [from_attribute(part) for part in value]
        case "M":
            return from_item(value)
        case _:
            raise TypeError(f"a record holds no attribute of kind {kind}")
