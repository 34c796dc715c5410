"""What a DynamoDB call consumes, worked out from the items before and after it; moto's own figure is a constant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moto.dynamodb.models.table import Table

from local.aws.calls import Call
from local.aws.sizes import index_write_units, item_size, read_units, write_units
from local.aws.tables import Item, find_table, projected, stored_item

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
READS = {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}
_BATCHES = {"BatchWriteItem", "TransactWriteItems", "BatchGetItem", "TransactGetItems"}


@dataclass
class Consumed:
    """Units of one table; `index` holds what of them fell to each index."""

    table: str
    write: float = 0.0
    read: float = 0.0
    index: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All units together, as `CapacityUnits` reports them."""
        return self.write + self.read


@dataclass(frozen=True)
class Target:
    """An item that a write is about, as it was before."""

    table: Table
    key: Mapping[str, Any]
    before: Item | None


def targets(call: Call) -> list[Target]:
    """The items that a write may change, as they are now."""
    found = []
    for name, source in _write_sources(call):
        table = find_table(call.region, name)
        if table is not None:
            found.append(Target(table, source, stored_item(table, source)))
    return found


def _write_sources(call: Call) -> list[tuple[str, Mapping[str, Any]]]:
    parameters = call.parameters
    if call.operation == "TransactWriteItems":
        parts = [part for entry in parameters.get("TransactItems") or [] for part in entry.values()]
        return [(part.get("TableName", ""), part.get("Key") or part.get("Item") or {}) for part in parts]
    if call.operation == "BatchWriteItem":
        return [
            (table, part.get("Key") or part.get("Item") or {})
            for table, requests in (parameters.get("RequestItems") or {}).items()
            for request in requests
            for part in request.values()
        ]
    return [(parameters.get("TableName", ""), parameters.get("Key") or parameters.get("Item") or {})]


def of_write(call: Call, before: list[Target], succeeded: bool) -> list[Consumed]:
    """What a write consumed, now that it is done; a failed condition costs as much as the item that was in its way."""
    transactional = call.operation == "TransactWriteItems"
    consumed: dict[str, Consumed] = {}
    for target in before:
        used = consumed.setdefault(target.table.name, Consumed(target.table.name))
        after = stored_item(target.table, target.key) if succeeded else target.before
        sizes = [item_size(item) for item in (target.before, after) if item is not None]
        used.write += write_units(*sizes, transactional=transactional)
        for index in target.table.all_indexes():
            units = _index_units(target.table, index, target.before, after, transactional)
            if units:
                used.write += units
                used.index[index.name] = used.index.get(index.name, 0.0) + units
    return list(consumed.values())


def _index_units(table: Table, index: Any, before: Item | None, after: Item | None, transactional: bool) -> float:
    old, new = projected(table, index, before), projected(table, index, after)
    moved = old is not None and new is not None and any(old[name] != new[name] for name in index.schema_key_attrs)
    if moved:
        return index_write_units(old, None, transactional) + index_write_units(None, new, transactional)
    return index_write_units(old, new, transactional)


def of_read(call: Call, answer: Mapping[str, Any]) -> list[Consumed]:
    """What a read consumed: each item by itself where it was asked for by key, all together in a query or scan."""
    if call.operation in _BATCHES:
        return _of_keys(call)
    parameters = call.parameters
    table = find_table(call.region, parameters.get("TableName"))
    if table is None:
        return []
    consistent = bool(parameters.get("ConsistentRead"))
    if call.operation == "GetItem":
        size = item_size(stored_item(table, parameters.get("Key") or {}) or {})
        return [Consumed(table.name, read=read_units(size, consistent=consistent))]
    units = read_units(_page_size(table, parameters, answer), consistent=consistent)
    index = parameters.get("IndexName")
    return [Consumed(table.name, read=units, index={index: units} if index else {})]


def _page_size(table: Table, parameters: Mapping[str, Any], answer: Mapping[str, Any]) -> int:
    """Bytes that a query or scan read. What a filter dropped was read too, so it is charged at the average size."""
    index = next((one for one in table.all_indexes() if one.name == parameters.get("IndexName")), None)
    sizes = []
    for item in answer.get("Items") or []:
        whole = stored_item(table, item) or item
        sizes.append(item_size((projected(table, index, whole) if index else whole) or item))
    scanned = int(answer.get("ScannedCount") or len(sizes))
    return sum(sizes) * scanned // len(sizes) if sizes else 0


def _of_keys(call: Call) -> list[Consumed]:
    transactional = call.operation == "TransactGetItems"
    units: dict[str, float] = defaultdict(float)
    for name, key, consistent in _asked(call):
        table = find_table(call.region, name)
        if table is not None:
            size = item_size(stored_item(table, key) or {})
            units[table.name] += read_units(size, consistent=consistent, transactional=transactional)
    return [Consumed(table, read=used) for table, used in units.items()]


def _asked(call: Call) -> list[tuple[str, Mapping[str, Any], bool]]:
    if call.operation == "TransactGetItems":
        parts = [part for entry in call.parameters.get("TransactItems") or [] for part in entry.values()]
        return [(part.get("TableName", ""), part.get("Key") or {}, True) for part in parts]
    return [
        (table, key, bool(request.get("ConsistentRead")))
        for table, request in (call.parameters.get("RequestItems") or {}).items()
        for key in request.get("Keys") or []
    ]


def reported(consumed: list[Consumed], call: Call) -> Any:
    """`ConsumedCapacity` as the answer carries it; None when it was not asked for."""
    detail = call.parameters.get("ReturnConsumedCapacity", "NONE")
    if detail not in ("TOTAL", "INDEXES"):
        return None
    entries = [_entry(used, detail, call.operation.startswith("Transact")) for used in consumed]
    return entries if call.operation in _BATCHES else next(iter(entries), None)


def _entry(used: Consumed, detail: str, transactional: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"TableName": used.table, "CapacityUnits": used.total}
    if transactional:
        entry["WriteCapacityUnits" if used.write else "ReadCapacityUnits"] = used.total
    if detail == "INDEXES":
        entry["Table"] = {"CapacityUnits": used.total - sum(used.index.values())}
        if used.index:
            entry["GlobalSecondaryIndexes"] = {name: {"CapacityUnits": units} for name, units in used.index.items()}
    return entry
