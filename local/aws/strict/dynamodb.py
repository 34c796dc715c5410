"""What DynamoDB demands of keys, values, expressions and batches (MOTO-08 to MOTO-11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.aws.calls import Call, Refusal
from local.aws.sizes import item_size
from local.aws.strict.expressions import check_expressions
from local.aws.strict.keys import check_key, check_sizes
from local.aws.strict.queries import check_query, check_scan
from local.aws.strict.values import check_value
from local.aws.tables import find_table

MOST_BATCH_WRITES = 25
LARGEST_TRANSACTION = 4 * 1024 * 1024

Part = Mapping[str, Any]


def _parts(call: Call) -> Iterator[Part]:
    """The single operations of a call, each with its own TableName, Key or Item, and expressions."""
    parameters = call.parameters
    if call.operation.startswith("Transact"):
        for entry in parameters.get("TransactItems") or []:
            yield from entry.values()
    elif call.operation == "BatchGetItem":
        for table, request in (parameters.get("RequestItems") or {}).items():
            yield {**request, "TableName": table}
    elif call.operation == "BatchWriteItem":
        for table, requests in (parameters.get("RequestItems") or {}).items():
            for request in requests:
                for operation in request.values():
                    yield {**operation, "TableName": table}
    else:
        yield parameters


def _keys(part: Part) -> Iterator[Mapping[str, Any]]:
    if "Key" in part:
        yield part["Key"]
    yield from part.get("Keys") or []


def _has_sound_keys(call: Call) -> Refusal | None:
    for part in _parts(call):
        table = find_table(call.region, part.get("TableName"))
        for key in _keys(part):
            problem = check_key(table, key)
            if problem:
                return _invalid(problem)
        if table is not None and "Item" in part:
            problem = check_sizes(part["Item"], table.hash_key_attr, table.range_key_attr)
            if problem:
                return _invalid(problem)
    return None


def _has_sound_values(call: Call) -> Refusal | None:
    for part in _parts(call):
        for value in _values(part):
            problem = check_value(value)
            if problem:
                return _invalid(problem)
    return None


def _values(part: Part) -> Iterator[Mapping[str, Any]]:
    for name in ("ExpressionAttributeValues", "Item", "ExclusiveStartKey"):
        yield from (part.get(name) or {}).values()
    for key in _keys(part):
        yield from key.values()


def _has_sound_expressions(call: Call) -> Refusal | None:
    return next((refusal for part in _parts(call) if (refusal := check_expressions(part))), None)


def _query_is_sound(call: Call) -> Refusal | None:
    check = check_query if call.operation == "Query" else check_scan
    table = find_table(call.region, call.parameters.get("TableName"))
    problem = check(table, call.parameters) if table is not None else None
    return _invalid(problem) if problem else None


def _asks_for_something(call: Call) -> Refusal | None:
    """Parts of a transaction, and keys to get, are at least one."""
    field = "TransactItems" if call.operation.startswith("Transact") else "RequestItems"
    asked = call.parameters.get(field)
    if asked and not (call.operation == "BatchGetItem" and not all(part.get("Keys") for part in _parts(call))):
        return None
    return _invalid(
        f"1 validation error detected: Value at '{field[0].lower()}{field[1:]}' failed to satisfy constraint: Member "
        "must have length greater than or equal to 1"
    )


def _has_positive_limit(call: Call) -> Refusal | None:
    limit = call.parameters.get("Limit")
    if limit is None or int(limit) >= 1:
        return None
    return _invalid(
        f"1 validation error detected: Value '{limit}' at 'limit' failed to satisfy constraint: Member must have "
        "value greater than or equal to 1"
    )


def _batch_is_short(call: Call) -> Refusal | None:
    count = sum(1 for _ in _parts(call))
    if 1 <= count <= MOST_BATCH_WRITES:
        return None
    return _invalid(
        f"1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length "
        f"less than or equal to {MOST_BATCH_WRITES} and greater than or equal to 1, not {count}"
    )


def _batch_has_distinct_keys(call: Call) -> Refusal | None:
    seen: set[tuple[Any, ...]] = set()
    for part in _parts(call):
        table = find_table(call.region, part.get("TableName"))
        if table is None:
            continue
        source = part.get("Key") or part.get("Item") or {}
        key = (table.name, *(str(source.get(name)) for name in table.table_key_attrs))
        if key in seen:
            return _invalid("Provided list of item keys contains duplicates")
        seen.add(key)
    return None


def _transaction_is_small(call: Call) -> Refusal | None:
    size = sum(item_size(part.get("Item") or {}) for part in _parts(call))
    if size <= LARGEST_TRANSACTION:
        return None
    return _invalid("Collection size of the items in the transaction exceeded the limit of 4 MB")


def _invalid(message: str) -> Refusal:
    return Refusal("ValidationException", message)


_ALL = (_has_sound_values, _has_sound_keys, _has_sound_expressions)

RULES = {
    ("dynamodb", "BatchGetItem"): (_asks_for_something, *_ALL),
    ("dynamodb", "BatchWriteItem"): (_batch_is_short, *_ALL, _batch_has_distinct_keys),
    ("dynamodb", "DeleteItem"): _ALL,
    ("dynamodb", "GetItem"): _ALL,
    ("dynamodb", "PutItem"): _ALL,
    ("dynamodb", "Query"): (_has_positive_limit, *_ALL, _query_is_sound),
    ("dynamodb", "Scan"): (_has_positive_limit, *_ALL, _query_is_sound),
    ("dynamodb", "TransactGetItems"): (_asks_for_something, *_ALL),
    ("dynamodb", "TransactWriteItems"): (_asks_for_something, *_ALL, _transaction_is_small),
    ("dynamodb", "UpdateItem"): _ALL,
}
