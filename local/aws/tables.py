"""What gates need to know of a table: its keys, its indexes, and the items that a call is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

from local.aws.lock import MOTO
from local.stack.place import ACCOUNT

Item = dict[str, Any]


def find_table(region: str, name: str | None) -> Table | None:
    """A table by its name or ARN; None when there is none (moto says so to the caller)."""
    if not name:
        return None
    with MOTO:
        return dynamodb_backends[ACCOUNT][region].tables.get(name.rsplit("/", 1)[-1])


def key_types(table: Table) -> dict[str, str]:
    """The table's own key attributes, each with its type."""
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in table.attr}
    return {name: types[name] for name in table.table_key_attrs}


def stored_item(table: Table, source: Mapping[str, Any]) -> Item | None:
    """A copy of the item under the key in `source` (a key, or a whole item), in DynamoDB's JSON form."""
    if not set(table.table_key_attrs) <= set(source):
        return None
    found: Any = table.items.get(DynamoType(source[table.hash_key_attr]))
    if found and table.range_key_attr:
        found = found.get(DynamoType(source[table.range_key_attr]))
    if not found:
        return None
    return {name: value.to_regular_json() for name, value in found.attrs.items()}


def projected(table: Table, index: Any, item: Item | None) -> Item | None:
    """What an index holds of an item; None when the item does not stand in it."""
    if item is None or not all(name in item for name in index.schema_key_attrs):
        return None
    if index.projection.get("ProjectionType") == "ALL":
        return item
    names = {*table.table_key_attrs, *index.schema_key_attrs, *index.projection.get("NonKeyAttributes", [])}
    return {name: value for name, value in item.items() if name in names}
