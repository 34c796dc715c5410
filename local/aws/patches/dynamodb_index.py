"""Which items stand in which partition of a secondary index, kept up to date by every write.

Stock moto sorts the whole table for every query: 2,000 jobs, each looked up a few times, would be quadratic.
"""

from __future__ import annotations

from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import SecondaryIndex, Table

Place = tuple[Any, ...]


class _Index:
    """One secondary index: hash key value to the items that have it and a sort key, if the index has one."""

    def __init__(self, index: SecondaryIndex) -> None:
        self.names = tuple(index.schema_key_attrs)
        self.partitions: dict[DynamoType, dict[Place, Item]] = {}
        self._where: dict[Place, DynamoType] = {}

    def put(self, item: Item) -> None:
        place = _place(item)
        self.drop(place)
        if all(name in item.attrs for name in self.names):
            value = DynamoType(item.attrs[self.names[0]])
            self.partitions.setdefault(value, {})[place] = item
            self._where[place] = value

    def drop(self, place: Place) -> None:
        value = self._where.pop(place, None)
        if value is None:
            return
        del self.partitions[value][place]
        if not self.partitions[value]:
            del self.partitions[value]


def _place(item: Item) -> Place:
    return (item.hash_key, item.range_key)


def index_item(table: Table, item: Item) -> None:
    """Note where an item that was put or changed stands now."""
    for index in _kept(table).values():
        index.put(item)


def unindex_item(table: Table, item: Item) -> None:
    """Forget an item that is gone."""
    for index in _kept(table).values():
        index.drop(_place(item))


def in_index(table: Table, name: str, value: DynamoType) -> list[Item]:
    """The items of one partition of an index, in no order."""
    kept = _kept(table)
    schema = table.get_index(name)
    if name not in kept or kept[name].names != tuple(schema.schema_key_attrs):
        kept[name] = _Index(schema)
        for item in all_items(table):
            kept[name].put(item)
    return list(kept[name].partitions.get(value, {}).values())


def in_partition(table: Table, value: DynamoType) -> list[Item]:
    """The items under one hash key of the table, in no order."""
    found: Any = table.items.get(value)
    if not found:
        return []
    return list(found.values()) if table.has_range_key else [found]


def all_items(table: Table) -> list[Item]:
    """Every item of a table, in no order."""
    partitions: list[Any] = list(table.items.values())
    if not table.has_range_key:
        return partitions  # without a sort key moto keeps the items themselves here
    return [item for partition in partitions for item in partition.values()]


def _kept(table: Table) -> dict[str, _Index]:
    """Kept on the table itself: moto copies, swaps and drops tables, and the index must go with its items."""
    kept: dict[str, _Index] = table.__dict__.setdefault("_kept_indexes", {})
    return kept
