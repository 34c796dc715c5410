"""Records in the Jobs table, by their keys: the one place that writes under a condition of the protocol, and tells a
lost reply from somebody else's write. Jobs, their deliveries and the circuits of endpoints are stores on top of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.attributes import record_in, to_item
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.adapters.expressions import Expression
from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import RULES, Change

Key = tuple[str, str]  # pk, sk


class Records:
    """One table. `what`: in an error's text, what was being done."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def create(self, record: Mapping[str, Any], what: str) -> Mapping[str, Any] | None:
        """Row 1. None when it was created, else the record that stands there. Raises Unavailable."""
        expression = Expression()
        condition = expression.condition(RULES["accept"].condition, {})
        with as_unavailable(what):
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

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        """One conditional write; its own effect counts as applied. Raises Unavailable."""
        expression = Expression()
        arguments = {
            "UpdateExpression": expression.update(change),
            "ConditionExpression": expression.condition(change.rule.condition, change.params),
        }
        with as_unavailable(f"{change.rule.name} of {key[0]}"):
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=item_key(key),
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **arguments,
                    **expression.arguments(),
                )
            except ClientError as error:
                found = _standing(error) or None
                return Applied(found) if found and change.is_own_effect(found) else Refused(found)
        return Applied(record_in(answer["Attributes"]))

    def read(self, key: Key) -> Mapping[str, Any] | None:
        """Raises Unavailable."""
        with as_unavailable(f"reading {key[0]}"):
            answer = self._client.get_item(TableName=self._table, Key=item_key(key), ConsistentRead=True)
        return record_in(answer["Item"]) if "Item" in answer else None

    def query(self, what: str, *, limit: int, **arguments: Any) -> list[dict[str, Any]]:
        """At most `limit` items; a page may be empty and yet not the last, and the last may be empty. Raises
        Unavailable."""
        items: list[dict[str, Any]] = []
        with as_unavailable(what):
            while len(items) < limit:
                answer = self._client.query(TableName=self._table, Limit=limit - len(items), **arguments)
                items += answer["Items"]
                if "LastEvaluatedKey" not in answer:
                    break
                arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return items


def item_key(key: Key) -> dict[str, Any]:
    if not all(key):
        raise ValueError("a key must not be empty")
    return to_item({"pk": key[0], "sk": key[1]})


def _standing(error: ClientError) -> dict[str, Any]:
    """What stood in the way of a conditional write ({} when nothing stands there); any other error goes on."""
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    return record_in(error.response.get("Item", {}))  # type: ignore[arg-type]
