"""Query that touches only its own partition, and pages like AWS's.

Stock moto looks at every item of the table for each query, and forgets `LastEvaluatedKey` when a page ends exactly
at the last item (MOTO-14).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import RESULT_SIZE_LIMIT, SecondaryIndex, Table

from local.aws.patches.dynamodb_index import in_index, in_partition
from local.aws.patches.patch import Patch

_stock_query = Table.query
_SIGNATURE = inspect.signature(_stock_query)

Page = tuple[list[Item], int, dict[str, Any] | None]


def _query(*args: Any, **kwargs: Any) -> Page:
    bound = _SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    asked = bound.arguments
    table, index_name = asked["self"], asked["index_name"]
    index = _plain_index(table, index_name)
    if (
        asked["hash_key"] is None
        or asked["filter_kwargs"]
        or (index_name and (index is None or asked["consistent_read"]))
    ):
        return _stock_query(*bound.args, **bound.kwargs)
    names = [*(index.schema_key_attrs if index else []), *table.table_key_attrs]
    ordered = _ordered(table, index, names, asked)
    page, last = _page(ordered, asked["limit"])
    found = [_projected(table, index, item) for item in page]
    if asked["filter_expression"] is not None:
        found = [item for item in found if asked["filter_expression"].expr(item)]
    if asked["projection_expressions"]:
        found = [item.project(asked["projection_expressions"]) for item in found]
    return found, len(page), table._get_last_evaluated_key(last, index_name) if last else None


def _ordered(table: Table, index: SecondaryIndex | None, names: Sequence[str], asked: dict[str, Any]) -> list[Item]:
    """What fits the key conditions, in order, from the start key on."""
    hash_key, forward = asked["hash_key"], asked["scan_index_forward"] is not False
    items = in_index(table, index.name, hash_key) if index else in_partition(table, hash_key)
    range_name = _range_name(table, index)
    if asked["range_comparison"] and range_name:
        comparison, values = asked["range_comparison"], asked["range_objs"]
        items = [item for item in items if item.attrs[range_name].compare(comparison, values)]
    ranked = sorted(((_rank(item.attrs, names), item) for item in items), key=itemgetter(0), reverse=not forward)
    if not asked["exclusive_start_key"]:
        return [item for _, item in ranked]
    start = _rank(asked["exclusive_start_key"], names)
    return [item for rank, item in ranked if (rank > start if forward else rank < start)]


def _plain_index(table: Table, name: str | None) -> SecondaryIndex | None:
    """The index, if it has one hash key and at most one sort key; stock answers for all others."""
    index = next((one for one in table.all_indexes() if one.name == name), None)
    kinds = [key["KeyType"] for key in index.schema] if index else []
    return index if kinds in (["HASH"], ["HASH", "RANGE"]) else None


def _range_name(table: Table, index: SecondaryIndex | None) -> str | None:
    if index is None:
        return table.range_key_attr
    return index.schema_key_attrs[1] if len(index.schema_key_attrs) == 2 else None


def _rank(attributes: Any, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(DynamoType(attributes[name]).cast_value for name in names)


def _page(items: list[Item], limit: int | None) -> tuple[list[Item], Item | None]:
    """The items of one page, and the one to go on after: also when the limit falls on the very last one."""
    size = 0
    for position, item in enumerate(items):
        size += item.size()
        if position and size > RESULT_SIZE_LIMIT:
            return items[:position], items[position - 1]
        if position + 1 == limit:
            return items[: position + 1], item
    return items, None


def _projected(table: Table, index: SecondaryIndex | None, item: Item) -> Item:
    """A copy of what the index holds of the item."""
    if index is None or index.projection.get("ProjectionType") == "ALL":
        return copy.deepcopy(item)
    names = {*index.schema_key_attrs, *table.table_key_attrs, *index.projection.get("NonKeyAttributes", [])}
    projected = Item(copy.copy(item.hash_key), copy.copy(item.range_key), {})
    projected.attrs = LimitedSizeDict()
    for name, value in item.attrs.items():
        if name in names:
            dict.__setitem__(projected.attrs, name, copy.deepcopy(value))
    return projected


PATCHES = (Patch(Table, "query", _query),)
