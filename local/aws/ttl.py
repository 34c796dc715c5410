"""Deletes items whose time to live is over, which moto never does (MOTO-15), as late as AWS may do it."""

from __future__ import annotations

import time

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

from local.aws.lock import MOTO
from local.aws.patches.dynamodb_index import all_items
from local.stack.place import ACCOUNT

LATE_S = 48 * 3600
"""How long after its end AWS may still show an item: whoever reads must look at the time himself until then."""

_TOO_OLD_S = 5 * 365 * 86400
_BY_SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def delete_expired(late_s: float = LATE_S) -> int:
    """Delete from every table what ended more than `late_s` seconds ago; how many items that were.

    A stream gets a REMOVE record for each that says who deleted it, as Lambda's filters can tell.
    """
    now = time.time()
    deleted = 0
    with MOTO:
        for backend in dynamodb_backends[ACCOUNT].values():
            for table in backend.tables.values():
                for item in all_items(table):
                    if _is_over(table, item, now - late_s, now):
                        _delete(table, item)
                        deleted += 1
    return deleted


def _is_over(table: Table, item: Item, latest: float, now: float) -> bool:
    if table.ttl.get("TimeToLiveStatus") != "ENABLED":
        return False
    value = item.attrs.get(table.ttl["AttributeName"])
    if value is None or value.type != "N":
        return False
    # What looks more than five years old was meant in another unit, DynamoDB thinks, and keeps it.
    return bool(now - _TOO_OLD_S < float(value.value) <= latest)


def _delete(table: Table, item: Item) -> None:
    table.delete_item(item.hash_key, item.range_key)
    if table.stream_shard is not None:
        table.stream_shard.items[-1].record["userIdentity"] = _BY_SERVICE
