"""Writes that are one change each: checked as they would be stored, one stream record, all of it or nothing.

Stock moto creates the item of an upsert by an extra put of its keys (a second INSERT record); an update that fails
half way leaves what it did so far, or the empty item, behind; index keys of a wrong type are stored (MOTO-10).
"""

from __future__ import annotations

import copy
from typing import Any, cast

from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item, LimitedSizeDict
from moto.dynamodb.models.table import Table

from local.aws.items import PUT_TOO_LARGE, UPDATE_TOO_LARGE, IndexKey, check_depth, check_index_keys, check_size
from local.aws.patches.dynamodb_index import index_item, unindex_item
from local.aws.patches.dynamodb_streams import one_record
from local.aws.patches.patch import Patch

_stock_update = DynamoDBBackend.update_item
_stock_put = Table.put_item
_stock_delete = Table.delete_item
_stock_get = Table.get_item


def _put_item(table: Table, item_attrs: dict[str, Any], *args: Any, **kwargs: Any) -> Item:
    _check(table, item_attrs, PUT_TOO_LARGE)
    item = _stock_put(table, item_attrs, *args, **kwargs)
    index_item(table, item)
    return item


def _get_item(table: Table, hash_key: DynamoType, range_key: DynamoType | None = None, *args: Any) -> Item | None:
    """Stock makes a partition for every key that somebody asks for in vain."""
    if table.has_range_key and range_key and hash_key not in table.items:
        return None
    return _stock_get(table, hash_key, range_key, *args)


def _delete_item(table: Table, hash_key: DynamoType, range_key: DynamoType | None) -> Item | None:
    item = _stock_delete(table, hash_key, range_key)
    if item is not None:
        unindex_item(table, item)
    if table.has_range_key and not table.items.get(hash_key):
        table.items.pop(hash_key, None)  # stock leaves an empty partition behind
    return item


def _update_item(backend: DynamoDBBackend, table_name: str, key: dict[str, Any], *args: Any, **kwargs: Any) -> Item:
    table = backend.get_table(table_name)
    before = stored(table, key)
    snapshot = copy.deepcopy(before)
    try:
        with one_record(table.stream_shard):
            item = _stock_update(backend, table_name, key, *args, **kwargs)
            _check(table, plain(item), UPDATE_TOO_LARGE)
    except Exception:
        _restore(table, key, before, snapshot)
        raise
    index_item(table, item)
    return item


def _check(table: Table, item: dict[str, Any], too_large: str) -> None:
    problem = check_index_keys(item, _index_keys(table)) or check_size(item, too_large) or check_depth(item)
    if problem:
        raise MockValidationException(problem)


def _index_keys(table: Table) -> list[IndexKey]:
    types = {definition["AttributeName"]: definition["AttributeType"] for definition in table.attr}
    return [
        IndexKey(index.name, name, types[name])
        for index in table.all_indexes()
        for name in index.schema_key_attrs
        if name in types
    ]


def plain(item: Item) -> dict[str, Any]:
    """The item in DynamoDB's JSON form."""
    return {name: value.to_regular_json() for name, value in item.attrs.items()}


def stored(table: Table, key: dict[str, Any]) -> Item | None:
    """The item itself, not a copy; None when there is none or the key is not this table's."""
    if table.hash_key_attr not in key or (table.range_key_attr and table.range_key_attr not in key):
        return None
    found: Any = table.items.get(DynamoType(key[table.hash_key_attr]))
    if found is not None and table.range_key_attr is not None:
        found = found.get(DynamoType(key[table.range_key_attr]))
    return cast("Item | None", found)


def _restore(table: Table, key: dict[str, Any], item: Item | None, snapshot: Item | None) -> None:
    if item is not None and snapshot is not None:
        item.attrs = snapshot.attrs
        return
    left_over = stored(table, key)
    if left_over is not None:
        with one_record(table.stream_shard, silent=True):
            _delete_item(table, left_over.hash_key, left_over.range_key)


def _set_attribute(attrs: LimitedSizeDict, name: str, value: Any) -> None:
    """Stock adds up the whole item for every attribute it sets, and allows less than AWS; `local.aws.strict`
    refuses what is larger than 400 KB."""
    dict.__setitem__(attrs, name, value)


PATCHES = (
    Patch(Table, "put_item", _put_item),
    Patch(Table, "get_item", _get_item),
    Patch(Table, "delete_item", _delete_item),
    Patch(DynamoDBBackend, "update_item", _update_item),
    Patch(LimitedSizeDict, "__setitem__", _set_attribute),
)
