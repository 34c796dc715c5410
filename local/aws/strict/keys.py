"""What DynamoDB demands of the keys that a call names: the table's own, of their types, neither empty nor too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.dynamodb.models.table import Table

from local.aws.sizes import value_size
from local.aws.tables import key_types

MOST_HASH_BYTES = 2048
MOST_RANGE_BYTES = 1024

_EMPTY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
    "string value. Key: {}"
)
Key = Mapping[str, Mapping[str, Any]]


def check_key(table: Table | None, key: Key) -> str | None:
    """Why DynamoDB finds no item under such a key, or None; without a table only what no table allows."""
    empty = next((name for name, value in key.items() if value in ({"S": ""}, {"B": ""})), None)
    if empty is not None:
        return _EMPTY.format(empty)
    if table is None:
        return None
    if {name: next(iter(value)) for name, value in key.items()} != key_types(table):
        return "The provided key element does not match the schema"
    return check_sizes(key, table.hash_key_attr, table.range_key_attr)


def check_sizes(attributes: Key, hash_name: str | None, range_name: str | None) -> str | None:
    """Why the key among these attributes is too long, or None. AWS's first text has no blank before its number."""
    if _bytes(attributes, hash_name) > MOST_HASH_BYTES:
        return (
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit "
            f"of{MOST_HASH_BYTES} bytes"
        )
    if _bytes(attributes, range_name) > MOST_RANGE_BYTES:
        return (
            "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size "
            f"limit of {MOST_RANGE_BYTES} bytes"
        )
    return None


def _bytes(attributes: Key, name: str | None) -> int:
    value = attributes.get(name) if name else None
    return value_size(value) if value and next(iter(value)) in ("S", "B") else 0
