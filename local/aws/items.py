"""What DynamoDB demands of an item as it would be stored; asked by every write, whichever operation makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from local.aws.sizes import ITEM_LIMIT, Attributes, item_size

DEEPEST = 32
"""Levels of an attribute: the attribute itself is the first."""
TOO_DEEP = "Nesting Levels have exceeded supported limits"
PUT_TOO_LARGE = "Item size has exceeded the maximum allowed size"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"


@dataclass(frozen=True)
class IndexKey:
    """An attribute that is a key of a secondary index, and the type it is declared with."""

    index: str
    attribute: str
    type: str


def check_index_keys(item: Attributes, keys: Iterable[IndexKey]) -> str | None:
    """Why DynamoDB would not store the item under its index keys (absent ones are fine), or None."""
    for key in keys:
        value = item.get(key.attribute)
        if value is None:
            continue
        actual, content = next(iter(value.items()))
        if actual != key.type:
            return (
                "One or more parameter values were invalid: Type mismatch for Index Key "
                f"{key.attribute} Expected: {key.type} Actual: {actual} IndexName: {key.index}"
            )
        if content in ("", b""):
            return (
                "One or more parameter values are not valid. A value specified for a secondary index key is not "
                "supported. The AttributeValue for a key attribute cannot contain an empty string value. "
                f"IndexName: {key.index}, IndexKey: {key.attribute}"
            )
    return None


def check_size(item: Attributes, message: str = PUT_TOO_LARGE) -> str | None:
    """Why the item is too large (400 KB, names included), or None."""
    return message if item_size(item) > ITEM_LIMIT else None


def check_depth(item: Attributes) -> str | None:
    """Why the item is nested too deep, or None."""
    return TOO_DEEP if any(is_too_deep(value) for value in item.values()) else None


def is_too_deep(value: Mapping[str, object], room: int = DEEPEST) -> bool:
    """Whether a value has more levels than there is room for."""
    inner = [*_elements(value.get("L")), *_elements(value.get("M"))]
    return room < 1 or any(is_too_deep(one, room - 1) for one in inner)


def _elements(content: object) -> Iterable[Mapping[str, object]]:
    if isinstance(content, dict):
        return content.values()
    return content if isinstance(content, list) else ()


def digits_of(value: Mapping[str, object]) -> Iterable[str]:
    """Every number in an attribute value, however deep."""
    for kind, content in value.items():
        if kind == "N":
            yield str(content)
        elif kind == "NS" and isinstance(content, list):
            yield from map(str, content)
        elif kind == "L" and isinstance(content, list):
            for element in content:
                yield from digits_of(element)
        elif kind == "M" and isinstance(content, dict):
            for element in content.values():
                yield from digits_of(element)
