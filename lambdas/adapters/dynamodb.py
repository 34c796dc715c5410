"""Jobs in DynamoDB: renders the protocol's conditions, and tells a lost reply from somebody else's write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.contracts.names import (
    CREATED_AT,
    DUE_AT,
    DUE_INDEX,
    DUE_SHARD,
    JOB_SK,
    TENANT_INDEX,
    TENANT_SHARD,
)
from lambdas.core import times
from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Param
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.protocol import RULES, Change
from lambdas.core.times import Instant

BATCH_GET_MAX = 100
WRITERS = 8


class DynamoJobStore:
    """The JobStore port on one table."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        expression = Expression()
        condition = expression.condition(RULES["accept"].condition, {})
        with as_unavailable("recording a job"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item(record),
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **expression.arguments(),
                )
            except ClientError as error:
                return _standing(error)
        return None

    def apply(self, job_id: str, change: Change) -> Applied | Refused:
        expression = Expression()
        arguments = {
            "UpdateExpression": expression.update(change),
            "ConditionExpression": expression.condition(change.rule.condition, change.params),
        }
        with as_unavailable(f"{change.rule.name} of {job_id}"):
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_key(job_id),
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **arguments,
                    **expression.arguments(),
                )
            except ClientError as error:
                found = _standing(error) or None
                return Applied(found) if found and change.is_own_effect(found) else Refused(found)
        return Applied(record_in(answer["Attributes"]))

    def apply_many(self, changes: Sequence[tuple[str, Change]]) -> dict[str, str]:
        def trouble(one: tuple[str, Change]) -> str | None:
            try:
                self.apply(*one)
            except (Unavailable, UnreadableRecord) as error:
                return str(error)
            return None

        with ThreadPoolExecutor(WRITERS) as threads:
            troubles = list(threads.map(trouble, changes))
        return {job_id: why for (job_id, _), why in zip(changes, troubles, strict=True) if why is not None}

    def read(self, job_id: str) -> Mapping[str, Any] | None:
        with as_unavailable(f"reading {job_id}"):
            answer = self._client.get_item(TableName=self._table, Key=_key(job_id), ConsistentRead=True)
        return record_in(answer["Item"]) if "Item" in answer else None

    def read_many(self, job_ids: Sequence[str]) -> list[Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for start in range(0, len(job_ids), BATCH_GET_MAX):
            keys = [_key(job_id) for job_id in job_ids[start : start + BATCH_GET_MAX]]
            found |= {record["pk"]: record for record in self._batch_get(keys)}
        return [found[job_id] for job_id in job_ids if job_id in found]

    def _batch_get(self, keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        with as_unavailable("reading jobs"):
            for _ in range(5):
                answer = self._client.batch_get_item(RequestItems={self._table: {"Keys": keys}})
                items += _readable(answer.get("Responses", {}).get(self._table, []))
                keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
                if not keys:
                    return items
        raise Unavailable("reading jobs: the table keeps back what was asked", unknown=False)

    def due(self, shard: str, before: Instant, after: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        rows = self._query(
            IndexName=DUE_INDEX,
            KeyConditionExpression="#shard = :shard AND #due < :before",
            ExpressionAttributeNames={"#shard": DUE_SHARD, "#due": DUE_AT},
            ExpressionAttributeValues={":shard": {"S": shard}, ":before": {"S": times.text(before)}},
            limit=limit,
            **_start({DUE_SHARD: shard, DUE_AT: after[0], "pk": after[1], "sk": JOB_SK} if after else None),
        )
        return [(row[DUE_AT], row["pk"]) for row in rows if row["sk"] == JOB_SK]

    def of_tenant(self, shard: str, before: tuple[str, str] | None, limit: int) -> list[tuple[str, str]]:
        last = {TENANT_SHARD: shard, CREATED_AT: before[0], "pk": before[1], "sk": JOB_SK} if before else None
        rows = self._query(
            IndexName=TENANT_INDEX,
            KeyConditionExpression="#shard = :shard",
            ExpressionAttributeNames={"#shard": TENANT_SHARD},
            ExpressionAttributeValues={":shard": {"S": shard}},
            ScanIndexForward=False,
            limit=limit,
            **_start(last),
        )
        return [(row[CREATED_AT], row["pk"]) for row in rows]

    def _query(self, *, limit: int, **arguments: Any) -> list[dict[str, Any]]:
        """At most `limit` rows; a page may be empty and yet not the last, and the last may be empty."""
        rows: list[dict[str, Any]] = []
        with as_unavailable("querying jobs"):
            while len(rows) < limit:
                answer = self._client.query(TableName=self._table, Limit=limit - len(rows), **arguments)
                rows += [from_item(item) for item in answer["Items"]]
                if "LastEvaluatedKey" not in answer:
                    break
                arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return rows


class Expression:
    """DynamoDB expressions with their names and values; every name is a placeholder, as many are reserved words."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def arguments(self) -> dict[str, Any]:
        values = {"ExpressionAttributeValues": self._values} if self._values else {}
        return {"ExpressionAttributeNames": self._names, **values}

    def condition(self, condition: Condition, params: Mapping[str, Any]) -> str:
        match condition:
            case All((part,)) | AnyOf((part,)):
                return self.condition(part, params)  # DynamoDB refuses parentheses around what has some
            case All(parts):
                return "(" + " AND ".join(self.condition(part, params) for part in parts) + ")"
            case AnyOf(parts):
                return "(" + " OR ".join(self.condition(part, params) for part in parts) + ")"
            case Absent(field):
                return f"attribute_not_exists({self._name(field)})"
            case In(field, choices):
                return f"{self._name(field)} IN ({', '.join(self._value(choice) for choice in choices)})"
            case Compare(field, operator, operand):
                right = params[operand.name] if isinstance(operand, Param) else operand
                return f"{self._name(field)} {operator} {self._value(right)}"

    def update(self, change: Change) -> str:
        parts = []
        if change.sets:
            sets = (f"{self._name(name)} = {self._value(value)}" for name, value in change.sets.items())
            parts.append("SET " + ", ".join(sets))
        if change.adds:
            adds = (f"{self._name(name)} {self._value(amount)}" for name, amount in change.adds.items())
            parts.append("ADD " + ", ".join(adds))
        if change.removes:
            parts.append("REMOVE " + ", ".join(self._name(name) for name in change.removes))
        return " ".join(parts)

    def _name(self, field: str) -> str:
        self._names[f"#{field}"] = field
        return f"#{field}"

    def _value(self, value: Any) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = to_attribute(value)
        return placeholder


def _key(job_id: str) -> dict[str, Any]:
    if not job_id:
        raise ValueError("a job id must not be empty")
    return {"pk": {"S": job_id}, "sk": {"S": JOB_SK}}


def _start(last: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"ExclusiveStartKey": to_item(last)} if last else {}


def _standing(error: ClientError) -> dict[str, Any]:
    """What stood in the way of a conditional write ({} when nothing stands there); any other error goes on."""
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    return record_in(error.response.get("Item", {}))  # type: ignore[arg-type]


def record_in(item: Mapping[str, Any]) -> dict[str, Any]:
    """The record that an item holds. UnreadableRecord for what no writer of ours can have put there."""
    try:
        return from_item(item)
    except (TypeError, ValueError) as error:
        raise UnreadableRecord(f"{item.get('pk')}: {error}") from error


def _readable(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    records = []
    for item in items:
        with suppress(UnreadableRecord):
            records.append(record_in(item))
    return records


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
