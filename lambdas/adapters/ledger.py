"""The Ledger port: small items of operations (leases, runs, reviews) in the Jobs table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.attributes import from_item, record_in, to_attribute, to_item
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.contracts.names import LEASE_SK
from lambdas.core import times
from lambdas.core.times import Instant


class DynamoLedger:
    """A lease is held by one holder until its time is over or it is given back; every write of a holder is fenced."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def take(self, name: str, holder: str, now: Instant, until: Instant) -> Mapping[str, Any] | None:
        found = self._update(
            _lease(name),
            "SET #holder = :me, #until = :until",
            "attribute_not_exists(#until) OR #until < :now OR #holder = :me",
            {":me": holder, ":until": times.text(until), ":now": times.text(now)},
        )
        return None if found is None else found.get("state", {})

    def keep(self, name: str, holder: str, until: Instant, state: Mapping[str, Any]) -> bool:
        values = {":me": holder, ":until": times.text(until), ":state": state}
        return self._update(_lease(name), "SET #until = :until, #state = :state", "#holder = :me", values) is not None

    def give_back(self, name: str, holder: str, state: Mapping[str, Any]) -> bool:
        values = {":me": holder, ":state": state}
        return self._update(_lease(name), "SET #state = :state REMOVE #until", "#holder = :me", values) is not None

    def create(self, pk: str, sk: str, fields: Mapping[str, Any]) -> bool:
        with as_unavailable(f"creating {pk}"):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=to_item({**fields, "pk": pk, "sk": sk}),
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                return _is_mine(error, fields)
        return True

    def save(self, pk: str, sk: str, fields: Mapping[str, Any], when: Mapping[str, Any] | None = None) -> bool:
        names = {f"#f{n}": name for n, name in enumerate(fields)}
        values = {f":f{n}": value for n, value in enumerate(fields.values())}
        asked = {f"#w{n}": name for n, name in enumerate(when or {})}
        expected = {f":w{n}": value for n, value in enumerate((when or {}).values())}
        with as_unavailable(f"saving {pk}"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=to_item({"pk": pk, "sk": sk}),
                    UpdateExpression="SET " + ", ".join(f"#f{n} = :f{n}" for n in range(len(fields))),
                    ConditionExpression=" AND ".join(
                        ["attribute_exists(pk)", *(f"#w{n} = :w{n}" for n in range(len(asked)))]
                    ),
                    ExpressionAttributeNames={**names, **asked},
                    ExpressionAttributeValues=to_item({**values, **expected}),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                return _is_mine(error, fields)
        return True

    def read(self, pk: str, sk: str) -> Mapping[str, Any] | None:
        with as_unavailable(f"reading {pk}"):
            answer = self._client.get_item(
                TableName=self._table, Key=to_item({"pk": pk, "sk": sk}), ConsistentRead=True
            )
        return record_in(answer["Item"]) if "Item" in answer else None

    def page(self, pk: str, after: str, limit: int) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        while len(found) < limit:  # one answer of DynamoDB ends at a megabyte
            with as_unavailable(f"reading {pk}"):
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND sk > :after",
                    ExpressionAttributeValues={":pk": to_attribute(pk), ":after": to_attribute(after or " ")},
                    Limit=limit - len(found),
                )
            found += [record_in(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                break
            after = found[-1]["sk"]
        return found

    def _update(
        self, key: Mapping[str, Any], update: str, condition: str, values: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The item after the write; None when the condition did not hold."""
        named = {"#holder": "holder", "#until": "lease_until", "#state": "state"}
        with as_unavailable(f"lease {key['pk']}"):
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=to_item(key),
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeNames={n: name for n, name in named.items() if n in update + condition},
                    ExpressionAttributeValues=to_item(values),
                    ReturnValues="ALL_NEW",
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                return None
        return from_item(answer["Attributes"])


def _is_mine(error: ClientError, fields: Mapping[str, Any]) -> bool:
    """Whether what refused the write is its own effect, written by an earlier copy of it whose reply was lost."""
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    standing = record_in(error.response.get("Item", {}))  # type: ignore[arg-type]
    return bool(standing) and all(standing.get(name) == value for name, value in fields.items())


def _lease(name: str) -> dict[str, str]:
    return {"pk": f"lease#{name}", "sk": LEASE_SK}
